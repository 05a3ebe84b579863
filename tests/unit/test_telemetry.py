"""Traces and metrics, against a collector that the test listens as: what is told, and what never is."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest
from pytest_httpserver import HTTPServer

from pipeline.arxiv.api import ArxivApi
from pipeline.arxiv.rate_limited_client import Pace
from pipeline.engine import telemetry
from pipeline.engine.run import run_stage
from pipeline.engine.stage import Job, Stage, Workspace
from pipeline.errors import PermanentFailure, SettingError
from pipeline.index.load import load_month
from pipeline.llm.client import Message, open_client
from pipeline.llm.loop import run
from pipeline.settings import Settings, load_settings
from pipeline.storage.writing import Row
from pipeline.tables import DUMP_MEMBERS
from tests.otlp_receiver import OtlpReceiver, facts
from tests.scripted_llm import ScriptedLlm
from tests.unit.index.building import make_points
from tests.unit.index.fake import FakeIndex

MONTH = "2024-03"
KEY = "sk-telemetry-sentinel"
PROMPT = "What does the paper with the sentinel prompt say?"


@pytest.fixture(autouse=True)
def _nothing_left() -> Iterator[None]:
    yield
    telemetry.end()


def settings_for(receiver: OtlpReceiver, folder: Path, **changes: object) -> Settings:
    return load_settings(_env_file=None, data=folder, otel_endpoint=receiver.url, **changes)


class Asking:
    """A stage that asks a model, an index and arXiv, as all stages together do."""

    def __init__(self, arxiv: str) -> None:
        self.arxiv = arxiv

    def __call__(self, job: Job) -> Iterable[Row]:
        job.leave_out("2403.9", "withdrawn")
        run(self._ask(job))
        load_month(FakeIndex(), job.month, [make_points([number]) for number in range(3)])
        pace = Pace(job.workspace.cache("pace"), gap=0.0, tries=1, silence=30.0)
        given = job.settings.model_copy(update={"arxiv_api_url": self.arxiv})
        with ArxivApi(given, job.workspace.cache("arxiv_api"), pace=pace) as api:
            api.find(["2403.1"])
        yield {"arxiv_id": "2403.1", "subset": "error"}

    async def _ask(self, job: Job) -> None:
        async with open_client(job.workspace) as client:
            for _ in range(2):
                await client.samples([Message("user", PROMPT)], 2, temperature=0.7, max_tokens=50)
            job.measured |= client.usage.measured()


def test_a_run_is_one_trace_down_to_its_requests_and_tells_no_text_and_no_key(
    tmp_path: Path, httpserver: HTTPServer
) -> None:
    empty = '<feed xmlns="http://www.w3.org/2005/Atom"><id>x</id></feed>'
    httpserver.expect_request("/api").respond_with_data(empty, content_type="application/atom+xml")
    stage = Stage(DUMP_MEMBERS, Asking(httpserver.url_for("/api")))
    with OtlpReceiver() as receiver, ScriptedLlm() as llm:
        place = Workspace(settings_for(receiver, tmp_path, llm_url=llm.url, llm_model=llm.model, llm_api_key=KEY))
        with telemetry.run_span(place.settings, 1), telemetry.span("month", {"citeloom.month": MONTH}):
            for _ in range(2):
                run_stage(stage, place, MONTH)
    spans = {span.span_id: span for span in receiver.spans()}
    assert len({span.trace_id for span in spans.values()}) == 1
    parents = {span.name: spans[span.parent_span_id].name for span in spans.values() if span.parent_span_id}
    inner = {"chat scripted", "index load batch", "arXiv request"}
    assert parents == {"month": "run", "stage dump_members": "month"} | dict.fromkeys(inner, "stage dump_members")
    assert len(receiver.named("index load batch")) == 3
    (asked,) = receiver.named("chat scripted")
    assert facts(asked)["gen_ai.request.choice.count"] == 2
    assert facts(asked)["gen_ai.usage.output_tokens"] > 0
    assert {facts(each)["http.response.status_code"] for each in receiver.named("arXiv request")} == {200}
    sent = b"".join(receiver.bodies) + json.dumps(receiver.headers).encode()
    for secret in (KEY, PROMPT, "2403.1", str(tmp_path)):
        assert secret.encode() not in sent
    _holds_the_figures(receiver.totals(), llm)


def _holds_the_figures(totals: dict[str, dict[tuple[str, ...], float]], llm: ScriptedLlm) -> None:
    assert totals["citeloom.stage.rows"] == {("dump_members",): 1}
    assert totals["citeloom.stage.months"] == {("made", "dump_members"): 1, ("kept", "dump_members"): 1}
    assert totals["citeloom.ledger.entries"] == {("withdrawn", "dump_members"): 1}
    assert totals["citeloom.llm.calls"] == {("False", "dump_members"): 2, ("True", "dump_members"): 2}
    assert totals["citeloom.llm.requests"] == {("dump_members",): len(llm.requests)}
    assert {kind for _, kind in totals["citeloom.llm.tokens"]} == {"input", "output"}
    assert totals["citeloom.stage.duration"]["dump_members",] > 0


def _raise(job: Job) -> Iterable[Row]:
    yield {"arxiv_id": "2403.1", "subset": "error"}
    raise PermanentFailure("a sentinel title of a paper cannot be read")


def test_a_failed_stage_tells_the_kind_of_its_error_and_not_its_words(tmp_path: Path) -> None:
    with OtlpReceiver() as receiver:
        place = Workspace(settings_for(receiver, tmp_path))
        with pytest.raises(PermanentFailure):
            run_stage(Stage(DUMP_MEMBERS, _raise), place, MONTH)
        telemetry.end()
    (span,) = receiver.named("stage dump_members")
    assert (facts(span)["error.type"], span.status.code) == ("PermanentFailure", span.status.STATUS_CODE_ERROR)
    assert receiver.totals()["citeloom.stage.months"] == {("failed", "dump_members"): 1}
    assert b"sentinel" not in b"".join(receiver.bodies)


def test_a_collector_that_never_answers_holds_up_no_run(tmp_path: Path) -> None:
    with OtlpReceiver(delay=600.0) as receiver:
        settings = settings_for(receiver, tmp_path)
        with telemetry.run_span(settings, 1):
            pass
        assert not receiver.bodies  # the run is over, and the collector still thinks


def test_a_collector_that_is_down_harms_no_run(tmp_path: Path) -> None:
    with OtlpReceiver() as gone:
        settings = settings_for(gone, tmp_path)
    with telemetry.run_span(settings, 1):
        assert run_stage(Stage(DUMP_MEMBERS, lambda job: ()), Workspace(settings), MONTH).rows == 0


def test_without_the_setting_nothing_of_opentelemetry_is_imported(tmp_path: Path) -> None:
    code = """
        import sys
        from pipeline.ops.run_months import run_months
        from pipeline.settings import load_settings
        from pipeline.stages import choose_stages
        from pipeline.engine.run import run_stage
        from pipeline.engine.stage import Workspace
        from pipeline.corpus.stages import DUMP_MEMBERS
        place = Workspace(load_settings(_env_file=None, data=sys.argv[1]))
        assert run_stage(DUMP_MEMBERS, place, "2024-03").rows
        print([name for name in sys.modules if name.startswith(("opentelemetry", "pipeline.engine.telemetry."))])
    """
    environment = {name: value for name, value in os.environ.items() if not name.startswith("CITELOOM_")}
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code), str(tmp_path)],
        env=environment, capture_output=True, text=True,
    )  # fmt: skip
    assert (done.stdout.strip(), done.returncode) == ("[]", 0), done.stderr


def test_the_setting_without_the_packages_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry.exporter.otlp.proto.http", None)
    settings = load_settings(_env_file=None, data=tmp_path, otel_endpoint="http://127.0.0.1:4318")
    with pytest.raises(SettingError, match=r"CITELOOM_OTEL_ENDPOINT is set.*\[otel\]"):
        telemetry.check(settings)


@pytest.mark.parametrize("url", ["http://name:word@127.0.0.1:4318", "http://127.0.0.1:4318?token=word", "collector"])
def test_an_endpoint_that_is_none_or_holds_a_secret_is_refused(url: str) -> None:
    with pytest.raises(SettingError, match="CITELOOM_OTEL_ENDPOINT") as refused:
        telemetry.check(load_settings(_env_file=None, otel_endpoint=url))
    assert "word" not in str(refused.value).replace("password", "")
