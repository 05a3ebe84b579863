"""Notes in place of a related-work section, without a language model.

Each work has one of its own sentences, unaltered, in quotation marks, with the section of the
passage that holds it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from pipeline.corpus.citation_formats import author_names
from pipeline.related_work.quotable_works import abstract_of, passages_of, quotable_sentences
from pipeline.related_work.summary import Summary, SummarySentence, quoted_summary
from pipeline.related_work.task import Reference, ReferencePassage, Task

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from pipeline.embedding.embedder import Embedder

    Vectors = NDArray[np.float32]

Encode = Callable[[Sequence[str]], "Vectors"]
"""Texts → vectors of unit length, float32 of shape (texts, dimensions)."""
_TARGET_WORDS = 250


def annotated_list(task: Task, encode: Encode) -> Summary:
    """The works of a task, those closest to the target first, each with its sentence that is
    closest to the work as a whole.

    Deterministic for an encoder that is.
    """
    import numpy as np

    about = " ".join(f"{task.title}. {abstract_of(task.description)}".split()[:_TARGET_WORDS])
    (target,) = encode([about])
    ranked: list[tuple[float, int, SummarySentence]] = []
    for reference in task.references:
        passages = passages_of(task, reference)
        sentences = quotable_sentences(reference, passages)
        vectors = encode([reference.title, *(sentence.text for sentence in sentences)])
        mean = vectors.mean(axis=0)
        work = mean / np.linalg.norm(mean)
        # Rounded, so that sentences that differ by a last bit are in the order of the text.
        closeness = (vectors @ work).round(6)
        quoted = sentences[int(closeness[1:].argmax())] if sentences else None
        nearness = round(float(target @ work), 6)
        ranked.append((-nearness, reference.number, _item(reference, passages, quoted)))
    items = [item for _, _, item in sorted(ranked, key=lambda entry: entry[:2])]
    text = "\n".join(f"- {item.text}" for item in items)
    return quoted_summary(text, items, task.numbers)


def encoder_of(embedder: Embedder) -> Encode:
    """The dense vectors of an embedding model."""

    def encode(texts: Sequence[str]) -> Vectors:
        import numpy as np

        return np.concatenate([batch.dense for batch in embedder.encode_stream(texts)]).astype(
            np.float32
        )

    return encode


def _item(
    reference: Reference,
    passages: Sequence[ReferencePassage],
    quoted: SummarySentence | None,
) -> SummarySentence:
    """The line of one work: its authors, title, the quoted sentence and the section that it stands
    in.
    """
    names = author_names(reference.authors)
    title = reference.title.rstrip(".")
    cited = f"{names} [Reference {reference.number}]. {title}".lstrip()
    if quoted is None:
        text = f"{cited}. Nothing to quote: neither an abstract nor a text is known."
        return SummarySentence(text, (reference.number,))
    place = next(each.place for each in passages if each.passage_id in quoted.passages)
    return SummarySentence(
        f"{cited}: “{quoted.text}” ({place})", quoted.references, quoted.passages
    )
