"""The fast parser and the reference parser, which share no code that walks a page, read the same paper."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipeline.corpus.parse import html, reference
from pipeline.corpus.parse.paper import PageError, Paper
from pipeline.corpus.parse.source import read_source
from pipeline.corpus.parse.tree import grow
from pipeline.settings import SAMPLE_DUMP
from tests.unit.corpus.building import bibitem, bibliography, byline, cite, math, note, page, pages_of, para, section


def words(paper: Paper) -> list[str]:
    return " ".join(block.text for block in paper.blocks if block.kind == "paragraph").split()


def assert_same(content: bytes) -> None:
    fast, slow = html.parse(content), reference.parse(content)
    assert words(fast) == words(slow)
    assert [(block.kind, block.text) for block in fast.blocks] == [(block.kind, block.text) for block in slow.blocks]
    assert fast == slow


@pytest.mark.faults
@pytest.mark.slow
def test_they_agree_on_every_real_paper(shared_data: Path) -> None:
    pages = [*pages_of(shared_data / "dump"), *pages_of(shared_data / "dump2")]
    assert len(pages) == 41
    for _, content in pages:
        assert_same(content)


def test_they_agree_on_the_sample_corpus() -> None:
    pages = pages_of(SAMPLE_DUMP)
    if not pages:
        pytest.skip("the sample corpus is not here")
    for _, content in pages:
        assert_same(content)


def remainder(paper: Paper) -> int:
    """Characters that were seen, and are neither held by the paper nor told as lost."""
    return paper.chars_seen - paper.chars_kept - sum(paper.losses.values())


def test_what_a_page_shows_is_kept_or_told_as_lost(shared_data: Path) -> None:
    for name, content in [*pages_of(shared_data / "dump"), *pages_of(SAMPLE_DUMP)]:
        paper = html.parse(content)
        assert abs(remainder(paper)) < 0.005 * paper.chars_seen, name
        assert paper.losses.get("unaccounted", 0) < 0.005 * paper.chars_seen, name
        assert paper.chars_kept == sum(paper.kept.values())


def test_no_real_page_needs_a_browsers_rules(shared_data: Path) -> None:
    for _, content in [*pages_of(shared_data / "dump"), *pages_of(SAMPLE_DUMP)]:
        grow(read_source(content))


PAGES = {
    "text": para(f"Let {math('x')} be, as {cite('bib.bib1', 'bib.bib2')} says{note('Or not.')}."),
    "sections": section(para("Top.") + section(para("Deep.", "S1.SS1.p1"), "Data", "1.1", "S1.SS1", "subsection")),
    "bibliography": para("Words.")
    + bibliography(bibitem("bib.bib1", "Ann Lee.", "On words.", "<em>J. W.</em>, 2001.")),
    "unknown macros in a byline": (
        '<span class="ltx_creator ltx_role_author"><span class="ltx_personname">Ann Lee'
        '<span class="ltx_ERROR undefined">\\supit</span>a, Bob Roe<span class="ltx_ERROR undefined">\\ORCID</span>'
        '0000-0002-1825-0097<br><span class="ltx_ERROR undefined">\\supit</span>aCWI</span></span>'
    )
    + para("Words."),
    "list": (
        '<div id="S1.p1" class="ltx_para"><p class="ltx_p">Before</p><ul id="S1.I1" class="ltx_itemize">'
        f'<li class="ltx_item"><span class="ltx_tag ltx_tag_item">•</span>{para("one", "S1.I1.i1.p1")}</li></ul>'
        '<p id="S1.p1.2" class="ltx_p">after.</p></div>'
    ),
    "algorithms side by side in a figure": (
        '<figure id="F1" class="ltx_figure"><figure id="alg1" class="ltx_float"><div class="ltx_listing">'
        '<div class="ltx_listingline">return x</div></div></figure><figure id="alg2" class="ltx_float">'
        '<div class="ltx_listing"><div class="ltx_listingline">return y</div></div></figure>'
        '<figcaption class="ltx_caption">Figure 1: Two ways</figcaption></figure>'
    ),
    "table": (
        '<figure id="T1" class="ltx_table"><figcaption class="ltx_caption">Table 1: Two</figcaption><table '
        'class="ltx_tabular"><tr class="ltx_tr"><td colspan="2">a</td></tr><tr class="ltx_tr"><td>b</td><td>c</td></tr>'
        "</table></figure>"
    ),
    "swallowed section": (
        '<figure id="T1" class="ltx_table"><figcaption class="ltx_caption">Table 1</figcaption>'
        f"{section(para('Two.', 'S2.p1'), 'Results', '2', 'S2')}</figure>"
    ),
    "gaps": para(
        f'As shown {note("Or not.")}. See <cite class="ltx_cite">[<span class="ltx_missing_citation">lee</span>]'
        '</cite>, and <span class="ltx_ERROR undefined">\\hdashline</span>[0.4pt/2pt] words.'
    ),
    "footnote in a cell": '<table class="ltx_tabular"><tr><td>one ' + note("Two.") + ", three</td></tr></table>",
    "hidden": para('One <span style="display: none">two</span> <span style="color:#FFFFFF">three</span> four.'),
    "white in a table": '<table class="ltx_tabular"><tr><td><span style="color:white">Set</span></td></tr></table>',
    "formulas with errors": para(
        f"Let {math('x')} and "
        '<math alttext="y"><merror class="ltx_ERROR undefined"><mtext>\\foo</mtext></merror></math> be.'
    ),
    "errors in a table": (
        '<figure id="T1" class="ltx_table"><figcaption class="ltx_caption">T<b class="ltx_ERROR">\\a</b></figcaption>'
        '<table class="ltx_tabular"><tr><td>a<span class="ltx_ERROR">\\b</span></td></tr></table></figure>'
    ),
    "grids in a byline": byline(
        '<span class="ltx_tabular"><span class="ltx_tr"><span class="ltx_td">Ann Lee<sup>1</sup></span>'
        '<span class="ltx_td">Bob Roe<sup><sup>2</sup></sup></span></span></span><br><sup>1</sup>CWI'
        '<span class="ltx_tabular"><span class="ltx_tr"><span class="ltx_td">Cid Moe</span></span>'
        '<span class="ltx_tr"><span class="ltx_td">INRIA</span></span></span>'
    )
    + para("Words."),
    "authors between unknown macros": byline(
        'Ann Lee<br>CWI<span class="ltx_ERROR">\\AND</span>Bob Roe<br><span class="ltx_ERROR">\\addr</span>INRIA'
    )
    + para("Words."),
    "contacts": byline(
        "Ann Lee",
        '<span class="ltx_contact ltx_role_affiliation"><span class="ltx_contact_name">Affiliation: </span>'
        '<span class="ltx_affiliation_institution">CWI</span><span class="ltx_affiliation_city">Y</span></span>'
        '<span class="ltx_affiliation_institution">INRIA</span><span class="ltx_affiliation_city">Z</span>',
    )
    + para("Words."),
    "title with a subtitle and publication data": (
        '<h2 class="ltx_subtitle">A Subtitle</h2><span class="ltx_pubnotes"><span class="ltx_pubnote ltx_role_doi">'
        '<span class="ltx_note_name">DOI: </span>10.1/2</span></span>'
    )
    + para("Words."),
    "a byline in paragraphs": para("Ann Lee, Bob Roe<br>University of X<br>ann@x.edu", "p1") + section(para("Words.")),
    "errors": para(
        'Words<span class="ltx_ERROR undefined">\\foo</span> <span class="ltx_missing_label">LABEL:x</span>stay.'
    ),
}


@pytest.mark.parametrize("name", PAGES)
def test_they_agree_on(name: str) -> None:
    assert_same(page(PAGES[name]))


@pytest.mark.parametrize("content", [b"", b"%PDF", page(""), b"<html><body>plain</body></html>"])
def test_they_agree_on_what_is_no_page(content: bytes) -> None:
    reasons = []
    for parse in (html.parse, reference.parse):
        with pytest.raises(PageError) as caught:
            parse(content)
        reasons.append(caught.value.reason)
    assert reasons[0] == reasons[1]


COMPUTER_SCIENCE = [
    "1706.03762", "1911.02782", "2004.14974", "2305.03393", "2306.17806", "2310.06825", "2401.01967", "2402.01865",
    "2403.18886", "2404.01650", "2410.07839",
]  # fmt: skip


@pytest.mark.parametrize("arxiv_id", COMPUTER_SCIENCE)
def test_every_real_paper_has_title_abstract_and_text_in_each_section(shared_data: Path, arxiv_id: str) -> None:
    (content,) = [content for name, content in pages_of(shared_data / "dump") if arxiv_id in name]
    paper = html.parse(content)
    assert paper.title
    assert paper.abstract
    assert paper.authors
    held = {block.section_path[:depth] for block in paper.blocks for depth in range(len(block.section_path) + 1)}
    assert [one.title for one in paper.sections if one.path not in held] == []
    cited = {key for block in paper.blocks for key in block.cited_keys}
    assert cited <= {item.key for item in paper.bibliography}
    assert paper.chars_kept > 0.94 * paper.chars_seen
