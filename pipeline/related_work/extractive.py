"""`extractive`: sections without a language model, of the sentences of each reference on its
contribution and findings.

Each candidate (`quotable_works`) is scored by its place, by cue words, by how central
it is to its paper and how close to the target (cosines of embeddings); the best becomes a sentence
that cites its reference (`sentence_rewriting`). As long as there is room, references get further
sentences, that on their findings first. References with similar contents share a paragraph.

Every sentence is one of the source's with its subject named, and carries the passage that it was
taken from.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from pipeline.embedding.lexical import term_id, words_of
from pipeline.llm.messages import Spent
from pipeline.related_work.quotable_works import (
    CONTRIBUTION,
    QuotableWork,
    quotable_works,
    section_words,
    usable_sections,
)
from pipeline.related_work.sentence_rewriting import (
    author_names,
    citable_sentence,
    follow_up,
)
from pipeline.related_work.summary import Summary, SummarySentence, citation_counts
from pipeline.related_work.task import Task

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from pipeline.embedding.embedder import Embedder

    Vectors = NDArray[np.float32]

Encode = Callable[[Sequence[str]], "Vectors"]
"""Texts → vectors of unit length, float32 of shape (texts, dimensions)."""
_TARGET_WORDS = 250
# Fewer references are one paragraph.
FEWEST_TO_GROUP = 5
_MOST_TITLES = 6
_FINDING = re.compile(
    r"\b(?:outperform|achiev|improv|demonstrat|show|find|found|reveal|state-of-the-art"
    r"|experiments?|results?|superior|reduc|speed|faster|accuracy|effective|surpass|exceed"
    r"|competitive|significant)\w*",
    re.IGNORECASE,
)
_ABOUT_ITSELF = re.compile(
    rf"{CONTRIBUTION.pattern}|\b(?:we|our|ours|us)\b"
    r"|\b(?:this|the present|the proposed)"
    r" (?:paper|work|article|study|survey|review|method|model)\b",
    re.IGNORECASE,
)
# SciFact: …, IPFS - …
_NAME_IN_TITLE = re.compile(r"(?=\w[\w-]{0,40}[A-Z\d])([\w-]{2,42})(?::| [-–—]) ")
_CITATION = re.compile(r"\[Reference \d+\]")
# A sentence repeats another if they share this part of the shorter one's words.
_REPEATED_SHARE = 0.6
# A sentence of fewer or more words is worth less.
_TYPICAL_WORDS = 20


def extractive(tasks: Sequence[Task], encode: Encode, words: int | None = None) -> list[Summary]:
    """The section of each task, about `words` words long, and longer where one sentence on each
    reference takes more.

    words: by default those of `section_words`. Deterministic for an encoder that is.
    """
    return [write_section(prepare(task, encode), words) for task in tasks]


@dataclass(frozen=True)
class PreparedTask:
    """A task with its works and the vectors of all that is compared."""

    task: Task
    works: tuple[QuotableWork, ...]
    target: Vectors
    """Of shape (dimensions,)."""
    titles: Vectors
    """Of shape (references, dimensions)."""
    sentences: tuple[Vectors, ...]
    """Of each source's candidates, of shape (candidates, dimensions)."""

    @cached_property
    def documents(self) -> Vectors:
        """A unit vector for each reference: the mean of its title and candidates. Of shape
        (references, dimensions).
        """
        import numpy as np

        pairs = zip(self.titles, self.sentences, strict=True)
        means = np.stack(
            [np.vstack([title[None, :], sentences]).mean(axis=0) for title, sentences in pairs]
        )
        unit: Vectors = means / np.linalg.norm(means, axis=1, keepdims=True)
        return unit


def prepare(task: Task, encode: Encode) -> PreparedTask:
    """The task with its candidates embedded, in one call of the encoder."""
    works = tuple(quotable_works(task))
    sections = usable_sections(task.description)
    abstract = sections[0][1] if sections else task.description
    target = " ".join(f"{task.title}. {abstract}".split()[:_TARGET_WORDS])
    texts = [candidate.text for work in works for candidate in work.candidates]
    vectors = encode([target, *(work.reference.title for work in works), *texts])
    start, sentences = 1 + len(works), []
    for work in works:
        sentences.append(vectors[start : start + len(work.candidates)])
        start += len(work.candidates)
    return PreparedTask(task, works, vectors[0], vectors[1 : 1 + len(works)], tuple(sentences))


def encoder_of(embedder: Embedder) -> Encode:
    """The dense vectors of an embedding model."""

    def encode(texts: Sequence[str]) -> Vectors:
        import numpy as np

        return np.concatenate([batch.dense for batch in embedder.encode_stream(texts)]).astype(
            np.float32
        )

    return encode


def first_scores(prepared: PreparedTask, place: int) -> list[float]:
    """A score for each candidate of a work: how well it represents the work.

    The weights are set by hand: weights fitted to half of DeepScholar's targets gained 0.3 points
    of ROUGE on that half and lost 0.1 on the other. The contribution outweighs the rest, so that
    the sentence says what the work does.
    """
    work, vectors = prepared.works[place], prepared.sentences[place]
    central, close = vectors @ prepared.documents[place], vectors @ prepared.target
    return [
        bool(CONTRIBUTION.search(candidate.text))
        + 0.1 * candidate.is_first
        - 0.1 * candidate.place
        + float(central[i])
        + float(close[i])
        - 0.4 * abs(len(candidate.text.split()) - _TYPICAL_WORDS) / 10
        for i, candidate in enumerate(work.candidates)
    ]


def _speaks_of_work(work: QuotableWork, place: int) -> bool:
    """Whether a candidate is about its work rather than background: it or a candidate before it
    mentions the work or its authors; if none does, it has the work's name in the title; if none
    does either, it states a finding.
    """
    texts = [candidate.text for candidate in work.candidates]
    about = [bool(_ABOUT_ITSELF.search(text)) for text in texts]
    if any(about):
        return any(about[: place + 1])
    named = _NAME_IN_TITLE.match(work.reference.title)
    if named and any(named[1] in text for text in texts):
        return named[1] in texts[place]
    return bool(_FINDING.search(texts[place]))


def _best_sentence(prepared: PreparedTask, place: int) -> tuple[int, SummarySentence] | None:
    """The first candidate, best first, that can be cited, as (its place among the candidates, the
    sentence).
    """
    work = prepared.works[place]
    scores = first_scores(prepared, place)
    for i in sorted(range(len(scores)), key=lambda i: (-scores[i], i)):
        text = citable_sentence(work.candidates[i].text, work.number, work.reference.authors)
        if text is not None and _speaks_of_work(work, i):
            return i, SummarySentence(text, (work.number,), (work.candidates[i].passage_id,))
    return None


def _further_sentences(
    prepared: PreparedTask, place: int, used: int, first: SummarySentence
) -> list[SummarySentence]:
    """The other candidates that can be cited: the best on the findings, then the others, best
    first; those that are before the candidate used come last.
    """
    work, close = prepared.works[place], prepared.sentences[place] @ prepared.documents[place]
    names = author_names(work.reference.authors)
    rephrase = follow_up if names and f"{names} [Reference" in first.text else citable_sentence

    def rank(i: int) -> tuple[bool, float]:
        return i < used, -float(close[i]) - work.candidates[i].place / 2

    others = [i for i in range(len(work.candidates)) if i != used and _speaks_of_work(work, i)]
    ranked = sorted(others, key=rank)
    texts = {
        i: rephrase(work.candidates[i].text, work.number, work.reference.authors) for i in ranked
    }
    findings = [
        i for i in ranked if i > used and texts[i] and _FINDING.search(work.candidates[i].text)
    ]
    return [
        SummarySentence(text, (work.number,), (work.candidates[i].passage_id,))
        for i in dict.fromkeys([*findings[:1], *ranked])
        if (text := texts[i])
    ]


def write_section(prepared: PreparedTask, words: int | None = None) -> Summary:
    """The section of one task: a paragraph for each group of references."""
    words = section_words(len(prepared.works)) if words is None else words
    groups = group_references(prepared)
    first = {place: _best_sentence(prepared, place) for place in range(len(prepared.works))}
    chosen = [choice[1].text for choice in first.values() if choice]
    words_left = words - sum(len(text.split()) for text in chosen)
    by_title = [work for place, work in enumerate(prepared.works) if first[place] is None]
    words_left -= sum(len(work.reference.title.split()) + 2 for work in by_title)
    further = _fill(prepared, first, words_left, chosen)
    paragraphs = []
    for group in groups:
        sentences: list[SummarySentence] = []
        for place in group:
            choice = first[place]
            sentences += [choice[1], *further[place]] if choice else []
        paragraphs.append(
            sentences
            + _title_sentences([prepared.works[place] for place in group if not first[place]])
        )
    text = "\n\n".join(
        " ".join(sentence.text for sentence in paragraph) for paragraph in paragraphs
    )
    trace = {
        "paragraphs": [[prepared.works[place].number for place in group] for group in groups],
        "by_title": [work.number for work in by_title],
        "citations": citation_counts(text, prepared.task.numbers, 0),
    }
    return Summary(
        text, tuple(sentence for paragraph in paragraphs for sentence in paragraph), trace, Spent()
    )


def _fill(
    prepared: PreparedTask,
    first: Mapping[int, tuple[int, SummarySentence] | None],
    words_left: int,
    texts: list[str],
) -> dict[int, list[SummarySentence]]:
    """Further sentences on each reference in `words_left` words at most: one on each in turn, the
    references closest to the target first, until none fits.

    texts: the sentences written so far, which no further one may repeat; those added are appended.
    """
    close = prepared.documents @ prepared.target
    waiting = {
        place: _further_sentences(prepared, place, *choice)
        for place, choice in first.items()
        if choice
    }
    further: dict[int, list[SummarySentence]] = {place: [] for place in waiting}
    order = sorted(waiting, key=lambda place: (-float(close[place]), place))
    while any(waiting.values()):
        for place in order:
            sentence = waiting[place].pop(0) if waiting[place] else None
            if sentence is None or len(sentence.text.split()) > words_left:
                continue
            if not any(_repeats(sentence.text, text) for text in texts):
                further[place].append(sentence)
                texts.append(sentence.text)
                words_left -= len(sentence.text.split())
    return further


def _repeats(sentence: str, other: str) -> bool:
    """Whether two sentences share most of their words, citations aside."""
    stems, other_stems = _stems(sentence), _stems(other)
    fewest = min(len(stems), len(other_stems))
    return len(stems & other_stems) >= _REPEATED_SHARE * fewest


def _stems(sentence: str) -> set[int]:
    return {term_id(word) for word in words_of(_CITATION.sub(" ", sentence))}


def _title_sentences(works: Sequence[QuotableWork]) -> list[SummarySentence]:
    """Sentences that name works of which nothing can be quoted, a few works each."""
    sentences = []
    for start in range(0, len(works), _MOST_TITLES):
        some = works[start : start + _MOST_TITLES]
        named = [f"“{work.reference.title.rstrip('.')}” [Reference {work.number}]" for work in some]
        listed = named[0] if len(named) == 1 else f"{', '.join(named[:-1])} and {named[-1]}"
        lead_in = "See also" if start == 0 else "Further works are"
        passages = tuple(work.passage_id for work in some)
        sentences.append(
            SummarySentence(f"{lead_in} {listed}.", tuple(work.number for work in some), passages)
        )
    return sentences


def group_references(prepared: PreparedTask) -> list[list[int]]:
    """Places of similar references together, the group closest to the target first, each in a chain
    of neighbours.

    Ward's linkage, about the square root of their number of groups. A reference left alone, or
    among works of which nothing can be quoted, joins the group that it is most similar to.
    """
    import numpy as np

    vectors = prepared.documents
    if len(vectors) < FEWEST_TO_GROUP:
        return [_chain(prepared, range(len(vectors)))]
    from scipy.cluster.hierarchy import fcluster, linkage

    tree = linkage(vectors.astype(np.float64), method="ward")
    labels = fcluster(tree, t=max(round(len(vectors) ** 0.5), 2), criterion="maxclust")
    members: dict[int, list[int]] = {}
    for place, label in enumerate(labels):
        members.setdefault(int(label), []).append(place)
    quotable = [bool(work.candidates) for work in prepared.works]
    groups = [
        group
        for group in members.values()
        if len(group) > 1 and any(quotable[place] for place in group)
    ]
    if not groups:
        return [_chain(prepared, range(len(vectors)))]
    centres = [vectors[group].mean(axis=0) for group in groups]
    for place in sorted(set(range(len(vectors))).difference(*groups)):
        groups[int(np.argmax([vectors[place] @ centre for centre in centres]))].append(place)
    close = vectors @ prepared.target
    ordered = sorted(groups, key=lambda group: (-float(close[group].mean()), group[0]))
    return [_chain(prepared, group) for group in ordered]


def _chain(prepared: PreparedTask, group: Iterable[int]) -> list[int]:
    """The group from the work closest to the target on, each next the one most similar to the one
    before.
    """
    vectors, unvisited = prepared.documents, sorted(group)
    chain: list[int] = []
    while unvisited:
        beside = vectors[chain[-1]] if chain else prepared.target
        following = max(
            unvisited, key=lambda place: (round(float(vectors[place] @ beside), 6), -place)
        )
        chain.append(following)
        unvisited.remove(following)
    return chain
