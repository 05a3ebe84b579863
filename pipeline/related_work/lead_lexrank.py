"""The baselines LEAD and LexRank: sentences of the references, without a language model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING

from pipeline.embedding.lexical import term_id, words_of
from pipeline.related_work.quotable_works import passages_of, quotable_sentences, section_words
from pipeline.related_work.summary import Summary, SummarySentence, quoted_summary
from pipeline.related_work.system import RelatedWorkSystem
from pipeline.related_work.task import Task

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

# LexRank: the probability of a jump lies between 0.1 and 0.2 in its paper.
DAMPING = 0.15
# Of two sentences more similar than this, the second repeats the first.
REPEATED = 0.5


def lead(task: Task) -> Summary:
    """LEAD, the baseline that summarization compares with: the first sentences of each reference's
    abstract.

    Of each reference the first sentence as it is, in the order of the references, then of each the
    second, as long as there are at most `section_words`. Of a work without an abstract it is the
    title.
    """
    works = _sentences_by_work(task)
    words_left = section_words(len(works))
    taken: list[list[SummarySentence]] = [[] for _ in works]
    for depth in range(max(map(len, works), default=0)):
        for work, sentences in zip(works, taken, strict=True):
            if depth < len(work):
                quotation = _cited(work[depth])
                words_left -= len(quotation.text.split())
                if depth and words_left < 0:
                    return _lead_summary(task, taken)
                sentences.append(quotation)
    return _lead_summary(task, taken)


def _lead_summary(task: Task, by_work: Sequence[Sequence[SummarySentence]]) -> Summary:
    text = "\n\n".join(" ".join(sentence.text for sentence in group) for group in by_work)
    return quoted_summary(text, chain.from_iterable(by_work), task.numbers)


def _sentences_by_work(task: Task) -> list[list[SummarySentence]]:
    """The sentences that may be quoted of each reference; without any its title."""
    works = []
    for reference in task.references:
        passages = passages_of(task, reference)
        title = SummarySentence(reference.title, (reference.number,), (passages[0].passage_id,))
        works.append(quotable_sentences(reference, passages) or [title])
    return works


def _cited(sentence: SummarySentence) -> SummarySentence:
    """The sentence with `[Reference i]` before its full stop."""
    (number,) = sentence.references
    return replace(sentence, text=f"{sentence.text.rstrip('. ')} [Reference {number}].")


def lexrank(task: Task) -> Summary:
    """The most salient sentences of all references, at most `section_words`, in the order of the
    references.

    Continuous LexRank (Erkan and Radev 2004, JAIR 22, section 3.3): the score of a sentence is the
    stationary probability of a random walk between sentences whose steps are weighted by the cosine
    of their TF-IDF vectors, with a jump to any sentence at DAMPING. As in the paper, a sentence
    that repeats an earlier choice is skipped; the paper's MEAD uses cross-sentence informational
    subsumption for that, here it is a bound on the cosine.

    It need not cite every reference: a work without an abstract has its title for a sentence.
    """
    pool = list(chain.from_iterable(_sentences_by_work(task)))
    places: list[int] = []
    words_left = section_words(len(task.references))
    cosines = tfidf_cosines([sentence.text for sentence in pool])
    scores = lexrank_scores(cosines)
    for place in sorted(range(len(pool)), key=lambda place: (-float(scores[place]), place)):
        length = len(pool[place].text.split()) + 2
        if length <= words_left and all(cosines[place, other] < REPEATED for other in places):
            places.append(place)
            words_left -= length
    sentences = [_cited(pool[place]) for place in sorted(places)]
    return quoted_summary(
        " ".join(sentence.text for sentence in sentences), sentences, task.numbers
    )


def tfidf_cosines(sentences: Sequence[str]) -> NDArray[np.float64]:
    """Cosines of the sentences' TF-IDF vectors over word stems, of shape (sentences, sentences); 0
    without words.
    """
    import numpy as np
    from scipy.sparse import csr_matrix, diags

    terms: dict[int, int] = {}
    rows, columns = [], []
    for row, sentence in enumerate(sentences):
        for word in words_of(sentence):
            rows.append(row)
            columns.append(terms.setdefault(term_id(word), len(terms)))
    shape = (len(sentences), max(len(terms), 1))
    counts = csr_matrix((np.ones(len(rows)), (rows, columns)), shape=shape)
    frequency = np.asarray((counts > 0).sum(axis=0)).ravel()
    weighted = counts @ diags(np.log(len(sentences) / np.maximum(frequency, 1)) + 1e-9)
    length = np.sqrt(np.asarray(weighted.multiply(weighted).sum(axis=1)).ravel())
    unit = diags(1 / np.where(length > 0, length, 1)) @ weighted
    return np.asarray((unit @ unit.T).todense())


def lexrank_scores(cosines: NDArray[np.float64]) -> NDArray[np.float64]:
    """The stationary probabilities of the walk, which add up to 1, of shape (sentences,)."""
    import numpy as np

    count = len(cosines)
    totals = cosines.sum(axis=1, keepdims=True)
    walk = np.where(totals > 0, cosines / np.where(totals > 0, totals, 1), 1 / max(count, 1))
    jump = np.full(count, DAMPING / max(count, 1))
    return np.linalg.solve(np.eye(count) - (1 - DAMPING) * walk.T, jump)


LEAD = RelatedWorkSystem(
    name="lead",
    version=4,
    calls_model=False,
    quote=lambda task, settings: lead(task),
    reads_passages=True,
)
LEXRANK = replace(LEAD, name="lexrank", quote=lambda task, settings: lexrank(task))
