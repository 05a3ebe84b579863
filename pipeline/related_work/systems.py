"""The systems that write related work, by name. Not here: how each of them writes."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass

from pipeline.errors import SettingError
from pipeline.llm.client import LlmClient
from pipeline.related_work.chatcite import Search, chatcite
from pipeline.related_work.key_elements import KeyElements
from pipeline.related_work.prompting import Task
from pipeline.related_work.summary import Summary
from pipeline.related_work.zero_shot import Baseline, zero_shot
from pipeline.settings import Settings

Write = Callable[[LlmClient, Task, Sequence[KeyElements], Settings], Awaitable[Summary]]


@dataclass(frozen=True, slots=True)
class System:
    """A system: how it writes, and which settings and prompts change what it writes."""

    name: str
    write: Write
    settings: tuple[str, ...]
    prompts: tuple[str, ...]
    reads_elements: bool
    """Whether it is written from key elements; one that is not may be given none."""

    def chosen_settings(self, settings: Settings) -> dict[str, object]:
        """This system's settings and their values."""
        return {name: getattr(settings, name) for name in self.settings}


async def _chatcite(client: LlmClient, task: Task, elements: Sequence[KeyElements], settings: Settings) -> Summary:
    return await chatcite(client, task, elements, search_of(settings))


async def _zero_shot(client: LlmClient, task: Task, elements: Sequence[KeyElements], settings: Settings) -> Summary:
    return await zero_shot(client, task, Baseline(settings.temperature, settings.draft_tokens, settings.llm_context))


def search_of(settings: Settings) -> Search:
    """ChatCite's parameters as set."""
    return Search(
        samples=settings.chatcite_samples,
        votes=settings.chatcite_votes,
        kept=settings.chatcite_kept,
        temperature=settings.temperature,
        draft_tokens=settings.draft_tokens,
        vote_tokens=settings.vote_tokens,
        context=settings.llm_context,
    )


_WRITING = ("llm_model", "llm_context", "temperature", "draft_tokens")
_SEARCH = ("chatcite_samples", "chatcite_votes", "chatcite_kept", "vote_tokens")

SYSTEMS: Mapping[str, System] = {
    system.name: system
    for system in (
        System("chatcite", _chatcite, (*_WRITING, *_SEARCH), ("draft", "vote"), reads_elements=True),
        System("zero_shot", _zero_shot, _WRITING, ("summarize", "generate"), reads_elements=False),
    )
}


def chosen_systems(names: Sequence[str]) -> list[System]:
    """The systems that CITELOOM_SYSTEMS names, by name. Raises SettingError for a name that there is not, and for
    none at all."""
    unknown = sorted(set(names) - set(SYSTEMS))
    if unknown or not names:
        raise SettingError(
            f"CITELOOM_SYSTEMS names {', '.join(unknown) or 'nothing'}: write some of {', '.join(sorted(SYSTEMS))}"
        )
    return [SYSTEMS[name] for name in sorted(set(names))]


def named_system(name: str) -> System:
    """The system of an argument. Raises SettingError for a name that there is not."""
    if name not in SYSTEMS:
        raise SettingError(f"--system {name}: there is no such system; write one of {', '.join(sorted(SYSTEMS))}")
    return SYSTEMS[name]
