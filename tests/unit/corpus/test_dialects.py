"""Other markup for the same text gives the same paper: docs/experiments/bad-input.md.

The markup is that of another version of LaTeXML, or of arXiv's site, as `dialects.toml` lists it.
"""

import random
import re
import tomllib
from functools import cache, partial
from pathlib import Path

import pytest

from benchmarks.parse import words_of
from pipeline.corpus.parse import html, reference
from tests.conftest import PROJECT
from tests.unit.corpus.arxiv_site import around
from tests.unit.corpus.building import pages_of

pytestmark = pytest.mark.slow

UNKNOWN_TEXT = "zebras quagga okapi unheard words"
TABLES = tomllib.loads(Path(__file__).with_name("dialects.toml").read_text())
TAG = re.compile(r"<([A-Za-z][\w:-]*)((?:\s+[\w:-]+=\"[^\"]*\")+)(\s*/?)>")
FLAT_TABLE = re.compile(r'<table\b[^>]*class="ltx_tabular(?:(?!<table).)*?</table>', re.DOTALL)


def rewritten(page, rng, changes, share=1.0, most=0, may_change=""):
    """A page after the changes of a table of `dialects.toml`."""

    def replace(new, match):
        text = rng.choice(new) if isinstance(new, list) else new
        return match.expand(text) if rng.random() < share else match[0]

    for pattern, new in changes:
        page = re.sub(pattern, partial(replace, new), page, count=most, flags=re.DOTALL)
    return page


def attribute_order(page, rng):
    """Attributes in another order."""

    def shuffled(match):
        attributes = re.findall(r"[\w:-]+=\"[^\"]*\"", match[2])
        rng.shuffle(attributes)
        return f"<{match[1]} {' '.join(attributes)}{match[3]}>"

    return TAG.sub(shuffled, page)


def site_frame(page, rng):
    """The site around the article, and links as whole addresses."""
    return around(page, rng.choice((2024, 2026)))


def span_tables(page, rng):
    """Tables whose rows and cells are spans, as LaTeXML writes them within a line."""
    names = re.compile(r"<(/?)(?:table|tbody|thead|tfoot|tr|td|th)\b")
    return FLAT_TABLE.sub(lambda table: names.sub(r"<\1span", table[0]), page)


DIALECTS = {name: partial(rewritten, **table) for name, table in TABLES.items()} | {
    function.__name__: function for function in (attribute_order, site_frame, span_tables)
}
MAY_CHANGE = (
    dict.fromkeys(DIALECTS)
    | {"site_frame": "account"}
    | {name: table.get("may_change") for name, table in TABLES.items()}
)
WHOLLY_SAME = [name for name, changed in MAY_CHANGE.items() if not changed]


def mutate(content, dialects, seed):
    """A page in a mixture of dialects, the same for the same seed."""
    rng, page = random.Random(seed), content.decode("utf-8", "replace")
    for name in dialects:
        page = DIALECTS[name](page, rng)
    return page.encode()


def sample_pages():
    """The pages of the repository: the sample corpus, the styles, and the facts suite's."""
    examples = PROJECT / "examples"
    styles = sorted((examples / "styles/pages").glob("*"))
    pages = [(page.stem, page.read_bytes()) for page in styles]
    return [*pages_of(examples / "dump"), *pages, *pages_of(examples / "facts")]


# Every seventh page: samples, styles and facts papers are among them.
PAGES = dict(sample_pages()[::7])


@cache
def parsed(name):
    """The paper of an untouched page."""
    return html.parse(PAGES[name])


@pytest.mark.parametrize("dialect", DIALECTS)
def test_other_markup_for_the_same_text_gives_the_same_paper(dialect):
    changed = 0
    for seed, (name, content) in enumerate(PAGES.items()):
        mutated = mutate(content, [dialect], seed)
        if mutated != content:
            changed += 1
            check(parsed(name), html.parse(mutated), MAY_CHANGE[dialect])
    assert changed or dialect == "foreign_objects"


def check(before, after, may_change):
    """Whether a paper is as the dialect of its page lets it be."""
    assert lost_outside_ledger(after) <= lost_outside_ledger(before)
    if may_change == "words":
        assert words(after) == words(before)
        assert after.authors == before.authors
        assert any(UNKNOWN_TEXT in block.text for block in after.blocks)
        return
    assert texts(after) == texts(before)
    if not may_change:
        assert account(after) == account(before)


def lost_outside_ledger(paper):
    """Characters that vanished without an entry in the ledger."""
    unexplained = paper.chars_seen - paper.chars_kept - sum(paper.losses.values())
    return paper.losses.get("unaccounted", 0) + max(0, unexplained)


def account(paper):
    return paper.losses, paper.kept, paper.chars_seen


def texts(paper):
    """What a reader sees of a paper: title, abstract, authors, headings, blocks, references."""
    return (
        paper.title,
        paper.abstract,
        paper.authors,
        [(section.title, section.path) for section in paper.sections],
        [(block.kind, block.section_path, block.text, block.cited_keys) for block in paper.blocks],
        paper.bibliography,
    )


def words(paper):
    """The words of a paper in their order, without those of UNKNOWN_TEXT."""
    texts = [paper.title or "", paper.abstract or "", *(block.text for block in paper.blocks)]
    texts += [item.raw for item in paper.bibliography]
    return " ".join(texts).replace(UNKNOWN_TEXT, " ").split()


def test_real_pages_in_a_mixture_of_dialects_give_the_same_papers(shared_data):
    pages = [page for name in ("dump", "dump2", "dump3") for page in pages_of(shared_data / name)]
    contents = [content for _, content in pages]
    contents += [
        page.read_bytes() for page in sorted((shared_data / "latexml-head").glob("*.html"))
    ]
    for seed, content in enumerate(contents[::9]):
        assert texts(html.parse(mutate(content, WHOLLY_SAME, seed))) == texts(html.parse(content))


def test_the_reference_parser_reads_the_same_words_of_a_mixture_of_dialects():
    for seed, content in enumerate(list(PAGES.values())[::3]):
        mutated = mutate(content, DIALECTS, seed)
        expected = words_of(reference.parse(mutated))
        assert not expected - words_of(html.parse(mutated))
