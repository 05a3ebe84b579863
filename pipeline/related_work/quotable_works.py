"""The sentences of references that a section may quote, and the length of a section.

LEAD and LexRank quote the sentences of abstracts, with the same number of words, and the annotated
list one of each work.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from pipeline.corpus.passages.sentences import split_sentences
from pipeline.related_work.summary import SummarySentence
from pipeline.related_work.task import Reference, ReferencePassage, Task
from pipeline.text import one_line

# Two sentences on each reference in a short section, one in a long one, where a title may stand for
# a sentence. The published sections of DeepScholar have a median of 480 words for 26 references,
# the sample's 290 for 5.5.
_SHORT_RATE, _SHORT_SECTION, _LONG_RATE = 50, 250, 20
# Sentences that are read of the beginning of a paper without an abstract; no abstract is longer.
_MOST_SENTENCES = 16
_HEADING = re.compile(r"^ {0,3}#{1,6} ++(.*)$", re.MULTILINE)
_ABSTRACT = re.compile(r"abstract\b", re.IGNORECASE)
# In a paragraph behind the abstract's own, the sign of an affiliation: not recall@10, [@bib.bib1].
_EMAIL = re.compile(r"[\w}]@[A-Za-z][\w-]*+\.[A-Za-z]")


def section_words(references: int) -> int:
    """Words of a section: 50 a reference up to 250 in all, and 20 a reference from 13 on."""
    return max(min(_SHORT_RATE * references, _SHORT_SECTION), _LONG_RATE * references)


def quotable_sentences(
    reference: Reference, passages: Sequence[ReferencePassage]
) -> list[SummarySentence]:
    """The sentences of a reference's abstract, each in one line with the first passage that holds
    it, without paragraphs of affiliations; none of a work that is known by its bibliography item
    alone.

    passages: as `passages_of`.
    """
    if reference.source == "item":
        return []
    folded = [(passage.passage_id, one_line(passage.text)) for passage in passages]
    first, *others = abstract_of(reference.text).split("\n\n")
    paragraphs = [first, *(part for part in others if not _EMAIL.search(part))]
    texts = [one_line(text) for part in paragraphs for text in split_sentences(part)]
    sentences = []
    for text in texts[:_MOST_SENTENCES]:
        holding = next((passage_id for passage_id, whole in folded if text in whole), None)
        if holding is not None:
            sentences.append(SummarySentence(text, (reference.number,), (holding,)))
    return sentences


def passages_of(task: Task, reference: Reference) -> tuple[ReferencePassage, ...]:
    """The passages of a reference: those of the corpus, else the paragraphs of its text."""
    if reference.passages:
        return reference.passages
    paragraphs = [part.strip() for part in reference.text.split("\n\n")]
    texts = [part for part in paragraphs if part and not part.startswith("#")] or paragraphs[:1]
    return tuple(
        ReferencePassage(f"{task.task_id}/{reference.number}/{ordinal}", text)
        for ordinal, text in enumerate(texts, 1)
    )


def abstract_of(content: str) -> str:
    """The abstract of a paper in Markdown; without one the first section that has a text."""
    before, *parts = _HEADING.split(content)
    sections = [("", before), *zip(parts[::2], parts[1::2], strict=True)]
    texts = [(heading, text.strip()) for heading, text in sections if text.strip()]
    abstracts = [text for heading, text in texts if _ABSTRACT.match(heading)]
    return next(iter(abstracts or [text for _, text in texts]), "")
