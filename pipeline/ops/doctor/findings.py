"""What a check saw and how it is asked: in time, with no secret in its words, and never the end of the other checks."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from pipeline.engine.redaction import MASK, collect_secrets, redact
from pipeline.engine.stage import Workspace
from pipeline.errors import CiteloomError


class State(StrEnum):
    """How it stands with what was looked at."""

    OK = "ok"
    WARNING = "warning"
    PROBLEM = "problem"
    NOT_ASKED = "not asked"


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at: what was seen, in a line, and the way out where there is anything to mend."""

    name: str
    state: State
    seen: str
    way_out: str = ""


Look = Callable[[Workspace], Iterable[Finding]]


@dataclass(frozen=True, slots=True)
class Check:
    """A topic. look: what is looked at. seconds: what it may take. way_out: where it fails or does not end."""

    name: str
    look: Look
    way_out: str
    seconds: float = 10.0


def ok(name: str, seen: str) -> Finding:
    """Nothing to mend."""
    return Finding(name, State.OK, seen)


def warning(name: str, seen: str, way_out: str) -> Finding:
    """A run works, and not as one may think."""
    return Finding(name, State.WARNING, seen, way_out)


def problem(name: str, seen: str, way_out: str) -> Finding:
    """A run would fail."""
    return Finding(name, State.PROBLEM, seen, way_out)


def not_asked(name: str, seen: str) -> Finding:
    """The settings, or the options of the command, do not ask for it."""
    return Finding(name, State.NOT_ASKED, seen)


def examine(checks: Sequence[Check], workspace: Workspace) -> list[Finding]:
    """What the checks find, one after another: two that import torch at once might see half of it."""
    found = [finding for check in checks for finding in _ask(check, workspace)]
    return [masked(finding, collect_secrets(workspace.settings)) for finding in found]


def _ask(check: Check, workspace: Workspace) -> list[Finding]:
    """A check's findings, from a thread that is left behind where it does not end: a dead network drive never does."""
    findings: list[Finding] = []
    thread = threading.Thread(target=lambda: findings.extend(_look(check, workspace)), daemon=True, name=check.name)
    thread.start()
    thread.join(check.seconds)
    if thread.is_alive():
        return [problem(check.name, f"no end within {check.seconds:g} s", check.way_out)]
    return findings


def _look(check: Check, workspace: Workspace) -> list[Finding]:
    found: list[Finding] = []
    try:
        found += check.look(workspace)
    except CiteloomError as error:
        found.append(problem(check.name, _line(str(error)), check.way_out))
    except Exception as error:
        found.append(problem(check.name, f"unforeseen {type(error).__name__}: {_line(str(error))}", check.way_out))
    return found


def masked(finding: Finding, secrets: Collection[str]) -> Finding:
    """The finding without secrets, and without names and passwords in addresses: servers repeat what they are sent."""
    seen, way_out = (_without_user(redact(text, secrets)) for text in (finding.seen, finding.way_out))
    return replace(finding, seen=seen, way_out=way_out)


def _without_user(text: str) -> str:
    return re.sub(r"//[^/\s@]*@", f"//{MASK}@", text)


def _line(text: str) -> str:
    return " ".join(text.split())[:500]
