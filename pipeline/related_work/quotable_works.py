"""References with the sentences that a section may quote, and the length of a section.

Candidates are the sentences of the reference's abstract, and those of its introduction and
conclusion on its contribution. LEAD and LexRank quote them, with the same number of words, and the
annotated list one of each work.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from pipeline.corpus.passages.sentences import split_sentences
from pipeline.related_work.task import Reference, ReferencePassage, Task
from pipeline.text import one_line

# Two sentences on each reference in a short section, one in a long one, where a title may stand for
# a sentence. The published sections of DeepScholar have a median of 480 words for 26 references,
# the sample's 290 for 5.5.
_SHORT_RATE, _SHORT_SECTION, _LONG_RATE = 50, 250, 20
# Sentences that are read of the beginning of a paper without an abstract; no abstract is longer.
_MOST_CANDIDATES = 16
_HEADING = re.compile(r"#{1,6} ++(.*)")
_ABSTRACT = re.compile(r"abstract\b", re.IGNORECASE)
_SUMMARY_SECTION = re.compile(
    r"(?:[\dIVX.]+ +)?(?:introduction|conclusions?|summary|discussion and conclusion)", re.I
)

# Footnotes of the title page, which are behind the abstract.
_ON_AUTHORS = re.compile(
    r"\b(?:equal(?:ly)? contribut|contributed equally|corresponding author"
    r"|(?:work|research) (?:was )?(?:done|performed|conducted) (?:while|during|when)\b)",
    re.IGNORECASE,
)
# In a paragraph behind the abstract's own, the sign of an affiliation: not recall@10, [@bib.bib1].
_EMAIL = re.compile(r"[\w}]@[A-Za-z][\w-]*+\.[A-Za-z]")

_CONTRIBUTION = re.compile(
    r"\b(?:we|paper|work|article|study|survey|authors)"
    r" (?:\w+ly |also |first |then |further )?"
    r"(?:propose|present|introduce|develop|describe|design|study|investigate|examine|explore"
    r"|address|tackle|devise|formulate|formali[sz]e|extend|build|construct|review|survey"
    r"|analy[sz]e|create|release|contribute|revisit|argue|offer|provide)(?:s|d|ed)?\b"
    r"|\b(?:is|are) (?:proposed|presented|introduced|developed)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class CandidateSentence:
    """A sentence that may be used, and the passage that holds it."""

    text: str
    passage_id: str


@dataclass(frozen=True, slots=True)
class QuotableWork:
    """A reference with its candidates, which may be none."""

    reference: Reference
    candidates: tuple[CandidateSentence, ...]
    passage_id: str
    """The passage on which its title rests."""

    @property
    def number(self) -> int:
        return self.reference.number


def section_words(references: int) -> int:
    """Words of a section: 50 a reference up to 250 in all, and 20 a reference from 13 on."""
    return max(min(_SHORT_RATE * references, _SHORT_SECTION), _LONG_RATE * references)


def quotable_works(task: Task) -> Iterator[QuotableWork]:
    """The references of a task, each with the sentences that may be used."""
    for reference in task.references:
        passages = passages_of(task, reference)
        candidates = (
            () if reference.source == "item" else tuple(_candidates(reference.text, passages))
        )
        yield QuotableWork(reference, candidates, passages[0].passage_id)


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


def _candidates(content: str, passages: Sequence[ReferencePassage]) -> Iterator[CandidateSentence]:
    """The usable sentences of a paper, each with the passage that holds it, if one does."""
    folded = [(passage.passage_id, one_line(passage.text)) for passage in passages]
    for heading, text in usable_sections(content):
        usable = [
            sentence
            for sentence in _sentences(text)
            if heading == "" or _CONTRIBUTION.search(sentence)
        ]
        for sentence in usable[:_MOST_CANDIDATES]:
            holding = (passage_id for passage_id, whole in folded if sentence in whole)
            for passage_id in islice(holding, 1):
                yield CandidateSentence(sentence, passage_id)


def _sentences(text: str) -> list[str]:
    """The sentences of a section, each in one line, without notes on who did what and where."""
    sentences: list[str] = []
    for place, paragraph in enumerate(text.split("\n\n")):
        if place and _EMAIL.search(paragraph):
            continue
        of_paragraph = [one_line(sentence) for sentence in split_sentences(paragraph)]
        if of_paragraph and not _ON_AUTHORS.search(of_paragraph[0]):
            sentences += [sentence for sentence in of_paragraph if not _ON_AUTHORS.search(sentence)]
    return sentences


def usable_sections(content: str) -> list[tuple[str, str]]:
    """("", abstract), then introduction and conclusion; without an abstract the beginning alone."""
    heads_and_lines: list[tuple[str, list[str]]] = [("", [])]
    for line in content.splitlines():
        heading = _HEADING.fullmatch(line.strip())
        if heading:
            heads_and_lines.append((heading[1], []))
        else:
            heads_and_lines[-1][1].append(line)
    sections = [(heading, "\n".join(lines).strip()) for heading, lines in heads_and_lines]
    abstract = [("", text) for heading, text in sections if _ABSTRACT.match(heading)][:1]
    summaries = [(heading, text) for heading, text in sections if _SUMMARY_SECTION.match(heading)]
    return abstract + summaries if abstract else [("", text) for _, text in sections if text][:1]


def with_citation(sentence: str, number: int) -> str:
    """The sentence with `[Reference number]` before its full stop."""
    return f"{sentence.rstrip('. ')} [Reference {number}]."
