"""Notes in place of a related-work section, without a language model.

Each work has one of its own sentences, unaltered, in quotation marks, with the section of the
passage that holds it. Works with similar contents share a group.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from pipeline.corpus.citation_formats import author_names
from pipeline.related_work.quotable_works import (
    QuotableWork,
    passages_of,
    quotable_works,
    usable_sections,
)
from pipeline.related_work.summary import Summary, SummarySentence, quoted_summary
from pipeline.related_work.task import Task

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from pipeline.embedding.embedder import Embedder

    Vectors = NDArray[np.float32]

Encode = Callable[[Sequence[str]], "Vectors"]
"""Texts → vectors of unit length, float32 of shape (texts, dimensions)."""
_TARGET_WORDS = 250
# Fewer works are one group.
_FEWEST_TO_GROUP = 5


def annotated_list(task: Task, encode: Encode) -> Summary:
    """The works of a task in groups, those closest to the target first, each with the sentence that
    is closest to the work as a whole.

    Deterministic for an encoder that is.
    """
    import numpy as np

    works = list(quotable_works(task))
    sections = usable_sections(task.description)
    abstract = sections[0][1] if sections else task.description
    about = " ".join(f"{task.title}. {abstract}".split()[:_TARGET_WORDS])
    vectors = encode(
        [about]
        + [work.reference.title for work in works]
        + [candidate.text for work in works for candidate in work.candidates]
    )
    counts = [len(work.candidates) for work in works]
    target, titles, *sentences = np.split(vectors, np.cumsum([1, len(works), *counts])[:-1])
    # A unit vector for each work: the mean of its title and candidates.
    pairs = zip(titles, sentences, strict=True)
    means = np.stack([np.vstack([title[None, :], own]).mean(axis=0) for title, own in pairs])
    documents: Vectors = means / np.linalg.norm(means, axis=1, keepdims=True)
    paragraphs, items = [], []
    groups = group_works(documents, documents @ target[0])
    for number, group in enumerate(groups, 1):
        of_group = [
            _item(task, works[place], sentences[place] @ documents[place]) for place in group
        ]
        heading = f"Group {number} of {len(groups)}\n\n" if len(groups) > 1 else ""
        paragraphs.append(heading + "\n".join(f"- {item.text}" for item in of_group))
        items += of_group
    numbers = [[works[place].number for place in group] for group in groups]
    return quoted_summary("\n\n".join(paragraphs), items, task.numbers, groups=numbers)


def encoder_of(embedder: Embedder) -> Encode:
    """The dense vectors of an embedding model."""

    def encode(texts: Sequence[str]) -> Vectors:
        import numpy as np

        return np.concatenate([batch.dense for batch in embedder.encode_stream(texts)]).astype(
            np.float32
        )

    return encode


def _item(task: Task, work: QuotableWork, closeness: NDArray[np.float32]) -> SummarySentence:
    """The line of one work: its authors, title, closest candidate and the section that it stands
    in. closeness: of each candidate to the work.
    """
    names = author_names(work.reference.authors)
    cited = f"{names} [Reference {work.number}]".lstrip()
    title = work.reference.title.rstrip(".")
    if not work.candidates:
        text = f"{cited}. {title}. Nothing to quote: neither an abstract nor a text is known."
        return SummarySentence(text, (work.number,))
    # Rounded, so that sentences that differ by a last bit are in the order of the text.
    sentence = work.candidates[int(closeness.round(6).argmax())]
    place = next(
        passage.place
        for passage in passages_of(task, work.reference)
        if passage.passage_id == sentence.passage_id
    )
    text = f"{cited}. {title}: “{sentence.text}” ({place})"
    return SummarySentence(text, (work.number,), (sentence.passage_id,))


def group_works(documents: Vectors, closeness: NDArray[np.float32]) -> list[list[int]]:
    """Places of similar works together, those closest to the target first, in groups and within.

    Ward's linkage, about as many groups as the square root of the number of works. A work that is
    left alone joins the group that it is most similar to.
    """
    import numpy as np

    def closest_first(group: Sequence[int]) -> list[int]:
        return sorted(group, key=lambda place: (-round(float(closeness[place]), 6), place))

    everything = range(len(documents))
    if len(documents) < _FEWEST_TO_GROUP:
        return [closest_first(everything)]
    from scipy.cluster.hierarchy import fcluster, linkage

    tree = linkage(documents.astype(np.float64), method="ward")
    labels = fcluster(tree, t=max(round(len(documents) ** 0.5), 2), criterion="maxclust")
    members: dict[int, list[int]] = {}
    for place, label in enumerate(labels):
        members.setdefault(int(label), []).append(place)
    groups = [group for group in members.values() if len(group) > 1]
    if not groups:
        return [closest_first(everything)]
    centres = [documents[group].mean(axis=0) for group in groups]
    for place in sorted(set(everything).difference(*groups)):
        groups[int(np.argmax([documents[place] @ centre for centre in centres]))].append(place)
    ordered = sorted(
        groups, key=lambda group: (-round(float(closeness[group].mean()), 6), group[0])
    )
    return [closest_first(group) for group in ordered]
