"""What an article's HTML becomes: sections, prose, tables, formulas, references, and what is left out."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.corpus.parse.paper import PageError
from pipeline.wikipedia.article import grade_article, read_article
from tests.unit.wikipedia.pages import CLEANUP, HATNOTE, NAVBOX, TABLE, heading, html, lantern_html, orchard_html


def texts(*sections: str, kind: str = "paragraph") -> list[str]:
    return [block.text for block in read_article(html(*sections)).blocks if block.kind == kind]


def refused(page: str) -> str:
    with pytest.raises(PageError) as error:
        read_article(page)
    return error.value.reason


def test_paragraphs_stand_below_their_headings_with_the_headings_anchors() -> None:
    blocks = [block for block in read_article(orchard_html()).blocks if block.kind == "paragraph"]
    places = [(block.section_path, block.anchor) for block in blocks]
    assert places == [
        ((), ""),
        *[(("History",), "History")] * 2,
        (("Design",), "Design"),
        *[(("Design", "Cutting force"), "Cutting_force")] * 3,
    ]
    assert blocks[1].text.startswith("Work on pruning by machine began")


def test_a_section_goes_back_up_after_a_deeper_one() -> None:
    page = html("<p>Lead.</p>", *(f"{heading(*each)}<p>Of {each[1]}.</p>" for each in ((2, "A"), (4, "B"), (3, "C"))))
    page += html(f"{heading(2, 'D')}<p>Of D.</p>")
    assert [section.path for section in read_article(page).sections[:3]] == [("A",), ("A", "B"), ("A", "C")]


def test_formulas_are_tex_within_the_sentence_and_by_themselves() -> None:
    paper = read_article(orchard_html())
    told = [block.text for block in paper.blocks]
    assert "A cut of a branch of radius $r$ needs the force" in told
    assert "$$F=k r^{2}$$" in told
    assert (paper.formulas, paper.math_without_tex) == (3, 0)


@pytest.mark.parametrize(
    ("inside", "tex"),
    [
        ('<math alttext="{\\displaystyle a_{1}}"><semantics><mi>a</mi></semantics></math>', "$a_{1}$"),
        ('<img class="mwe-math-fallback-image-inline" alt="a_{1}"/>', "$a_{1}$"),
        ('<span class="mwe-math-mathml-display"><math alttext="{a}+{b}"></math></span>', "$${a}+{b}$$"),
        ("<math><mi>a</mi></math>", "$a$"),
    ],
)
def test_tex_is_taken_from_wherever_the_page_has_it(inside: str, tex: str) -> None:
    (text,) = texts(f'<p>Let <span class="mwe-math-element" typeof="mw:Extension/math">{inside}</span>.</p>')
    assert text == f"Let {tex}." or text == f"Let {tex} ."


def test_references_are_the_bibliography_and_their_citations_markers() -> None:
    paper = read_article(orchard_html())
    assert [(item.key, item.raw) for item in paper.bibliography] == [
        ("cite_note-Brindle-1", "Brindle, A. (2019). Robots at night."),
        ("cite_note-Ash-2", "Ash, B. (2020). Spectra of bark."),
    ]
    assert paper.bibliography[1].arxiv_id == "2001.01234"
    lead = next(block for block in paper.blocks if block.kind == "paragraph")
    assert lead.cited_keys == ("cite_note-Brindle-1",)
    assert "References" not in [section.title for section in paper.sections]
    assert not any("Robots at night" in block.text for block in paper.blocks)


def test_tables_and_infoboxes_are_blocks_of_their_own() -> None:
    infobox, table = (block.text for block in read_article(orchard_html()).blocks if block.kind == "table")
    assert "| Maker | Brindle Works |" in infobox
    assert "| Sensors | Lidar, Hyperspectral camera |" in infobox
    assert table.splitlines() == [
        "Yield by season",
        "| Season | Apples (t) |",
        "| --- | --- |",
        "| 2021 | 14 |",
        "|  | 15 \\| sorted |",
    ]


def test_page_furniture_is_left_out_and_counted() -> None:
    paper = read_article(orchard_html())
    told = " ".join(block.text for block in paper.blocks)
    for words in ("additional citations", "For the film", "Plodder", "citation needed", "color:red", "nobody reads"):
        assert words not in told
    assert paper.losses.keys() >= {"hatnote", "message_box", "navigation", "cleanup_mark", "citation_label"}
    assert paper.losses.get("unaccounted", 0) == 0
    # Three marks of list items, and a comma between two lines of a cell, are no characters of the page.
    assert paper.chars_kept + sum(paper.losses.values()) == paper.chars_seen + 4


def test_furniture_does_not_lower_the_grade_of_an_article() -> None:
    prose = "It is pruned in winter by people who know the tree and its owner well. " * 20
    page = html(f"{HATNOTE * 20}<p>{prose}</p>", body=NAVBOX * 40)
    assert grade_article(read_article(page)).grade == "A"


def test_a_list_keeps_its_lines_and_one_that_only_indents_is_prose() -> None:
    nested = "<p>Lead.</p><ol><li>First<ul><li>inner</li></ul></li><li><p>Second</p><p>more</p></li></ol>"
    assert texts(nested, kind="list") == ["1. First\n- inner\n2. Second more"]
    assert texts("<p>Lead.</p><dl><dd>Set in.</dd></dl>") == ["Lead.", "Set in."]
    terms = "<p>Lead.</p><dl><dt>Codling</dt><dd>a moth</dd></dl>"
    assert texts(terms, kind="list") == ["Codling\n- a moth"]


def test_words_outside_of_paragraphs_are_not_lost() -> None:
    section = "<p>Lead.</p>Stray <b>words</b>.<blockquote>Said <i>so</i>.<p>Twice.</p></blockquote><div>In a box</div>"
    assert texts(section) == ["Lead.", "Stray words.", "Said so.", "Twice.", "In a box"]


def test_code_keeps_its_lines() -> None:
    listing = '<p>Lead.</p><div class="mw-highlight"><pre><span class="k">def</span> prune():\n    cut()</pre></div>'
    assert texts(listing, kind="algorithm") == ["def prune():\ncut()"]


def test_a_table_in_a_list_is_still_a_table() -> None:
    assert len(texts(f"<p>Lead.</p><ul><li>Yields:{TABLE}</li></ul>", kind="table")) == 1


def test_an_article_without_its_end_is_told() -> None:
    page = lantern_html()
    assert not read_article(page).truncated
    assert read_article(page[: page.rindex("</section>")]).truncated


@pytest.mark.parametrize(
    ("page", "reason"),
    [
        ("", "not_html"),
        ("<p>No page of Parsoid's</p>", "not_html"),
        (html("", head='<link rel="mw:PageProp/redirect" href="./Moth_lantern"/>'), "redirect"),
        (html('<p>It may mean:</p><meta property="mw:PageProp/disambiguation"/>'), "disambiguation"),
        (html('<p>It may mean:</p><div class="dmbox metadata plainlist">A list of meanings</div>'), "disambiguation"),
        (html(f"{TABLE}<ul><li>An item</li></ul>"), "no_prose"),
        (html(f"{HATNOTE}<p>{CLEANUP}</p>"), "no_prose"),
        (html("<div>" * 3000 + "deep"), "too_deep"),
    ],
)
def test_a_page_that_is_no_article_is_refused_with_its_reason(page: str, reason: str) -> None:
    assert refused(page) == reason


@pytest.mark.parametrize("cell", ['colspan="999999"', 'colspan="-1"', 'rowspan="x"', 'rowspan="0"', 'colspan="٣"'])
def test_a_table_with_spans_that_cannot_be_is_read_all_the_same(cell: str) -> None:
    table = f"<table><tr><td {cell}>left</td><td>right</td></tr><tr><td>below</td></tr></table>"
    (text,) = texts(f"<p>Lead.</p>{table}", kind="table")
    assert "left" in text
    assert "below" in text


@given(st.data())
def test_whatever_is_done_to_a_page_it_is_an_article_or_refused(data: st.DataObject) -> None:
    """Pieces are cut out, doubled and swapped with bits of markup: nothing but PageError comes of it."""
    page = orchard_html()
    for _ in range(data.draw(st.integers(1, 4))):
        start = data.draw(st.integers(0, len(page)))
        end = data.draw(st.integers(start, min(len(page), start + 400)))
        put = data.draw(
            st.sampled_from(["", page[start:end] * 2, "<table><tr><td>", "</section>", "<ul><li>", "<math>"])
        )
        page = page[:start] + put + page[end:]
    try:
        paper = read_article(page)
    except PageError:
        return
    anchors = {section.anchor for section in paper.sections} | {""}
    assert all(block.text and block.anchor in anchors for block in paper.blocks)
