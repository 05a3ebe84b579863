"""Settings that have no effect, or that the stages would refuse."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial

from pipeline.answering.stages import check_answering
from pipeline.engine import telemetry
from pipeline.engine.stage import Workspace
from pipeline.errors import SettingError
from pipeline.evaluation.judges import judges
from pipeline.llm.client import check_llm
from pipeline.ops.doctor.findings import Finding, problem, warning
from pipeline.related_work.systems import chosen_systems
from pipeline.settings import Settings

_PREFIX = "CITELOOM_"


@dataclass(frozen=True, slots=True)
class _Needs:
    """Settings that nothing reads unless another one has a value."""

    names: tuple[str, ...]
    other: str
    value: str = ""
    """Which value; any where it is empty."""

    def is_met(self, settings: Settings) -> bool:
        """Whether the other one has it."""
        found = getattr(settings, self.other)
        return str(found) == self.value if self.value else bool(found)


_NEEDS = (
    _Needs(
        ("qdrant_api_key", "qdrant_grpc_port", "qdrant_private_network", "qdrant_shards", "qdrant_replicas"),
        "qdrant_url",
    ),
    _Needs(("llm_api_key",), "llm_url"),
    _Needs(("judge_api_key",), "judge_url"),
    _Needs(("second_judge_api_key",), "second_judge_url"),
    _Needs(("second_judge_url",), "second_judge_model"),
    _Needs(("embedder_path", "embedder_colbert"), "embedder", "bge-m3"),
)


def unread(workspace: Workspace) -> Iterator[Finding]:
    """Settings that were given and are read by nothing, as another one is not set."""
    settings = workspace.settings
    for needs in _NEEDS:
        idle = [name for name in needs.names if name in settings.model_fields_set and getattr(settings, name)]
        if idle and not needs.is_met(settings):
            other = f"{_name(needs.other)}={needs.value}" if needs.value else _name(needs.other)
            seen = f"{', '.join(map(_name, idle))} given without {other}, and read by nothing"
            yield warning("settings", seen, f"set {other}, or remove {'them' if len(idle) > 1 else 'it'}")


def refused(workspace: Workspace) -> Iterator[Finding]:
    """What the stages would refuse of the settings before they begin."""
    settings = workspace.settings
    tried: tuple[Callable[[], object], ...] = (
        partial(chosen_systems, settings.systems),
        partial(check_answering, settings),
        *(partial(check_llm, each) for each in (settings, *judges(settings))),
        partial(telemetry.check, settings),
    )
    messages = dict.fromkeys(filter(None, map(_refusal, tried)))
    yield from (problem("settings", message, "correct the setting that it names") for message in messages)


def as_findings(error: SettingError) -> Iterable[Finding]:
    """Settings that could not be read at all, one finding for each line."""
    return [problem("settings", line, "correct it, in the environment or in .env") for line in str(error).splitlines()]


def _refusal(check: Callable[[], object]) -> str:
    try:
        check()
    except SettingError as error:
        return str(error)
    return ""


def _name(field: str) -> str:
    return f"{_PREFIX}{field.upper()}"
