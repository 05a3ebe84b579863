"""Judge claims by passages of the works that they cite, outside of a stage."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal, NamedTuple

from pipeline.evaluation.citation_support.judge import judge_request
from pipeline.evaluation.judged import FINDING_TOKENS, Quoting, ask
from pipeline.evaluation.passages import EvidencePassage
from pipeline.evaluation.verdicts import place_of
from pipeline.llm.client import open_client
from pipeline.llm.loop import run, side_by_side
from pipeline.llm.models import get_model, judge_model

if TYPE_CHECKING:
    from pipeline.engine.stage import Workspace

    Claim = tuple[str, Sequence[EvidencePassage], str]


class Finding(Quoting):
    """The judge's answer on a claim: the words that decide, then the verdict."""

    verdict: Literal["supported", "partly", "contradicted", "not"]


class ClaimFinding(NamedTuple):
    """A verdict of `Finding` with its quote, or the failure in words.

    place: of the passage that the quote is in; None where it is in none.
    """

    verdict: str = ""
    quote: str = ""
    place: int | None = None
    failure: str = ""


class ClaimJudge:
    """The model that judges claims. name: None without an endpoint."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace, settings = workspace, workspace.settings
        self.name = None if settings.bundled_llm else judge_model(settings).name

    def judge(self, claims: Sequence[Claim]) -> list[ClaimFinding]:
        """The finding on each claim, in order.

        claims: (title of the work that it cites, passages of it, best first, words) of each. Raises
        SettingError where the judge's context is too small, and as the model's client does.
        """
        return run(self._judge(claims))

    async def _judge(self, claims: Sequence[Claim]) -> list[ClaimFinding]:
        name = judge_model(self._workspace.settings).name
        context = get_model(self._workspace.settings, name, "CITELOOM_JUDGES").context
        async with open_client(self._workspace, name) as client:

            async def judge(claim: Claim) -> ClaimFinding:
                question = judge_request(*claim, context, prompt="judge_draft")
                reply = await ask(client, question.messages, Finding, FINDING_TOKENS)
                if reply.form is None:
                    return ClaimFinding(failure=str(reply.failure))
                _, passages, _ = claim
                place = place_of(reply.form.quote, [passage.text for passage in passages])
                return ClaimFinding(reply.form.verdict, reply.form.quote, place)

            return await side_by_side(map(judge, claims))
