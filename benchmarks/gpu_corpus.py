"""Write months of papers and passages for `benchmarks.gpu`: variations of the sample corpus.

A passage joins two neighbours of the sample, which are half as long as passages of real papers. Its
words are rotated, and one word in forty is replaced by a random one, since a month of real papers
has new words on every page too. Titles and sections are the sample's.
"""

from __future__ import annotations

import random
import string
from collections.abc import Iterator, Sequence
from typing import Any

from benchmarks.harness import read_pages
from benchmarks.parse import ABOUT, PROJECT
from pipeline import tables
from pipeline.corpus.parse import html
from pipeline.corpus.parse.parsed_page import PageError
from pipeline.corpus.passages.packing import TextBlock, pack, with_ids
from pipeline.corpus.passages.text import embedded_text
from pipeline.storage.data_root import DataRoot
from pipeline.storage.provenance import Provenance
from pipeline.storage.writing import MonthWriter
from pipeline.tables import Table
from pipeline.text import text_digest

MONTHS = ("2024-01", "2024-02", "2024-03", "2024-04")
_WORDS_BETWEEN_NEW = 40
_SAMPLE = PROJECT / "examples" / "dump"


def write_months(root: DataRoot, count: int) -> None:
    """Write MONTHS with `count` passages in all, and their papers."""
    sample = list(_sample_papers())
    for number, month in enumerate(MONTHS):
        share = count * (number + 1) // len(MONTHS) - count * number // len(MONTHS)
        _write_month(root, month, share, sample)


def read_texts(root: DataRoot, count: int) -> list[str]:
    """The texts to embed of `count` evenly spaced passages of the first month."""
    rows = root.rows(tables.PASSAGES, MONTHS[0], ["title", "section_path", "text"])
    places = [number * len(rows) // count for number in range(min(count, len(rows)))]
    return [
        embedded_text(rows[place]["title"], rows[place]["section_path"], rows[place]["text"])
        for place in places
    ]


def _sample_papers() -> Iterator[tuple[str, list[TextBlock]]]:
    """Title and passages of every paper of the sample corpus."""
    for page in read_pages(_SAMPLE):
        try:
            paper = html.parse(page)
        except PageError:
            continue
        yield paper.title, pack({**paper.as_row(), **ABOUT})


def _write_month(
    root: DataRoot, month: str, count: int, sample: Sequence[tuple[str, list[TextBlock]]]
) -> None:
    chance = random.Random(month)
    paper_writer, passage_writer = (
        MonthWriter(table, root.file(table, month)) for table in (tables.PAPERS, tables.PASSAGES)
    )
    with paper_writer as papers, passage_writer as passages:
        number = 0
        while passages.added < count:
            title, blocks = sample[number % len(sample)]
            number += 1
            arxiv_id = f"{month[2:4]}{month[5:]}.{number:05d}"
            about = {"arxiv_id": arxiv_id, "title": title, "year": int(month[:4])}
            categories = {"categories": ["cs.CL"], "primary_category": "cs.CL"}
            papers.add(about | categories | {"subset": "no_problem"})
            remaining = count - passages.added
            for row in _passages(arxiv_id, title, blocks[:remaining], chance):
                passages.add(row)
        papers.commit(_provenance(tables.PAPERS, month))
        passages.commit(_provenance(tables.PASSAGES, month))


def _passages(
    arxiv_id: str, title: str, sample: Sequence[TextBlock], chance: random.Random
) -> Iterator[dict[str, Any]]:
    neighbours = [*sample[1:], *sample[:1]]
    variations = [
        passage._replace(text=_vary(f"{passage.text} {neighbour.text}", chance))
        for passage, neighbour in zip(sample, neighbours, strict=True)
    ]
    for ordinal, (identifier, passage) in enumerate(with_ids(arxiv_id, variations)):
        digest = text_digest(embedded_text(title, passage.section_path, passage.text))
        about = {"passage_id": identifier, "arxiv_id": arxiv_id, "title": title, "ordinal": ordinal}
        yield about | {"text_sha256": digest} | passage._asdict()


def _vary(text: str, chance: random.Random) -> str:
    words = text.split()
    turn = chance.randrange(len(words)) if words else 0
    words = words[turn:] + words[:turn]
    for place in range(chance.randrange(_WORDS_BETWEEN_NEW), len(words), _WORDS_BETWEEN_NEW):
        words[place] = "".join(chance.choices(string.ascii_lowercase, k=chance.randint(5, 12)))
    return " ".join(words)


def _provenance(table: Table, month: str) -> Provenance:
    return Provenance(table.name, month, table.version, 1, "0", "made by a benchmark", {}, {})
