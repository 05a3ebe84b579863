"""Probes of the settings, of what is installed, and of Dagster's own state."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path
from typing import Protocol

from packaging.requirements import Requirement
from packaging.version import Version

from pipeline.answering.stages import check_answering
from pipeline.engine import telemetry
from pipeline.engine.stage import Workspace
from pipeline.errors import SettingError
from pipeline.llm.client import check_model
from pipeline.ops.doctor.findings import Finding, not_asked, ok, problem, warning
from pipeline.settings import PROJECT, Settings
from pipeline.settings.validators import OVERLAP_JUDGE
from pipeline.stages import writer_models

_TRIED_PYTHON = (3, 11)
_MOST_LISTED = 5
# Settings that only have an effect where another one is set; `name=value` where it must have that value.
_NEEDED_BY: Sequence[tuple[str, tuple[str, ...]]] = (
    (
        "qdrant_url",
        ("qdrant_api_key", "qdrant_grpc_port", "qdrant_private_network", "qdrant_shards", "qdrant_replicas"),
    ),
    ("llm_url", ("llm_api_key",)),
    ("embedder=bge-m3", ("embedder_path", "embedder_colbert")),
)


def unread_settings(workspace: Workspace) -> Iterator[Finding]:
    """Settings without effect, because another one is not set."""
    settings = workspace.settings
    warnings = []
    for condition, names in _NEEDED_BY:
        needed, _, value = condition.partition("=")
        current = getattr(settings, needed)
        if current and value in ("", str(current)):
            continue
        idle = [name for name in names if name in settings.model_fields_set and getattr(settings, name)]
        if idle:
            variable = f"CITELOOM_{needed.upper()}" + (f"={value}" if value else "")
            message = f"{', '.join(f'CITELOOM_{name.upper()}' for name in idle)} has no effect without {variable}"
            warnings.append(
                warning("settings", message, f"set {variable}, or remove {'them' if len(idle) > 1 else 'it'}")
            )
    yield from warnings or [ok("settings", "every setting that is set has an effect")]


def refused_settings(workspace: Workspace) -> Iterator[Finding]:
    """Settings that a stage would refuse when it starts."""
    settings = workspace.settings
    checks: Sequence[Callable[[], object]] = (
        partial(_check_writers, settings),
        partial(check_answering, settings),
        *(partial(check_model, settings, name) for name in (None, *settings.judges) if name != OVERLAP_JUDGE),
        partial(telemetry.check, settings),
    )
    messages = []
    for check in checks:
        try:
            check()
        except SettingError as error:
            messages.append(str(error))
    for message in dict.fromkeys(messages):  # the writer and a judge may be refused for the same reason
        yield problem("settings", message, "correct this setting")


def _check_writers(settings: Settings) -> None:
    """Raise SettingError for an unknown system, and for a model of a writer that cannot be used."""
    for model in writer_models(settings):
        check_model(settings, model)


def invalid_settings(error: SettingError) -> list[Finding]:
    """Settings that cannot be read at all, one finding for each line of the error."""
    return [problem("settings", line, "correct it, in the environment or in .env") for line in str(error).splitlines()]


def python(workspace: Workspace) -> Iterator[Finding]:
    """Whether this is the Python version that citeloom is tested with."""
    major, minor = sys.version_info[:2]
    if (major, minor) == _TRIED_PYTHON:
        yield ok("python", f"Python {major}.{minor}")
    else:
        way_out = "citeloom is tested with 3.11: make PYTHON=python3.11 install"
        yield warning("python", f"Python {major}.{minor}", way_out)


def packages(workspace: Workspace, pins: Path = PROJECT / "constraints.txt") -> Iterator[Finding]:
    """Whether citeloom's requirements are installed, and in the versions that it is tested with.

    pins: a constraints file of pip, `name==version` a line; a wheel has none.
    """
    unmet = [text for requirement in requirements_of("citeloom") if (text := _unmet(requirement))]
    if unmet:
        yield problem("packages", f"requirements not met: {_first_few(sorted(unmet))}", "make install")
    if not pins.is_file():
        yield not_asked("packages", "there is no constraints.txt beside this installation to compare with")
        return
    pinned = dict(re.findall(r"^([\w.-]+)==(\S+)$", pins.read_text(), re.MULTILINE))
    others = []
    for name, wanted in sorted(pinned.items()):
        try:
            installed = Version(version(name)).public  # torch adds its build (+cpu), which may be any
        except PackageNotFoundError:  # of an extra, or for another platform
            continue
        if installed != wanted:
            others.append(f"{name} {installed} (tested: {wanted})")
    if others:
        way_out = "make install, or pip install --constraint constraints.txt; other versions are not tested"
        yield warning("packages", f"{len(others)} in other versions than tested: {_first_few(others)}", way_out)
    elif not unmet:
        yield ok("packages", f"all in the versions that are tested ({len(pinned)} pinned)")


def requirements_of(distribution: str) -> list[Requirement]:
    """What a distribution requires on this platform, without extras."""
    requirements = [Requirement(line) for line in requires(distribution) or ()]
    return [item for item in requirements if item.marker is None or item.marker.evaluate({"extra": ""})]


def _unmet(requirement: Requirement) -> str:
    name = requirement.name
    try:
        installed = version(name)
    except PackageNotFoundError:
        return f"{name} is not installed"
    satisfied = requirement.specifier.contains(installed, prereleases=True)
    return "" if satisfied else f"{name} {installed} ({requirement.specifier})"


def _first_few(items: Sequence[str]) -> str:
    more = len(items) - _MOST_LISTED
    return ", ".join(items[:_MOST_LISTED]) + (f" and {more} more" if more > 0 else "")


class InstanceState(Protocol):
    """The state of Dagster's instance, as its owner reads it."""

    @property
    def running(self) -> Sequence[str]:
        """Unfinished runs whose process lives."""

    @property
    def dead(self) -> Sequence[str]:
        """Unfinished runs whose process is gone."""

    @property
    def pools(self) -> Mapping[str, Sequence[str]]:
        """Pool → the runs that hold a slot of it."""

    @property
    def outdated(self) -> Sequence[str]:
        """Databases with an older schema than this Dagster's."""


def dagster(workspace: Workspace, instance_state: Callable[[Workspace], InstanceState]) -> Iterator[Finding]:
    """Dagster's home: the schema of its databases, runs whose process is gone, and pools that they hold."""
    home = workspace.local / "dagster"
    if not (home / "dagster.yaml").is_file() and workspace.settings.dagster_pg_url is None:
        yield ok("dagster", f"{home} does not exist yet: the first run creates it")
        return
    state = instance_state(workspace)
    if state.outdated:
        message = f"its databases have an older schema ({', '.join(state.outdated)})"
        yield problem("dagster", message, f"DAGSTER_HOME={home} dagster instance migrate, with nothing running")
    if state.dead:
        message = f"{len(state.dead)} unfinished runs have no process: {_first_few(state.dead)}"
        yield warning("dagster", message, "start citeloom ui, which ends them and frees their pools")
    holders = ", ".join(f"{pool} by {', '.join(runs)}" for pool, runs in state.pools.items())
    orphaned = bool(holders) and not state.running
    if orphaned:
        message = f"pools are held although no run is active: {holders}"
        yield warning("dagster", message, "start citeloom ui, which frees them")
    if not (state.outdated or state.dead or orphaned):
        pools = f"; pools held: {holders}" if holders else ""
        yield ok("dagster", f"{home}: {len(state.running)} active runs{pools}")
