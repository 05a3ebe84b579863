"""Settings as they were given: names that are none, values that nothing reads, and what the stages would refuse."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from functools import partial
from pathlib import Path

from pipeline.answering.stages import check_answering
from pipeline.engine import telemetry
from pipeline.engine.stage import Workspace
from pipeline.errors import SettingError
from pipeline.evaluation.judges import judges
from pipeline.llm.client import check_llm
from pipeline.ops.doctor.findings import Finding, ok, problem, warning
from pipeline.related_work.systems import chosen_systems
from pipeline.settings import Settings

_PREFIX = "CITELOOM_"
# What the project's own tests read.
_OF_TESTS = ("CITELOOM_TEST_", "CITELOOM_REQUIRE_TOOLS", "CITELOOM_BGE_M3")


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
    _Needs(("judge_price_read", "judge_price_written"), "judge_model"),
    _Needs(("second_judge_api_key",), "second_judge_url"),
    _Needs(("second_judge_url", "second_judge_price_read", "second_judge_price_written"), "second_judge_model"),
    _Needs(("embedder_path", "embedder_colbert"), "embedder", "bge-m3"),
)


def given_names(environment: Mapping[str, str], file: Path = Path(".env")) -> dict[str, str]:
    """Every CITELOOM_… that is given, in capitals, and where: "the environment" or the file's name.

    Raises SettingError where the file cannot be read.
    """
    from dotenv import dotenv_values

    try:
        in_file = dotenv_values(file) if file.is_file() else {}
    except (OSError, UnicodeDecodeError) as error:
        raise SettingError(f"{file} cannot be read ({error}): write it anew as UTF-8 text") from error
    places = ((in_file, str(file)), (environment, "the environment"))
    return {name.upper(): place for names, place in places for name in names if name.upper().startswith(_PREFIX)}


def unknown_names(names: Mapping[str, str]) -> Iterator[Finding]:
    """Names that are no setting, and are read by nobody; with the setting whose name is nearest."""
    known = {f"{_PREFIX}{name.upper()}" for name in Settings.model_fields}
    for name, place in sorted(names.items()):
        if name not in known and not name.startswith(_OF_TESTS):
            near = get_close_matches(name, known, n=1, cutoff=0.7)
            way_out = f"did you mean {near[0]}?" if near else "remove it; the README lists every setting"
            yield warning("settings", f"{name}, in {place}, is no setting and is ignored", way_out)


def names(workspace: Workspace) -> Iterator[Finding]:
    """Whether every name that is given is a setting."""
    given = given_names(os.environ)
    unknown = list(unknown_names(given))
    yield from unknown or [ok("settings", f"{len(given)} given, all of them known")]


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
