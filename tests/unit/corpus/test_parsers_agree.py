"""The fast parser and the reference parser, which share no code that walks a page, read the same
words.
"""

import pytest

from benchmarks.parse import same_words
from pipeline.corpus.parse import html, reference
from pipeline.corpus.parse.browser import browse
from pipeline.corpus.parse.source import read_source
from pipeline.corpus.parse.tree import Irregular, grow
from pipeline.settings import SAMPLE_DUMP
from tests.cases import cases
from tests.unit.corpus.building import page, pages_of

pytestmark = pytest.mark.slow


def assert_same_words(pages):
    """Bylines that LaTeXML did not mark are words of the reference parser alone."""
    assert same_words(pages)[1] >= 0.996
    for content in pages:
        assert paths_of(html.parse(content)) == paths_of(reference.parse(content))


def paths_of(paper):
    return [section.path for section in paper.sections]


@pytest.mark.faults
def test_they_agree_on_every_real_paper(shared_data):
    pages = [*pages_of(shared_data / "dump"), *pages_of(shared_data / "dump2")]
    assert len(pages) == 41
    assert_same_words([content for _, content in pages])


def test_they_agree_on_the_sample_corpus():
    assert_same_words([content for _, content in pages_of(SAMPLE_DUMP)])


def nodes_of(node):
    """Name, kind and id of every node, in document order, without the `tbody` that a browser puts
    in.
    """
    inside = [found for child in node.elements() for found in nodes_of(child)]
    return (
        inside
        if node.tag_type.name == "tbody"
        else [(node.tag_type.name, node.tag_type.kind, node.id), *inside]
    )


def test_the_light_tree_of_a_sample_page_is_a_browser_s():
    for _, content in pages_of(SAMPLE_DUMP):
        source = read_source(content)
        (ours, text), (theirs, same) = grow(source), browse(source)
        assert "".join(text.split()) == "".join(same.split())
        assert "".join(ours.text().split()) == "".join(theirs.text().split())
        assert nodes_of(ours) == nodes_of(theirs)


@cases("unit/corpus/cases.toml", "irregular_pages", ["body", "text"])
def test_what_latexml_does_not_write_is_read_by_a_browser_s_rules(body, text):
    source = read_source(page(body, title=""))
    with pytest.raises(Irregular):
        grow(source)
    assert browse(source)[1].strip() == text


@pytest.mark.parametrize(
    "content", [b"<html><p>a</p></html>", page("<div>" * 300 + "</div>" * 300)]
)
def test_a_page_without_a_body_or_of_300_levels_is_irregular(content):
    with pytest.raises(Irregular):
        grow(read_source(content))


COMPUTER_SCIENCE = [
    "1706.03762", "1911.02782", "2004.14974", "2305.03393", "2306.17806", "2310.06825",
    "2401.01967", "2402.01865", "2403.18886", "2404.01650", "2410.07839",
]  # fmt: skip


@pytest.mark.parametrize("arxiv_id", COMPUTER_SCIENCE)
def test_every_real_paper_has_title_abstract_and_text_in_each_section(shared_data, arxiv_id):
    (content,) = [content for name, content in pages_of(shared_data / "dump") if arxiv_id in name]
    paper = html.parse(content)
    assert paper.title
    assert paper.abstract
    assert paper.authors
    held = {
        block.section_path[:depth]
        for block in paper.blocks
        for depth in range(len(block.section_path) + 1)
    }
    assert [one.title for one in paper.sections if one.path not in held] == []
    cited = {key for block in paper.blocks for key in block.cited_keys}
    assert cited <= {item.key for item in paper.bibliography}
    assert paper.chars_kept > 0.94 * paper.chars_seen
    unexplained = paper.chars_seen - paper.chars_kept - sum(paper.losses.values())
    assert abs(unexplained) + paper.losses.get("unaccounted", 0) < 0.005 * paper.chars_seen
