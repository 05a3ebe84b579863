"""Select the papers whose pages are fetched: those of a month that the dump lacks, or those that a
user names.

Also arXiv's terms of use, which the user sees before the first request.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pipeline.arxiv.category_filter import verdict
from pipeline.arxiv.identifiers import month_of, normalize_arxiv_id
from pipeline.arxiv.metadata_stage import records_of_month
from pipeline.arxiv.months import parse_month
from pipeline.arxiv.record import Record
from pipeline.corpus.dump.catalogue import read_dump
from pipeline.engine.stage import Workspace
from pipeline.errors import SettingError
from pipeline.settings import SAMPLE_DUMP, SUBSETS, Settings

# Sources: https://info.arxiv.org/help/api/tou.html, https://info.arxiv.org/help/bulk_data.html,
# https://info.arxiv.org/help/robots.html, read in the versions of 2025.
TERMS = """\
Fetching pages from arXiv is off until you accept its terms. In short:
- At most one request in three seconds over one connection, for all machines
  under your control together: citeloom keeps to that on this machine, and you
  on the others.
- No indiscriminate automated downloads: fetch new months, never the whole
  corpus. arXiv denies access to those who go on.
- Copyright stays with the authors or their publishers; arXiv cannot pass it
  on. You may keep and use what you fetch for personal use or research. You
  must not store and serve it to others, or republish it, unless the paper's
  own licence or its copyright holder allows that. What you build from full
  texts must link back to arXiv.
- Set CITELOOM_ARXIV_USER_AGENT to a contact, so that arXiv can reach you. For
  harvesting, arXiv asks for its mirror export.arxiv.org: if that serves the
  pages, set CITELOOM_HTML_URL=https://export.arxiv.org/html.
The whole terms: https://info.arxiv.org/help/api/tou.html, https://info.arxiv.org/help/bulk_data.html
To accept them: give the option --accept-terms"""


@dataclass(frozen=True, slots=True)
class Selection:
    """Papers to fetch, the folder of the dump, and counts of papers left out by reason."""

    ids: tuple[str, ...]
    dump: Path
    left_out: dict[str, int]


def select_papers(workspace: Workspace, month: str | None, named: Sequence[str] = ()) -> Selection:
    """The named papers, else those of a month in the metadata whose categories the settings
    include; without those that the dump has in any subset.

    Raises SettingError where the dump is no folder that pages can be written to, neither month nor
    paper is named, a name is no arXiv id or of another month, or there is no metadata of the month.
    """
    dump = _folder(workspace.settings)
    if named:
        ids, left_out = _named(named, month), Counter[str]()
    elif month:
        ids, left_out = _of_month(workspace, parse_month(month))
    else:
        raise SettingError("name what to fetch: --month 2026-10, or papers by --ids")
    in_dump = _in_dump(workspace.settings, {month_of(name) or "" for name in ids})
    left_out["in_dump"] = len(in_dump.intersection(ids))
    return Selection(
        tuple(name for name in ids if name not in in_dump), dump, dict(sorted((+left_out).items()))
    )


def _folder(settings: Settings) -> Path:
    place = settings.dump_dir
    if not isinstance(place, Path):
        raise SettingError(
            f"CITELOOM_DUMP_DIR is the address {place}: pages are fetched into a folder on a disk;"
            " set it to one, and copy what comes to the store"
        )
    if place.resolve() == SAMPLE_DUMP.resolve():
        raise SettingError(
            "CITELOOM_DUMP_DIR is the sample corpus: set it to the folder of your own dump"
        )
    if not place.is_dir():
        raise SettingError(
            f"CITELOOM_DUMP_DIR: there is no folder {place}: make it, or set another"
        )
    if "unrated" not in settings.subsets:
        raise SettingError(
            "CITELOOM_SUBSETS leaves out unrated, which fetched pages are: add it, else none is"
            " read"
        )
    return place


def _named(texts: Sequence[str], month: str | None) -> list[str]:
    ids = {text: normalize_arxiv_id(text) for text in texts}
    wrong = [text for text, identifier in ids.items() if identifier is None]
    if wrong:
        raise SettingError(
            f"--ids: {', '.join(wrong)}: no arXiv id such as 2610.00001 or cs/0112017"
        )
    names = sorted(set(filter(None, ids.values())))
    others = [name for name in names if month and month_of(name) != parse_month(month)]
    if others:
        raise SettingError(
            f"--ids: {', '.join(others)} is not of {month}: leave --month out, or the paper"
        )
    return names


def _of_month(workspace: Workspace, month: str) -> tuple[list[str], Counter[str]]:
    records = records_of_month(workspace, month)
    if not records:
        raise SettingError(
            f"there is no metadata of {month}: run citeloom harvest, set CITELOOM_METADATA_SNAPSHOT"
            " to a newer snapshot, or name the papers by --ids"
        )
    objections = {name: _objection(record, workspace.settings) for name, record in records.items()}
    left_out = Counter(filter(None, objections.values()))
    return sorted(name for name, why in objections.items() if not why), left_out


def _objection(record: Record, settings: Settings) -> str:
    if record.status == "withdrawn":
        return "withdrawn"
    return verdict(record.categories, record.primary_category or "", settings)[1]


def _in_dump(settings: Settings, months: set[str]) -> set[str]:
    dump = read_dump(settings.model_copy(update={"subsets": SUBSETS}), may_be_empty=True)
    return {name for month in months for name in dump.pages(month)["arxiv_id"].to_pylist()}
