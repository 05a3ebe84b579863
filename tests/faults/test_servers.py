"""Servers that vanish in the middle of a run, and come back: the language model, and Qdrant."""

import random
import threading
import time

import pytest

from tests.assets.conftest import MONTHS
from tests.faults.accounts import Watch, audited, count_wrong
from tests.scripted_llm import ScriptedLlm
from tests.server.conftest import KEY, MortalServer, qdrant_binary  # noqa: F401

MONTH = "2024-03"
DEATHS = 5
# Where nobody listens, the client tries for minutes before it gives up; here the server comes back
# sooner than that.
AWAY_SECONDS = 2.0


def test_a_model_that_vanishes_and_returns_changes_nothing(
    zygote, calm, make, tmp_path, seed, tell
):
    """Each time before it has answered all: whether the run waits for it or fails, what stands at
    the end is right.
    """
    chance, failed, done = random.Random(seed), 0, False
    with ScriptedLlm(latency=0.02) as first:
        port = int(first.url.split(":")[2].split("/")[0])
    place = make(tmp_path / "data", llm_url=first.url, llm_timeout=10)
    watch = Watch(place.root)
    for _ in range(DEATHS):
        with ScriptedLlm(port=port, latency=0.02) as llm:
            zygote.start(place, [MONTH])
            wanted = chance.randint(5, 25)
            ending = threading.Event()
            ends = []
            waiting = threading.Thread(target=lambda: (ends.append(zygote.end()), ending.set()))  # noqa: B023
            waiting.start()
            while llm.generations < wanted and not ending.is_set():
                time.sleep(0.01)
        ending.wait(AWAY_SECONDS)
        with ScriptedLlm(port=port):
            waiting.join()
        done = ends[0].done
        failed += not done
        watch.look()
    with ScriptedLlm(port=port):
        end = zygote.run(place, [MONTH])
    wrong = count_wrong(calm, watch, MONTH)
    tell(deaths=DEATHS, runs_failed=failed, **wrong)
    assert end.done, end
    assert not any(wrong.values())


@pytest.fixture
def mortal(qdrant_binary, tmp_path):  # noqa: F811
    """A Qdrant server that may be killed."""
    folder = tmp_path / "qdrant"
    folder.mkdir()
    server = MortalServer(qdrant_binary, folder)
    server.start()
    yield server
    server.kill()


@pytest.mark.server
def test_a_qdrant_server_that_is_killed_and_returns_holds_every_point(
    mortal, zygote, make, tmp_path, seed, tell
):
    chance, failed = random.Random(seed), 0
    place = make(
        tmp_path / "data",
        qdrant_url=mortal.at.url,
        qdrant_api_key=KEY,
        qdrant_grpc_port=mortal.at.grpc_port,
    )
    before = ["dump_members", "metadata", "papers", "passages", "embeddings"]
    assert zygote.run(place, MONTHS, before).done
    for _ in range(DEATHS):
        zygote.start(place, MONTHS, ["index_receipts"])
        time.sleep(chance.uniform(0.3, 4))
        mortal.kill()
        failed += not zygote.end().done
        mortal.start()
    end = zygote.run(place, MONTHS, ["index_receipts"])
    found = audited(place)
    tell(deaths=DEATHS, runs_failed=failed, **found)
    assert end.done, end
    assert found == {"points_wrong": 0, "audit_code": 0}
