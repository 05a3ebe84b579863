"""Other markup for the same text gives the same paper: docs/experiments/bad-input.md."""

from dataclasses import replace
from functools import cache

import pytest

from benchmarks.parse import words_of
from pipeline.corpus.parse import html, reference
from tests.unit.corpus.dialects import (
    MORE_TEXT,
    MUTATIONS,
    UNKNOWN_TEXT,
    WHOLLY_SAME,
    given_pages,
    lost_outside_ledger,
    mutate,
    sample_pages,
    texts,
    words,
)

pytestmark = pytest.mark.slow

# Every seventh page: samples, styles and facts papers are among them.
PAGES = dict(sample_pages()[::7])


@cache
def parsed(name):
    """The paper of an untouched page."""
    return html.parse(PAGES[name])


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.__name__)
def test_other_markup_for_the_same_text_gives_the_same_paper(mutation):
    changed = 0
    for seed, (name, content) in enumerate(PAGES.items()):
        mutated = mutate(content, [mutation], seed)
        if mutated != content:
            changed += 1
            check(parsed(name), html.parse(mutated), mutation)
    assert changed or mutation.__name__ == "foreign_objects"


def check(before, after, mutation):
    """Whether a paper is as the mutation of its page lets it be."""
    assert lost_outside_ledger(before, after) == 0
    if mutation in MORE_TEXT:
        assert words(after) == words(before)
        assert after.authors == before.authors
        assert any(UNKNOWN_TEXT in block.text for block in after.blocks)
        return
    assert texts(after) == texts(before)
    if mutation in WHOLLY_SAME:
        assert (after.losses, after.kept, after.chars_seen) == (
            before.losses,
            before.kept,
            before.chars_seen,
        )


def test_real_pages_in_a_mixture_of_dialects_give_the_same_papers(shared_data):
    for seed, (_, content) in enumerate(given_pages()[::9]):
        before = html.parse(content)
        after = html.parse(mutate(content, WHOLLY_SAME, seed))
        assert texts(replace(after, authors=before.authors)) == texts(before)
        assert after.authors == before.authors


def test_the_reference_parser_reads_the_same_words_of_a_mixture_of_dialects():
    for seed, content in enumerate(list(PAGES.values())[::3]):
        mutated = mutate(content, MUTATIONS, seed)
        expected = words_of(reference.parse(mutated))
        assert not expected - words_of(html.parse(mutated))
