"""The fast parser on hand-written pages: each policy, and pages that are broken."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.corpus.parse.html import parse
from pipeline.corpus.parse.paper import Author, PageError, Paper
from tests.unit.corpus.building import (
    bibitem,
    bibliography,
    cite,
    equation,
    floating,
    listed,
    math,
    note,
    only_block,
    page,
    para,
    section,
)


def text_of(body: str) -> str:
    return only_block(parse(page(body))).text


def kinds(paper: Paper) -> list[str]:
    return [block.kind for block in paper.blocks]


def test_the_title_is_the_heading_not_the_title_element() -> None:
    assert parse(page(para("Words."), title="True <br>Title")).title == "True Title"


def test_a_page_without_a_heading_has_no_title() -> None:
    assert parse(page(para("Words."), title="")).title is None


def test_a_title_set_within_a_part_is_found() -> None:
    heads = '<h2 class="ltx_title ltx_title_part"><span class="ltx_tag ltx_tag_part">Part </span></h2>'
    body = f'<section class="ltx_part">{heads}<p></p><h2 class="ltx_title ltx_title_part">On Words</h2></section>'
    paper = parse(page(body + section(para("Words.")), title=""))
    assert paper.title == "On Words"
    assert [one.title for one in paper.sections] == ["Methods"]


def test_a_subtitle_is_part_of_the_title() -> None:
    assert parse(page('<h2 class="ltx_subtitle">Or Not</h2>' + para("Words."))).title == "A Page: Or Not"
    assert parse(page('<h2 class="ltx_subtitle">Or not</h2>' + para("Words."), "Why?")).title == "Why? Or not"


def test_publication_data_is_no_footnote_and_no_title() -> None:
    note_of_price = '<span class="ltx_note ltx_note_frontmatter ltx_role_price">price: 15.00</span>'
    paper = parse(page(note_of_price + para("Words.")))
    assert [block.text for block in paper.blocks] == ["Words."]
    assert paper.losses["publication_data"] == len("price:15.00")
    pubnotes = (
        '<span class="ltx_pubnotes">'
        '<span class="ltx_pubnote ltx_role_doi"><span class="ltx_note_name">DOI: </span>10.1/2</span>'
        '<span class="ltx_pubnote ltx_role_thanks"><span class="ltx_note_name">Thanks: </span>We thank.</span></span>'
    )
    paper = parse(page(para("Words."), f"A Page{pubnotes}"))
    assert paper.title == "A Page"
    assert [block.text for block in paper.blocks] == ["We thank.", "Words."]


def test_title_and_byline_are_found_in_paragraphs() -> None:
    front = para("How We Read", "p1") + para("Ann Lee<br>University of X<br>ann@x.edu", "p2")
    paper = parse(page(front + section(para("Words.")), title=""))
    assert (paper.title, paper.authors) == ("How We Read", (Author("Ann Lee", ("University of X",), ("ann@x.edu",)),))
    assert [block.text for block in paper.blocks] == ["Words."]


def test_paragraphs_before_the_first_section_are_no_byline_by_themselves() -> None:
    paper = parse(page(para("New York, New Delhi", "p1") + section(para("Words."))))
    assert paper.authors == ()
    assert [block.text for block in paper.blocks] == ["New York, New Delhi", "Words."]


def test_a_footnote_of_the_title_is_a_block() -> None:
    paper = parse(page(para("Words."), title=f"On Words{note('Supported by nobody.')}"))
    assert paper.title == "On Words"
    assert [block.text for block in paper.blocks] == ["Supported by nobody.", "Words."]


def test_an_abstract_is_no_block() -> None:
    head = '<h6 class="ltx_title ltx_title_abstract">Abstract</h6>'
    body = f'<div class="ltx_block"><div class="ltx_abstract">{head}<p class="ltx_p">We count\nwords.</p></div></div>'
    paper = parse(page(body + para("Words.")))
    assert paper.abstract == "We count words."
    assert kinds(paper) == ["paragraph"]


def test_an_abstract_set_by_hand_is_found() -> None:
    words = "one two three four five " * 5
    paper = parse(page(para("<b>Abstract.</b> " + words, "p1") + section(para("Words."))))
    assert paper.abstract == words.strip()
    assert len(paper.blocks) == 1


def test_an_abstract_that_is_a_section_is_found() -> None:
    paper = parse(page(section(para("We count words."), "Abstract", "") + section(para("Words."))))
    assert paper.abstract == "We count words."
    assert [one.title for one in paper.sections] == ["Methods"]


def test_authors_come_with_what_is_theirs() -> None:
    contacts = (
        '<span class="ltx_author_notes"><span class="ltx_contact ltx_role_affiliation">University<br>of X</span>'
        '<span class="ltx_contact ltx_role_email"><a href="mailto:a@x.edu">a@x.edu</a></span></span>'
    )
    creator = f'<span class="ltx_creator ltx_role_author"><span class="ltx_personname">Ann Lee</span>{contacts}</span>'
    paper = parse(page(f'<div class="ltx_authors">{creator}</div>' + para("Words.")))
    assert paper.authors == (Author("Ann Lee", ("University, of X",), ("a@x.edu",)),)


def test_a_footnote_on_a_name_that_is_an_affiliation_is_the_authors() -> None:
    creator = '<span class="ltx_creator ltx_role_author"><span class="ltx_personname">Ann Lee{}</span></span>'
    paper = parse(page(creator.format(note("University of X")) + para("Words.")))
    assert paper.authors == (Author("Ann Lee", ("University of X",)),)


def test_affiliations_in_paragraphs_belong_to_the_numbers_of_the_names() -> None:
    names = '<span class="ltx_personname">Ann Lee<sup>1</sup>, Bob Roe<sup>{}</sup></span>'
    byline = f'<span class="ltx_creator ltx_role_author">{names}</span>'
    front = para("University of X, Oslo", "p1") + para("Institute of Y, Bergen", "p2")
    paper = parse(page(byline.format("1,2") + front + section(para("Words."))))
    places = ("University of X, Oslo", "Institute of Y, Bergen")
    assert [author.affiliations for author in paper.authors] == [places[:1], places]
    assert [block.text for block in paper.blocks] == ["Words."]
    paper = parse(page(byline.format("3") + front + section(para("Words."))))
    assert len(paper.blocks) == 3, "no paragraph is third"


def test_sections_nest_with_number_title_and_path() -> None:
    inner = section(para("Deep.", "S1.SS1.p1"), "Data", "1.1", "S1.SS1", "subsection")
    paper = parse(
        page(section(para("Top.") + inner) + section(para("End.", "A1.p1"), "More", "Appendix A", "A1", "appendix"))
    )
    assert [(s.anchor, s.number, s.title, s.depth, s.path) for s in paper.sections] == [
        ("S1", "1", "Methods", 1, ("Methods",)),
        ("S1.SS1", "1.1", "Data", 2, ("Methods", "Data")),
        ("A1", "A", "More", 1, ("More",)),
    ]
    assert [block.section_path for block in paper.blocks] == [("Methods",), ("Methods", "Data"), ("More",)]


def test_sections_swallowed_by_a_table_are_set_right() -> None:
    swallowed = section(para("Two.", "S2.p1"), "Results", "2", "S2")
    broken = (
        f'<figure id="S1.T1" class="ltx_table"><figcaption class="ltx_caption">Table 1</figcaption>{swallowed}</figure>'
    )
    paper = parse(page(section(para("One.") + broken)))
    assert [(one.title, one.depth) for one in paper.sections] == [("Methods", 1), ("Results", 1)]
    assert [(block.kind, block.section_path) for block in paper.blocks] == [
        ("paragraph", ("Methods",)),
        ("caption", ("Methods",)),
        ("paragraph", ("Results",)),
    ]


def test_thanks_are_a_section() -> None:
    paper = parse(page('<div class="ltx_acknowledgements"><h6 class="ltx_title">Thanks.</h6>To all.</div>'))
    assert [one.title for one in paper.sections] == ["Thanks"]
    assert only_block(paper).text == "To all."


def test_white_space_is_folded() -> None:
    assert text_of(para("Some\n   words&nbsp; apart.")) == "Some words apart."


def test_math_is_said_once_as_tex() -> None:
    assert text_of(para(f"Let {math('x_{1}')} be.")) == "Let $x_{1}$ be."


def test_math_without_alttext_is_read_from_its_annotation() -> None:
    formula = math("x^{2}").replace('alttext="x^{2}" ', "")
    assert text_of(para(f"Let {formula} be.")) == "Let $x^{2}$ be."


def test_wrapped_tex_is_one_line() -> None:
    assert text_of(para(math("\\displaystyle B% \n(x)"))) == "$B(x)$"


def test_a_display_equation_stands_in_its_paragraph_with_its_number() -> None:
    number = '<td class="ltx_eqn_eqno"><span class="ltx_tag ltx_tag_equation">(3)</span></td>'
    row = f"<td>{math('a')}</td><td>{math('=b')}</td>{number}"
    body = f'<div class="ltx_para"><p class="ltx_p">So</p>{equation(row)}<p class="ltx_p">holds.</p></div>'
    assert text_of(body) == "So $$a =b$$ (3) holds."


def test_words_within_an_equation_are_text_in_it() -> None:
    body = equation(f"<td>{math('a')}</td><td>where</td><td>{math('b')}</td>", "<td>and so</td>")
    assert text_of(body) == "$$a \\text{where} b$$ and so"


def test_a_citation_becomes_a_marker() -> None:
    block = only_block(parse(page(para(f"As known {cite('bib.bib1', 'bib.bib2')}."))))
    assert block.text == "As known [@bib.bib1; @bib.bib2]."
    assert block.cited_keys == ("bib.bib1", "bib.bib2")


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ('Smith et al. (<a href="#bib.bib1">2018</a>)', "Smith et al. [@bib.bib1]"),
        ('(Smith et al., <a href="#bib.bib1">2018</a>; Lee, <a href="#bib.bib2">2019</a>)', "[@bib.bib1; @bib.bib2]"),
        (
            'Smith (<a href="#bib.bib1">2018</a>); Lee (<a href="#bib.bib2">2019</a>)',
            "Smith [@bib.bib1]; Lee [@bib.bib2]",
        ),
        ('<a href="#bib.bib1">smith2018 </a>', "[@bib.bib1]"),
        ('<a href="#bib.bib1">Smith</a> (<a href="#bib.bib1">2018</a>)', "Smith [@bib.bib1]"),
        ('[<a href="#bib.bib1">4</a>, p. 22]', "[@bib.bib1]"),
        ('<a href="#bib.bib1">1</a>, <a href="#bib.bib2">2</a>', "[@bib.bib1; @bib.bib2]"),
        ('[<span class="ltx_missing_citation">lee</span>]', ""),
        ('[<a href="#bib.bib1">1</a>, <span class="ltx_missing_citation">lee</span>]', "[@bib.bib1]"),
        ("[5]", "[5]"),
        ('(<span class="ltx_missing_citation">a</span>; <span class="ltx_missing_citation">b</span>, inter alia)', ""),
        ('(e.g., <span class="ltx_missing_citation">a</span>)', ""),
        ('(<span class="ltx_missing_citation">a</span>, MIT license)', "(MIT license)"),
    ],
)
def test_citations_of_every_style(content: str, text: str) -> None:
    assert text_of(para(f'A <cite class="ltx_cite">{content}</cite> b')) == f"A {text} b".replace("  ", " ")


def test_brackets_around_a_marker_go() -> None:
    assert text_of(para(f"As ({cite('bib.bib1')}) says.")) == "As [@bib.bib1] says."


def test_no_comma_stays_after_an_opening_bracket_where_the_citation_is_missing() -> None:
    missing = '<cite class="ltx_cite"><span class="ltx_missing_citation">lee</span></cite>'
    assert text_of(para(f"Topic Modeling ({missing}, hl-tm) is")) == "Topic Modeling (hl-tm) is"


def test_missing_citations_are_counted_and_dropped() -> None:
    paper = parse(
        page(para('See <cite class="ltx_cite">[<span class="ltx_ref ltx_missing_citation">lee</span>]</cite>.'))
    )
    assert (paper.missing_citations, paper.losses["missing_citation"]) == (1, 3)


def test_raw_macros_are_dropped_and_counted() -> None:
    paper = parse(page(para('Words<span class="ltx_ERROR undefined">\\foo</span> stay.')))
    assert only_block(paper).text == "Words stay."
    assert (paper.ltx_errors, paper.losses["ltx_error"]) == (1, 4)


def test_a_cross_reference_is_its_text() -> None:
    assert (
        text_of(para('See Section <a href="#S2" class="ltx_ref"><span class="ltx_ref_tag">2</span></a>.'))
        == "See Section 2."
    )


def test_a_footnote_leaves_its_sentence() -> None:
    footnote = note(f"By {cite('bib.bib1')}.")
    paper = parse(page(para(f"Words{footnote} stay.")))
    assert [(b.kind, b.text, b.cited_keys) for b in paper.blocks] == [
        ("paragraph", "Words stay.", ()),
        ("footnote", "By [@bib.bib1].", ("bib.bib1",)),
    ]


def test_no_space_is_left_where_a_footnote_was() -> None:
    paper = parse(page(para(f"Small gradients {note('Or so.')}. They vanish {note('Soon.')} here , too.")))
    assert paper.blocks[0].text == "Small gradients. They vanish here , too."


def test_no_space_is_left_where_a_missing_citation_was() -> None:
    missing = '<cite class="ltx_cite">[<span class="ltx_missing_citation">lee</span>]</cite>'
    assert text_of(para(f"As shown {missing}{missing}, words.")) == "As shown, words."


def test_the_length_after_an_unknown_macro_goes_with_it() -> None:
    macro = '<span id="x" class="ltx_ERROR undefined">\\hdashline</span>\n<span class="ltx_p">[0.4pt/2pt]Words</span>'
    paper = parse(page(f'<table class="ltx_tabular"><tr><td>{macro}</td><td>[2]</td></tr></table>'))
    assert only_block(paper).text == "| Words | [2] |\n| --- | --- |"
    assert paper.losses["ltx_error"] == len("\\hdashline[0.4pt/2pt]")


def test_a_list_is_one_block_and_parts_the_paragraph() -> None:
    inner = listed(para("deep", "S1.I1.i1.I1.p1"), kind="enumerate", tag="1.")
    whole = listed(para("one") + inner, para("two"))
    after = '<p id="S1.p1.2" class="ltx_p">After.</p>'
    body = f'<div id="S1.p1" class="ltx_para"><p class="ltx_p">Before:</p>{whole}{after}</div>'
    paper = parse(page(body))
    assert [(block.kind, block.anchor, block.text) for block in paper.blocks] == [
        ("paragraph", "S1.p1", "Before:"),
        ("list", "S1.I1", "- one\n1. deep\n- two"),
        ("paragraph", "S1.p1.2", "After."),
    ]


def test_a_description_list_keeps_its_words() -> None:
    word = '<dt class="ltx_item"><span class="ltx_tag ltx_tag_item">Gist</span></dt>'
    body = f'<dl class="ltx_description">{word}<dd>the point</dd></dl>'
    assert text_of(body) == "Gist the point"


def test_a_table_is_markdown_below_its_caption() -> None:
    rows = (
        '<tr class="ltx_tr"><th rowspan="2">Set</th><th colspan="2">Scores</th></tr>'
        '<tr class="ltx_tr"><td>P</td><td>R|F</td></tr>'
        '<tr class="ltx_tr"><td>a</td><td><span class="ltx_p">1</span></td><td></td></tr>'
    )
    grid = f'<table class="ltx_tabular">{rows}</table>'
    body = floating(grid, "Table 1: Scores.", "T1", "ltx_table")
    paper = parse(page(body))
    block = only_block(paper)
    assert (block.kind, block.anchor, paper.tables) == ("table", "T1", 1)
    assert block.text == "Table 1: Scores.\n| Set | Scores P | Scores R\\|F |\n| --- | --- | --- |\n| a | 1 |  |"


def test_a_paragraph_in_a_cell_is_no_running_text() -> None:
    cell = '<span class="ltx_inline-block"><span class="ltx_p">only a cell</span></span>'
    paper = parse(page(f'<table class="ltx_tabular"><tr class="ltx_tr"><td>{cell}</td></tr></table>'))
    assert (kinds(paper), paper.paragraphs) == (["table"], 0)


def test_a_table_in_a_sentence_follows_it() -> None:
    grid = '<span class="ltx_tabular"><span class="ltx_tr"><span class="ltx_td">x</span></span></span>'
    assert [b.text for b in parse(page(para(f"Before {grid} after."))).blocks] == ["Before after.", "| x |\n| --- |"]


def test_figures_in_a_figure_have_their_own_captions() -> None:
    inner = floating("", "(a) Left", "F1.sf1", "ltx_figure ltx_figure_panel")
    body = floating(inner, "Figure 1: Both", "F1", "ltx_figure")
    paper = parse(page(body))
    assert [(b.anchor, b.text) for b in paper.blocks] == [("F1", "Figure 1: Both"), ("F1.sf1", "(a) Left")]
    assert paper.figures == 1


def test_a_theorem_is_one_block() -> None:
    head = '<h6 class="ltx_title ltx_title_theorem"><span class="ltx_tag ltx_tag_theorem">Theorem 1</span>.</h6>'
    body = f'<div id="Thm1" class="ltx_theorem">{head}{para("All")}{listed(para("words"))}{para("end.")}</div>'
    block = only_block(parse(page(body)))
    assert (block.kind, block.text) == ("theorem", "Theorem 1. All\n- words\nend.")


def test_an_algorithm_keeps_its_lines() -> None:
    line = '<div class="ltx_listingline"><span class="ltx_tag ltx_tag_listingline">{0}:</span> step {0}</div>'
    lines = f'<div class="ltx_listing">{line.format(1)}{line.format(2)}</div>'
    body = floating(lines, "Algorithm 1", "alg1", "ltx_float ltx_float_algorithm")
    block = only_block(parse(page(body)))
    assert (block.kind, block.text) == ("algorithm", "Algorithm 1\n1: step 1\n2: step 2")


def test_the_number_of_a_line_is_a_word_of_its_own() -> None:
    line = '<div class="ltx_listingline"><span class="ltx_tag ltx_tag_listingline">28</span>The analysis</div>'
    assert only_block(parse(page(f'<div class="ltx_listing">{line}</div>'))).text == "28 The analysis"


def test_boxes_of_a_width_are_words_apart_and_boxes_without_one_may_be_part_of_a_word() -> None:
    wide = '<span class="ltx_text ltx_inline-block" style="width:143.1pt;">{}</span>'
    assert text_of(para(wide.format("Ground truth") + wide.format("Masked"))) == "Ground truth Masked"
    assert text_of(para('Lat<span class="ltx_text ltx_inline-block">e</span>x')) == "Latex"


def test_verbatim_text_is_an_algorithm() -> None:
    body = '<div class="ltx_para"><pre class="ltx_verbatim">a = 1\nb = 2</pre></div>'
    assert only_block(parse(page(body))).text == "a = 1\nb = 2"


def test_bibliography_items_have_keys_and_parts() -> None:
    items = bibliography(bibitem("bib.bib1", "Ann Lee and Bob Roe.", "On words.", "<em>J. Words</em>, 2001."))
    (only,) = parse(page(para("Words.") + items)).bibliography
    assert (only.key, only.raw) == ("bib.bib1", "Ann Lee and Bob Roe. On words. J. Words, 2001.")
    assert (only.title, only.authors, only.year, only.venue) == ("On words", ("Ann Lee", "Bob Roe"), 2001, "J. Words")


def test_every_character_is_kept_or_told_where_it_went() -> None:
    lost = '<div class="ltx_keywords">counting</div><footer class="ltx_page_footer">made</footer>'
    body = para(f"Let {math('x')} be.") + lost
    paper = parse(page(body, title="T"))
    assert paper.losses == {"keywords": 8, "page_footer": 4}
    assert paper.kept == {"paragraph": len("Letxbe."), "title": 1}
    assert paper.chars_seen == len("TLetxbe.countingmade")
    assert paper.chars_kept == len("TLetxbe.")


def test_what_is_kept_is_told_by_kind() -> None:
    items = bibliography(bibitem("bib.bib1", "A. Lee.", "On words."))
    body = section(para(f"Let {math('x')} be {cite('bib.bib1')}.{note('Or not.')}") + listed(para("one"))) + items
    paper = parse(page(body, title="On Words"))
    assert paper.kept == {
        "bibliography": len("A.Lee.Onwords."),
        "footnote": len("Ornot."),
        "heading": len("1Methods"),
        "list": len("-one"),
        "paragraph": len("Letxbe."),
        "title": len("OnWords"),
    }
    assert paper.chars_kept == sum(paper.kept.values())
    assert paper.losses == {
        "bibliography_tag": len("[1]"),
        "bibliography_title": len("References"),
        "citation_label": len("[1]"),
        "note_mark": len("111"),
    }
    assert paper.chars_seen == paper.chars_kept + sum(paper.losses.values())


def test_bars_and_rules_of_a_table_are_not_the_pages() -> None:
    paper = parse(page('<table class="ltx_tabular"><tr><td>a|b</td><td>c</td></tr></table>', title=""))
    assert paper.kept == {"table": len("a|bc")}


@pytest.mark.parametrize(
    "style",
    ["display:none", "visibility: hidden;", "font-size:0", "font-size:1px;", "width:1em;font-size:0.5pt", "color:#FFF"],
)
def test_hidden_text_is_lost(style: str) -> None:
    paper = parse(page(para(f'Seen <span style="{style}">ignore the above</span> words.')))
    assert only_block(paper).text == "Seen words."
    assert paper.losses == {"hidden": len("ignoretheabove")}


@pytest.mark.parametrize("style", ["font-size:90%;", "font-size:10pt", "color:#FF0000", "color:white;background:black"])
def test_styled_text_is_read(style: str) -> None:
    assert text_of(para(f'Seen <span style="{style}">well</span>.')) == "Seen well."


def test_white_heads_of_a_dark_table_are_read() -> None:
    head = '<td style="background-color:#000000"><span class="ltx_text" style="color:#FFFFFF">Score</span></td>'
    assert text_of(f'<table class="ltx_tabular"><tr>{head}</tr></table>') == "| Score |\n| --- |"


def test_a_block_knows_its_error_marks() -> None:
    error = '<span class="ltx_ERROR undefined">\\foo</span>'
    formula = f'<math alttext="x"><merror>{error}</merror></math>'
    paper = parse(page(para(f"One{error} {formula}{note('a' + error)}.") + para("Two.", "p2")))
    assert [(block.kind, block.errors) for block in paper.blocks] == [
        ("paragraph", 2),
        ("footnote", 1),
        ("paragraph", 0),
    ]
    assert paper.ltx_errors == 3


def test_formulas_without_tex_are_counted() -> None:
    bare = "<math><mi>x</mi><mo>=</mo><mi>y</mi></math>"
    paper = parse(page(para(f"Let {bare} and {math('z')} be.")))
    assert (paper.formulas, paper.math_without_tex, only_block(paper).text) == (2, 1, "Let $x=y$ and $z$ be.")


def test_raw_macros_in_the_text_are_counted() -> None:
    alpha = math("\\alpha")
    paper = parse(page(para(f"As \\citet said, {alpha} and \\foo.") + para("Plain.")))
    assert paper.unconverted_macros == 2


def test_unseen_elements_are_not_counted() -> None:
    assert parse(page(para("Words.<script>var x;</script><!-- no -->"), title="T")).chars_seen == len("TWords.")


def test_a_page_cut_off_is_marked() -> None:
    whole = page(section(para("One.") + para("Two.", "S1.p2")))
    cut = whole[: whole.index(b"Two") + 2]
    assert not parse(whole).truncated
    assert parse(cut).truncated
    assert [block.text for block in parse(cut).blocks] == ["One.", "Tw"]


def test_a_page_cut_off_in_a_formula_is_read() -> None:
    whole = page(para("One.") + para(f"Let {math('x')} be.", "p2"))
    paper = parse(whole[: whole.index(b"<annotation-xml")])
    assert paper.truncated
    assert [block.text for block in paper.blocks] == ["One.", "Let $x$"]


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "not_html"),
        (b"%PDF-1.5 \x00\xff", "not_html"),
        (b"<html></html>", "no_text"),
        (page(""), "no_text"),
        (b"<html><body><h1>404 Not Found</h1></body></html>", "no_text"),
    ],
)
def test_what_is_no_page_says_why(content: bytes, reason: str) -> None:
    with pytest.raises(PageError) as caught:
        parse(content)
    assert caught.value.reason == reason


def test_elements_nested_beyond_reason_are_refused() -> None:
    with pytest.raises(PageError) as caught:
        parse(page("<div>" * 5000 + "x" + "</div>" * 5000))
    assert caught.value.reason == "too_deep"


def test_bytes_that_are_no_utf8_are_replaced() -> None:
    assert "\ufffd" in only_block(parse(page(para("W@rds.")).replace(b"@", b"\xff"))).text


def test_control_characters_are_taken_out() -> None:
    assert only_block(parse(page(para("W\x00o\x01r\x04d&#1;s.")))).text == "Words."


def test_xhtml_is_read_as_html() -> None:
    body = '<div class="ltx_date"/>' + para("Words.")
    assert only_block(parse(b'<?xml version="1.0"?>' + page(body))).text == "Words."


_PIECES = [
    para("words"), section(para("x")), math("x"), cite("bib.bib1"), note("n"), listed(para("i")), "<td>", "</p>",
    equation("<td>a</td>"), bibliography(bibitem("bib.bib1", "A. Lee.", "T.")), '<figure class="ltx_figure">', "text",
    '<table class="ltx_tabular"><tr><td rowspan="9" colspan="7">c', '<div class="ltx_theorem">', "</div>",
    '<span class="ltx_ERROR">', '<math alttext="', '<cite class="ltx_cite">', '<div class="ltx_authors">', "</section>",
    "&#0;&#1;&#4;",
]  # fmt: skip


@settings(max_examples=200, deadline=None)
@given(st.lists(st.sampled_from(_PIECES), max_size=12))
def test_no_page_breaks_the_parser(pieces: list[str]) -> None:
    try:
        paper = parse(page("".join(pieces)))
    except PageError:
        return
    assert paper.chars_kept + sum(paper.losses.values()) <= 1.2 * paper.chars_seen + 20


def head_cell(text: str, columns: int = 1, rows: int = 1) -> str:
    return f'<th class="ltx_td ltx_th ltx_th_column" colspan="{columns}" rowspan="{rows}">{text}</th>'


def test_a_head_of_several_rows_stands_over_its_columns_in_one() -> None:
    rows = [
        head_cell("Model", rows=2) + head_cell("BLEU", columns=2) + head_cell("Cost"),
        head_cell("EN-DE") + head_cell("EN-FR") + head_cell(""),
        "<td>ours</td><td>28.4</td><td>41.8</td><td>3</td>",
    ]
    grid = "".join(f'<tr class="ltx_tr">{row}</tr>' for row in rows)
    paper = parse(page(f'<table class="ltx_tabular">{grid}</table>'))
    assert only_block(paper).text.splitlines() == [
        "| Model | BLEU EN-DE | BLEU EN-FR | Cost |",
        "| --- | --- | --- | --- |",
        "| ours | 28.4 | 41.8 | 3 |",
    ]
    assert (paper.chars_kept, paper.losses) == (paper.chars_seen, {})


def test_a_first_row_that_spans_rows_and_columns_is_a_head_whatever_it_is_called() -> None:
    rows = [
        '<td rowspan="2">Model</td><td colspan="2">BLEU</td>',
        "<td>EN-DE</td><td>EN-FR</td>",
        "<td>ours</td><td>28.4</td><td>41.8</td>",
    ]
    grid = "".join(f'<tr class="ltx_tr">{row}</tr>' for row in rows)
    paper = parse(page(f'<table class="ltx_tabular">{grid}</table>'))
    assert only_block(paper).text.splitlines()[0] == "| Model | BLEU EN-DE | BLEU EN-FR |"


def test_a_table_of_heads_alone_has_one_row_of_heads() -> None:
    grid = "".join(f'<tr class="ltx_tr">{head_cell(word)}</tr>' for word in ("one", "two"))
    paper = parse(page(f'<table class="ltx_tabular">{grid}</table>'))
    assert only_block(paper).text.splitlines() == ["| one |", "| --- |", "| two |"]


def test_grids_of_one_table_keep_their_order() -> None:
    grids = "".join(f'<table class="ltx_tabular"><tr><td>{word}</td></tr></table>' for word in ("one", "two"))
    paper = parse(page(f'<figure class="ltx_table">{grids}<p class="ltx_p">After.</p></figure>'))
    assert [line for line in only_block(paper).text.splitlines() if "-" not in line] == ["| one |", "| two |", "After."]


def test_sections_within_a_byline_that_was_never_closed_are_kept() -> None:
    name = '<span class="ltx_creator ltx_role_author"><span class="ltx_personname">A. Lee'
    paper = parse(page(f'<div class="ltx_authors">{name}{section(para("Words."))}'))
    assert [block.text for block in paper.blocks] == ["Words."]


def test_what_no_rule_explains_is_counted_as_lost() -> None:
    twice = '<div class="ltx_abstract"><p class="ltx_p">First.</p></div>' * 2
    paper = parse(page(f'<span class="ltx_personname">{twice}</span>{section(para("Words."))}'))
    assert paper.chars_seen <= paper.chars_kept + sum(paper.losses.values())


def test_a_table_within_a_cell_that_only_breaks_lines_is_words_and_any_other_is_a_table_of_its_own() -> None:
    lines = (
        '<table class="ltx_tabular"><tr class="ltx_tr"><td>two</td></tr><tr class="ltx_tr"><td>lines</td></tr></table>'
    )
    grid = (
        '<table class="ltx_tabular"><tr class="ltx_tr"><td>Token</td><td>p</td></tr>'
        '<tr class="ltx_tr"><td>was</td><td>70.3</td></tr></table>'
    )
    table = f'<table class="ltx_tabular"><tr class="ltx_tr"><td>{lines}</td><td>Prompt {grid}</td></tr></table>'
    block = parse(page(f'<figure class="ltx_table" id="T1">{table}</figure>' + para("Words."))).blocks[0]
    assert block.text == ("| two lines | Prompt |\n| --- | --- |\n| Token | p |\n| --- | --- |\n| was | 70.3 |")


def test_a_caption_within_a_cell_is_the_caption_of_its_float() -> None:
    cell = '<td><figcaption class="ltx_caption">Table 5: Case study.</figcaption></td>'
    table = f'<table class="ltx_tabular"><tr class="ltx_tr"><td>Q: who?</td></tr><tr class="ltx_tr">{cell}</tr></table>'
    block = parse(page(f'<figure class="ltx_table" id="T5">{table}</figure>' + para("Words."))).blocks[0]
    assert (block.kind, block.text) == ("table", "Table 5: Case study.\n| Q: who? |\n| --- |")


def test_a_figure_of_algorithms_is_its_caption_and_they_are_blocks() -> None:
    listing = '<div class="ltx_listing"><div class="ltx_listingline">return x</div></div>'
    inner = f'<figure id="alg1" class="ltx_float">{listing}</figure>'
    caption = '<figcaption class="ltx_caption">Figure 1: One way</figcaption>'
    paper = parse(page(f'<figure id="F1" class="ltx_figure">{inner}{caption}</figure>'))
    assert {block.anchor: (block.kind, block.text) for block in paper.blocks} == {
        "F1": ("caption", "Figure 1: One way"),
        "alg1": ("algorithm", "return x"),
    }
