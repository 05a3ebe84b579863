"""The stage `passages`. Not here: how a paper is packed (`pack`)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from pipeline import tables
from pipeline.passages.pack import FEWEST_WORDS, MOST_WORDS, Passage, pack, with_ids
from pipeline.passages.text import embedded_text, text_digest
from pipeline.stages import Job, Stage
from pipeline.tables import Row

_COLUMNS = ["arxiv_id", "title", "authors", "abstract", "categories", "year", "blocks"]


def _build(job: Job) -> Iterator[Row]:
    kinds: Counter[str] = Counter()
    lengths: Counter[str] = Counter(under_20_words=0, over_300_words=0)
    for paper in job.iterate(tables.PAPERS, _COLUMNS):
        for row in _rows(paper):
            kinds[row["kind"]] += 1
            lengths["under_20_words"] += row["words"] < FEWEST_WORDS
            lengths["over_300_words"] += row["words"] > MOST_WORDS
            yield row
    job.notes.update(kinds=dict(sorted(kinds.items())), **lengths)


def _rows(paper: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    for ordinal, (identifier, passage) in enumerate(with_ids(paper["arxiv_id"], pack(paper))):
        yield {
            "passage_id": identifier,
            "arxiv_id": paper["arxiv_id"],
            "ordinal": ordinal,
            "title": paper["title"],
            **_columns(passage, paper["title"]),
        }


def _columns(passage: Passage, title: str) -> dict[str, Any]:
    return {
        "anchor": passage.anchor,
        "kind": passage.kind,
        "section_path": list(passage.section_path),
        "text": passage.text,
        "words": passage.words,
        "cited_keys": list(passage.cited_keys),
        "text_sha256": text_digest(embedded_text(title, passage.section_path, passage.text)),
    }


PASSAGES = Stage(table=tables.PASSAGES, build=_build, upstream=(tables.PAPERS,), version=2)
