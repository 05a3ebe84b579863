"""The stage `g_scores`: conversations about the sections of a task, shown under neutral labels.

The paper prints neither prompt nor temperature nor order: the prompt (`prompts/g_score.j2`),
temperature 0 and the orders are ours.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from string import ascii_uppercase
from typing import Any, Literal

from pydantic import BaseModel

from pipeline.engine.stage import Job, Workspace
from pipeline.errors import CiteloomError
from pipeline.evaluation.g_score.sample import (
    Assignment,
    TaskSections,
    assign,
    candidate_sets,
    read_repeats,
)
from pipeline.evaluation.judged import Reply, ask, judge_all, read_prompts
from pipeline.evaluation.verdicts import Mark
from pipeline.llm.client import LlmClient
from pipeline.llm.context import count_message_tokens, cut_to_share, fit
from pipeline.llm.messages import Message
from pipeline.llm.models import judge_model
from pipeline.llm.stage_loop import leave_out_failed
from pipeline.llm.structured import AnswerForm, make_form
from pipeline.storage.writing import Row
from pipeline.tables import CRITERIA
from pipeline.tables.writers import parse_writer

PROMPT = "g_score"
PROMPTS = read_prompts(__file__)

# The judge needs to know what the target is about, not the whole of it: the gold section is the
# measure.
_TARGET_TOKENS = 500
# A repair shows the judge its own answer again and some 150 tokens of complaint.
_REPAIR_TOKENS = 256
# Fewer tokens of a text than this cannot be judged.
_FEWEST_TOKENS = 48


class Marks(AnswerForm):
    """The six marks of one section, whole numbers from 1 to 5, as in `tables.CRITERIA`."""

    consistency: Mark
    coherence: Mark
    comparative: Mark
    integrity: Mark
    fluency: Mark
    citation_accuracy: Mark


class NoRoom(CiteloomError):
    """The model's context has no room for all that must be judged in one conversation."""


@dataclass(frozen=True, slots=True)
class GScoreRequest:
    """Messages to the judge. labels: label → system, in order shown. cut: texts that were cut."""

    messages: Sequence[Message]
    labels: Mapping[str, str]
    cut: tuple[str, ...]


def answer_schema(labels: Iterable[str]) -> type[BaseModel]:
    """The judge's answer: marks for each label, and the best where there are several."""
    names = tuple(labels)
    best = {"best": Literal[names]} if len(names) > 1 else {}
    return make_form("Judgement", **dict.fromkeys(names, Marks), **best)


def answer_tokens(sections: int) -> int:
    """Longest answer in tokens: SmolLM2 wrote 79 a section, the rest is for indented JSON."""
    return 64 + 128 * sections


def g_score_request(task: TaskSections, order: Sequence[str], context: int) -> GScoreRequest:
    """The request to judge these systems, shown in this order, by a model that reads and writes
    `context` tokens; what is too long is cut.

    Raises NoRoom where next to nothing of each text would be left, ValueError for more systems than
    letters.
    """
    labels = dict(zip(ascii_uppercase[: len(order)], order, strict=True))
    texts = {
        "target": fit(task.target, _TARGET_TOKENS).text,
        "references": task.references,
        "gold": task.gold,
        **{label: task.sections[system] for label, system in labels.items()},
    }
    empty = _messages(dict.fromkeys(texts, ""), labels)
    # The answer counts twice, since a repair repeats it.
    room = context - count_message_tokens(empty) - 2 * answer_tokens(len(labels)) - _REPAIR_TOKENS
    if room < _FEWEST_TOKENS * len(texts):
        raise NoRoom(
            f"{len(texts)} texts leave {max(room, 0)} tokens of the judge's context: raise"
            " CITELOOM_LLM_CONTEXT, or the judge's context in the file of CITELOOM_MODELS"
        )
    # The sections of all systems are cut to one length at most, so that no system loses more than
    # another.
    shares, _ = cut_to_share(list(texts.values()), room)
    shown = dict(zip(texts, shares, strict=True))
    cut = [labels.get(name, name) for name in texts if shown[name] != texts[name]]
    return GScoreRequest(_messages(shown, labels), labels, tuple(cut))


def _messages(texts: Mapping[str, str], labels: Iterable[str]) -> list[Message]:
    return PROMPTS.messages(
        PROMPT,
        sections=[(label, texts[label]) for label in labels],
        labels=list(labels),
        criteria=CRITERIA,
        target=texts["target"],
        references=texts["references"],
        gold=texts["gold"],
    )


Judgement = tuple[Reply[Any] | NoRoom, tuple[str, ...]]
"""The reply, or why nothing was asked; and the texts of which the judge read the beginning alone.
"""


def build(job: Job) -> Iterator[Row]:
    """Rows of `g_scores`, by task, candidate set, repeat of the sections and repeat; failures are
    in the ledger.
    """
    model = judge_model(job.settings)

    async def judge(client: LlmClient, assignment: Assignment) -> Judgement:
        try:
            request = g_score_request(assignment.task, assignment.order, model.context)
        except NoRoom as error:
            return error, ()
        form = answer_schema(request.labels)
        reply = await ask(client, request.messages, form, answer_tokens(len(request.labels)))
        return reply, request.cut

    assignments = _read_assignments(job)
    judged: Counter[str] = Counter()
    cut: dict[tuple[str, str], dict[str, None]] = defaultdict(dict)
    judgements = judge_all(job, assignments, judge)
    for assignment, (reply, texts_cut) in zip(assignments, judgements, strict=True):
        task_id = assignment.task.task_id
        conversation = f"{model.name}, candidate set {assignment.candidate_set}"
        # Once for a task and set, since every order cuts the same.
        cut[task_id, conversation] |= dict.fromkeys(texts_cut)
        place = f"{conversation}, repeat {assignment.repeat}"
        if assignment.section_repeat:
            place = f"{conversation}, repeat {assignment.section_repeat} of the sections"
        if isinstance(reply, NoRoom):
            job.leave_out(task_id, "no_room_for_judge", f"{place}: {reply}")
        elif reply.failure is not None:
            leave_out_failed(job, task_id, reply.failure, place)
        else:
            judged[assignment.candidate_set] += 1
            yield _row(assignment, reply, texts_cut, model.name)
    for (task_id, conversation), texts in cut.items():
        if texts:
            read = f"the judge read the beginning of: {', '.join(texts)}"
            job.leave_out(task_id, "cut_for_judge", f"{conversation}: {read}")
    job.notes["judged"] = dict(sorted(judged.items()))


def _read_assignments(job: Job) -> list[Assignment]:
    """The conversations of the month in the order of their rows."""
    tasks = read_repeats(job)
    writers = {writer for repeats in tasks for writer in repeats[0].sections}
    sets = candidate_sets(job.settings, writers)
    assignments: list[Assignment] = []
    for repeats in tasks:
        if repeats[0].gold.strip():
            assignments += assign(repeats, sets, job.settings.judge_repeats)
        else:
            reason = "the task has no gold section, which is what sections are measured by"
            job.leave_out(repeats[0].task_id, "no_gold", reason)
    return sorted(assignments, key=lambda assignment: assignment.key)


def _row(assignment: Assignment, reply: Reply[Any], cut: Sequence[str], judge_name: str) -> Row:
    labels = dict(zip(assignment.order, ascii_uppercase, strict=False))
    best = getattr(reply.form, "best", None)
    return {
        "task_id": assignment.task.task_id,
        "candidate_set": assignment.candidate_set,
        "section_repeat": assignment.section_repeat,
        "judge": judge_name,
        "repeat": assignment.repeat,
        "order": list(assignment.order),
        "marks": [
            {**parse_writer(name).columns, **getattr(reply.form, label).model_dump()}
            for name, label in labels.items()
        ],
        "best": next((name for name, label in labels.items() if label == best), None),
        "cut": list(cut),
        **asdict(reply.spent),
    }


def inputs(workspace: Workspace, month: str) -> Mapping[str, str]:
    """Inputs besides tables and settings: the judge and its prompt."""
    judge_fingerprint = judge_model(workspace.settings).fingerprint
    return {"prompt": PROMPTS.digest(PROMPT), "judges": judge_fingerprint}
