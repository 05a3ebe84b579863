"""The labelled bibliography items: what was read out of them rightly, and which papers they are
resolved to.

Used by `benchmarks/references.py` and by the tests. docs/methods/references.md tells how the labels
were made.
"""

from __future__ import annotations

import csv
import json
import math
import re
import zipfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from rapidfuzz import fuzz

from pipeline.corpus.parse.parsed_page import BibliographyItem
from pipeline.corpus.references.resolution import resolve_references
from pipeline.corpus.references.title_index import SCHEMA, VERSION, TitleIndex, replace_titles
from pipeline.engine.month_index import connect, create_tables
from pipeline.identity.identifiers import month_of
from pipeline.identity.titles import title_words
from pipeline.text import text_digest

PROJECT = Path(__file__).resolve().parent.parent
SHARED = PROJECT.parent / "shared" / "data"
LABELS = PROJECT / "tests" / "labels" / "bibliography.tsv"
KNOWN_CITATIONS = LABELS.with_name("known_citations.tsv")
PER_PAPER = 12

Row = dict[str, Any]
Key = tuple[str, str]
Items = Mapping[Key, BibliographyItem]


@dataclass(frozen=True, slots=True)
class Label:
    """What a reader saw in one item. Empty or None: the item does not print it."""

    paper: str
    key: str
    half: str
    first_author: str
    authors: int | None
    title: str
    year: int | None
    venue: str
    doi: str
    arxiv_id: str
    cites: str
    """The paper that the item cites, where metadata or an item of the same work has its id."""
    doubt: str

    @property
    def place(self) -> Key:
        return self.paper, self.key


def read_labels(file: Path = LABELS) -> list[Label]:
    """All labels, in the order of the file."""
    labels = []
    with file.open(encoding="utf-8", newline="") as lines:
        for row in csv.DictReader(lines, delimiter="\t", quoting=csv.QUOTE_NONE):
            numbers = {name: int(row[name]) if row[name] else None for name in ("authors", "year")}
            labels.append(Label(**{**row, **numbers}))  # type: ignore[arg-type]
    return labels


def pages(folder: Path) -> dict[str, bytes]:
    """Every page of a folder's zips by its paper."""
    found = {}
    for name in sorted(folder.glob("*.zip")):
        with zipfile.ZipFile(name) as archive:
            for member in archive.namelist():
                if member.endswith(".html"):
                    stem = member.rpartition("/")[2].removesuffix(".html")
                    found[re.sub(r"^([a-z-]+)(\d{7})$", r"\1/\2", stem)] = archive.read(member)
    return found


def read_items(content: Mapping[str, bytes]) -> Items:
    """Every bibliography item of the pages, as the corpus reads it."""
    from pipeline.corpus.parse import html

    return {
        (paper, item.key): item
        for paper, page in content.items()
        for item in html.parse(page).bibliography
    }


def drawn(paper: str, keys: Iterable[str]) -> set[str]:
    """The labelled items of a paper: twelve by the order of a hash, which anyone can repeat."""
    name = paper.replace("/", "")

    def draw(key: str) -> str:
        return text_digest(f"bibliography labels 1 {name} {key}")

    return set(sorted(keys, key=draw)[:PER_PAPER])


# Fields.


def plain(text: str | None) -> str:
    """Lower case, without accents and punctuation: two prints of one name or title are equal."""
    return " ".join(title_words(text or ""))


def _same_title(label: Label, item: BibliographyItem) -> bool:
    """Equal but for one letter in twenty."""
    return _alike(plain(label.title), plain(item.title), 95)


def _same_first_author(label: Label, item: BibliographyItem) -> bool:
    """The surname ends the first name that was read; an item without authors has none."""
    first = f" {plain(item.authors[0])}" if item.authors else ""
    return first.endswith(f" {plain(label.first_author)}") if label.first_author else not first


def _same_count(label: Label, item: BibliographyItem) -> bool:
    """As many names as are listed; anything where the list is not whole."""
    return label.authors is None or label.authors == len(item.authors)


def _same_venue(label: Label, item: BibliographyItem) -> bool:
    """Nine letters of ten without what stands in brackets; CoRR is arXiv's other name."""
    return _alike(_bare_venue(label.venue), _bare_venue(item.venue or ""), 90)


def _bare_venue(text: str) -> str:
    bare = plain(re.sub(r"\([^)]*\)", " ", text))
    return "arxiv" if bare == "corr" else bare


def _alike(expected: str, found: str, percent: float) -> bool:
    return fuzz.ratio(expected, found) >= percent if expected and found else expected == found


FIELDS: dict[str, Callable[[Label, BibliographyItem], bool]] = {
    "title": _same_title,
    "title, letter by letter": lambda label, item: plain(label.title) == plain(item.title),
    "first author": _same_first_author,
    "number of authors": _same_count,
    "year": lambda label, item: label.year == item.year,
    "venue": _same_venue,
    "DOI": lambda label, item: label.doi == (item.doi or ""),
    "arXiv id": lambda label, item: label.arxiv_id == (item.arxiv_id or ""),
}


def right(labels: Sequence[Label], items: Items) -> dict[str, int]:
    """How many items each field was read rightly of; where an item has none, that none was read."""
    return {
        name: sum(same(label, items[label.place]) for label in labels)
        for name, same in FIELDS.items()
    }


def wilson(hits: int, of: int) -> tuple[float, float]:
    """The 95 % interval of a proportion (E. B. Wilson, 1927)."""
    if not of:
        return 0.0, 1.0
    z = 1.96
    share, spread = hits / of, z * z / of
    middle = (share + spread / 2) / (1 + spread)
    half = z * math.sqrt(share * (1 - share) / of + spread / of / 4) / (1 + spread)
    return max(0.0, middle - half), min(1.0, middle + half)


# Resolution.

# A work that one of the `related_work` papers and a labelled item with its identifier both cite.
_IDS_OF_CITED = {"cited.25.7": "1912.02164"}


def known_papers(shared: Path = SHARED) -> list[Row]:
    """All metadata at hand: arXiv's, and works that `related_work` cites, under made-up ids."""
    return [*_snapshot_lines(shared), *_atom_entries(shared), *_cited_works(shared)]


def _paper(
    arxiv_id: str, title: str, authors: Iterable[str], published: str | None, doi: str | None = None
) -> Row:
    return {
        "arxiv_id": arxiv_id,
        "title": title,
        "authors": list(authors),
        "published": published,
        "doi": doi,
    }


def _snapshot_lines(shared: Path) -> Iterator[Row]:
    for name in ("snapshot.jsonl", "snapshot_200_lines.jsonl"):
        for line in (shared / "metadata" / name).read_text(encoding="utf-8").splitlines():
            row = json.loads(line)
            authors = re.split(r",\s*|\s+and\s+", row["authors"] or "")
            month = month_of(row["id"])
            yield _paper(row["id"], row["title"], authors, month and f"{month}-01", row["doi"])


def _atom_entries(shared: Path) -> Iterator[Row]:
    atom = "{http://www.w3.org/2005/Atom}"
    for file in sorted((shared / "metadata" / "atom_pages").glob("*.xml")):
        for entry in ElementTree.parse(file).getroot().iter(f"{atom}entry"):
            name = re.sub(r"^.*/abs/|v\d+$", "", entry.findtext(f"{atom}id", ""))
            authors = [author.findtext(f"{atom}name", "") for author in entry.iter(f"{atom}author")]
            title, published = (entry.findtext(f"{atom}{tag}") for tag in ("title", "published"))
            yield _paper(name, title or "", authors, published)


def _cited_works(shared: Path) -> Iterator[Row]:
    for file in sorted((shared / "related_work").glob("*.json")):
        for number, work in enumerate(json.loads(file.read_text(encoding="utf-8"))["leaves"]):
            year = f"{work['year']}-01-01" if work.get("year") else None
            name = f"cited.{file.stem}.{number}"
            yield _paper(
                _IDS_OF_CITED.get(name, name), work["title"], work.get("author") or (), year
            )


def works(labels: Sequence[Label]) -> dict[Key, Row]:
    """The cited work of each item with a title or a DOI as metadata would tell it, made of the
    label's facts alone.

    Items of the same title and first author are one work; it bears the arXiv id that any of them
    prints, or else a made-up one.
    """
    same: dict[tuple[str, str], Row] = {}
    found = {}
    for number, label in enumerate(labels):
        if label.title or label.doi:
            name = (plain(label.title) or label.doi, plain(label.first_author))
            row = _paper(
                f"work.{number}",
                label.title,
                filter(None, [label.first_author]),
                None,
                label.doi or None,
            )
            row["published"] = f"{label.year}-07-01" if label.year else None
            work = same.setdefault(name, row)
            work["arxiv_id"] = label.cites or work["arxiv_id"]
            work["doi"] = work["doi"] or row["doi"]
            found[label.place] = work
    return found


def look_alikes(labels: Sequence[Label]) -> Iterator[Row]:
    """Papers that no item cites, each as near to a cited work as another paper may be."""
    titled = [label for label in labels if len(label.title.split()) > 1]
    for number, label in enumerate(titled):
        other = titled[(number * 7 + 3) % len(titled)]
        words, others = label.title.split(), other.title.split()
        longest = max(words, key=len)
        changed = " ".join(max(others, key=len) if word == longest else word for word in words)
        date = f"{label.year}-02-01" if label.year else None
        first = label.first_author or "Nobody"
        yield _paper(f"alike.{number}.part", f"{label.title}, Part II", [first], date)
        yield _paper(f"alike.{number}.word", changed, [first], date)
        yield _paper(
            f"alike.{number}.begin",
            " ".join(words[: len(words) // 2 + 1] + others[-3:]),
            [first],
            date,
        )
        yield _paper(f"alike.{number}.longer", f"{label.title} for {other.title}", [first], date)
        yield _paper(f"alike.{number}.author", label.title, ["Nobody Else", "Quine"], date)
        if label.year:
            yield _paper(f"alike.{number}.later", label.title, [first], f"{label.year + 10}-02-01")


def title_index(papers: Iterable[Row]) -> TitleIndex:
    """An index of these papers; a paper without a date counts as one of 2020."""
    connection = connect(":memory:")
    create_tables(connection, SCHEMA, VERSION)
    replace_titles(connection, "2020-01", papers)
    return TitleIndex(connection)


_IDENTIFIERS = re.compile(
    r"(?:https?:/+\S+|(?:arxiv:)?\s?(?:abs/)?\d{4}\.\d{4,5}(?:v\d+)?|[a-z-]+/\d{7}|\b10\.\d{4,9}/\S+)",
    re.IGNORECASE,
)


def as_row(item: BibliographyItem, *, hidden: bool) -> Row:
    """The item as `papers.bibliography` holds it; `hidden`: without any identifier."""
    row = item._asdict()
    return (
        row | {"doi": None, "arxiv_id": None, "raw": _IDENTIFIERS.sub(" ", item.raw)}
        if hidden
        else row
    )


@dataclass(frozen=True, slots=True)
class Outcome:
    """Outcomes of the items: right and wrong resolutions by each way, and how many could be."""

    right: Counter[str]
    wrong: Counter[str]
    findable: int
    mistakes: tuple[Key, ...]

    @property
    def precision(self) -> tuple[int, int]:
        return self.right.total(), self.right.total() + self.wrong.total()

    @property
    def recall(self) -> tuple[int, int]:
        return self.right.total(), self.findable


def resolve(
    labels: Sequence[Label],
    items: Items,
    titles: TitleIndex,
    truth: Mapping[Key, str],
    *,
    hidden: bool,
) -> Outcome:
    """Resolve the labelled items; `truth` names the cited paper where index or item tells it."""
    rows = [(as_row(items[label.place], hidden=hidden), label.paper) for label in labels]
    outcome = Outcome(Counter(), Counter(), sum(label.place in truth for label in labels), ())
    mistakes = []
    for label, found in zip(labels, resolve_references(titles, rows), strict=True):
        expected = truth.get(label.place)
        if found.by and found.arxiv_id == expected:
            outcome.right[found.by] += 1
        elif found.by:
            outcome.wrong[found.by] += 1
        if found.arxiv_id != expected:
            mistakes.append(label.place)
    return Outcome(outcome.right, outcome.wrong, outcome.findable, tuple(mistakes))


def read_known_citations(file: Path = KNOWN_CITATIONS) -> dict[Key, str]:
    """All items of the real papers, labelled or not, that cite a paper of `known_papers`."""
    rows = (line.split("\t") for line in file.read_text(encoding="utf-8").splitlines()[1:])
    return {(paper, key): cites for paper, key, cites in rows}


def resolve_all(items: Items, titles: TitleIndex, truth: Mapping[Key, str]) -> Outcome:
    """Resolve all items of the pages, without their identifiers."""
    labels = [Label(*place, *("",) * 2, None, "", None, *("",) * 5) for place in items]
    return resolve(labels, items, titles, truth, hidden=True)
