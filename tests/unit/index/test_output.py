"""What a search shows: rows, Markdown and tables in which a paper's text is data, and links to
where it stands.
"""

import io
import json

from hypothesis import example, given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from rich.console import Console

from pipeline.corpus.links import abstract_url, passage_url
from pipeline.doors.cli.search import search_table
from pipeline.index.output import as_markdown, as_rows, batch_markdown, batch_rows
from pipeline.index.scored import Hit
from pipeline.text import visible
from tests.cases import cases

NASTY = (
    "# head\n- item\n1. one\n1) two\n> quote\n    code\n```sh\nrm\n```\n| a | b |\n|---|---|\n| 1 |"
    " 2 |\n===\n***\n<script>alert(1)</script> <!-- --> &amp; &#27; [x](javascript:alert(1))"
    " ![i](http://e.org/i.png) [x]: http://e.org\n$x_1^2$ *a* _b_ ~~c~~ `d` http://e.org www.e.org"
    " <http://e.org> \\"
)


def make_hit(**fields):
    """A hit on a passage of 2024."""
    values = {
        "score": 0.03125,
        "fits": True,
        "arxiv_id": "2403.18886",
        "title": "A paper",
        "section_path": ("Method", "Decoding"),
        "anchor": "S1.p2",
        "kind": "paragraph",
        "month": "2024-03",
        "text": "A passage [@bib1] of text.",
        "passage_id": "497d5429-46b8-5a70-9033-f5940393e715",
        "categories": ("cs.CL",),
        "primary_category": "cs.CL",
        "subset": "no_problem",
        "grade": "A",
        "url": "https://arxiv.org/abs/2403.18886",
        "passage_url": "https://arxiv.org/html/2403.18886#S1.p2",
    }
    return Hit(**(values | fields))


@cases(
    "unit/index/cases.toml",
    "a_passage_is_linked_where_arxiv_or_ar5iv_has_its_page",
    ("arxiv_id", "anchor", "url"),
)
def test_a_passage_is_linked_where_arxiv_or_ar5iv_has_its_page(arxiv_id, anchor, url):
    assert passage_url(arxiv_id, anchor) == url
    assert abstract_url(arxiv_id) == f"https://arxiv.org/abs/{arxiv_id}"


def test_rows_hold_every_field():
    hit = make_hit()
    told = json.loads(json.dumps(batch_rows(["one", "two"], [[hit], []])))
    assert told == [
        {"query": "one", "hits": json.loads(json.dumps(as_rows([hit])))},
        {"query": "two", "hits": []},
    ]
    assert told[0]["hits"][0]["text"] == hit.text
    assert set(told[0]["hits"][0]) == set(Hit.__slots__)


def test_markdown_links_the_title_and_quotes_the_passage():
    front = make_hit(section_path=(), kind="front_matter", text="One line.\n\nAnother.")
    linked = (
        "[A paper](https://arxiv.org/html/2403.18886#S1.p2)"
        " ([2403.18886](https://arxiv.org/abs/2403.18886))"
    )
    assert as_markdown([make_hit(), front], first=10).splitlines() == [
        f"10. {linked}\\",
        "    Method › Decoding · paragraph · score 0.031",
        "",
        "    > A passage of text.",
        "",
        f"11. {linked}\\",
        "    front matter · score 0.031",
        "",
        "    > One line.\\",
        "    > Another.",
    ]


def test_markdown_of_nothing_says_so():
    assert batch_markdown(["a *b* in C #"], [[]]) == "## a \\*b\\* in C \\#\n\nNothing found."


def _rendered(markdown):
    """The links of a document, and its text; nothing in it but lists, quotations, paragraphs and
    links.
    """
    links, told = [], []
    for block in MarkdownIt("gfm-like", {"linkify": False}).parse(markdown):
        assert block.type.removesuffix("_open").removesuffix("_close") in {
            "ordered_list",
            "list_item",
            "paragraph",
            "blockquote",
            "inline",
        }
        for part in block.children or []:
            assert part.type in {
                "text",
                "text_special",
                "softbreak",
                "hardbreak",
                "link_open",
                "link_close",
            }
            links += [str(part.attrs["href"])] if part.type == "link_open" else []
            told.append(
                part.content if part.type.startswith("text") else "\n" * part.type.endswith("break")
            )
        told.append("\n")
    return links, " ".join("".join(told).split())


TEXTS = st.text(
    st.sampled_from("ab1 .)(-+*_#>=`~|[]!<&;$\\:/w\n\t") | st.characters(exclude_categories=["Cs"])
).map(lambda text: f"x {text}")


@given(title=TEXTS, section=TEXTS, text=TEXTS)
@example(title="x", section="x", text=NASTY)
def test_no_text_of_a_paper_is_read_as_markdown(title, section, text):
    hit = make_hit(title=title, section_path=(section,), text=text)
    links, told = _rendered(as_markdown([hit]))
    assert links == [hit.passage_url, hit.url]
    parts = [
        title,
        f"({hit.arxiv_id})",
        section,
        "· paragraph · score 0.031",
        text.replace("[@", "[ @"),
    ]
    expected = " ".join(" ".join(map(visible, parts)).split())
    if "[@" not in text:
        assert told == expected


def test_control_signs_do_not_reach_the_terminal():
    assert visible("a\x1b[31mb\x9bc\u202ed\r\n\te\x00") == "a�[31mb�c�d�\n\te�"


def _shown(*arguments):
    console = Console(file=io.StringIO(), width=120, force_terminal=False, highlight=False)
    console.print(search_table(*arguments))
    return console.file.getvalue()


def test_a_table_shows_texts_as_they_are():
    hit = make_hit(
        title="[bold]Set[/bold] [x]",
        text="a [red]b[/red] \x1b[31m [@bib1] end",
        section_path=("[/]",),
    )
    shown = _shown([hit], 11)
    assert "[bold]Set[/bold] [x]" in shown
    assert "a [red]b[/red] �[31m end" in shown
    assert "2403.18886 · [/] · #S1.p2" in shown
    assert " 11 " in shown
    assert "1 passage" in shown


def test_a_table_in_a_passage_has_a_line_for_each_row():
    shown = _shown([make_hit(text="Table 1:\nCounts.\n| a | b |\n| --- | --- |\n| 1 | 2 |\nEnd.")])
    cells = [line.split("│")[4].strip() for line in shown.splitlines() if line.startswith("│")]
    assert cells == ["Table 1: Counts.", "a | b", "1 | 2", "End."]


def test_a_table_of_nothing_says_so():
    assert _shown([]) == "Nothing found.\n"
    assert _shown([], 1, "a [b]") == "a [b]: Nothing found.\n"
