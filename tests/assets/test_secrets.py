"""What a whole run leaves: no pickle, and no secret, each of which is set to words that nothing
else holds.

The shared data root is made under them (`conftest.finished`): every stage of three months, reported
to Dagster.
"""

import json
import pickle
import re

import pytest
from werkzeug import Response

from tests.assets.conftest import SECRETS
from tests.file_contents import contents
from tests.models_file import write_models
from tests.scripted_llm import Refusal, ScriptedLlm
from tests.sentinels import Search, sentinel


def test_no_secret_is_in_anything_that_a_whole_run_leaves(place):
    search = Search(SECRETS)
    assert search.in_folder(place.root) == []
    assert search.looked_at > 5_000


def is_pickle(content):
    """From protocol 2 on, a pickle begins with its number and ends with a full stop."""
    return (
        content[:1] == b"\x80"
        and content[1:2] in (b"\2", b"\3", b"\4", b"\5")
        and content[-1:] == b"."
    )


def test_nothing_that_a_run_leaves_is_a_pickle(place):
    """So that nothing stored can be unpickled; `banned-api` in pyproject.toml looks at the
    sources.
    """
    assert is_pickle(pickle.dumps(place.root))
    assert [name for name, content in contents(place.root) if is_pickle(content)] == []


@pytest.fixture
def telltale():
    """An endpoint that refuses every request in the words of a service that repeats the key."""

    def refuse(asked):
        said = " or ".join(sentinel(name) for name in SECRETS)
        return Refusal(400, f"this account ({said}) may not ask")

    with ScriptedLlm(refuse, models=("scripted", "strict")) as llm:
        yield llm


def _echo(request):
    """A Qdrant server without collections that refuses every change in the words of a proxy that
    repeats headers.
    """
    known = {"/aliases": {"aliases": []}, "/collections/citeloom/exists": {"exists": False}}
    if request.path in known:
        return Response(json.dumps({"result": known[request.path], "status": "ok", "time": 0.0}))
    return Response(f"bad request; api-key: {request.headers['api-key']}", status=400)


def test_no_secret_is_in_what_failed_runs_leave(own, telltale, httpserver, tmp_path):
    httpserver.expect_request(re.compile("")).respond_with_handler(_echo)
    (own.root / "cache" / "llm" / "calls.sqlite").unlink()
    there = own.with_settings(
        models=write_models(tmp_path, telltale.url, "strict", api_key_env="STRICT_KEY"),
        llm_url=telltale.url,
        judges="strict",
        qdrant_url=httpserver.url_for(""),
    )
    chosen = "index_receipts,key_elements,g_scores"
    done = there.citeloom("run", "--months", "2024-03", "--select", chosen, "--force", "--json")
    assert done.returncode == 1
    for stage in chosen.split(","):
        assert f'"stage": "{stage}"' in done.stdout
    search = Search(SECRETS)
    assert search.in_folder(own.root) == []
    assert search.in_text(done.stdout, done.stderr) == []
