"""Related work that no model writes: true to its sources, linked, deterministic."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from pipeline.embedding.lexical import term_id, words_of
from pipeline.related_work.extractive import extractive
from pipeline.related_work.lead_lexrank import lead, lexrank
from pipeline.related_work.quotable_works import quotable_works, section_words
from pipeline.related_work.summary import Summary
from pipeline.related_work.task import Reference, ReferencePassage, Task
from pipeline.related_work.task_reader import task_of
from tests.real_targets import read_real_targets
from tests.unit.related_work.building import with_texts

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


def abstract_task(
    *abstracts: Sequence[str], authors: tuple[str, ...] = AUTHORS, items: int = 0
) -> Task:
    """A task on boats with these references, and works behind them of which there is the title
    alone.
    """
    numbers = range(1, len(abstracts) + items + 1)
    texts = [
        f"# Title {i}\n\n## Abstract\n\n{' '.join(text)}" for i, text in enumerate(abstracts, 1)
    ]
    texts += [
        f"# Title {i}\n\nOnly its item is known: Title {i}." for i in numbers[len(abstracts) :]
    ]
    references = tuple(
        Reference(
            i, None, f"Title {i}", "abstract" if i <= len(abstracts) else "item", authors, text
        )
        for i, text in zip(numbers, texts, strict=True)
    )
    target = "# Faster boats\n\n## Abstract\n\nWe make boats with a new hull faster on rivers."
    return Task("t1", "Faster boats", target, references)


def hashed_words(texts: Sequence[str]) -> NDArray[np.float32]:
    """Vectors of unit length by the words of each text, so that texts with common words are
    similar.
    """
    vectors = np.full((len(texts), 256), 1e-3, np.float32)
    for row, text in enumerate(texts):
        for word in words_of(text):
            vectors[row, term_id(word) % 256] += 1
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def write(task: Task, words: int | None = None) -> Summary:
    (summary,) = extractive([task], hashed_words, words)
    return summary


def test_each_reference_has_a_sentence_on_what_it_does_then_on_what_it_found_then_the_others() -> (
    None
):
    summary = write(abstract_task(BOATS, NETS), words=60)
    assert (
        summary.text
        == "Lovelace et al. [Reference 1] propose a hull for boats that saves half of the fuel. "
        "Their experiments on two rivers show that boats with the hull are faster [Reference 1]. "
        "Meshwork [Reference 2] is a net of thin threads that holds fish of any size. "
        "The experiments reveal that fish of all kinds are held by nets [Reference 2]."
    )
    assert summary.spent.calls == 0
    roomy = [sentence.text for sentence in write(abstract_task(BOATS, NETS), words=500).sentences]
    # None on boats and nets as such, which says nothing of the two works.
    assert len(roomy) == len(set(roomy)) == 4
    short = write(abstract_task(BOATS, NETS), words=1)
    assert [sentence.references for sentence in short.sentences] == [(1,), (2,)]


def test_all_writers_have_the_length_by_default_that_the_number_of_references_gives() -> None:
    assert [section_words(count) for count in (0, 1, 2, 5, 12, 13, 26)] == [
        0,
        50,
        100,
        250,
        250,
        260,
        520,
    ]
    names = [[f"w{work}s{place}" for place in range(5)] for work in range(4)]
    task = abstract_task(
        *[
            [f"We build boats {name} {' '.join([f'{name}x'] * 10)}." for name in own]
            for own in names
        ]
    )
    lengths = [len(summary.text.split()) for summary in (write(task), lead(task), lexrank(task))]
    assert all(0.8 * section_words(4) <= length <= section_words(4) + 10 for length in lengths), (
        lengths
    )


def test_every_sentence_names_its_reference_and_its_passage() -> None:
    task = abstract_task(BOATS, NETS, items=2)
    first = replace(
        task.references[0],
        passages=(
            ReferencePassage("p0", "Something else."),
            ReferencePassage("p1", " ".join(BOATS)),
        ),
    )
    summary = write(replace(task, references=(first, *task.references[1:])))
    assert all(sentence.references and sentence.passages for sentence in summary.sentences)
    assert {sentence.passages for sentence in summary.sentences if sentence.references == (1,)} == {
        ("p1",)
    }
    assert summary.trace["citations"] == {
        "respelt": 0,
        "bare": 0,
        "out_of_range": [],
        "uncited": [],
    }


def test_works_of_which_nothing_can_be_quoted_are_named_by_title() -> None:
    summary = write(abstract_task(BOATS, items=2))
    assert "See also “Title 2” [Reference 2] and “Title 3” [Reference 3]." in summary.text
    assert summary.trace["by_title"] == [2, 3]
    titles = write(abstract_task(items=3))
    assert titles.trace["by_title"] == [1, 2, 3]
    assert sorted(number for sentence in titles.sentences for number in sentence.references) == [
        1,
        2,
        3,
    ]


def test_a_work_that_does_not_speak_of_itself_is_quoted_where_it_has_its_name() -> None:
    task = abstract_task(
        ["Files are kept on many machines.", "The IPFS is a file system of peers."]
    )
    named = replace(task.references[0], title="IPFS - Content Addressed Files")
    summary = write(replace(task, references=(named,)), words=500)
    assert summary.text == "The IPFS is a file system of peers [Reference 1]."


def test_similar_references_share_a_paragraph() -> None:
    summary = write(abstract_task(BOATS, NETS, BOATS, NETS, BOATS, NETS), words=1)
    assert summary.trace["paragraphs"] == [[1, 3, 5], [2, 4, 6]]
    assert len(summary.text.split("\n\n")) == 2


def test_no_sentence_is_repeated_in_other_words() -> None:
    again = "On two rivers, our experiments show that boats with the hull are much faster."
    texts = [sentence.text for sentence in write(abstract_task([*BOATS, again]), 500).sentences]
    assert len(texts) == 2


def test_of_a_full_text_the_abstract_and_telling_sentences_of_other_sections_are_read() -> None:
    text = (
        "# T\n\n## Abstract\n\nBoats float on the water.\n\nEqual contribution. Ada proposed"
        " hulls.\n\nHull Group, University of Rivers. E-mail: ada@rivers.example\n\nHulls have a"
        " recall@10.\n\n## 1 Introduction\n\nRivers are wide"
        " and long.\n\nWe propose hulls that float.\n\n## 2 Method\n\nWe propose nothing"
        " here.\n\n## Conclusion\n\nWe present boats."
    )
    task = with_texts(abstract_task(BOATS), text)
    (work,) = quotable_works(task)
    assert [candidate.text for candidate in work.candidates] == [
        "Boats float on the water.",
        "Hulls have a recall@10.",
        "We propose hulls that float.",
        "We present boats.",
    ]


def test_lead_takes_first_sentences_then_second_ones_as_they_stand() -> None:
    summary = lead(abstract_task(BOATS, NETS, items=1), words=45)
    assert [sentence.text for sentence in summary.sentences] == [
        "Boats have been built for thousands of years on many shores [Reference 1].",
        "In this paper, we propose a hull for boats that saves half of the fuel [Reference 1].",
        "Nets hold fish in all of the seas [Reference 2].",
        "Title 3 [Reference 3].",
    ]
    assert all(sentence.passages for sentence in summary.sentences)


def test_lexrank_keeps_to_its_length_and_repeats_nothing() -> None:
    summary = lexrank(abstract_task(BOATS, BOATS, NETS), words=60)
    assert len(summary.text.split()) <= 60
    texts = [sentence.text.partition(" [Reference")[0] for sentence in summary.sentences]
    assert len(texts) == len(set(texts)) > 1
    assert lexrank(abstract_task(items=2)).sentences


def test_the_same_task_gives_the_same_section_with_minilm(shared_data: Path) -> None:
    from pipeline.embedding.choice import make_embedder
    from pipeline.related_work.extractive import encoder_of
    from pipeline.settings import load_settings

    tasks = [task_of(imported.task.row(), {}) for imported in read_real_targets(shared_data)]
    encode = encoder_of(make_embedder(load_settings(_env_file=None)))
    first, second = extractive(tasks, encode), extractive(tasks, encode)
    assert [summary.text for summary in first] == [summary.text for summary in second]
    for task, summary in zip(tasks, first, strict=True):
        assert summary.trace["citations"]["uncited"] == []
        passages = {
            identifier for sentence in summary.sentences for identifier in sentence.passages
        }
        assert all(identifier.startswith(task.task_id) for identifier in passages)
