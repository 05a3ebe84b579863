"""What is installed: Python, packages against those that were tried, and Dagster's own state."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path

from packaging.requirements import Requirement
from packaging.version import Version

from pipeline.engine.stage import Workspace
from pipeline.ops.doctor.findings import Finding, not_asked, ok, problem, warning
from pipeline.settings import PROJECT

_TRIED_PYTHON = (3, 11)
_MOST_NAMED = 5


def python(workspace: Workspace) -> Iterator[Finding]:
    """Whether this is the Python that was tried."""
    found = sys.version_info[:2]
    seen = f"Python {found[0]}.{found[1]}"
    if found == _TRIED_PYTHON:
        yield ok("python", seen)
    else:
        yield warning("python", seen, "3.11 is the one that was tried: make PYTHON=python3.11 install")


def packages(workspace: Workspace, pins: Path = PROJECT / "constraints.txt") -> Iterator[Finding]:
    """Whether what citeloom needs is installed in a version that does, and in the one that was tried.

    pins: a constraints file of pip, `name==version` a line; a wheel brings none.
    """
    unmet = sorted(filter(None, map(_unmet, needed("citeloom"))))
    if unmet:
        yield problem("packages", f"not as citeloom needs them: {_some(unmet)}", "make install")
    if not pins.is_file():
        yield not_asked("packages", "there is no constraints.txt beside this installation to compare with")
        return
    tried = dict(re.findall(r"^([\w.-]+)==(\S+)$", pins.read_text(), re.MULTILINE))
    differing = {name: found for name, found in _installed(tried) if found != tried[name]}
    others = [f"{name} {found} (tried: {tried[name]})" for name, found in sorted(differing.items())]
    if others:
        way_out = "make install, or pip install --constraint constraints.txt; expect what was not tried"
        yield warning("packages", f"{len(others)} of other versions than tried: {_some(others)}", way_out)
    elif not unmet:
        yield ok("packages", f"every package is of the version that was tried ({len(tried)} pinned)")


def needed(distribution: str) -> list[Requirement]:
    """What a distribution says it needs here, extras left out."""
    found = [Requirement(line) for line in requires(distribution) or ()]
    return [each for each in found if each.marker is None or each.marker.evaluate({"extra": ""})]


def _unmet(wanted: Requirement) -> str:
    try:
        found = version(wanted.name)
    except PackageNotFoundError:
        return f"{wanted.name} is not installed"
    return "" if wanted.specifier.contains(found, prereleases=True) else f"{wanted.name} {found} ({wanted.specifier})"


def _installed(names: dict[str, str]) -> Iterator[tuple[str, str]]:
    """Those that are installed, each with its version; torch's names its build too (+cpu), which may be any."""
    for name in names:
        try:
            yield name, Version(version(name)).public
        except PackageNotFoundError:  # of an extra, or another platform's
            continue


def _some(words: list[str]) -> str:
    more = len(words) - _MOST_NAMED
    return ", ".join(words[:_MOST_NAMED]) + (f" and {more} more" if more > 0 else "")


def dagster(workspace: Workspace) -> Iterator[Finding]:
    """Dagster's home: its schema, runs whose process is gone, and pools that are held."""
    from resources import dagster_home as dagster_home_module

    home = workspace.local / "dagster"
    if not (home / "dagster.yaml").is_file() and workspace.settings.dagster_pg_url is None:
        yield ok("dagster", f"{home} is not there yet: the first run makes it")
        return
    state = dagster_home_module.examine(dagster_home_module.dagster_home(workspace))
    if state.outdated:
        way_out = f"DAGSTER_HOME={home} dagster instance migrate, with nothing running"
        yield problem("dagster", f"its stores are of an older schema ({', '.join(state.outdated)})", way_out)
    if state.dead:
        seen = f"{len(state.dead)} runs seem to go on, and their process is gone: {_some(list(state.dead))}"
        yield warning("dagster", seen, "citeloom ui fails them within a minute, and then frees what they hold")
    held = ", ".join(f"{pool} by {', '.join(runs)}" for pool, runs in state.pools.items())
    if held and not state.running:
        way_out = "citeloom ui frees them within a minute"
        yield warning("dagster", f"pools are held, and no run goes on: {held}", way_out)
    if not (state.outdated or state.dead):
        pools = f"; pools held: {held}" if held else ""
        yield ok("dagster", f"{home}: {len(state.running)} runs go on{pools}")
