"""The systems that answer questions, by name."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from pipeline.answering import arxivbot as bot
from pipeline.answering import wikichat as chat
from pipeline.answering.answered import Answered
from pipeline.answering.asked import Asked
from pipeline.answering.checking import MOST_CLAIMS
from pipeline.answering.direct import direct
from pipeline.answering.facts import Facts
from pipeline.answering.params import Params, params_of
from pipeline.answering.retrieving import Retriever
from pipeline.answering.steps import Tell
from pipeline.llm.client import LlmClient
from pipeline.settings import Settings
from pipeline.settings.lookup import lookup, lookup_all


class Answer(Protocol):
    """How a system answers. One that retrieves nothing leaves the retriever alone."""

    def __call__(
        self,
        client: LlmClient,
        retriever: Retriever,
        asked: Asked,
        settings: Settings,
        *,
        facts: Facts | None = None,
        tell: Tell | None = None,
    ) -> Coroutine[Any, Any, Answered]: ...


Plan = Callable[[Params, int, int], int]


@dataclass(frozen=True, slots=True)
class System:
    """A system: how it answers, and which settings and prompts change what it answers."""

    name: str
    answer: Answer
    settings: tuple[str, ...]
    prompts: tuple[str, ...]
    plan: Plan
    retrieves: bool
    """Whether it needs an index."""
    reads_facts: bool = False
    """Whether it answers from tables as well."""

    def chosen_settings(self, settings: Settings) -> dict[str, object]:
        """This system's settings and their values."""
        return {name: getattr(settings, name) for name in self.settings}

    def planned_calls(self, settings: Settings, *, hops: int | None = None, checked: int | None = None) -> int:
        """Calls of one question that takes so many hops and checks so many claims, where searches find enough and no
        answer needs a repair; as many as may be where nothing is said."""
        params = params_of(settings)
        return self.plan(params, params.hops if hops is None else hops, MOST_CLAIMS if checked is None else checked)


async def _arxivbot(
    client: LlmClient,
    retriever: Retriever,
    asked: Asked,
    settings: Settings,
    *,
    facts: Facts | None = None,
    tell: Tell | None = None,
) -> Answered:
    return await bot.arxivbot(client, retriever, asked, params_of(settings), facts, tell)


async def _wikichat(
    client: LlmClient,
    retriever: Retriever,
    asked: Asked,
    settings: Settings,
    *,
    facts: Facts | None = None,
    tell: Tell | None = None,
) -> Answered:
    return await chat.wikichat(client, retriever, asked, params_of(settings), tell)


async def _direct(
    client: LlmClient,
    retriever: Retriever,
    asked: Asked,
    settings: Settings,
    *,
    facts: Facts | None = None,
    tell: Tell | None = None,
) -> Answered:
    return await direct(client, asked, params_of(settings), tell)


_ASKING = ("llm_model", "llm_context", "answer_tokens")
_READING = (*_ASKING, "answer_candidates", "answer_passages")

SYSTEMS: Mapping[str, System] = {
    system.name: system
    for system in (
        System(
            "arxivbot",
            _arxivbot,
            (*_READING, "answer_hops"),
            ("query", "rank", "claims", "reflect", "answer"),
            bot.planned_calls,
            retrieves=True,
            reads_facts=True,
        ),
        System(
            "wikichat",
            _wikichat,
            _READING,
            ("search", "rank", "bullets", "direct", "split", "verify", "draft", "refine"),
            chat.planned_calls,
            retrieves=True,
        ),
        System("direct", _direct, _ASKING, ("direct",), lambda params, hops, checked: 1, retrieves=False),
    )
}


def chosen_systems(names: Sequence[str], setting: str) -> list[System]:
    """The systems that a setting (CITELOOM_…) names, by name. Raises SettingError for one that there is not, and for
    none at all."""
    return lookup_all(SYSTEMS, names, setting)


def named_system(name: str) -> System:
    """The system of an argument. Raises SettingError for a name that there is not."""
    return lookup(SYSTEMS, name, "--system")
