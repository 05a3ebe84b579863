"""The fast parser on hand-written pages: each policy, and pages that are broken.

The reference parser, which shares no code that walks a page, must read each of them alike.
"""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.corpus.parse import html, reference
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

MISSING = '<span class="ltx_missing_citation">lee</span>'
ERROR = '<span class="ltx_ERROR undefined">\\foo</span>'


def parse(content: bytes) -> Paper:
    """What both parsers read."""
    paper = html.parse(content)
    assert reference.parse(content) == paper
    return paper


def parse_body(body: str, title: str = "A Page") -> Paper:
    return parse(page(body, title))


def texts(body: str, title: str = "A Page") -> list[str]:
    return [block.text for block in parse_body(body, title).blocks]


def tabular(*rows: str) -> str:
    """A table of rows of cells."""
    lines = "".join(f'<tr class="ltx_tr">{row}</tr>' for row in rows)
    return f'<table class="ltx_tabular">{lines}</table>'


def head_cell(text: str, columns: int = 1, rows: int = 1) -> str:
    return (
        f'<th class="ltx_td ltx_th ltx_th_column" colspan="{columns}" rowspan="{rows}">{text}</th>'
    )


# Title, abstract and authors


@pytest.mark.parametrize(
    ("heading", "before", "title"),
    [
        ("True <br>Title", "", "True Title"),
        ("", "", None),
        ("A Page", '<h2 class="ltx_subtitle">Or Not</h2>', "A Page: Or Not"),
        ("Why?", '<h2 class="ltx_subtitle">Or not</h2>', "Why? Or not"),
    ],
)
def test_the_title_is_the_heading_with_its_subtitle(
    heading: str, before: str, title: str | None
) -> None:
    assert parse_body(before + para("Words."), heading).title == title


def test_a_title_set_within_a_part_is_found() -> None:
    heads = (
        '<h2 class="ltx_title ltx_title_part"><span class="ltx_tag ltx_tag_part">Part </span></h2>'
    )
    body = (
        f'<section class="ltx_part">{heads}<p></p><h2 class="ltx_title ltx_title_part">On'
        " Words</h2></section>"
    )
    paper = parse_body(body + section(para("Words.")), "")
    assert (paper.title, [found.title for found in paper.sections]) == ("On Words", ["Methods"])


def test_publication_data_is_no_footnote_and_no_title() -> None:
    price = '<span class="ltx_note ltx_note_frontmatter ltx_role_price">price: 15.00</span>'
    pubnotes = (
        '<span class="ltx_pubnotes"><span class="ltx_pubnote ltx_role_doi"><span'
        ' class="ltx_note_name">DOI: </span>10.1/2</span><span class="ltx_pubnote'
        ' ltx_role_thanks"><span class="ltx_note_name">Thanks: </span>We thank.</span></span>'
    )
    paper = parse_body(price + para("Words."), f"A Page{pubnotes}")
    assert paper.title == "A Page"
    assert [block.text for block in paper.blocks] == ["We thank.", "Words."]
    assert paper.losses["publication_data"] >= len("price:15.00")


def test_title_and_byline_are_found_in_paragraphs() -> None:
    front = para("How We Read", "p1") + para("Ann Lee<br>University of X<br>ann@x.edu", "p2")
    paper = parse_body(front + section(para("Words.")), "")
    assert (paper.title, paper.authors) == (
        "How We Read",
        (Author("Ann Lee", ("University of X",), ("ann@x.edu",)),),
    )
    assert [block.text for block in paper.blocks] == ["Words."]
    paper = parse_body(para("New York, New Delhi", "p1") + section(para("Words.")))
    assert (paper.authors, len(paper.blocks)) == (
        (),
        2,
    ), "not every paragraph before the first section is a byline"


def test_a_footnote_of_the_title_is_a_block() -> None:
    paper = parse_body(para("Words."), f"On Words{note('Supported by nobody.')}")
    assert paper.title == "On Words"
    assert [block.text for block in paper.blocks] == ["Supported by nobody.", "Words."]


LONG_ABSTRACT = ("one two three four five " * 5).strip()


@pytest.mark.parametrize(
    ("body", "abstract"),
    [
        (
            (
                '<div class="ltx_block"><div class="ltx_abstract"><h6 class="ltx_title'
                ' ltx_title_abstract">Abstract</h6><p class="ltx_p">We'
                " count\nwords.</p></div></div>"
            ),
            "We count words.",
        ),
        (para(f"<b>Abstract.</b> {LONG_ABSTRACT}", "p1"), LONG_ABSTRACT),
        (section(para("We count words."), "Abstract", ""), "We count words."),
    ],
    ids=["environment", "by hand", "section"],
)
def test_an_abstract_is_found_and_is_no_block(body: str, abstract: str) -> None:
    paper = parse_body(body + section(para("Words.")))
    assert paper.abstract == abstract
    assert [block.text for block in paper.blocks] == ["Words."]
    assert [found.title for found in paper.sections] == ["Methods"]


@pytest.mark.parametrize(
    ("notes", "author"),
    [
        (
            (
                '</span><span class="ltx_author_notes"><span class="ltx_contact'
                ' ltx_role_affiliation">University<br>of X</span><span class="ltx_contact'
                ' ltx_role_email"><a href="mailto:a@x.edu">a@x.edu</a></span>'
            ),
            Author("Ann Lee", ("University, of X",), ("a@x.edu",)),
        ),
        (note("University of X"), Author("Ann Lee", ("University of X",))),
    ],
    ids=["contacts", "footnote"],
)
def test_authors_come_with_what_is_theirs(notes: str, author: Author) -> None:
    creator = (
        '<span class="ltx_creator ltx_role_author"><span class="ltx_personname">Ann'
        f" Lee{notes}</span></span>"
    )
    assert parse_body(f'<div class="ltx_authors">{creator}</div>' + para("Words.")).authors == (
        author,
    )


def test_affiliations_in_paragraphs_belong_to_the_numbers_of_the_names() -> None:
    names = '<span class="ltx_personname">Ann Lee<sup>1</sup>, Bob Roe<sup>{}</sup></span>'
    byline = f'<span class="ltx_creator ltx_role_author">{names}</span>'
    front = para("University of X, Oslo", "p1") + para("Institute of Y, Bergen", "p2")
    paper = parse_body(byline.format("1,2") + front + section(para("Words.")))
    places = ("University of X, Oslo", "Institute of Y, Bergen")
    assert [author.affiliations for author in paper.authors] == [places[:1], places]
    assert [block.text for block in paper.blocks] == ["Words."]
    paper = parse_body(byline.format("3") + front + section(para("Words.")))
    assert len(paper.blocks) == 3, "no paragraph is third"


# Sections


def test_sections_nest_with_number_title_and_path() -> None:
    inner = section(para("Deep.", "S1.SS1.p1"), "Data", "1.1", "S1.SS1", "subsection")
    paper = parse_body(
        section(para("Top.") + inner)
        + section(para("End.", "A1.p1"), "More", "Appendix A", "A1", "appendix")
    )
    assert [(s.anchor, s.number, s.title, s.depth, s.path) for s in paper.sections] == [
        ("S1", "1", "Methods", 1, ("Methods",)),
        ("S1.SS1", "1.1", "Data", 2, ("Methods", "Data")),
        ("A1", "A", "More", 1, ("More",)),
    ]
    assert [block.section_path for block in paper.blocks] == [
        ("Methods",),
        ("Methods", "Data"),
        ("More",),
    ]


def test_sections_swallowed_by_a_table_are_set_right() -> None:
    swallowed = section(para("Two.", "S2.p1"), "Results", "2", "S2")
    broken = (
        '<figure id="S1.T1" class="ltx_table"><figcaption class="ltx_caption">Table'
        f" 1</figcaption>{swallowed}</figure>"
    )
    paper = parse_body(section(para("One.") + broken))
    assert [(found.title, found.depth) for found in paper.sections] == [
        ("Methods", 1),
        ("Results", 1),
    ]
    assert [(block.kind, block.section_path) for block in paper.blocks] == [
        ("paragraph", ("Methods",)),
        ("caption", ("Methods",)),
        ("paragraph", ("Results",)),
    ]


def test_thanks_are_a_section() -> None:
    paper = parse_body(
        '<div class="ltx_acknowledgements"><h6 class="ltx_title">Thanks.</h6>To all.</div>'
    )
    assert ([found.title for found in paper.sections], only_block(paper).text) == (
        ["Thanks"],
        "To all.",
    )


# Text

EQUATION_NUMBER = '<td class="ltx_eqn_eqno"><span class="ltx_tag ltx_tag_equation">(3)</span></td>'
NUMBERED = equation(f"<td>{math('a')}</td><td>{math('=b')}</td>{EQUATION_NUMBER}")
WORDED = equation(f"<td>{math('a')}</td><td>where</td><td>{math('b')}</td>", "<td>and so</td>")
WIDE = '<span class="ltx_text ltx_inline-block" style="width:143.1pt;">{}</span>'
LINE = '<div class="ltx_listingline"><span class="ltx_tag ltx_tag_listingline">{}</span>{}</div>'
TEXTS = {
    "white space": (para("Some\n   words&nbsp; apart."), "Some words apart."),
    "math": (para(f"Let {math('x_{1}')} be."), "Let $x_{1}$ be."),
    "math without alttext": (
        para(f"Let {math('x^{2}')} be.").replace('alttext="x^{2}" ', ""),
        "Let $x^{2}$ be.",
    ),
    "wrapped TeX": (para(math("\\displaystyle B% \n(x)")), "$B(x)$"),
    "display equation in a paragraph": (
        (
            f'<div id="S1.p1" class="ltx_para"><p class="ltx_p">So</p>{NUMBERED}<p'
            ' class="ltx_p">holds.</p></div>'
        ),
        "So $$a =b$$ (3) holds.",
    ),
    "words within an equation": (
        f'<div id="S1.p1" class="ltx_para">{WORDED}</div>',
        "$$a \\text{where} b$$ and so",
    ),
    "brackets around a marker": (para(f"As ({cite('bib.bib1')}) says."), "As [@bib.bib1] says."),
    "no comma after a bracket": (
        para(f'Topic Modeling (<cite class="ltx_cite">{MISSING}</cite>, hl-tm) is'),
        "Topic Modeling (hl-tm) is",
    ),
    "no space where citations were": (
        para("As shown " + f'<cite class="ltx_cite">[{MISSING}]</cite>' * 2 + ", words."),
        "As shown, words.",
    ),
    "cross reference": (
        para('See Section <a href="#S2" class="ltx_ref"><span class="ltx_ref_tag">2</span></a>.'),
        "See Section 2.",
    ),
    "description list": (
        (
            '<dl class="ltx_description"><dt class="ltx_item"><span class="ltx_tag'
            ' ltx_tag_item">Gist</span></dt><dd>the point</dd></dl>'
        ),
        "Gist the point",
    ),
    "number of a line": (
        f'<div class="ltx_listing">{LINE.format(28, "The analysis")}</div>',
        "28 The analysis",
    ),
    "boxes of a width": (
        para(WIDE.format("Ground truth") + WIDE.format("Masked")),
        "Ground truth Masked",
    ),
    "box without a width": (para('Lat<span class="ltx_text ltx_inline-block">e</span>x'), "Latex"),
    "verbatim": (
        '<div class="ltx_para"><pre class="ltx_verbatim">a = 1\nb = 2</pre></div>',
        "a = 1\nb = 2",
    ),
    "white heads of a dark table": (
        tabular(
            '<td style="background-color:#000000"><span style="color:#FFFFFF">Score</span></td>'
        ),
        "| Score |\n| --- |",
    ),
    "theorem": (
        (
            '<div id="Thm1" class="ltx_theorem"><h6 class="ltx_title ltx_title_theorem"><span'
            ' class="ltx_tag ltx_tag_theorem">Theorem'
            f" 1</span>.</h6>{para('All')}{listed(para('words'))}{para('end.')}</div>"
        ),
        "Theorem 1. All\n- words\nend.",
    ),
    "algorithm": (
        floating(
            "<div"
            f' class="ltx_listing">{LINE.format("1:", " step 1")}{LINE.format("2:", " step 2")}</div>',
            "Algorithm 1",
            "alg1",
            "ltx_float ltx_float_algorithm",
        ),
        "Algorithm 1\n1: step 1\n2: step 2",
    ),
    "control characters": (para("W\x00o\x01r\x04d&#1;s."), "Words."),
}
KINDS = {
    "theorem": "theorem",
    "algorithm": "algorithm",
    "verbatim": "algorithm",
    "description list": "list",
}


@pytest.mark.parametrize("name", TEXTS)
def test_the_text_of_a_block(name: str) -> None:
    body, text = TEXTS[name]
    block = only_block(parse_body(body))
    assert block.text == text
    assert block.kind == KINDS.get(name, block.kind)


@pytest.mark.parametrize(
    "style", ["font-size:90%;", "font-size:10pt", "color:#FF0000", "color:white;background:black"]
)
def test_styled_text_is_read(style: str) -> None:
    assert texts(para(f'Seen <span style="{style}">well</span>.')) == ["Seen well."]


@pytest.mark.parametrize(
    "style",
    [
        "display:none",
        "visibility: hidden;",
        "font-size:0",
        "font-size:1px;",
        "width:1em;font-size:0.5pt",
        "color:#FFF",
    ],
)
def test_hidden_text_is_lost(style: str) -> None:
    paper = parse_body(para(f'Seen <span style="{style}">ignore the above</span> words.'))
    assert only_block(paper).text == "Seen words."
    assert paper.losses == {"hidden": len("ignoretheabove")}


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ('Smith et al. (<a href="#bib.bib1">2018</a>)', "Smith et al. [@bib.bib1]"),
        (
            '(Smith et al., <a href="#bib.bib1">2018</a>; Lee, <a href="#bib.bib2">2019</a>)',
            "[@bib.bib1; @bib.bib2]",
        ),
        (
            'Smith (<a href="#bib.bib1">2018</a>); Lee (<a href="#bib.bib2">2019</a>)',
            "Smith [@bib.bib1]; Lee [@bib.bib2]",
        ),
        ('<a href="#bib.bib1">smith2018 </a>', "[@bib.bib1]"),
        ('<a href="#bib.bib1">Smith</a> (<a href="#bib.bib1">2018</a>)', "Smith [@bib.bib1]"),
        ('[<a href="#bib.bib1">4</a>, p. 22]', "[@bib.bib1]"),
        ('<a href="#bib.bib1">1</a>, <a href="#bib.bib2">2</a>', "[@bib.bib1; @bib.bib2]"),
        (f"[{MISSING}]", ""),
        (f'[<a href="#bib.bib1">1</a>, {MISSING}]', "[@bib.bib1]"),
        ("[5]", "[5]"),
        (f"({MISSING}; {MISSING}, inter alia)", ""),
        (f"(e.g., {MISSING})", ""),
        (f"({MISSING}, MIT license)", "(MIT license)"),
    ],
)
def test_citations_of_every_style(content: str, text: str) -> None:
    assert texts(para(f'A <cite class="ltx_cite">{content}</cite> b')) == [
        f"A {text} b".replace("  ", " ")
    ]


def test_missing_citations_are_counted_and_dropped() -> None:
    paper = parse_body(para(f'See <cite class="ltx_cite">[{MISSING}]</cite>.'))
    assert (paper.missing_citations, paper.losses["missing_citation"]) == (1, 3)


def test_a_footnote_leaves_its_sentence_without_a_space() -> None:
    footnote = note(f"By {cite('bib.bib1')}.")
    paper = parse_body(
        para(
            f"Small words {footnote}. They {note('Soon.')} vanish , {cite('bib.bib2', 'bib.bib3')}."
        )
    )
    assert [(block.kind, block.text, block.cited_keys) for block in paper.blocks] == [
        (
            "paragraph",
            "Small words. They vanish , [@bib.bib2; @bib.bib3].",
            ("bib.bib2", "bib.bib3"),
        ),
        ("footnote", "By [@bib.bib1].", ("bib.bib1",)),
        ("footnote", "Soon.", ()),
    ]


def test_the_length_after_an_unknown_macro_goes_with_it() -> None:
    macro = (
        '<span id="x" class="ltx_ERROR undefined">\\hdashline</span>\n<span'
        ' class="ltx_p">[0.4pt/2pt]Words</span>'
    )
    paper = parse_body(tabular(f"<td>{macro}</td><td>[2]</td>"))
    assert only_block(paper).text == "| Words | [2] |\n| --- | --- |"
    assert paper.losses["ltx_error"] == len("\\hdashline[0.4pt/2pt]")


def test_a_block_counts_its_error_marks_and_loses_their_text() -> None:
    formula = f'<math alttext="x"><merror>{ERROR}</merror></math>'
    paper = parse_body(para(f"One{ERROR} {formula}{note('a' + ERROR)}.") + para("Two.", "p2"))
    assert [(block.kind, block.text, block.errors) for block in paper.blocks] == [
        ("paragraph", "One $x$.", 2),
        ("footnote", "a", 1),
        ("paragraph", "Two.", 0),
    ]
    assert (paper.ltx_errors, paper.losses["ltx_error"]) == (3, len("\\foo\\foo"))


def test_formulas_without_tex_are_counted() -> None:
    bare = "<math><mi>x</mi><mo>=</mo><mi>y</mi></math>"
    paper = parse_body(para(f"Let {bare} and {math('z')} be."))
    assert (paper.formulas, paper.math_without_tex, only_block(paper).text) == (
        2,
        1,
        "Let $x=y$ and $z$ be.",
    )


def test_raw_macros_in_the_text_are_counted() -> None:
    alpha = math("\\alpha")
    paper = parse_body(para(f"As \\citet said, {alpha} and \\foo.") + para("Plain."))
    assert paper.unconverted_macros == 2


# Lists, tables and figures


def test_a_list_is_one_block_and_parts_the_paragraph() -> None:
    inner = listed(para("deep", "S1.I1.i1.I1.p1"), kind="enumerate", tag="1.")
    whole = listed(para("one") + inner, para("two"))
    after = '<p id="S1.p1.2" class="ltx_p">After.</p>'
    paper = parse_body(
        f'<div id="S1.p1" class="ltx_para"><p class="ltx_p">Before:</p>{whole}{after}</div>'
    )
    assert [(block.kind, block.anchor, block.text) for block in paper.blocks] == [
        ("paragraph", "S1.p1", "Before:"),
        ("list", "S1.I1", "- one\n1. deep\n- two"),
        ("paragraph", "S1.p1.2", "After."),
    ]


def test_a_table_is_markdown_below_its_caption() -> None:
    grid = tabular(
        '<th rowspan="2">Set</th><th colspan="2">Scores</th>',
        "<td>P</td><td>R|F</td>",
        '<td>a</td><td><span class="ltx_inline-block"><span'
        ' class="ltx_p">1</span></span></td><td></td>',
    )
    paper = parse_body(floating(grid, "Table 1: Scores.", "T1", "ltx_table"))
    block = only_block(paper)
    assert (block.kind, block.anchor, paper.tables, paper.paragraphs) == ("table", "T1", 1, 0)
    assert (
        block.text
        == "Table 1: Scores.\n| Set | Scores P | Scores R\\|F |\n| --- | --- | --- |\n| a | 1 |  |"
    )


@pytest.mark.parametrize(
    ("rows", "lines"),
    [
        (
            [
                head_cell("Model", rows=2) + head_cell("BLEU", columns=2) + head_cell("Cost"),
                head_cell("EN-DE") + head_cell("EN-FR") + head_cell(""),
                "<td>ours</td><td>28.4</td><td>41.8</td><td>3</td>",
            ],
            [
                "| Model | BLEU EN-DE | BLEU EN-FR | Cost |",
                "| --- | --- | --- | --- |",
                "| ours | 28.4 | 41.8 | 3 |",
            ],
        ),
        (
            [
                '<td rowspan="2">Model</td><td colspan="2">BLEU</td>',
                "<td>EN-DE</td><td>EN-FR</td>",
                "<td>ours</td>",
            ],
            ["| Model | BLEU EN-DE | BLEU EN-FR |", "| --- | --- | --- |", "| ours |  |  |"],
        ),
        ([head_cell("one"), head_cell("two")], ["| one |", "| --- |", "| two |"]),
        (["<td>a|b</td><td>c</td>"], ["| a\\|b | c |", "| --- | --- |"]),
    ],
    ids=["heads of several rows", "spans without heads", "heads alone", "a bar"],
)
def test_heads_stand_over_their_columns_in_one_row_and_no_sign_of_ours_is_counted(
    rows: list[str], lines: list[str]
) -> None:
    paper = parse_body(tabular(*rows))
    assert only_block(paper).text.splitlines() == lines
    assert (paper.chars_kept, paper.losses) == (paper.chars_seen, {})


def test_a_table_in_a_sentence_follows_it() -> None:
    grid = (
        '<span class="ltx_tabular"><span class="ltx_tr"><span class="ltx_td">x</span></span></span>'
    )
    assert texts(para(f"Before {grid} after.")) == ["Before after.", "| x |\n| --- |"]


def test_grids_of_one_table_keep_their_order() -> None:
    grids = tabular("<td>one</td>") + tabular("<td>two</td>")
    (text,) = texts(f'<figure class="ltx_table">{grids}<p class="ltx_p">After.</p></figure>')
    assert [line for line in text.splitlines() if "-" not in line] == [
        "| one |",
        "| two |",
        "After.",
    ]


def test_a_table_within_a_cell_that_only_breaks_lines_is_words_and_any_other_is_a_table_of_its_own() -> (
    None
):
    lines = tabular("<td>two</td>", "<td>lines</td>")
    grid = tabular("<td>Token</td><td>p</td>", "<td>was</td><td>70.3</td>")
    table = tabular(f"<td>{lines}</td><td>Prompt {grid}</td>")
    (text, _) = texts(f'<figure class="ltx_table" id="T1">{table}</figure>' + para("Words."))
    assert (
        text
        == "| two lines | Prompt |\n| --- | --- |\n| Token | p |\n| --- | --- |\n| was | 70.3 |"
    )


def test_a_caption_within_a_cell_is_the_caption_of_its_float() -> None:
    table = tabular(
        "<td>Q: who?</td>",
        '<td><figcaption class="ltx_caption">Table 5: Case study.</figcaption></td>',
    )
    block = only_block(parse_body(f'<figure class="ltx_table" id="T5">{table}</figure>'))
    assert (block.kind, block.text) == ("table", "Table 5: Case study.\n| Q: who? |\n| --- |")


def test_figures_and_algorithms_in_a_figure_are_blocks_of_their_own() -> None:
    panel = floating("", "(a) Left", "F1.sf1", "ltx_figure ltx_figure_panel")
    listing = '<div class="ltx_listing"><div class="ltx_listingline">return x</div></div>'
    algorithm = f'<figure id="alg1" class="ltx_float">{listing}</figure>'
    paper = parse_body(
        floating(panel, "Figure 1: Both", "F1", "ltx_figure")
        + floating(algorithm, "Figure 2", "F2", "ltx_figure")
    )
    assert {block.anchor: (block.kind, block.text) for block in paper.blocks} == {
        "F1": ("caption", "Figure 1: Both"),
        "F1.sf1": ("caption", "(a) Left"),
        "F2": ("caption", "Figure 2"),
        "alg1": ("algorithm", "return x"),
    }


def test_bibliography_items_have_keys_and_parts() -> None:
    items = bibliography(
        bibitem("bib.bib1", "Ann Lee and Bob Roe.", "On words.", "<em>J. Words</em>, 2001.")
    )
    (item,) = parse_body(para("Words.") + items).bibliography
    assert (item.key, item.raw) == ("bib.bib1", "Ann Lee and Bob Roe. On words. J. Words, 2001.")
    assert (item.title, item.authors, item.year, item.venue) == (
        "On words",
        ("Ann Lee", "Bob Roe"),
        2001,
        "J. Words",
    )


# Characters


def test_every_character_is_kept_or_counted_as_lost_by_its_kind() -> None:
    items = bibliography(bibitem("bib.bib1", "A. Lee.", "On words."))
    body = (
        section(
            para(f"Let {math('x')} be {cite('bib.bib1')}.{note('Or not.')}") + listed(para("one"))
        )
        + items
    )
    unseen = "<script>var x;</script><!-- no -->"
    outside = (
        '<div class="ltx_keywords">counting</div><footer class="ltx_page_footer">made</footer>'
    )
    paper = parse_body(body + outside + unseen, "On Words")
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
        "keywords": len("counting"),
        "note_mark": len("111"),
        "page_footer": len("made"),
    }
    assert paper.chars_seen == paper.chars_kept + sum(paper.losses.values())


# Pages that are broken


def test_a_page_cut_off_is_marked() -> None:
    whole = page(section(para("One.") + para("Two.", "S1.p2")))
    cut = parse(whole[: whole.index(b"Two") + 2])
    assert (parse(whole).truncated, cut.truncated) == (False, True)
    assert [block.text for block in cut.blocks] == ["One.", "Tw"]
    whole = page(para("One.") + para(f"Let {math('x')} be.", "p2"))
    cut = parse(whole[: whole.index(b"<annotation-xml")])
    assert cut.truncated
    assert [block.text for block in cut.blocks] == ["One.", "Let $x$"]


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "not_html"),
        (b"%PDF-1.5 \x00\xff", "not_html"),
        (b"<html></html>", "no_text"),
        (page(""), "no_text"),
        (b"<html><body><h1>404 Not Found</h1></body></html>", "no_text"),
        (b"<html><body><main><b>Words.</b></main></body></html>", "no_text"),
    ],
)
def test_what_is_no_page_says_why(content: bytes, reason: str) -> None:
    for parser in (html, reference):
        with pytest.raises(PageError) as caught:
            parser.parse(content)
        assert caught.value.reason == reason


def test_bytes_that_are_no_utf8_are_replaced() -> None:
    assert "\ufffd" in only_block(parse(page(para("W@rds.")).replace(b"@", b"\xff"))).text


def test_xhtml_is_read_as_html() -> None:
    body = '<div class="ltx_date"/>' + para("Words.")
    assert only_block(parse(b'<?xml version="1.0"?>' + page(body))).text == "Words."


def test_sections_within_a_byline_that_was_never_closed_are_kept() -> None:
    name = '<span class="ltx_creator ltx_role_author"><span class="ltx_personname">A. Lee'
    paper = html.parse(page(f'<div class="ltx_authors">{name}{section(para("Words."))}'))
    assert [block.text for block in paper.blocks] == ["Words."]


def test_what_no_rule_explains_is_counted_as_lost() -> None:
    twice = '<div class="ltx_abstract"><p class="ltx_p">First.</p></div>' * 2
    paper = html.parse(
        page(f'<span class="ltx_personname">{twice}</span>{section(para("Words."))}')
    )
    assert paper.chars_seen <= paper.chars_kept + sum(paper.losses.values())


_PIECES = [
    para("words"),
    section(para("x")),
    math("x"),
    cite("bib.bib1"),
    note("n"),
    listed(para("i")),
    "<td>",
    "</p>",
    equation("<td>a</td>"),
    bibliography(bibitem("bib.bib1", "A. Lee.", "T.")),
    '<figure class="ltx_figure">',
    "text",
    '<table class="ltx_tabular"><tr><td rowspan="9" colspan="7">c',
    '<div class="ltx_theorem">',
    "</div>",
    '<span class="ltx_ERROR">',
    '<math alttext="',
    '<cite class="ltx_cite">',
    '<div class="ltx_authors">',
    "</section>",
    "&#0;&#1;&#4;",
]


@settings(max_examples=200, deadline=None)
@given(st.lists(st.sampled_from(_PIECES), max_size=12))
def test_no_page_breaks_the_parser(pieces: list[str]) -> None:
    try:
        paper = html.parse(page("".join(pieces)))
    except PageError:
        return
    assert paper.chars_kept + sum(paper.losses.values()) <= 1.2 * paper.chars_seen + 20
