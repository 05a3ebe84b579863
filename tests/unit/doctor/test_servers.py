"""Servers as the doctor sees them, each played on loopback."""

import json
import os
from dataclasses import asdict

import pytest
from werkzeug import Response

from pipeline.arxiv.rate_limited_client import Pace
from pipeline.index.passage_index import Layout
from pipeline.ops.doctor import servers
from pipeline.settings import load_settings
from pipeline.settings.models_file import read_models_file
from tests.cases import cases
from tests.processes import free_port
from tests.scripted_llm import Refusal, ScriptedLlm
from tests.unit.doctor.conftest import NOT_CHECKED, OK, PROBLEM, WARNING

CASES = "unit/doctor/cases.toml"
KEY = "doctor-sentinel"


def states(found):
    return {each.name: each.state for each in found}


def nobody_listens():
    """The address of a server that is down."""
    return f"http://127.0.0.1:{free_port()}"


def play_qdrant(server, version="1.16.3", key=KEY):
    """A Qdrant server without collections, which asks for a key; its URL."""

    def answer(result):
        def reply(request):
            if key and request.headers.get("api-key") != key:
                return Response("Must provide an API key", 401)
            return Response(
                json.dumps({"result": result, "status": "ok", "time": 0}),
                content_type="application/json",
            )

        return reply

    server.expect_request("/").respond_with_json(
        {"title": "qdrant - vector search engine", "version": version}
    )
    server.expect_request("/collections").respond_with_handler(answer({"collections": []}))
    server.expect_request("/aliases").respond_with_handler(answer({"aliases": []}))
    server.expect_request("/collections/citeloom/exists").respond_with_handler(
        answer({"exists": False})
    )
    return server.url_for("")


@cases(CASES, "a_server_of_another_version_than_the_tried_one_is_told", ["version", "state"])
def test_a_server_of_another_version_than_the_tried_one_is_told(
    workspace, httpserver, version, state
):
    url = play_qdrant(httpserver, version)
    found = list(servers.qdrant(workspace(qdrant_url=url, qdrant_api_key=KEY)))
    assert (found[0].state, version in found[0].seen) == (state, True)
    assert ("collection" in states(found)) == (state != PROBLEM)


@cases(CASES, "a_key_is_told_to_be_accepted_refused_or_lacking", ["key", "given", "state"])
def test_a_key_is_told_to_be_accepted_refused_or_lacking(workspace, httpserver, key, given, state):
    url = play_qdrant(httpserver, key=key)
    found = list(servers.qdrant(workspace(qdrant_url=url, qdrant_api_key=given)))
    assert states(found)["qdrant key"] == state
    assert "right" not in repr(found)


def test_a_server_that_is_down_or_is_another_one_is_a_problem(workspace, httpserver):
    httpserver.expect_request("/").respond_with_data("<html>")
    for url, told in (
        (nobody_listens(), "does not answer"),
        (httpserver.url_for(""), "is not a Qdrant server"),
    ):
        (found,) = servers.qdrant(workspace(qdrant_url=url))
        assert (found.state, told in found.seen) == (PROBLEM, True)


def _edge_with(folder, layout):
    """The files beside which Edge would lie; the folder of the collection."""
    name = layout.collection("citeloom")
    place = folder / "qdrant-edge" / "citeloom"
    (place / name).mkdir(parents=True)
    (place / "live.json").write_text(json.dumps({"collection": name}))
    (place / name / "citeloom.json").write_text(json.dumps({"layout": asdict(layout)}))
    return place / name


def test_an_index_of_another_model_and_who_holds_it_are_told(workspace, tmp_path):
    folder = _edge_with(tmp_path / "data", Layout("another model", 8, sparse=True))
    place = workspace()
    assert states(servers.qdrant(place)) == {"": OK, "collection": PROBLEM}
    holder = folder.with_name(f"{folder.name}.holder.json")
    holder.write_text(json.dumps({"pid": os.getppid(), "program": "citeloom"}))
    held = list(servers.qdrant(place))
    assert (held[0].state, f"process {os.getppid()} (citeloom)" in held[0].seen) == (WARNING, True)


def play_llm(server, *models):
    def reply(request):
        if request.headers.get("Authorization") != f"Bearer {KEY}":
            return Response(json.dumps({"error": f"{KEY} is not what you sent"}), 401)
        return Response(json.dumps({"data": [{"id": model} for model in models]}))

    server.expect_request("/v1/models").respond_with_handler(reply)
    return server.url_for("/v1")


@cases(CASES, "an_endpoint_is_asked_for_its_models", ["model", "key", "told"])
def test_an_endpoint_is_asked_for_its_models(workspace, httpserver, model, key, told):
    url = play_llm(httpserver, "small", "judge")
    (found,) = servers.language_models(workspace(llm_url=url, llm_model=model, llm_api_key=key))
    assert told in found.seen
    assert (found.state is OK) == (told == "lists small")
    assert KEY not in found.seen


@pytest.mark.parametrize(("status", "state"), [(404, WARNING), (200, PROBLEM), (503, WARNING)])
def test_an_endpoint_that_tells_no_models_may_do_all_the_same(workspace, httpserver, status, state):
    httpserver.expect_request("/v1/models").respond_with_data("<html>", status=status)
    url = httpserver.url_for("/v1")
    (found,) = servers.language_models(workspace(llm_url=url, llm_model="m"))
    (down,) = servers.language_models(workspace(llm_url=f"{nobody_listens()}/v1", llm_model="m"))
    assert (found.state, down.state, "cannot be reached" in down.seen) == (state, PROBLEM, True)


def test_arxiv_is_asked_only_online_and_not_while_it_wants_rest(workspace, tmp_path, httpserver):
    httpserver.expect_request("/api").respond_with_data("<feed/>")
    httpserver.expect_request("/oai").respond_with_data(
        "<OAI-PMH/>", status=503, headers={"Retry-After": "120"}
    )
    urls = {"arxiv_api_url": httpserver.url_for("/api"), "oai_url": httpserver.url_for("/oai")}
    place, pace = workspace(**urls), Pace(tmp_path / "pace", gap=0.0)
    offline = list(servers.arxiv(place, pace, online=False))
    assert ([each.state for each in offline], httpserver.log) == ([NOT_CHECKED], [])
    api, oai = servers.arxiv(place, pace, online=True)
    assert (api.state, oai.state, "status 503" in oai.seen) == (OK, PROBLEM, True)
    (left_alone,) = servers.arxiv(place, pace, online=True)
    (rate,) = servers.arxiv_rate(place, pace)
    (elsewhere,) = servers.arxiv_rate(place, Pace(tmp_path / "another machine"))
    assert (left_alone.state, rate.state, elsewhere.state) == (NOT_CHECKED, WARNING, OK)


def try_models(llm, folder, monkeypatch, **settings):
    monkeypatch.setenv("CITELOOM_LLM_API_KEY", KEY)
    given = {"llm_url": llm.url, "llm_model": llm.model, "data": folder, "_env_file": None}
    (model,) = servers.models_to_try(load_settings(**given | settings))
    file = folder / "models.toml"
    file.write_text('# ours\n["other"]\nurl = "http://127.0.0.1:1/v1"\n')
    found = list(servers.try_model(model, file))
    return found, file


def test_a_model_that_thinks_is_tried_and_its_table_is_written(tmp_path, monkeypatch):
    def rule(asked):
        if asked.body["messages"][0]["role"] == "system":
            return Refusal(400, "System role not supported")
        text = '{"colour": "blue"}' if asked.schema else "Blue."
        return {"finish_reason": "stop", "message": {"content": f"<think>Hm.</think>{text}"}}

    with ScriptedLlm(rule) as llm:
        found, file = try_models(llm, tmp_path, monkeypatch, llm_context=16384)
        assert {each.state for each in found} == {OK}
        assert "without: system" in found[4].seen
        assert max(len(str(body["messages"])) for body in llm.requests) > 4 * 15_000
    entries = read_models_file(file)
    entry = entries["scripted"]
    assert (entry.thinking, entry.context, entry.api_key_env) == (
        4096,
        16384,
        "CITELOOM_LLM_API_KEY",
    )
    assert file.read_text().startswith('# ours\n["other"]')
    assert KEY not in file.read_text()


@cases(CASES, "a_key_a_quota_and_a_name_are_told_apart_at_once", ["status", "said", "words"])
def test_a_key_a_quota_and_a_name_are_told_apart_at_once(
    tmp_path, monkeypatch, status, said, words
):
    with ScriptedLlm(lambda asked: Refusal(status, said)) as llm:
        found, file = try_models(llm, tmp_path, monkeypatch)
        assert [(each.state, words in each.seen) for each in found] == [(PROBLEM, True)]
        assert len(llm.requests) == 1
    assert "scripted" not in file.read_text()
