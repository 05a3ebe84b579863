"""Related work that no model writes: LEAD, LexRank and the annotated list, true to their sources."""

import re
from dataclasses import replace

import numpy as np
import pytest

from pipeline.embedding.lexical import term_id, words_of
from pipeline.related_work.annotated_list import annotated_list
from pipeline.related_work.lead_lexrank import lead, lexrank
from pipeline.related_work.quotable_works import passages_of, quotable_sentences, section_words
from pipeline.related_work.task import Reference, ReferencePassage, Task
from pipeline.related_work.task_reader import task_of
from tests.cases import cases
from tests.real_targets import read_real_targets

pytestmark = pytest.mark.slow

BOATS = (
    "Boats have been built for thousands of years on many shores.",
    "In this paper, we propose a hull for boats that saves half of the fuel.",
    "This is due to its shape.",
    "Our experiments on two rivers show that boats with the hull are faster.",
)
NETS = (
    "Nets hold fish in all of the seas.",
    "We present Meshwork, a net of thin threads that holds fish of any size.",
    "The experiments reveal that fish of all kinds are held by nets.",
)
AUTHORS = ("Ada Lovelace", "Ben Yang", "Cy Klein")


def abstract_task(*abstracts, authors=AUTHORS, items=0):
    """A task on boats with these references, and works behind them of which there is the title
    alone.
    """
    works = [("abstract", f"## Abstract\n\n{' '.join(text)}") for text in abstracts]
    works += [("item", "Only its item is known.")] * items
    references = tuple(
        Reference(number, None, f"Title {number}", source, authors, f"# Title {number}\n\n{text}")
        for number, (source, text) in enumerate(works, 1)
    )
    target = "# Faster boats\n\n## Abstract\n\nWe make boats with a new hull faster on rivers."
    return Task("t1", "Faster boats", target, references)


def hashed_words(texts):
    """Vectors of unit length by the words of each text, so that texts with common words are
    similar.
    """
    vectors = np.full((len(texts), 256), 1e-3, np.float32)
    for row, text in enumerate(texts):
        for word in words_of(text):
            vectors[row, term_id(word) % 256] += 1
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def listed(task):
    return annotated_list(task, hashed_words)


def test_each_work_has_its_closest_sentence_unaltered_and_works_of_which_nothing_is_known_say_so():
    summary = listed(abstract_task(BOATS, NETS, items=1))
    assert summary.text == (
        "- Lovelace et al. [Reference 1]. Title 1: “In this paper, we propose a hull for boats that"
        " saves half of the fuel.” (abstract)\n"
        "- Lovelace et al. [Reference 2]. Title 2: “Nets hold fish in all of the seas.”"
        " (abstract)\n"
        "- Lovelace et al. [Reference 3]. Title 3. Nothing to quote: neither an abstract nor a text"
        " is known."
    )
    assert [sentence.references for sentence in summary.sentences] == [(1,), (2,), (3,)]
    assert summary.spent.calls == 0
    assert listed(abstract_task(authors=(), items=1)).text.startswith("- [Reference 1]. Title 1.")


def test_all_writers_have_the_length_by_default_that_the_number_of_references_gives():
    lengths = {count: section_words(count) for count in (0, 1, 5, 12, 13, 26)}
    assert lengths == {0: 0, 1: 50, 5: 250, 12: 250, 13: 260, 26: 520}
    works = [
        [f"We build boats {name}{place} {f'{name}{place}x ' * 9}so." for place in range(5)]
        for name in ("oak", "ash", "elm", "fir")
    ]
    task = abstract_task(*works)
    for write in (lead, lexrank):
        assert 160 <= len(write(task).text.split()) <= 210


def first_reference(task, **changed):
    """The task with another first reference."""
    first, *others = task.references
    return replace(task, references=(replace(first, **changed), *others))


def test_a_quotation_names_its_passage():
    passages = (
        ReferencePassage("p0", "Something else."),
        ReferencePassage("p1", " ".join(BOATS), "Introduction"),
    )
    summary = listed(first_reference(abstract_task(BOATS, NETS), passages=passages))
    assert summary.sentences[0].passages == ("p1",)
    assert summary.sentences[0].text.endswith("half of the fuel.” (Introduction)")
    assert summary.trace["citations"]["uncited"] == []


def test_the_work_closest_to_the_target_comes_first():
    summary = listed(abstract_task(NETS, BOATS, NETS))
    assert [sentence.references for sentence in summary.sentences] == [(2,), (1,), (3,)]


@cases("unit/related_work/cases.toml", "the_sentences_of_the_abstract", ["quotable", "text"])
def test_the_sentences_of_the_abstract_or_of_the_beginning_may_be_quoted(quotable, text):
    task = first_reference(abstract_task(BOATS), text=text)
    (reference,) = task.references
    sentences = quotable_sentences(reference, passages_of(task, reference))
    assert [sentence.text for sentence in sentences] == quotable


def test_lead_takes_first_sentences_then_second_ones_as_they_stand():
    long = f"It {'floats and ' * 60}sinks."
    summary = lead(abstract_task([BOATS[0], long, "It is left out."], NETS[:1], items=1))
    assert [sentence.text for sentence in summary.sentences] == [
        "Boats have been built for thousands of years on many shores [Reference 1].",
        "Nets hold fish in all of the seas [Reference 2].",
        "Title 3 [Reference 3].",
    ]
    assert all(sentence.passages for sentence in summary.sentences)


def test_lexrank_keeps_to_its_length_and_repeats_nothing():
    summary = lexrank(abstract_task(BOATS, BOATS, NETS))
    assert len(summary.text.split()) <= section_words(3)
    texts = [sentence.text.partition(" [Reference")[0] for sentence in summary.sentences]
    assert len(texts) == len(set(texts)) > 1
    assert lexrank(abstract_task(items=2)).sentences


def test_quotations_of_real_works_are_unaltered(shared_data):
    for imported in read_real_targets(shared_data):
        task = task_of(imported.task.row(), {})
        summary = listed(task)
        assert summary.trace["citations"]["uncited"] == []
        works = {reference.number: reference.text for reference in task.references}
        for sentence in summary.sentences:
            quotation = re.search("“(.*)” \\(abstract\\)$", sentence.text)
            assert (quotation is not None) == bool(sentence.passages)
            text = " ".join(works[sentence.references[0]].split())
            assert quotation is None or quotation[1] in text
