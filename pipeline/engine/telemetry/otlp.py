"""Spans and metrics as OpenTelemetry's SDK sends them: OTLP over HTTP, from threads of its own.

Names follow OpenTelemetry's semantic conventions where these have one (`gen_ai`, `http`), else begin with `citeloom`.
"""

from __future__ import annotations

import logging
import threading
import time
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from textwrap import shorten
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import requests
from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import SpanKind, StatusCode
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from pipeline import __version__
from pipeline.engine.telemetry import Facts, Span
from pipeline.settings.urls import is_loopback

if TYPE_CHECKING:
    from pipeline.engine.stage import Outcome

_log = logging.getLogger(__name__)

# Seconds for one request: a collector is near, and spans wait in a queue of 2,048 meanwhile, then are dropped.
_TIMEOUT = 5.0
_SECONDS_BETWEEN_SPANS, _SECONDS_BETWEEN_METRICS = 5.0, 15.0
_DURATION = "citeloom.stage.duration"
_W3C = TraceContextTextMapPropagator()
# Counters of `Outcome.measured` that are metrics, under OpenTelemetry's names; what is not there is not counted.
_MEASURED: Mapping[str, tuple[str, Facts]] = {
    "llm_calls": ("citeloom.llm.calls", {"citeloom.cached": False}),
    "llm_cached": ("citeloom.llm.calls", {"citeloom.cached": True}),
    "llm_requests": ("citeloom.llm.requests", {}),
    "llm_prompt_tokens": ("citeloom.llm.tokens", {"gen_ai.token.type": "input"}),
    "llm_completion_tokens": ("citeloom.llm.tokens", {"gen_ai.token.type": "output"}),
    "api_requests": ("citeloom.arxiv.requests", {}),
}


class _Told(Span):
    """A span of OpenTelemetry's."""

    def __init__(self, own: trace.Span) -> None:
        self._own = own

    def tell(self, facts: Facts) -> None:
        self._own.set_attributes(dict(facts))


class _Stage(_Told):
    """The span of a stage, and the metrics of what came of it."""

    def __init__(self, own: trace.Span, instruments: Mapping[str, Any], stage: str) -> None:
        super().__init__(own)
        self._instruments, self._stage = instruments, stage

    def made(self, outcome: Outcome) -> None:
        left_out = sum(outcome.left_out.values())
        self.tell({"citeloom.rows": outcome.rows, "citeloom.kept": outcome.skipped, "citeloom.left_out": left_out})
        self.count("citeloom.stage.months", 1, {"citeloom.outcome": "kept" if outcome.skipped else "made"})
        if not outcome.skipped:
            self._count_made(outcome)

    def count(self, metric: str, number: float, facts: Facts | None = None) -> None:
        """Add to a counter of the stage."""
        self._instruments[metric].add(number, {"citeloom.stage": self._stage, **(facts or {})})

    def _count_made(self, outcome: Outcome) -> None:
        self.count("citeloom.stage.rows", outcome.rows)
        self._instruments[_DURATION].record(outcome.seconds, {"citeloom.stage": self._stage})
        for reason, number in outcome.left_out.items():
            self.count("citeloom.ledger.entries", number, {"citeloom.reason": reason})
        measured = dict(outcome.measured)
        measured["llm_calls"] = measured.get("llm_calls", 0) - measured.get("llm_cached", 0)
        for name, (metric, facts) in _MEASURED.items():
            if measured.get(name):
                self.count(metric, measured[name], facts)


class Sender:
    """Sends to one collector until it is closed."""

    def __init__(self, endpoint: str, parent: str | None) -> None:
        """endpoint: base URL, below which lie v1/traces and v1/metrics. parent: a W3C traceparent, or None."""
        # Each process counts from zero: without an id of its own, two of them would be taken for one that jumps.
        service = {"name": "citeloom", "version": __version__, "instance.id": str(uuid.uuid4())}
        resource = Resource.create({f"service.{name}": value for name, value in service.items()})
        self._quiet = _Quiet(endpoint)
        self._tracing = TracerProvider(resource=resource, shutdown_on_exit=False)
        spans = OTLPSpanExporter(f"{endpoint}/v1/traces", timeout=_TIMEOUT, session=_session(endpoint))
        self._tracing.add_span_processor(BatchSpanProcessor(spans, schedule_delay_millis=1000 * _SECONDS_BETWEEN_SPANS))
        metrics = OTLPMetricExporter(f"{endpoint}/v1/metrics", timeout=_TIMEOUT, session=_session(endpoint))
        reader = PeriodicExportingMetricReader(metrics, 1000 * _SECONDS_BETWEEN_METRICS)
        self._metering = MeterProvider([reader], resource=resource, shutdown_on_exit=False)
        self._tracer = self._tracing.get_tracer("citeloom", __version__)
        self._instruments = _make_instruments(self._metering)
        self._parent = _W3C.extract({"traceparent": parent}) if parent else None

    @contextmanager
    def span(self, name: str, facts: Facts, *, remote: bool = False) -> Iterator[Span]:
        """A span around a block. Of an error only its kind is told: its message may quote a paper."""
        with self._around(name, facts, remote=remote) as own:
            yield _Told(own)

    @contextmanager
    def stage(self, stage: str, month: str) -> Iterator[Span]:
        """The span of a stage; where it fails, that is counted too."""
        with self._around(f"stage {stage}", {"citeloom.stage": stage, "citeloom.month": month}, remote=False) as own:
            told = _Stage(own, self._instruments, stage)
            try:
                yield told
            except BaseException:
                told.count("citeloom.stage.months", 1, {"citeloom.outcome": "failed"})
                raise

    def traceparent(self) -> str:
        """The current span, as the header of W3C Trace Context writes it."""
        carrier: dict[str, str] = {}
        _W3C.inject(carrier)
        return carrier.get("traceparent", "")

    def close(self, seconds: float) -> None:
        """Send what is left, and stop; after so many seconds, without it."""
        until = time.monotonic() + seconds
        # Both wait for requests under way, longer than they are told to; daemons do not hold up the process.
        closing = [
            threading.Thread(target=each.shutdown, daemon=True, name="telemetry-end")
            for each in (self._tracing, self._metering)
        ]
        for thread in closing:
            thread.start()
        for thread in closing:
            thread.join(max(until - time.monotonic(), 0.0))
        self._quiet.give_back()

    @contextmanager
    def _around(self, name: str, facts: Facts, *, remote: bool) -> Iterator[trace.Span]:
        parent = None if trace.get_current_span().get_span_context().is_valid else self._parent
        kind = SpanKind.CLIENT if remote else SpanKind.INTERNAL
        own = self._tracer.start_span(name, parent, kind, dict(facts))
        with trace.use_span(own, end_on_exit=True, record_exception=False, set_status_on_exception=False):
            try:
                yield own
            except BaseException as error:
                _fail(own, type(error).__name__)
                raise


def _session(endpoint: str) -> requests.Session:
    """Connections of one thread; a proxy has no business between two ends of one machine."""
    session = requests.Session()
    session.trust_env = not is_loopback(urlsplit(endpoint).hostname or "")
    return session


def _fail(own: trace.Span, kind: str) -> None:
    own.set_attribute("error.type", kind)
    own.set_status(StatusCode.ERROR)


def _make_instruments(metering: MeterProvider) -> dict[str, Any]:
    meter = metering.get_meter("citeloom", __version__)
    counters = {
        "citeloom.stage.months": ("{month}", "Months of a stage: made, kept or failed"),
        "citeloom.stage.rows": ("{row}", "Rows written"),
        "citeloom.ledger.entries": ("{entry}", "Things left out, by reason"),
        "citeloom.llm.calls": ("{call}", "Answers asked of a language model, from the cache or paid for"),
        "citeloom.llm.requests": ("{request}", "Requests that a language model answered"),
        "citeloom.llm.tokens": ("{token}", "Tokens paid for"),
        "citeloom.arxiv.requests": ("{request}", "Requests sent to arXiv's API"),
    }
    made: dict[str, Any] = {name: meter.create_counter(name, unit, text) for name, (unit, text) in counters.items()}
    return made | {_DURATION: meter.create_histogram(_DURATION, "s", "Seconds that a month of a stage took")}


class _Quiet(logging.Handler):
    """Tells once that a collector cannot be had, where OpenTelemetry's SDK would tell it every few seconds."""

    def __init__(self, endpoint: str) -> None:
        super().__init__(logging.WARNING)
        self._endpoint, self._told = endpoint, False
        self._theirs = logging.getLogger("opentelemetry")
        self._theirs.addHandler(self)
        self._theirs.propagate = False

    def emit(self, record: logging.LogRecord) -> None:
        """Tell the first thing that the SDK warns of."""
        if not self._told:
            self._told = True
            _log.warning(
                "traces and metrics do not all reach %s (%s); the run goes on without them: start the collector, or "
                "unset CITELOOM_OTEL_ENDPOINT",
                self._endpoint,
                shorten(record.getMessage(), 200, placeholder=" …"),
            )

    def give_back(self) -> None:
        """Leave the SDK's warnings to whoever else listens. Not `close`, which Dagster's setting up of logs calls."""
        self._theirs.removeHandler(self)
        self._theirs.propagate = True
