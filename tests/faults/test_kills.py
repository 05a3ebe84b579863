"""Two hundred kills over the whole pipeline: nothing is lost, duplicated or torn, and nothing
finished is made again. Of the calls of a model, only those in flight are repeated.

Each run is killed at a moment that is drawn: by the clock, or in the middle of a write, a flush or
a rename. The next one goes on in the same data root; when one comes to its end, the root is held
against an undisturbed one and a new round begins. Each run comes by the door that is drawn, the
command line or Dagster.
"""

import math
import os
import random
import signal
import time
from collections import Counter
from contextlib import suppress

from pipeline.settings import load_settings
from tests.assets.conftest import MONTHS
from tests.faults.accounts import Watch, audited, count_wrong
from tests.faults.zygote import Fault

KILLS = int(os.environ.get("CITELOOM_FAULTS_KILLS", "200"))
# A month of a stage makes from 10 to 1,000 changing calls; as many kills among the first ten as
# after a thousand.
LAST_CALL = 2_000
LAST_SECOND = 6.0


def run_and_kill(zygote, place, chance):
    """One run, which is killed somewhere unless it ends before."""
    in_a_write = chance.random() < 0.5
    at = round(math.exp(chance.uniform(0, math.log(LAST_CALL)))) if in_a_write else 0
    door = "command" if chance.random() < 0.5 else "dagster"
    process = zygote.start(place, MONTHS, fault=Fault(at=at), door=door)
    if not in_a_write:
        time.sleep(chance.uniform(0.2, LAST_SECOND))
        with suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)
    return zygote.end()


def test_kills_anywhere_change_nothing(zygote, calm, make, llm, tmp_path, seed, tell):
    chance, kills, rounds, repeated = random.Random(seed), 0, 0, 0
    wrong = Counter()
    while kills < KILLS:
        place = make(tmp_path / f"round-{rounds}")
        rounds += 1
        llm.requests.clear()
        watch, finished = Watch(place.root), set[str]()
        while True:
            end = (
                run_and_kill(zygote, place, chance) if kills < KILLS else zygote.run(place, MONTHS)
            )
            watch.look()
            wrong["redone"] += len(finished & set(end.made))
            finished |= set(end.made)
            if end.code != -signal.SIGKILL:
                break
            kills += 1
        assert end.done, end
        wrong.update(count_wrong(calm, watch))
        wrong.update(audited(place))
        texts = llm.requested_texts()
        repeated += texts.total() - len(texts)
    tell(kills=kills, rounds=rounds, repeated=repeated, **wrong)
    assert not any(wrong.values())
    assert repeated <= kills * load_settings(_env_file=None).llm_concurrency
