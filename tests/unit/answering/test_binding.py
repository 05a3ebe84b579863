"""A data root as answering systems ask it: its index finds passages, its tables tell who wrote a
paper and when.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from pipeline import tables
from pipeline.answering.front_matter import FrontMatter, FrontMatterTables
from pipeline.answering.retriever import (
    ALL_MONTHS,
    MonthSpan,
    PassageSearch,
    index_search,
    month_span,
)
from pipeline.corpus.parse.parsed_page import Author
from pipeline.corpus.passage import Passage
from pipeline.embedding.choice import make_embedder
from pipeline.engine.stage import Workspace
from pipeline.errors import PermanentFailure, SettingError
from pipeline.index.scored import Scored
from tests.month_tables import write_table
from tests.unit.answering.corpus import FERNS, MARCH, MAY, QUILLNET, TITLES, UNSIGNED
from tests.unit.index.building import TEXTS, make_workspace


def told(workspace: Workspace, *papers: str, span: MonthSpan = ALL_MONTHS) -> list[FrontMatter]:
    return asyncio.run(FrontMatterTables(workspace, span).front_matter(papers))


def found(
    corpus: Workspace, *queries: str, count: int, span: MonthSpan = ALL_MONTHS
) -> list[list[Scored[Passage]]]:
    rankings = asyncio.run(PassageSearch(index_search(corpus, span)).find(queries, count))
    return [list(ranking) for ranking in rankings]


def test_the_index_finds_the_passage_with_where_it_stands_and_how_well_it_fits(
    corpus: Workspace,
) -> None:
    plants, rare = found(corpus, "how do plants get energy from light?", "untranslated", count=3)
    first = plants[0].item
    assert (first.text, first.arxiv_id, first.title) == (TEXTS[5], FERNS, TITLES[FERNS])
    assert (first.section_path, first.anchor, first.kind) == (("Method",), "S1.p1", "paragraph")
    assert first.month == MAY
    assert plants[0].relevance in ("strong", "weak", "none")
    assert rare[0].item.text == TEXTS[1]
    assert [len(plants), len(rare)] == [3, 3]


def test_a_span_keeps_the_search_to_its_months_and_more_than_there_is_may_be_asked_for(
    corpus: Workspace,
) -> None:
    (early,) = found(corpus, "plants and light", count=50, span=MonthSpan(last=MARCH))
    assert {scored.item.month for scored in early} == {MARCH}
    (every,) = found(corpus, "light", count=5_000)
    assert len(every) == 10


def test_searches_of_one_data_root_share_its_loaded_embedder(corpus: Workspace) -> None:
    found(corpus, "light", count=1)
    kept = make_embedder(corpus.settings)
    found(corpus, "shade", count=1)
    assert make_embedder(corpus.settings) is kept


def test_the_tables_tell_of_papers_in_the_order_asked(corpus: Workspace) -> None:
    ferns, quillnet = told(corpus, FERNS, QUILLNET, FERNS)
    assert quillnet.authors == (Author("Ada Quill", ("Nib University",)), Author("Bo Vellum"))
    assert (quillnet.date, quillnet.categories) == ("2024-03-07", ("cs.CL", "cs.DL"))
    assert (quillnet.passage.kind, quillnet.passage.month) == ("front_matter", MARCH)
    assert quillnet.passage.text.endswith("part 1")
    assert (ferns.passage.arxiv_id, ferns.date) == (FERNS, MAY)
    # Where page and metadata name other numbers of people, metadata is right.
    assert [author.name for author in ferns.authors] == ["C.  FROND", "Dora Moss"]


def test_papers_that_are_not_there_or_not_in_the_span_are_left_out(corpus: Workspace) -> None:
    assert told(corpus, "2403.09999", "1901.00001", "no-id", UNSIGNED) == []
    assert told(corpus, QUILLNET, span=MonthSpan(first=MAY)) == []


def test_a_broken_table_is_named(tmp_path: Path, corpus: Workspace) -> None:
    workspace = make_workspace(tmp_path / "data")
    rows = corpus.root.rows(tables.PASSAGES, MARCH)
    write_table(workspace.root, tables.PASSAGES, MARCH, rows)
    file = workspace.root.file(tables.PASSAGES, MARCH)
    whole = file.read_bytes()
    # The footer stays readable, as when a disk loses pages.
    file.write_bytes(whole[:4] + bytes(200) + whole[204:])
    with pytest.raises(
        PermanentFailure, match="citeloom run --months 2024-03 --select passages --force"
    ):
        told(workspace, QUILLNET)


@pytest.mark.parametrize(
    ("months", "span"),
    [
        ("all", MonthSpan()),
        (MARCH, MonthSpan(MARCH, MARCH)),
        ("2024-01..2024-12", MonthSpan(MARCH, MAY)),
        (MAY, MonthSpan(MAY, MAY)),
    ],
)
def test_months_are_one_span(corpus: Workspace, months: str, span: MonthSpan) -> None:
    assert month_span(corpus, months) == span


@pytest.mark.parametrize(
    ("months", "message"), [("2024-13", "2024-13"), ("2031-01", "it holds 2024-03, 2024-05")]
)
def test_months_that_cannot_be_are_refused(corpus: Workspace, months: str, message: str) -> None:
    with pytest.raises(SettingError, match=message):
        month_span(corpus, months)


def test_months_with_one_left_out_in_between_are_refused(tmp_path: Path) -> None:
    workspace = make_workspace(tmp_path / "data")
    for month in ("2024-01", "2024-02", "2024-03"):
        write_table(workspace.root, tables.PASSAGES, month, [])
    with pytest.raises(SettingError, match=r"leaves out 2024-02.*2024-01\.\.2024-03"):
        month_span(workspace, "2024-01,2024-03")
