"""Answers made of their parts, and their rows."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any, NamedTuple

from pipeline.answering.model_calls import StepLog
from pipeline.corpus.nouns import (
    PASSAGE_COLUMNS,
    Answer,
    AnswerSentence,
    Claim,
    ClaimOrigin,
    Passage,
)
from pipeline.corpus.passages.sentences import split_sentences
from pipeline.llm.messages import Spent
from pipeline.storage.writing import Row
from pipeline.tables.writers import Writer
from pipeline.text import one_line

ABSTAINED = "The corpus does not hold the answer to this question."
"""The text of every answer whose claims do not hold it."""

MOST_CLAIMS = 3
"""Most claims of one hop; the report has six from two hops."""


class UnnumberedClaim(NamedTuple):
    """A claim that has no number yet, and the passage that it rests on."""

    text: str
    passage: Passage
    source: ClaimOrigin = "passage"


def number_claims(claims: Iterable[UnnumberedClaim], hop: int, after: int = 0) -> tuple[Claim, ...]:
    """The claims with the numbers that follow `after`."""
    return tuple(
        Claim(number, text, passage.passage_id, passage.arxiv_id, passage.anchor, hop, source)
        for number, (text, passage, source) in enumerate(claims, after + 1)
    )


def grounded_answer(
    sentences: Sequence[AnswerSentence],
    claims: Sequence[Claim],
    queries: Sequence[str],
    passages: Sequence[Sequence[Passage]],
    steps: StepLog,
) -> Answer:
    """An answer of these sentences, which abstains without any. passages: read in each hop."""
    return Answer(
        " ".join(sentence.text for sentence in sentences) or ABSTAINED,
        tuple(sentences),
        tuple(claims),
        tuple(queries),
        tuple(map(tuple, passages)),
        hops=len(queries),
        abstained=not sentences,
        trace={"steps": steps.steps},
        spent=steps.spent,
    )


def plain_answer(text: str, steps: StepLog | None = None) -> Answer:
    """An answer without passages: the model's own, or an imported one; an empty one abstains."""
    log = steps or StepLog()
    sentences = tuple(AnswerSentence(one_line(sentence), ()) for sentence in split_sentences(text))
    return Answer(
        text.strip() or ABSTAINED,
        sentences,
        abstained=not sentences,
        trace={"steps": log.steps},
        spent=log.spent,
    )


def answer_row(
    question_id: str, writer: Writer, answer: Answer, settings: Mapping[str, Any]
) -> Row:
    """The row of an answer. settings: those of its system, for the record."""
    shown = [
        {"hop": hop}
        | {name: getattr(passage, name) for name in PASSAGE_COLUMNS}
        | {"section_path": list(passage.section_path), "month": passage.month}
        for hop, passages in enumerate(answer.shown, 1)
        for passage in passages
    ]
    return {
        "question_id": question_id,
        **writer.columns,
        "settings": json.dumps(settings, sort_keys=True),
        "text": answer.text,
        "sentences": [asdict(sentence) for sentence in answer.sentences],
        "claims": [asdict(claim) for claim in answer.claims],
        "queries": list(answer.queries),
        "shown": shown,
        "hops": answer.hops,
        "abstained": answer.abstained,
        "trace": answer.trace_json(),
        **asdict(answer.spent),
    }


def hides_failure(row: Row) -> bool:
    """Whether an answer abstains because a step of it failed, as in rows of earlier versions."""
    return row["abstained"] and any(
        step.get("failure") or (step["stage"] == "generate" and not step["text"])
        for step in json.loads(row["trace"]).get("steps", ())
    )


def answer_of_row(row: Row) -> Answer:
    """The answer of a row."""
    hops = max([row["hops"], *(passage["hop"] for passage in row["shown"])], default=0)
    passages: list[list[Passage]] = [[] for _ in range(hops)]
    for item in row["shown"]:
        passages[item["hop"] - 1].append(Passage.from_row(item))
    return Answer(
        text=row["text"],
        sentences=tuple(
            AnswerSentence(sentence["text"], tuple(sentence["claims"]))
            for sentence in row["sentences"]
        ),
        claims=tuple(Claim(**claim) for claim in row["claims"]),
        queries=tuple(row["queries"]),
        shown=tuple(map(tuple, passages)),
        hops=row["hops"],
        abstained=row["abstained"],
        trace=json.loads(row["trace"]),
        spent=Spent(row["calls"], row["prompt_tokens"], row["completion_tokens"]),
    )
