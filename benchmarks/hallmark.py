"""`citeloom check` on bibliography entries whose faults others planted: HALLMARK.

    python -m benchmarks.hallmark [--part tuned|held] [--list KIND]

The known works of the data set make a metadata snapshot: title, authors, year of the first version,
and, in the snapshot "with venues", the venue and year as `journal-ref` and the DOI. A hash of their
keys splits the entries of the development part: rules and constants are tuned on `tuned`, and
documents report `held`. Two counts of what is found: every status but "verified", as for a reader
who looks at all that is not verified; and "differs" or "suspicious" alone, over the entries whose
work is in the snapshot.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import math
import re
import sys
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.harness import Claim, argument_parser, percent, report
from drafts.reading import read_bibliography
from drafts.references import ReferenceCheck, check_references
from pipeline.engine.stage import Workspace
from pipeline.identity.titles import title_words
from pipeline.index.known_papers import KnownPapers
from pipeline.settings import load_settings

DATA = Path(__file__).resolve().parents[2] / "shared" / "data" / "labelled" / "hallmark"
PARTS = ("tuned", "held")
VALID = "valid"
_ARXIV_ID = re.compile(r"arxiv(?:\.org/abs/|\.)(\d{4}\.\d{4,5})", re.IGNORECASE)
_NUMBER_OF_NAMESAKE = re.compile(r" 0\d{3}\b")


@dataclass(frozen=True, slots=True)
class LabelledEntry:
    """An entry. kind: of its fault, or `VALID`. fields: of BibTeX."""

    key: str
    type: str
    fields: Mapping[str, str]
    kind: str

    @property
    def part(self) -> str:
        """`tuned` or `held`, by a hash of the key."""
        return PARTS[hashlib.sha256(self.key.encode()).digest()[0] % 2]

    @property
    def arxiv_id(self) -> str | None:
        """The arXiv id that one of its fields names."""
        named = _ARXIV_ID.search(" ".join(self.fields.values()))
        return named[1] if named else None

    @property
    def bibtex(self) -> str:
        """The entry as BibTeX."""
        fields = "".join(f",\n  {name} = {{{value}}}" for name, value in self.fields.items())
        return f"@{self.type}{{{self.key}{fields}\n}}\n"


@dataclass(frozen=True, slots=True)
class Counts:
    """Entries with and without a fault, and how many of each were flagged."""

    faults: int
    found: int
    valid: int
    alarms: int

    @property
    def mcc(self) -> float:
        """Matthews' correlation coefficient, -1 to 1."""
        missed, passed = self.faults - self.found, self.valid - self.alarms
        rows = (self.found + self.alarms) * (missed + passed)
        product = self.found * passed - self.alarms * missed
        return product / math.sqrt(max(rows * self.faults * self.valid, 1))

    def figures(self, name: str) -> dict[str, float]:
        """The counts as figures of a report."""
        return {
            f"{name}: found, % of {self.faults}": percent(self.found, self.faults),
            f"{name}: false alarms, % of {self.valid}": percent(self.alarms, self.valid),
            f"{name}: MCC": round(self.mcc, 3),
        }


def read_entries(part: str) -> list[LabelledEntry]:
    """The entries of a part, in the order of the file."""
    entries = [
        LabelledEntry(row["key"], row["type"], row["fields"], row["kind"] or VALID)
        for row in _rows("dev")
    ]
    return [entry for entry in entries if entry.part == part]


def write_snapshot(file: Path, *, with_venues: bool) -> set[str]:
    """Write the known works in the form of arXiv's snapshot; their folded titles.

    A work has the arXiv id that it or a valid entry with its title names, or else a made-up one.
    """
    ids = {
        fold(entry.fields.get("title", "")): entry.arxiv_id
        for part in PARTS
        for entry in read_entries(part)
        if entry.kind == VALID
    }
    titles = set()
    with file.open("w", encoding="utf-8") as lines:
        for number, row in enumerate(_rows("known_works")):
            work, title = row["fields"], fold(row["fields"]["title"])
            titles.add(title)
            year = work["year"]
            named = _ARXIV_ID.search(" ".join(work.values()))
            line = {
                "id": (named and named[1]) or ids.get(title) or f"{year[2:]}07.{30_000 + number}",
                "title": work["title"],
                "authors": _NUMBER_OF_NAMESAKE.sub("", work["author"]).replace(" and ", ", "),
                "abstract": "",
                "categories": "cs.LG",
                "update_date": f"{year}-07-01",
                "versions": [{"version": "v1", "created": f"Mon, 1 Jul {year} 12:00:00 GMT"}],
            }
            venue = work.get("booktitle") or work.get("journal")
            if with_venues and venue:
                line["journal-ref"] = f"{venue} {year}"
            if with_venues and not _ARXIV_ID.search(work.get("doi", "")):
                line["doi"] = work.get("doi")
            lines.write(json.dumps(line) + "\n")
    return titles


def check_entries(entries: Sequence[LabelledEntry], folder: Path) -> Mapping[str, ReferenceCheck]:
    """A check of each entry by its key, against `snapshot.jsonl` in the folder."""
    (folder / "entries.bib").write_text(
        "\n".join(entry.bibtex for entry in entries), encoding="utf-8"
    )
    workspace = Workspace(
        load_settings(
            data=folder / "data", metadata_snapshot=folder / "snapshot.jsonl", _env_file=None
        )
    )
    draft = read_bibliography(folder / "entries.bib")
    return {check.key: check for check in check_references(draft, KnownPapers(workspace))}


def count(
    entries: Sequence[LabelledEntry],
    checks: Mapping[str, ReferenceCheck],
    unflagged: Sequence[str] = ("verified",),
) -> Counts:
    """How many entries have another status than the unflagged ones."""
    flagged = [entry for entry in entries if checks[entry.key].status not in unflagged]
    valid = sum(entry.kind == VALID for entry in entries)
    alarms = sum(entry.kind == VALID for entry in flagged)
    return Counts(len(entries) - valid, len(flagged) - alarms, valid, alarms)


def fold(title: str) -> str:
    """A title's words in lower case, without accents and punctuation."""
    return " ".join(title_words(title))


def _rows(name: str) -> list[dict[str, Any]]:
    with gzip.open(DATA / f"{name}.jsonl.gz", "rt", encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines]
    return [row if "fields" in row else {"fields": row} for row in rows]


def _print_missed(
    entries: Sequence[LabelledEntry], checks: Mapping[str, ReferenceCheck], kind: str
) -> None:
    for entry in entries:
        check = checks[entry.key]
        if entry.kind == kind and (check.status == "verified") != (kind == VALID):
            print(dict(entry.fields), check.status, check.differences, check.notes, check.record)


def main() -> None:
    """Measure a part, print the figures and the claims."""
    arguments = argument_parser(__doc__, "accepted for uniformity")
    arguments.add_argument("--part", choices=PARTS, default="held")
    arguments.add_argument("--list", metavar="KIND", help="print what is missed of a kind of fault")
    options = arguments.parse_args()
    if not DATA.is_dir():
        sys.exit("the labelled data (../shared/data/labelled) are not on this machine")
    entries = read_entries(options.part)
    figures: dict[str, Any] = {"part": options.part, "entries": len(entries)}
    for name, with_venues in (("with venues", True), ("without venues", False)):
        with tempfile.TemporaryDirectory() as folder:
            titles = write_snapshot(Path(folder) / "snapshot.jsonl", with_venues=with_venues)
            checks = check_entries(entries, Path(folder))
        counts = count(entries, checks)
        figures |= counts.figures(name)
        known = [
            entry
            for entry in entries
            if fold(entry.fields.get("title", "")) in titles or checks[entry.key].arxiv_id
        ]
        of_known = count(known, checks, ("verified", "not_found"))
        figures |= of_known.figures(f"{name}, differs or suspicious, work in the snapshot")
        if with_venues:
            measured = counts
            kinds = Counter(entry.kind for entry in entries)
            missed = Counter(
                entry.kind for entry in entries if checks[entry.key].status == "verified"
            )
            for kind in sorted(kinds.keys() - {VALID}):
                share = percent(kinds[kind] - missed[kind], kinds[kind])
                figures[f"{name}: {kind}, % of {kinds[kind]}"] = share
        if options.list:
            _print_missed(entries, checks, options.list)
    claims = [
        Claim(
            "entries with a fault that are flagged, %", percent(measured.found, measured.faults), 85
        ),
        Claim(
            "valid entries that are flagged, %",
            percent(measured.alarms, measured.valid),
            2,
            at_most=True,
        ),
        Claim("Matthews correlation (MCC)", round(measured.mcc, 3), 0.8),
    ]
    report("hallmark", figures, claims)


if __name__ == "__main__":
    main()
