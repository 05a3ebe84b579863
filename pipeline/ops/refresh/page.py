"""The pages of what refreshes changed: `reports/changes/index.html` over all months, and one for each month.

Their bytes depend on the tables alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from filelock import FileLock

from pipeline import tables
from pipeline.engine.stage import Workspace
from pipeline.errors import CiteloomError
from pipeline.ops.refresh.compare import Counts
from pipeline.report.formatting import month_name, number_of, words
from pipeline.report.grid import Cell, Grid
from pipeline.report.pages import Page, changes_page
from pipeline.report.publish import FOLDER
from pipeline.report.rendering import render
from pipeline.storage.data_root import DataRoot
from pipeline.storage.provenance import read_provenance
from pipeline.storage.store import DataPath
from pipeline.storage.writing import write_whole

# Papers that a page lists; the table `changes` has all.
MOST_PAPERS = 500
_COUNTED = {name: name.replace("_", " ") for name in Counts.__slots__}
_REFRESH_COLUMNS = ["refreshed at (UTC)", *_COUNTED.values()]
_LISTED = ("arxiv_id", "change", "what", "version_before", "version")
_PASSAGES = ("passages_added", "passages_removed", "passages_kept")

Notes = Mapping[str, Any]


def changes_folder(root: DataRoot) -> DataPath:
    """Where the pages lie."""
    return root.path / FOLDER / "changes"


def write_month_page(workspace: Workspace, month: str) -> None:
    """Write the page of a month that a refresh has compared, then the page over all months."""
    folder = changes_folder(workspace.root)
    notes = _notes(workspace.root, month)
    if notes is not None:
        write_whole(folder / f"{month}.html", render("page.html.j2", _month_page(workspace.root, month, notes)))
    # Two months may be compared at once: the last to hold the lock has read what the other wrote.
    with FileLock(workspace.cache("locks") / "overall-changes.lock", timeout=600):
        write_whole(folder / "index.html", render("page.html.j2", _overall_page(workspace.root)))


def has_page(workspace: Workspace, month: str) -> bool:
    """Whether both pages are there."""
    folder = changes_folder(workspace.root)
    return (folder / f"{month}.html").is_file() and (folder / "index.html").is_file()


def _notes(root: DataRoot, month: str) -> Notes | None:
    try:
        written = read_provenance(root.file(tables.CHANGES, month))
    except CiteloomError:
        return None
    return written.notes if written else None


def _overall_page(root: DataRoot) -> Page:
    notes_of = {month: notes for month in root.months(tables.CHANGES) if (notes := _notes(root, month))}
    stale = [
        (month, table, rows)
        for month, notes in notes_of.items()
        for table, rows in sorted(notes["out_of_date"].items())
    ]
    about = (
        "Each month after the last refresh that changed anything in it, compared with the refresh before. At a month's "
        "first refresh all papers count as new, unless the month was whole before."
    )
    rows = [
        (Cell(month, page=f"{month}.html"), _when(notes["refreshed_at"]), *_counts(notes))
        for month, notes in notes_of.items()
    ]
    months = Grid("months", "Months", ["month", *_REFRESH_COLUMNS], rows)
    return changes_page("", [about], [months, _stale_grid(stale)])


def _month_page(root: DataRoot, month: str, notes: Notes) -> Page:
    changed = [row for row in root.iterate(tables.CHANGES, month, [*_LISTED, *_PASSAGES]) if row["change"] != "kept"]
    summary = (
        f"{number_of(len(changed), 'paper')} of {month_name(month)} changed by {_when(notes['refreshed_at'])} (UTC)."
    )
    stale = [(month, table, rows) for table, rows in sorted(notes["out_of_date"].items())]
    history = [
        (_when(refresh["refreshed_at"]), *_counts(refresh)) for refresh in reversed(notes["history"])
    ]  # fmt: skip
    refreshes = Grid("refreshes", "Refreshes", _REFRESH_COLUMNS, history)
    return changes_page(month, [summary], [_papers_grid(root, month, changed), _stale_grid(stale), refreshes])


def _papers_grid(root: DataRoot, month: str, changed: Sequence[Mapping[str, Any]]) -> Grid:
    listed = changed[:MOST_PAPERS]
    wanted = {row["arxiv_id"] for row in listed}
    described = root.iterate(tables.METADATA, month, ["arxiv_id", "title"]) if wanted else iter(())
    titles = {row["arxiv_id"]: row["title"] for row in described if row["arxiv_id"] in wanted}
    more = len(changed) - len(listed)
    passages = [name.replace("_", " ") for name in _PASSAGES]
    columns = ["paper", "title", "change", "what", "version", *passages]
    notes = [f"{more:,} more are in the table changes."] if more else []
    return Grid("papers", "Papers", columns, list(_papers(listed, titles)), notes=notes, stacked=True)


def _papers(rows: Sequence[Mapping[str, Any]], titles: Mapping[str, str]) -> Iterator[Sequence[Any]]:
    for row in rows:
        yield (
            Cell(row["arxiv_id"], arxiv_id=row["arxiv_id"]),
            titles.get(row["arxiv_id"], ""),
            row["change"],
            ", ".join(row["what"]),
            _versions(row["version_before"], row["version"]),
            *(row[name] for name in _PASSAGES),
        )


def _versions(before: int | None, now: int | None) -> str:
    """`v1`, or `v1 to v2`; empty where none is known."""
    return " to ".join(f"v{version}" for version in dict.fromkeys((before, now)) if version is not None)


def _stale_grid(stale: Sequence[tuple[str, str, int]]) -> Grid:
    rows = [(month, words(name), name, count) for month, name, count in stale]
    about = (
        "What a language model wrote or judged and what no longer matches what it was made from. It stays as it was; "
        "citeloom refresh --redo makes it again, and so does a refresh with a budget (CITELOOM_REFRESH_LLM_TOKENS)."
    )
    columns = ["month", "what", "table", "rows"]
    return Grid(
        "out-of-date", "Out of date", columns, rows,
        about=about if rows else "Nothing that a language model wrote or judged is out of date.", stacked=True,
    )  # fmt: skip


def _counts(notes: Notes) -> list[int]:
    return [notes[name] for name in _COUNTED]


def _when(moment: str) -> str:
    return moment[:16].replace("T", " ")
