"""Judges on claims that other people labelled: macro-F1, confusion and cost.

    python -m benchmarks.judges [--labelled FOLDER] [--judge MODEL] [--quick]

labelled: the folder of public labelled sets, with Citation-Integrity and SciFact. Figures are of
the dev parts, which
nothing was fitted on. The judge that calls no model is measured beside two that read no text:
always "supported", and a draw by the labels' shares in the training part. judge: a model of the
settings, which is measured as a judge of citations and as a grader of claims, with the prompts and
the code of a run; its calls cost what the provider takes,
within the budgets of the settings, and answers are stored in the data root.
"""

from __future__ import annotations

import argparse
import random
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.harness import Claim, report
from benchmarks.labelled_claims import LABELLED, LABELS, Label, LabelledClaim, read_sets
from pipeline.answering.questions import Question
from pipeline.engine.stage import Workspace
from pipeline.evaluation.answers.judge import judge_claim
from pipeline.evaluation.citation_support import judge as citation_judge
from pipeline.evaluation.citation_support.overlap_judge import OverlapJudge
from pipeline.evaluation.passages import EvidencePassage
from pipeline.evaluation.statistics import bootstrap_sums
from pipeline.llm.client import LlmClient, open_client
from pipeline.llm.loop import run, side_by_side
from pipeline.llm.messages import Spent
from pipeline.llm.models import Model, get_model
from pipeline.settings import load_settings
from pipeline.settings.validators import OVERLAP_JUDGE

TaskName = Literal["citation_support", "claim_grade"]
QUICK = 60
UNREADABLE = "unreadable"
"""In place of a verdict: an answer that could not be read. It counts as wrong."""
CONTRADICTED = "contradicted"
"""In place of "not", where the judge that calls no model finds a fact that clashes."""
# Which label a verdict stands for, by task and set. Citation-Integrity's REFUTE is a citation that
# is not accurate, one that overstates included: the verdict "partly". SciFact's REFUTE is a
# contradiction, which the judge of citations calls "not", as it does what is not said at all, so
# three labels are not told apart there; and of a claim that is supported only in part, SciFact says
# that there is not enough information.
LABEL_OF: Mapping[tuple[TaskName, str], Mapping[str, Label]] = {
    ("citation_support", "Citation-Integrity"): {
        "supported": "SUPPORT",
        "partly": "REFUTE",
        "not": "NEI",
        CONTRADICTED: "REFUTE",
    },
    ("claim_grade", "Citation-Integrity"): {
        "correct": "SUPPORT",
        "partly": "REFUTE",
        "wrong": "REFUTE",
        "not_checkable": "NEI",
    },
    ("claim_grade", "SciFact"): {
        "correct": "SUPPORT",
        "partly": "NEI",
        "wrong": "REFUTE",
        "not_checkable": "NEI",
    },
}
SUPPORTED: Mapping[TaskName, str] = {"citation_support": "supported", "claim_grade": "correct"}


class MacroF1(NamedTuple):
    """Macro-F1 with the ends of its 95 % interval over documents."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class SetFigures:
    """A judge on a labelled set. three_classes: None if its verdicts do not separate the labels."""

    supported_or_not: MacroF1
    three_classes: MacroF1 | None


@dataclass(frozen=True, slots=True)
class Verdicts:
    """A judge's verdicts on the claims of one set, in their order, and what they cost."""

    judge: str
    task: TaskName
    set: str
    claims: Sequence[LabelledClaim]
    verdicts: Sequence[str]
    spent: Spent = field(default_factory=Spent)

    def measure(self) -> SetFigures:
        """Macro-F1 of supported or not, and of three classes where the verdicts tell them apart."""
        labels = [claim.label for claim in self.claims]
        documents = [claim.document for claim in self.claims]
        supported = SUPPORTED[self.task]
        two = [
            verdict if verdict == UNREADABLE else str(verdict == supported)
            for verdict in self.verdicts
        ]
        label_of = LABEL_OF.get((self.task, self.set))
        three = label_of and [label_of.get(verdict, UNREADABLE) for verdict in self.verdicts]
        return SetFigures(
            supported_or_not=macro_f1(
                [str(label == "SUPPORT") for label in labels], two, ("True", "False"), documents
            ),
            three_classes=macro_f1(labels, three, LABELS, documents) if three else None,
        )

    def confusion(self) -> dict[str, dict[str, int]]:
        """Label → the judge's own verdict → claims."""
        pairs = Counter(
            (claim.label, verdict)
            for claim, verdict in zip(self.claims, self.verdicts, strict=True)
        )
        return {
            label: {v: count for (of, v), count in sorted(pairs.items()) if of == label}
            for label in LABELS
        }


def macro_f1(
    labels: Sequence[str], judged: Sequence[str], classes: Sequence[str], documents: Sequence[str]
) -> MacroF1:
    """The mean F1 of the classes that occur, with its 95 % interval over drawn documents."""
    has = np.array([[label == name for name in classes] for label in labels], dtype=float)
    gets = np.array([[label == name for name in classes] for label in judged], dtype=float)

    def mean_f1(sums: NDArray[np.float64]) -> NDArray[np.float64]:
        twice_right, given = sums[..., : len(classes)], sums[..., len(classes) :]
        occurs = given > 0
        f1 = np.divide(twice_right, given, out=np.zeros_like(given), where=occurs)
        return f1.sum(axis=-1) / np.maximum(occurs.sum(axis=-1), 1)

    value, low, high = bootstrap_sums(mean_f1, np.hstack([2 * has * gets, has + gets]), documents)
    if value is None or low is None or high is None:
        raise ValueError("an interval needs claims on two documents")
    return MacroF1(round(value, 3), round(low, 3), round(high, 3))


def judge_without_model(sets: Mapping[str, Sequence[LabelledClaim]]) -> list[Verdicts]:
    """The judge that calls no model, as a judge of citations."""
    judge = OverlapJudge.of(load_settings(_env_file=None))
    return [
        Verdicts(
            OVERLAP_JUDGE,
            "citation_support",
            name,
            claims,
            [
                CONTRADICTED if verdict.comparison.clash else verdict.label
                for verdict in judge.verdicts([(claim.claim, claim.passages) for claim in claims])
            ],
        )
        for name, claims in sets.items()
    ]


def judges_without_reading(
    sets: Mapping[str, Sequence[LabelledClaim]], folder: Path
) -> list[Verdicts]:
    """Always "supported", and verdicts drawn by the shares of labels in the training part."""
    verdict_of: Mapping[Label, str] = {"SUPPORT": "supported", "REFUTE": "partly", "NEI": "not"}
    train = read_sets(folder, "train")
    judged = []
    for name, claims in sets.items():
        drawn = random.Random(0).choices(
            [verdict_of[claim.label] for claim in train[name]], k=len(claims)
        )
        judged += [
            Verdicts(
                "always supported", "citation_support", name, claims, ["supported"] * len(claims)
            ),
            Verdicts("by the training part's shares", "citation_support", name, claims, drawn),
        ]
    return judged


def judge_with_model(
    workspace: Workspace, model: Model, sets: Mapping[str, Sequence[LabelledClaim]]
) -> list[Verdicts]:
    """A language model at both tasks. Raises SettingError where its context is too small."""
    tasks: Mapping[
        TaskName, Callable[[LlmClient, LabelledClaim, int], Awaitable[tuple[str | None, Spent]]]
    ] = {
        "citation_support": _judge_citation,
        "claim_grade": _judge_claim,
    }

    async def judge_all() -> list[Verdicts]:
        results = []
        async with open_client(workspace, model.name) as client:
            for name, claims in sets.items():
                for task, judge in tasks.items():
                    answers = await side_by_side(
                        judge(client, claim, model.context) for claim in claims
                    )
                    verdicts = [verdict or UNREADABLE for verdict, _ in answers]
                    spent = sum((spent for _, spent in answers), Spent())
                    results.append(Verdicts(model.name, task, name, claims, verdicts, spent))
        return results

    return run(judge_all())


async def _judge_citation(
    client: LlmClient, claim: LabelledClaim, context: int
) -> tuple[str | None, Spent]:
    passages = [EvidencePassage(text, place) for place, text in enumerate(claim.passages)]
    request = citation_judge.judge_request(claim.title, passages, claim.marked, context)
    judged = await citation_judge.judge(client, request)
    return judged.verdict, judged.spent


async def _judge_claim(
    client: LlmClient, claim: LabelledClaim, context: int
) -> tuple[str | None, Spent]:
    # Without validation: the document need be no paper of arXiv, and there are no gold claims.
    question = Question.model_construct(
        id=claim.id,
        question="Is the claim correct?",
        kind="summary",
        papers=(claim.document,),
        claims=(),
    )
    passages = [
        EvidencePassage(text, place, f"{claim.document} {place}", claim.document, "", claim.title)
        for place, text in enumerate(claim.passages)
    ]
    graded, spent = await judge_claim(client, question, claim.claim, passages, context)
    return graded["verdict"], spent


def rows(judged: Verdicts, model: Model | None) -> dict[str, object]:
    """Name → figure of one judge on one set; the cost where it called a model."""
    measured, name = judged.measure(), f"{judged.set}, {judged.judge}, {judged.task}"
    figures: dict[str, object] = {}
    for classes, score in (
        ("two classes", measured.supported_or_not),
        ("three classes", measured.three_classes),
    ):
        if score is not None:
            figures |= {
                f"{name}, {classes}": score.value,
                f"{name}, {classes}, low": score.low,
                f"{name}, {classes}, high": score.high,
            }
    figures[f"{name}, confusion"] = judged.confusion()
    if model is not None and judged.judge == model.name:
        spent = judged.spent
        figures |= {
            f"{name}, calls": spent.calls,
            f"{name}, tokens": spent.prompt_tokens + spent.completion_tokens,
        }
        if model.prices.known:
            figures[f"{name}, money"] = model.prices.cost(
                spent.prompt_tokens, spent.completion_tokens
            )
    return figures


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--labelled", type=Path, default=LABELLED)
    parser.add_argument(
        "--judge", help="also measure this model of the settings; its calls are paid for"
    )
    parser.add_argument(
        "--json", action="store_true", help="as every benchmark has it: the last line is JSON"
    )
    parser.add_argument("--quick", action="store_true", help=f"{QUICK} claims of each set")
    options = parser.parse_args(arguments)
    if not options.labelled.is_dir():
        print(f"skipped: the labelled sets ({options.labelled}) are not on this machine")
        return
    sets: Mapping[str, Sequence[LabelledClaim]] = read_sets(options.labelled, "dev")
    if options.quick:
        sets = {
            name: random.Random(0).sample(claims, min(QUICK, len(claims)))
            for name, claims in sets.items()
        }
    model = None
    judged = [*judge_without_model(sets), *judges_without_reading(sets, options.labelled)]
    if options.judge:
        settings = load_settings()
        model = get_model(settings, options.judge, "--judge")
        judged += judge_with_model(Workspace(settings), model, sets)
    figures = {name: value for each in judged for name, value in rows(each, model).items()}
    report("judges", figures, [_better_than_not_reading(judged, name) for name in sets])


def _better_than_not_reading(judged: Sequence[Verdicts], name: str) -> Claim:
    measures = {each.judge: each.measure() for each in judged if each.set == name}
    ours = measures[OVERLAP_JUDGE].supported_or_not.value
    floor = measures["always supported"].supported_or_not.value
    claim = f"{name}: macro-F1 of two classes above that of always supported"
    return Claim(claim, round(ours - floor, 3), 0.0)


if __name__ == "__main__":
    main()
