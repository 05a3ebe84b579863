"""kill -9, at moments spread over a run that asks a scripted model, and what it asked for over all its starts."""

from __future__ import annotations

import json
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Callable

from tests.scripted_llm import ScriptedLlm

Start = Callable[[], "subprocess.Popen[bytes]"]
SECONDS_TO_END = 300


def asked(llm: ScriptedLlm) -> Counter[str]:
    """How often each text was asked for: one sample of one request, a seed being its number."""
    found: Counter[str] = Counter()
    for body in llm.requests:
        call = {name: value for name, value in body.items() if name not in ("n", "seed")}
        found.update(json.dumps([call, body["seed"] + place], sort_keys=True) for place in range(body.get("n", 1)))
    return found


def kill_and_finish(llm: ScriptedLlm, start: Start, needed: Counter[str], kills: int, concurrency: int) -> None:
    """Kill a run so many times, each after some more texts, then let it end; asserts what may be asked for twice."""
    cut_short = 0
    for moment in range(kills):
        run = start()
        _wait_for(llm, max(len(asked(llm)) + 1, len(needed) * moment // kills), run)
        cut_short += run.poll() is None
        run.send_signal(signal.SIGKILL)
        run.wait()
    assert start().wait(SECONDS_TO_END) == 0
    again = asked(llm)
    assert cut_short >= kills - 2  # on a busy machine the last runs may be at their end before they are killed
    assert again.keys() == needed.keys()
    assert again.total() - len(again) <= kills * concurrency
    assert llm.at_once <= concurrency


def _wait_for(llm: ScriptedLlm, texts: int, run: subprocess.Popen[bytes]) -> None:
    """Wait until so many texts were asked for, those that a kill made to be asked for again not counted.

    By texts given first, as counting which they were takes a while.
    """
    while run.poll() is None and (llm.generations < texts or len(asked(llm)) < texts):
        time.sleep(0.005)
