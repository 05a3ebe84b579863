"""Spans and metrics through OpenTelemetry's SDK: OTLP over HTTP, sent from threads of its own.

Names follow OpenTelemetry's semantic conventions where there is one (`gen_ai`, `http`), else begin with `citeloom`.
"""

from __future__ import annotations

import logging
import threading
import time
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from textwrap import shorten
from typing import Any
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
from pipeline.engine.telemetry import Attributes, Span
from pipeline.settings.urls import is_loopback

_log = logging.getLogger(__name__)

# Seconds for one request. Spans wait in a queue of 2,048 meanwhile, beyond which the oldest are dropped.
_TIMEOUT = 5.0
_SECONDS_BETWEEN_SPANS, _SECONDS_BETWEEN_METRICS = 5.0, 15.0
# Name → unit and description.
_COUNTERS = {
    "citeloom.stage.months": ("{month}", "Months of a stage: made, kept or failed"),
    "citeloom.stage.rows": ("{row}", "Rows written"),
    "citeloom.ledger.entries": ("{entry}", "Things left out, by reason"),
    "citeloom.llm.calls": ("{call}", "Answers asked of a language model, from the cache or paid for"),
    "citeloom.llm.requests": ("{request}", "Requests that a language model answered"),
    "citeloom.llm.tokens": ("{token}", "Tokens paid for"),
    "citeloom.arxiv.requests": ("{request}", "Requests sent to arXiv's API"),
}
# Counter that a stage measures → the metric it is added to, with these attributes; an absent or zero one adds nothing.
_METRIC_OF_MEASURED: Mapping[str, tuple[str, Attributes]] = {
    "llm_calls": ("citeloom.llm.calls", {"citeloom.cached": False}),
    "llm_cached": ("citeloom.llm.calls", {"citeloom.cached": True}),
    "llm_requests": ("citeloom.llm.requests", {}),
    "llm_prompt_tokens": ("citeloom.llm.tokens", {"gen_ai.token.type": "input"}),
    "llm_completion_tokens": ("citeloom.llm.tokens", {"gen_ai.token.type": "output"}),
    "api_requests": ("citeloom.arxiv.requests", {}),
}


class Exporter:
    """Sends spans and metrics to one collector until it is closed."""

    def __init__(self, endpoint: str, parent: str | None) -> None:
        """endpoint: base URL, without v1/traces or v1/metrics. parent: a W3C traceparent, or None."""
        # Each process counts from zero; the instance id keeps the counters of two processes apart.
        service = {"name": "citeloom", "version": __version__, "instance.id": str(uuid.uuid4())}
        resource = Resource.create({f"service.{name}": value for name, value in service.items()})
        self._log_filter = _WarnOnce(endpoint)
        self._tracers = TracerProvider(resource=resource, shutdown_on_exit=False)
        spans = OTLPSpanExporter(f"{endpoint}/v1/traces", timeout=_TIMEOUT, session=_session(endpoint))
        self._tracers.add_span_processor(BatchSpanProcessor(spans, schedule_delay_millis=1000 * _SECONDS_BETWEEN_SPANS))
        metrics = OTLPMetricExporter(f"{endpoint}/v1/metrics", timeout=_TIMEOUT, session=_session(endpoint))
        reader = PeriodicExportingMetricReader(metrics, 1000 * _SECONDS_BETWEEN_METRICS)
        self._meters = MeterProvider([reader], resource=resource, shutdown_on_exit=False)
        self._tracer = self._tracers.get_tracer("citeloom", __version__)
        meter = self._meters.get_meter("citeloom", __version__)
        self._counters = {name: meter.create_counter(name, unit, text) for name, (unit, text) in _COUNTERS.items()}
        self._duration = meter.create_histogram("citeloom.stage.duration", "s", "Seconds that a month of a stage took")
        self._parent = TraceContextTextMapPropagator().extract({"traceparent": parent}) if parent else None

    @contextmanager
    def span(self, name: str, attributes: Attributes, *, remote: bool = False) -> Iterator[OtlpSpan]:
        """A span around the block. Of an error only the type is sent: its message may quote a paper."""
        parent = None if trace.get_current_span().get_span_context().is_valid else self._parent
        kind = SpanKind.CLIENT if remote else SpanKind.INTERNAL
        own = self._tracer.start_span(name, parent, kind, dict(attributes))
        with trace.use_span(own, end_on_exit=True, record_exception=False, set_status_on_exception=False):
            try:
                yield OtlpSpan(own, self)
            except BaseException as error:
                own.set_attribute("error.type", type(error).__name__)
                own.set_status(StatusCode.ERROR)
                raise

    @contextmanager
    def stage_span(self, stage: str, month: str) -> Iterator[OtlpSpan]:
        """The span of a stage; a failure is also counted."""
        with self.span(f"stage {stage}", {"citeloom.stage": stage, "citeloom.month": month}) as own:
            own.stage = stage
            try:
                yield own
            except BaseException:
                self.count(stage, "citeloom.stage.months", 1, {"citeloom.outcome": "failed"})
                raise

    def count(self, stage: str, metric: str, number: float, attributes: Attributes | None = None) -> None:
        """Add to a counter of a stage."""
        self._counters[metric].add(number, {"citeloom.stage": stage, **(attributes or {})})

    def record_duration(self, stage: str, seconds: float) -> None:
        """Record how long a month of a stage took."""
        self._duration.record(seconds, {"citeloom.stage": stage})

    def close(self, seconds: float) -> None:
        """Send what is queued and stop; give up after this time."""
        deadline = time.monotonic() + seconds
        # `shutdown` waits for requests under way, beyond any time-out; daemon threads do not hold up the process.
        threads = [
            threading.Thread(target=provider.shutdown, daemon=True, name="telemetry-end")
            for provider in (self._tracers, self._meters)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(max(deadline - time.monotonic(), 0.0))
        self._log_filter.detach()


class OtlpSpan(Span):
    """A span that is sent to the collector."""

    def __init__(self, own: trace.Span, exporter: Exporter) -> None:
        self._own, self._exporter = own, exporter
        self.stage = ""

    def set_attributes(self, attributes: Attributes) -> None:
        self._own.set_attributes(dict(attributes))

    def record_outcome(
        self,
        *,
        rows: int,
        skipped: bool,
        seconds: float,
        left_out: Mapping[str, int],
        measured: Mapping[str, Any],
    ) -> None:
        exporter, stage = self._exporter, self.stage
        self.set_attributes(
            {"citeloom.rows": rows, "citeloom.kept": skipped, "citeloom.left_out": sum(left_out.values())}
        )
        exporter.count(stage, "citeloom.stage.months", 1, {"citeloom.outcome": "kept" if skipped else "made"})
        if skipped:
            return
        exporter.count(stage, "citeloom.stage.rows", rows)
        exporter.record_duration(stage, seconds)
        for reason, number in left_out.items():
            exporter.count(stage, "citeloom.ledger.entries", number, {"citeloom.reason": reason})
        counters = {**measured, "llm_calls": measured.get("llm_calls", 0) - measured.get("llm_cached", 0)}
        for name, (metric, attributes) in _METRIC_OF_MEASURED.items():
            if counters.get(name):
                exporter.count(stage, metric, counters[name], attributes)


def _session(endpoint: str) -> requests.Session:
    """A session for one exporter thread; it ignores proxies where the collector is on this machine."""
    session = requests.Session()
    session.trust_env = not is_loopback(urlsplit(endpoint).hostname or "")
    return session


class _WarnOnce(logging.Handler):
    """Logs once that the collector cannot be reached, where OpenTelemetry's SDK would every few seconds."""

    def __init__(self, endpoint: str) -> None:
        super().__init__(logging.WARNING)
        self._endpoint, self._warned = endpoint, False
        self._sdk_log = logging.getLogger("opentelemetry")
        self._sdk_log.addHandler(self)
        self._sdk_log.propagate = False

    def emit(self, record: logging.LogRecord) -> None:
        """Pass on the SDK's first warning."""
        if not self._warned:
            self._warned = True
            _log.warning(
                "some traces and metrics do not reach %s (%s); the run continues without them: start the collector, "
                "or unset CITELOOM_OTEL_ENDPOINT",
                self._endpoint,
                shorten(record.getMessage(), 200, placeholder=" …"),
            )

    def detach(self) -> None:
        """Restore the SDK's logger. Not named `close`, which Dagster's logging setup calls on every handler."""
        self._sdk_log.removeHandler(self)
        self._sdk_log.propagate = True
