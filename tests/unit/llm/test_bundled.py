"""The bundled model: what it refuses, and that it answers, and that it is gone when its parent
is.
"""

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest
from pydantic import BaseModel, ConfigDict, Field

from pipeline.engine.stage import Workspace
from pipeline.errors import PermanentFailure, SettingError
from pipeline.llm import bundled
from pipeline.llm.bundled import WEIGHTS_SHA256, bundled_endpoint, check_weights, stop_bundled
from pipeline.llm.client import check_model, open_client
from pipeline.llm.loop import run
from pipeline.llm.messages import Message
from pipeline.llm.models import get_model
from pipeline.settings import load_settings
from tests.cases import cases_beside
from tests.processes import family, is_alive, listening, wait_until

pytestmark = pytest.mark.slow

PROJECT = Path(__file__).resolve().parents[3]


class Colour(BaseModel):
    model_config = ConfigDict(extra="forbid")

    colour: str = Field(max_length=40)


def address(settings):
    return bundled_endpoint(get_model(settings), settings.local_root / "cache" / "llm")


@pytest.fixture(scope="module")
def settings(tmp_path_factory):
    yield load_settings(
        data=tmp_path_factory.mktemp("data"),
        llm_url=None,
        llm_context=1024,
        llm_concurrency=2,
        _env_file=None,
    )
    stop_bundled()


def test_weights_of_another_digest_are_refused(tmp_path):
    file = tmp_path / "model.gguf"
    file.write_bytes(b"GGUF of somebody else")
    with pytest.raises(PermanentFailure, match=r"model\.gguf has the SHA-256 .* install"):
        check_weights(file, WEIGHTS_SHA256)


@cases_beside("changed", "message")
def test_another_model_or_more_context_than_it_was_trained_for_is_refused(
    tmp_path, changed, message
):
    with pytest.raises(SettingError, match=message):
        check_model(load_settings(llm_url=None, data=tmp_path, _env_file=None, **changed))


def test_the_bundled_model_writes_samples_and_structured_answers(settings):
    async def talk():
        async with open_client(Workspace(settings)) as client:
            use = [Message("user", "Name one use of a search engine.")]
            colour = [Message("user", "Which colour is snow?")]
            found = await client.samples(use, 2, temperature=0.7, max_tokens=24)
            return found, await client.answer(colour, Colour, max_tokens=80)

    found, answer = run(talk())
    assert [bool(each.text.strip()) for each in found] == [True, True]
    assert all(0 < each.completion_tokens <= 24 * 3 and each.prompt_tokens > 0 for each in found)
    assert isinstance(answer.value.colour, str)


def test_one_server_serves_a_process_on_loopback_alone(settings):
    assert address(settings) == address(settings)
    (server,) = bundled._servers.values()
    assert listening(family(server.process.pid)) == ["127.0.0.1"]


@pytest.mark.faults
def test_a_judge_that_reads_more_does_not_end_the_server_that_a_writer_asks(settings):
    judge = settings.model_copy(update={"llm_context": 2048})

    async def both():
        asked = [Message("user", "Count to fifty.")]
        async with (
            open_client(Workspace(settings)) as writer,
            open_client(Workspace(judge)) as other,
        ):
            texts = writer.samples(asked, 4, temperature=0.7, max_tokens=48)
            written = asyncio.create_task(texts)
            await asyncio.sleep(0.2)
            assert (await other.complete(asked, temperature=0.0, max_tokens=8)).text
            assert all(each.text for each in await written)

    run(both())
    assert address(settings) != address(judge)


# The server must outlive the thread that starts it.
SERVE = """
import sys, threading
from pipeline.llm import bundled
from pipeline.settings import load_settings
from tests.unit.llm.test_bundled import address
settings = load_settings(data=sys.argv[1], llm_context=1024, llm_concurrency=1, _env_file=None)
thread = threading.Thread(target=address, args=(settings,))
thread.start(); thread.join()
server = next(iter(bundled._servers.values()))
print(server.process.pid, server.process.poll(), flush=True)
sys.stdin.read()
"""


@pytest.mark.faults
def test_the_server_dies_with_a_killed_parent(settings):
    parent = subprocess.Popen(
        [sys.executable, "-c", SERVE, str(settings.data_root)],
        cwd=PROJECT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    pid, ended = parent.stdout.readline().split()
    assert ended == "None"
    assert is_alive(int(pid))
    parent.kill()
    parent.wait()
    wait_until(lambda: not is_alive(int(pid)))
