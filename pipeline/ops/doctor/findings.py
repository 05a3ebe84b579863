"""Run probes: each within its time, without secrets, and none ends the others."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from pipeline.engine.redaction import MASK, collect_secrets, redact
from pipeline.engine.stage import Workspace
from pipeline.errors import CiteloomError
from pipeline.text import one_line

DATA_ROOT = "data root"
# Reading the directory of a zip of 1.3 million pages takes 5 s; importing torch from a slow disk
# takes longer.
SECONDS = 60.0


class FindingState(StrEnum):
    """The severity of a finding."""

    OK = "ok"
    WARNING = "warning"
    PROBLEM = "problem"
    NOT_CHECKED = "not checked"


@dataclass(frozen=True, slots=True)
class DoctorFinding:
    """The result of one probe: a line on what was seen, and the way out where something is wrong.

    name: of the probe, or of what is examined where a probe examines several things.
    """

    name: str
    state: FindingState
    seen: str
    way_out: str = ""


@dataclass(frozen=True, slots=True)
class Probe:
    """One question. way_out: if it fails or does not end in time. writes: whether it needs a
    writable data root.
    """

    name: str
    question: str
    run: Callable[[Workspace], Iterable[DoctorFinding]]
    way_out: str
    writes: bool = False


def ok(message: str, name: str = "") -> DoctorFinding:
    """Nothing is wrong."""
    return DoctorFinding(name, FindingState.OK, message)


def warning(message: str, way_out: str, name: str = "") -> DoctorFinding:
    """A run works, but perhaps not as expected."""
    return DoctorFinding(name, FindingState.WARNING, message, way_out)


def problem(message: str, way_out: str, name: str = "") -> DoctorFinding:
    """A run would fail."""
    return DoctorFinding(name, FindingState.PROBLEM, message, way_out)


def not_checked(message: str) -> DoctorFinding:
    """Not examined, because the settings or the options of the command do not ask for it."""
    return DoctorFinding("", FindingState.NOT_CHECKED, message)


def run_probes(
    probes: Sequence[Probe],
    workspace: Workspace,
    on_question: Callable[[str], None] = lambda question: None,
    seconds: float = SECONDS,
) -> list[DoctorFinding]:
    """The findings of all probes, run one after another since two may import torch.

    on_question: receives each question before its answer is looked for. seconds: the most that a
    probe may take.
    """
    findings: list[DoctorFinding] = []
    writable = True
    for probe in probes:
        on_question(probe.question)
        if probe.writes and not writable:
            results = [not_checked("it needs a data root that can be written")]
        else:
            results = _run_in_time(probe, workspace, seconds)
        findings += [replace(finding, name=finding.name or probe.name) for finding in results]
        if probe.name == DATA_ROOT:
            writable = all(finding.state is not FindingState.PROBLEM for finding in results)
    secrets = collect_secrets(workspace.settings)
    return [mask_secrets(finding, secrets) for finding in findings]


def _run_in_time(probe: Probe, workspace: Workspace, seconds: float) -> list[DoctorFinding]:
    """Run a probe in a thread, abandoned when its time is over: a dead drive never answers."""
    findings: list[DoctorFinding] = []
    thread = threading.Thread(
        target=lambda: findings.extend(_run(probe, workspace)), daemon=True, name=probe.name
    )
    thread.start()
    thread.join(seconds)
    if thread.is_alive():
        return [problem(f"no end within {seconds:g} s", probe.way_out)]
    return findings


def _run(probe: Probe, workspace: Workspace) -> list[DoctorFinding]:
    findings: list[DoctorFinding] = []
    try:
        findings += probe.run(workspace)
    except (CiteloomError, OSError) as error:
        findings.append(problem(_one_line(error), probe.way_out))
    except Exception as error:
        message = f"unexpected {type(error).__name__}: {_one_line(error)}"
        findings.append(problem(message, probe.way_out))
    return findings


def mask_secrets(finding: DoctorFinding, secrets: Collection[str]) -> DoctorFinding:
    """The finding without secrets and the user names and passwords of addresses."""
    seen, way_out = (
        re.sub(r"//[^/\s@]*@", f"//{MASK}@", redact(text, secrets))
        for text in (finding.seen, finding.way_out)
    )
    return replace(finding, seen=seen, way_out=way_out)


def _one_line(error: Exception) -> str:
    return one_line(str(error))[:500]
