"""Chunks of pages as rows: order, harmful pages and their neighbours, what is done about errors on a page."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from pathlib import Path

import pytest

from pipeline.corpus.dump.member import Member
from pipeline.corpus.pages import ParsedChunk, ParseJob, SelectedPage, parse_pages
from pipeline.corpus.parse import html
from pipeline.corpus.parse.paper import PageError, Paper
from pipeline.corpus.quality import DROPPED, apply_error_policy
from pipeline.corpus.selection import chunk_pages
from pipeline.errors import MissingInput
from tests.unit.corpus import harmful
from tests.unit.corpus.building import page, para, section, write_zip
from tests.unit.corpus.offsets import offset_of

BROKEN = '<span class="ltx_ERROR undefined">\\foo</span>'


def selected_pages(folder: Path, contents: Mapping[str, bytes], zip_name: str = "errors.zip") -> list[SelectedPage]:
    """The pages of a zip made of these, by identifier."""
    names = {arxiv_id: f"error/2403/{arxiv_id}.html" for arxiv_id in contents}
    file = write_zip(folder / zip_name, {names[arxiv_id]: content for arxiv_id, content in contents.items()})
    pages = []
    for arxiv_id, content in sorted(contents.items()):
        offset, packed = offset_of(file, names[arxiv_id])
        member = Member(arxiv_id, "error", zip_name, names[arxiv_id], offset, len(content), packed, zlib.crc32(content))
        pages.append(SelectedPage(member, "From Metadata", None, ("cs.CL",), "cs.CL"))
    return pages


def parse(folder: Path, pages: list[SelectedPage], page_errors: str = "keep") -> ParsedChunk:
    """What comes of a chunk where the parser is harmful."""
    return parse_pages(ParseJob(folder, harmful.parse, page_errors, 10.0, 2024), pages)


def ids(parsed: ParsedChunk) -> list[str]:
    """Identifiers of the rows."""
    return [arxiv_id for batch in parsed.batches() for arxiv_id in batch.column("arxiv_id").to_pylist()]


def text(word: str) -> bytes:
    return page(section(para(word)))


def test_rows_are_in_the_chunk_s_order_whatever_that_of_the_zip(tmp_path: Path) -> None:
    pages = selected_pages(tmp_path, {"2403.00003": text("c"), "2403.00001": text("a"), "2403.00002": text("b")})
    assert pages[0].member.offset > pages[2].member.offset
    assert ids(parse(tmp_path, pages)) == ["2403.00001", "2403.00002", "2403.00003"]


@pytest.mark.parametrize(
    ("word", "reason", "detail"),
    [
        ("raise", "parser_error", "IndexError: list index out of range"),
        ("surrogate", "parser_error", "UnicodeEncodeError"),
    ],
)
def test_a_page_that_fails_leaves_its_neighbours_alone(tmp_path: Path, word: str, reason: str, detail: str) -> None:
    pages = selected_pages(tmp_path, {"2403.00001": text("a"), "2403.00002": text(word), "2403.00003": text("c")})
    parsed = parse(tmp_path, pages)
    assert ids(parsed) == ["2403.00001", "2403.00003"]
    ((arxiv_id, why, told),) = parsed.left_out
    assert (arxiv_id, why, parsed.pages) == ("2403.00002", reason, 2)
    assert told.startswith("errors.zip:error/2403/2403.00002.html: ")
    assert detail in told


def test_a_chunk_without_a_single_good_page_has_no_rows(tmp_path: Path) -> None:
    parsed = parse(tmp_path, selected_pages(tmp_path, {"2403.00001": b"%PDF-1.4"}))
    assert (ids(parsed), [reason for _, reason, _ in parsed.left_out]) == ([], ["not_html"])


def test_a_zip_that_is_gone_is_no_fault_of_its_pages(tmp_path: Path) -> None:
    pages = selected_pages(tmp_path, {"2403.00001": text("a")})
    (tmp_path / "errors.zip").unlink()
    with pytest.raises(MissingInput, match=r"errors\.zip"):
        parse(tmp_path, pages)


def test_chunks_hold_every_page_once_and_a_large_one_alone(tmp_path: Path) -> None:
    sizes = {"1": 30, "2": 30, "3": 50, "4": 500, "5": 10}
    pages = [
        SelectedPage(Member(name, "error", "z", "m", 0, size, 1, 0), None, None, (), None)
        for name, size in sizes.items()
    ]
    cut = [[one.member.arxiv_id for one in chunk] for chunk in chunk_pages(pages, 100)]
    assert cut == [["1", "2"], ["3"], ["4"], ["5"]]


@pytest.fixture(scope="module")
def flawed() -> Paper:
    """A paper of a sound paragraph and one that holds an error."""
    return html.parse(page(section(para("Sound words.") + para(f"Broken {BROKEN} words.", "S1.p2"))))


def test_text_with_errors_is_kept_where_nothing_else_is_asked(flawed: Paper) -> None:
    assert apply_error_policy("keep", flawed) == flawed


def test_a_page_with_errors_can_be_dropped(flawed: Paper) -> None:
    with pytest.raises(PageError, match="page_has_errors: LaTeXML marked 1 errors"):
        apply_error_policy("drop_page", flawed)


def test_dropped_paragraphs_are_counted_as_lost(flawed: Paper) -> None:
    left = apply_error_policy("drop_paragraphs", flawed)
    assert [block.text for block in left.blocks] == ["Sound words."]
    assert left.paragraphs == 1
    assert left.losses[DROPPED] == len("Brokenwords.")
    assert left.chars_kept == sum(left.kept.values()) == flawed.chars_kept - left.losses[DROPPED]


def test_a_head_over_two_columns_is_counted_once_beside_a_dropped_paragraph() -> None:
    rows = '<tr><td rowspan="2">A</td><td colspan="2">Both</td></tr><tr><td>B</td><td>C</td></tr><tr><td>1</td></tr>'
    grid = f'<table class="ltx_tabular">{rows}</table>'
    paper = html.parse(page(section(grid + para(f"Broken {BROKEN} words."))))
    left = apply_error_policy("drop_paragraphs", paper)
    assert left.kept["table"] == paper.kept["table"] == len("ABothBC1")
    assert left.losses[DROPPED] == len("Brokenwords.")


def test_a_page_of_which_nothing_sound_is_left_has_no_text() -> None:
    paper = html.parse(page(section(para(f"Broken {BROKEN} words."))))
    with pytest.raises(PageError, match="no_text"):
        apply_error_policy("drop_paragraphs", paper)


@pytest.mark.parametrize("policy", ["drop_paragraphs", "drop_page"])
def test_a_page_without_errors_is_not_touched_by_any_policy(policy: str) -> None:
    paper = html.parse(text("Sound words."))
    assert apply_error_policy(policy, paper) == paper


def test_the_policy_reaches_the_rows(tmp_path: Path) -> None:
    content = page(section(para("Sound words.") + para(f"Broken {BROKEN} words.", "S1.p2")))
    pages = selected_pages(tmp_path, {"2403.00001": content})
    assert [reason for _, reason, _ in parse(tmp_path, pages, "drop_page").left_out] == ["page_has_errors"]
    (batch,) = parse(tmp_path, pages, "drop_paragraphs").batches()
    assert [block["text"] for block in batch.column("blocks").to_pylist()[0]] == ["Sound words."]
