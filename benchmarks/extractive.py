"""Writing without a language model: ROUGE of extractive, LEAD, LexRank and a random section on
DeepScholar-Bench, and how often extractive answers quote the evidence of SciFact.

    python -m benchmarks.extractive [--labelled FOLDER] [--quick]

The 63 targets are known by title and abstract, their references by abstract or title. All methods
write at their default length, which is the same number of words for all (`section_words`). Before
scoring all three are cut to the shortest of the three; the random section, another target's gold
section, is cut to the same length where it is longer. ROUGE is F1 in percent against the published
section, citations as `[Reference i]` in both.

The weights of `extractive` are set by hand. Figures are given of all targets and of every second
one (`held out`), which attempts to fit the weights left out. Intervals are 95 % bootstrap intervals
over targets, differences are paired.

Answers: each claim of SciFact's dev part is a question over the 5,183 abstracts, searched exactly.
A quotation is right if it holds a rationale sentence, whether that supports or contradicts the
claim. The floor is a random sentence of the abstracts that were read. "Not found" is right for
claims without evidence, everyday questions and random letters.

quick: eight targets and 30 claims, no promise is checked.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

from benchmarks.deepscholar import import_deepscholar
from benchmarks.harness import Claim, report
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
from pipeline.evaluation.rouge import METRICS, floor_task, rouge
from pipeline.evaluation.statistics import Estimate, estimate, paired_difference
from pipeline.index.relevance import relevance_of
from pipeline.index.scored import Scored
from pipeline.llm.loop import run
from pipeline.related_work.extractive import (
    PreparedTask,
    encoder_of,
    prepare,
    write_section,
)
from pipeline.related_work.lead_lexrank import lead, lexrank
from pipeline.related_work.task import Task
from pipeline.related_work.task_reader import task_of
from pipeline.settings import Settings, load_settings

EXTRACTIVE, LEAD, LEXRANK, RANDOM = "extractive", "lead", "lexrank", "random section"
WRITERS = (EXTRACTIVE, LEAD, LEXRANK)
QUICK, QUICK_CLAIMS = 8, 30

Scores = dict[str, dict[str, dict[str, float]]]
"""Method → metric → task → value."""


def sections(
    prepared: Sequence[PreparedTask], golds: Mapping[str, str]
) -> dict[str, dict[str, str]]:
    """Method → task → its section, at the length that the method has by itself."""
    written: dict[str, dict[str, str]] = {name: {} for name in (*WRITERS, RANDOM)}
    for each in prepared:
        task = each.task
        written[EXTRACTIVE][task.task_id] = write_section(each).text
        written[LEAD][task.task_id] = lead(task).text
        written[LEXRANK][task.task_id] = lexrank(task).text
        other = floor_task(task.task_id, golds)
        written[RANDOM][task.task_id] = golds[other] if other else ""
    return written


def cut_to_common_length(written: Mapping[str, Mapping[str, str]]) -> dict[str, dict[str, str]]:
    """The same sections, those of one task cut to the shortest that a method wrote for it."""
    lengths = {
        task: min(len(written[name][task].split()) for name in WRITERS)
        for task in written[EXTRACTIVE]
    }
    return {
        name: {task: _first_words(text, lengths[task]) for task, text in texts.items()}
        for name, texts in written.items()
    }


def _first_words(text: str, count: int) -> str:
    """The beginning of a text with its paragraphs, so many words long."""
    kept: list[str] = []
    for paragraph in text.split("\n\n"):
        words = paragraph.split()[:count]
        kept.append(" ".join(words))
        count -= len(words)
    return "\n\n".join(part for part in kept if part)


def score(written: Mapping[str, Mapping[str, str]], golds: Mapping[str, str]) -> Scores:
    """ROUGE of every section."""
    found: Scores = {name: {metric: {} for metric in METRICS} for name in written}
    for name, texts in written.items():
        for task, text in texts.items():
            for metric, value in rouge(golds[task], text).items():
                found[name][metric][task] = value
    return found


def means(scores: Scores, tasks: Sequence[str]) -> dict[str, Any]:
    """Method → metric → [mean, low, high] over these tasks; and extractive less each other."""
    figures: dict[str, Any] = {}
    for name, metrics in scores.items():
        figures[name] = {}
        for metric, values in metrics.items():
            figures[name][metric] = _rounded(estimate(_lists(values, tasks)))
    for name in (LEAD, LEXRANK, RANDOM):
        differences = figures[f"{EXTRACTIVE} less {name}"] = {}
        for metric in METRICS:
            ours = _lists(scores[EXTRACTIVE][metric], tasks)
            theirs = _lists(scores[name][metric], tasks)
            differences[metric] = _rounded(paired_difference(ours, theirs))
    return figures


def _lists(values: Mapping[str, float], tasks: Sequence[str]) -> dict[str, list[float]]:
    return {task: [values[task]] for task in tasks}


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
    """Score the methods on the targets."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--labelled", type=Path, default=LABELLED)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--json", action="store_true", help="the last line is JSON in any case")
    options = parser.parse_args()
    rows = [each.task.row() for each in import_deepscholar(options.labelled / "deepscholar")]
    rows = rows[:QUICK] if options.quick else rows
    golds = {row["task_id"]: row["gold"] for row in rows}
    tasks: list[Task] = [task_of(row, {}) for row in rows]
    begun = time.perf_counter()
    encode = encoder_of(make_embedder(load_settings(_env_file=None)))
    prepared = [prepare(task, encode) for task in tasks]
    embedded = time.perf_counter() - begun
    written = sections(prepared, golds)
    common = score(cut_to_common_length(written), golds)
    everyone = [task.task_id for task in tasks]
    held_out = everyone[1::2]
    figures: dict[str, Any] = {
        "targets": len(tasks),
        "references": sum(len(task.references) for task in tasks),
        "seconds to embed all": round(embedded, 1),
        "words": {
            name: round(fmean(len(text.split()) for text in texts.values()))
            for name, texts in written.items()
        },
        "common length, held out": means(common, held_out),
        "common length, all": means(common, everyone),
        "own length, all": means(score(written, golds), everyone),
    }
    claims = QUICK_CLAIMS if options.quick else None
    figures["answers to SciFact's claims"] = answers(
        options.labelled, load_settings(_env_file=None), claims
    )
    report(
        "extractive",
        figures,
        [] if options.quick else claims_of(figures["common length, held out"]),
    )


def claims_of(held_out: Mapping[str, Any]) -> list[Claim]:
    """Extractive is ahead of LEAD on unseen targets, and far from a section on anything."""
    less_lead, less_random = (
        held_out[f"{EXTRACTIVE} less {LEAD}"],
        held_out[f"{EXTRACTIVE} less {RANDOM}"],
    )
    claims = [
        Claim(f"{metric} of extractive less LEAD's", less_lead[metric][0], 0.01)
        for metric in METRICS[:2]
    ]
    return [
        *claims,
        Claim("rouge1 of extractive less a random section's", less_random["rouge1"][0], 5.0),
    ]


if __name__ == "__main__":
    main()
