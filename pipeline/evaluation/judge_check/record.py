"""Results of judge verification, one JSON file for each judge, task and prompt, and what reports print of them."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from pydantic import TypeAdapter, ValidationError

from pipeline.errors import PermanentFailure
from pipeline.evaluation.answers.splitting import CLAIM
from pipeline.evaluation.answers.splitting import PROMPTS as ANSWER_PROMPTS
from pipeline.evaluation.citation_support import overlap_judge
from pipeline.evaluation.citation_support.judge import PROMPT
from pipeline.evaluation.citation_support.judge import PROMPTS as CITATION_PROMPTS
from pipeline.evaluation.judge_check.verify import SetResult, TaskName
from pipeline.evaluation.statistics import Estimate
from pipeline.settings.validators import OVERLAP_JUDGE
from pipeline.storage.data_root import DataRoot
from pipeline.storage.store import DataPath
from pipeline.storage.writing import write_whole

FOLDER = "judge_checks"
NOT_VERIFIED = "not verified"


@dataclass(frozen=True, slots=True)
class JudgeCheck:
    """The measures of one judge at one task. prompt_digest: of the prompt, or of the fitted constants."""

    judge: str
    task: TaskName
    prompt_digest: str
    sets: tuple[SetResult, ...]


_CHECK: TypeAdapter[JudgeCheck] = TypeAdapter(JudgeCheck)


def write_check(root: DataRoot, check: JudgeCheck) -> DataPath:
    """Write a check, whole or not at all, in place of an earlier one of the same judge, task and prompt."""
    readable = re.sub(r"[^a-z0-9.]+", "-", check.judge.lower()).strip("-")[:60]
    key = hashlib.sha256(f"{check.judge}\0{check.prompt_digest}".encode()).hexdigest()[:8]
    file = root.path / FOLDER / f"{readable}-{check.task}-{key}.json"
    write_whole(file, _CHECK.dump_json(check, indent=1) + b"\n")
    return file


@dataclass(frozen=True, slots=True)
class JudgeChecks:
    """The checks of a data root by judge and task, of the prompts that are in use."""

    checks: Mapping[tuple[str, str], JudgeCheck] = field(default_factory=dict)

    def label(self, judge: str, task: TaskName) -> str:
        """The judge's name with its figures, or with "not verified"."""
        check = self.checks.get((judge, task))
        return f"{judge} ({', '.join(_short(each) for each in check.sets) if check else NOT_VERIFIED})"

    def sentences(self, judges: Sequence[str], task: TaskName) -> list[str]:
        """For each judge a sentence on how good it is at a task."""
        return [self._sentence(judge, task) for judge in judges]

    def _sentence(self, judge: str, task: TaskName) -> str:
        check = self.checks.get((judge, task))
        if check is None:
            return f"The judge {judge} is {NOT_VERIFIED}: citeloom verify-judge measures it on labelled claims."
        parts = "; ".join(part for each in check.sets for part in _long(each))
        return f"On claims that other people labelled, {judge} reaches, with 95 % intervals: {parts}."


def _main_figure(result: SetResult) -> tuple[Estimate | None, str]:
    measures = result.measures
    if measures.macro_f1 is not None:
        return measures.macro_f1, "three classes"
    return measures.support_macro_f1, "supported or not"


def _short(result: SetResult) -> str:
    figure, classes = _main_figure(result)
    value = "–" if figure is None else f"{figure.value:.2f}"
    return f"macro-F1 {value} on {result.set}, {classes}"


def _long(result: SetResult) -> Iterator[str]:
    measures = result.measures
    figures = {"three classes": measures.macro_f1, "supported or not": measures.support_macro_f1}
    scores = ", ".join(f"{each.value:.2f} ({each.low:.2f} to {each.high:.2f}) for {classes}"
                     for classes, each in figures.items() if each is not None)  # fmt: skip
    if scores:
        yield f"macro-F1 {scores} on {measures.claims:,} claims of {result.set}"


def current_digest(judge: str, task: TaskName) -> str:
    """What a judge's verdicts at a task follow from: the digest of the prompt, or of the fitted constants."""
    if judge == OVERLAP_JUDGE:
        return overlap_judge.fingerprint()
    if task == "claim_grade":
        return ANSWER_PROMPTS.digest(CLAIM)
    return CITATION_PROMPTS.digest(PROMPT)


def read_checks(root: DataRoot) -> JudgeChecks:
    """The checks of a data root. Raises PermanentFailure where a file is damaged."""
    checks: dict[tuple[str, str], JudgeCheck] = {}
    for file in _files(root):
        try:
            check = _CHECK.validate_json(file.read_bytes())
        except ValidationError:
            raise PermanentFailure(f"{file} is damaged: remove it and run citeloom verify-judge again") from None
        if check.prompt_digest == current_digest(check.judge, check.task):
            checks[check.judge, check.task] = check
    return JudgeChecks(checks)


def checks_digest(root: DataRoot) -> str:
    """SHA-256 of all files of checks, for the fingerprint of what shows them."""
    return hashlib.sha256(b"".join(file.read_bytes() for file in _files(root))).hexdigest()


def _files(root: DataRoot) -> list[DataPath]:
    folder = root.path / FOLDER
    return [folder / name for name in sorted(file.name for file in folder.glob("*.json"))]
