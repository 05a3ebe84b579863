"""How often extractive answers quote the evidence of SciFact.

    python -m benchmarks.extractive [--labelled FOLDER] [--quick]

Each claim of SciFact's dev part is a question over the 5,183 abstracts, searched exactly. A
quotation is right if it holds a rationale sentence, whether that supports or contradicts the claim.
The floor is a random sentence of the abstracts that were read. "Not found" is right for claims
without evidence, everyday questions and random letters. Intervals are 95 % bootstrap intervals over
claims.

quick: 30 claims.
"""

from __future__ import annotations

import argparse
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

from benchmarks.harness import report
from benchmarks.retrieval import (
    EVERYDAY,
    LABELLED,
    Measurement,
    random_letters,
    read_rows,
    read_scifact,
)
from pipeline.answering.answer import Answer
from pipeline.answering.extractive import extractive as answer_extractively
from pipeline.answering.model_calls import Tools
from pipeline.answering.user_question import UserQuestion
from pipeline.corpus.passage import Passage
from pipeline.embedding.choice import make_embedder
from pipeline.evaluation.statistics import Estimate, estimate
from pipeline.index.relevance import relevance_of
from pipeline.index.scored import Scored
from pipeline.llm.loop import run
from pipeline.settings import Settings, load_settings

QUICK_CLAIMS = 30


def _rounded(mean: Estimate | None) -> list[float] | None:
    if mean is None or mean.value is None or mean.low is None or mean.high is None:
        return None
    return [round(value, 2) for value in (mean.value, mean.low, mean.high)]


class ExactRetriever:
    """A retriever over SciFact's abstracts by the default ranking, without an index."""

    def __init__(self, measurement: Measurement, rows: Sequence[Mapping[str, Any]]) -> None:
        self._measurement = measurement
        self._passages = [
            Passage(
                passage_id=str(row["id"]),
                arxiv_id=str(row["id"]),
                anchor="",
                kind="abstract",
                title=row["title"],
                section_path=(),
                text=" ".join(row["sentences"]),
            )
            for row in rows
        ]

    async def find(
        self, queries: Sequence[str], count: int, papers: Sequence[str] = ()
    ) -> list[list[Scored[Passage]]]:
        """The `count` best abstracts of each query, with their relevance."""
        return [self._find(query, count) for query in queries]

    def _find(self, query: str, count: int) -> list[Scored[Passage]]:
        places, dense = self._measurement.search(query, count)
        texts, name = self._measurement.texts, self._measurement.embedder.name
        return [
            Scored(
                self._passages[place],
                float(dense[place]),
                relevance_of(name, query, texts[place], float(dense[place])),
            )
            for place in places
        ]


def answers(labelled: Path, settings: Settings, claims: int | None = None) -> dict[str, Any]:
    """How often extractive answers quote a rationale sentence, and how often "not found" is right,
    in percent with 95 % intervals over claims.
    """
    rows = list(read_rows(labelled / "scifact" / "corpus.jsonl.gz"))
    sentences = {
        str(row["id"]): [" ".join(text.split()) for text in row["sentences"]] for row in rows
    }
    retriever = ExactRetriever(Measurement(read_scifact(labelled), make_embedder(settings)), rows)
    tools = Tools(None, retriever, settings)

    def ask(question: str) -> Answer:
        return run(answer_extractively(UserQuestion(question), tools))

    marks: dict[str, dict[str, list[float]]] = {}

    def mark(name: str, question: str, value: float) -> None:
        marks.setdefault(name, {})[question] = [100.0 * value]

    for row in list(read_rows(labelled / "scifact" / "claims_dev.jsonl.gz"))[:claims]:
        answer, evidence = ask(row["claim"]), row["evidence"]
        if not evidence:
            mark("not found, of claims without evidence", row["id"], answer.abstained)
            continue
        gold = {
            sentences[str(each["doc"])][place] for each in evidence for place in each["sentences"]
        }
        right = [_holds_one(claim.text, gold) for claim in answer.claims]
        read = [text for passage in answer.shown[0] for text in sentences[passage.passage_id]]
        mark("not found, of claims with evidence", row["id"], answer.abstained)
        mark("an abstract with evidence is read", row["id"], any(text in gold for text in read))
        mark("a quotation holds a rationale sentence", row["id"], any(right))
        mark("the first quotation holds one", row["id"], any(right[:1]))
        mark("share of quotations that hold one", row["id"], fmean(right) if right else 0.0)
        mark(
            "share of sentences read that are one",
            row["id"],
            fmean(text in gold for text in read) if read else 0.0,
        )
    for name, questions in (
        ("everyday questions", EVERYDAY),
        ("random letters", random_letters(100)),
    ):
        for question in questions:
            mark(f"not found, of {name}", question, ask(question).abstained)
    counts = {name: len(values) for name, values in marks.items()}
    return {
        name: {"percent": _rounded(estimate(values)), "of": counts[name]}
        for name, values in marks.items()
    }


def _holds_one(quotation: str, gold: Collection[str]) -> bool:
    """Whether a quotation holds a rationale sentence, or the part of one that our splitter made."""
    return any(text in quotation or quotation in text for text in gold)


def main() -> None:
    """Answer the claims and count."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--labelled", type=Path, default=LABELLED)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--json", action="store_true", help="the last line is JSON in any case")
    options = parser.parse_args()
    claims = QUICK_CLAIMS if options.quick else None
    figures = answers(options.labelled, load_settings(_env_file=None), claims)
    report("extractive", {"answers to SciFact's claims": figures}, [])


if __name__ == "__main__":
    main()
