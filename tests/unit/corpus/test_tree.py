"""The light tree: what LaTeXML writes becomes nodes in one pass, and anything else is told apart."""

from __future__ import annotations

import pytest

from pipeline.corpus.parse.browser import browse
from pipeline.corpus.parse.source import Source, read_source
from pipeline.corpus.parse.tree import Irregular, Node, grow
from pipeline.settings import SAMPLE_DUMP
from tests.unit.corpus.building import math, page, pages_of, para


def source_of(body: str) -> Source:
    return read_source(page(body, title=""))


def outline(node: Node) -> list[object]:
    """Names and texts of a tree, neighbouring texts as one."""
    found: list[object] = []
    for child in node:
        if isinstance(child, Node):
            found.append((child.tag_type.name, child.tag_type.kind, child.id, outline(child)))
        elif found and isinstance(found[-1], str):
            found[-1] += child
        elif child:
            found.append(child)
    return found


def inner(body: str) -> list[object]:
    """The outline of what a page's article holds."""
    tree, _ = grow(source_of(body))
    (main,) = tree.elements()
    (article,) = main.elements()
    return outline(article)


def test_elements_that_mean_nothing_leave_their_children() -> None:
    body = '<p id="p1" class="ltx_p">a <span class="ltx_text"><b>bold</b> b</span> c</p>'
    assert inner(body) == [("p", "p", "p1", ["a bold b c"])]


def test_a_void_element_has_no_children() -> None:
    assert inner('<p class="ltx_p">a<br class="ltx_break">b</p>') == [
        ("p", "p", "", ["a", ("br", "break", "", []), "b"])
    ]


def test_entities_are_characters() -> None:
    tree, text = grow(source_of('<p id="a&amp;b">a &lt; b &amp; c&nbsp;d</p>'))
    assert text == "a < b & c\xa0d"
    assert "a < b & c\xa0d" in tree.text()


def test_a_formula_stands_in_the_text_as_its_tex() -> None:
    assert inner(f"<p>Let {math('x_{1}')} be.</p>") == [("p", "box", "", ["Let \1x_{1}\1 be."])]


def test_a_node_knows_its_attributes() -> None:
    tree, _ = grow(source_of("""<td id="t1" class="ltx_td" colspan='2' title="a &quot;b&quot;">x</td>"""))
    cell = next(next(next(tree.elements()).elements()).elements())
    assert (cell.id, cell.classes, cell.get("colspan"), cell.get("title"), cell.get("rowspan")) == (
        "t1", "ltx_td", "2", 'a "b"', "",
    )  # fmt: skip


def test_links_that_differ_by_address_and_title_alone_keep_their_own_addresses() -> None:
    tags = (
        '<a href="#b1" title="One" class="ltx_ref">',
        '<a href="#b2" title="Two" class="ltx_ref">',
        '<a href="#b3" title="" class="ltx_ref">',
        '<a class="ltx_ref" href="x?a=1&amp;b=2">',
        """<a href='#b5' class="ltx_ref">""",
        '<a class="ltx_ref">',
    )
    tree, _ = grow(source_of("".join(f"{tag}a</a>" for tag in tags)))
    links = list(next(next(tree.elements()).elements()).elements())
    assert [link.href for link in links] == ["#b1", "#b2", "#b3", "x?a=1&b=2", "#b5", ""]
    assert {(link.tag_type.kind, link.classes) for link in links} == {("link", "ltx_ref")}


@pytest.mark.parametrize("tag", ['a href="mailto:me', 'a href="#b1"title="x"', 'a href="#b1" title="x'])
def test_a_link_that_is_written_wrongly_is_not_taken_for_one_that_was_met(tag: str) -> None:
    grow(source_of('<a href="#b1" title="x">a</a><a href="#b2">b</a>'))
    with pytest.raises(Irregular):
        grow(source_of(f"<{tag}>a</a>"))


@pytest.mark.parametrize(
    "body",
    [
        "<p>a</div>",
        "<p>a</p></p>",
        "<p>a",
        "<p>a < b</p>",
        "<p class=ltx_p>a</p>",
        '<p class="ltx_p>a</p>',
        "<div/><p>a</p>",
        "<!-- no --><p>a</p>",
        "<script>if (1) x;</script>",
        "<textarea>a</textarea>",
        "<p>a<![CDATA[b]]></p>",
        "<>a",
        "<div>" * 300 + "</div>" * 300,
    ],
)
def test_what_latexml_does_not_write_is_irregular(body: str) -> None:
    with pytest.raises(Irregular):
        grow(source_of(body))


def test_a_page_without_a_body_is_irregular() -> None:
    with pytest.raises(Irregular):
        grow(read_source(b"<html><p>a</p></html>"))


def test_a_page_cut_off_is_closed_where_it_ends() -> None:
    whole = page(para("One.") + para("Two."), title="")
    tree, text = grow(read_source(whole[: whole.index(b"Two.") + 2] + b'<span class="ltx_te'))
    assert text == "One.Tw"
    assert tree.text() == text


def test_self_closed_elements_are_closed_in_xhtml_only() -> None:
    body = '<div class="ltx_date"/><p class="ltx_p">a</p>'
    tree, _ = grow(read_source(b'<?xml version="1.0"?>' + page(body, title="")))
    assert tree.text() == "a"
    with pytest.raises(Irregular):
        grow(source_of(body))


@pytest.mark.parametrize(
    ("body", "text"),
    [
        ("<p>a<p>b", "ab"),
        ("<p>a < b</p>", "a < b"),
        ("<P CLASS=ltx_p>a</P>", "a"),
        ("<b><i>a</b>c</i>", "ac"),
        ("<p>a<script>b</script><style>c</style></p>", "a"),
    ],
)
def test_the_browsers_way_reads_what_is_irregular(body: str, text: str) -> None:
    assert browse(source_of(body))[1].strip() == text


def nodes_of(node: Node) -> list[tuple[str, str, str]]:
    """Name, kind and id of every node, in document order, without the `tbody` that a browser puts in."""
    inside = [found for child in node.elements() for found in nodes_of(child)]
    return inside if node.tag_type.name == "tbody" else [(node.tag_type.name, node.tag_type.kind, node.id), *inside]


def test_both_ways_read_a_sample_page_alike() -> None:
    for _, content in pages_of(SAMPLE_DUMP):
        source = read_source(content)
        (ours, text), (theirs, same) = grow(source), browse(source)
        assert "".join(text.split()) == "".join(same.split())
        assert "".join(ours.text().split()) == "".join(theirs.text().split())
        assert nodes_of(ours) == nodes_of(theirs)
