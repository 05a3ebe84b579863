"""Judge claims by passages of the works that they cite, outside of a stage."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal, NamedTuple

from pipeline.evaluation.citation_support.judge import judge_request
from pipeline.evaluation.judged import FINDING_TOKENS, Quoting, ask
from pipeline.evaluation.passages import EvidencePassage
from pipeline.llm.client import open_client
from pipeline.llm.loop import run, side_by_side
from pipeline.llm.models import get_model, judge_model

if TYPE_CHECKING:
    from pipeline.engine.stage import Workspace
    from pipeline.settings import Settings

    Claim = tuple[str, Sequence[EvidencePassage], str]


class Finding(Quoting):
    """The judge's answer on a claim: the words that decide, then the verdict."""

    verdict: Literal["supported", "partly", "contradicted", "not"]


class ClaimFinding(NamedTuple):
    """A verdict of `Finding` with its quote, or the failure in words."""

    verdict: str = ""
    quote: str = ""
    failure: str = ""


def judge_name(settings: Settings) -> str | None:
    """The model that judges; None without an endpoint."""
    return None if settings.bundled_llm else judge_model(settings).name


def judge_claims(workspace: Workspace, claims: Sequence[Claim]) -> list[ClaimFinding]:
    """The judge's finding on each claim, in order.

    claims: (title of the work that it cites, passages of it, best first, words) of each. Raises
    SettingError where the judge's context is too small, and as the model's client does.
    """
    return run(_judge(workspace, claims))


async def _judge(workspace: Workspace, claims: Sequence[Claim]) -> list[ClaimFinding]:
    name = judge_model(workspace.settings).name
    context = get_model(workspace.settings, name, "CITELOOM_JUDGES").context
    async with open_client(workspace, name) as client:

        async def judge(claim: Claim) -> ClaimFinding:
            question = judge_request(*claim, context, prompt="judge_draft")
            reply = await ask(client, question.messages, Finding, FINDING_TOKENS)
            if reply.form is None:
                return ClaimFinding(failure=str(reply.failure))
            return ClaimFinding(reply.form.verdict, reply.form.quote)

        return await side_by_side(map(judge, claims))
