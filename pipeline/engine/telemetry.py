"""Traces and metrics of runs by OpenTelemetry's SDK, sent as OTLP over HTTP.

Off unless CITELOOM_OTEL_ENDPOINT is set: a span then costs one comparison, and OpenTelemetry is not imported. Names
follow OpenTelemetry's semantic conventions where there is one (`gen_ai`, `http`), else begin with `citeloom`.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pipeline import __version__
from pipeline.errors import SettingError
from pipeline.settings import Settings
from pipeline.settings.urls import split_url

if TYPE_CHECKING:
    from opentelemetry.metrics import Counter, Histogram
    from opentelemetry.sdk.metrics import MeterProvider
    from opentelemetry.sdk.trace import TracerProvider

    from pipeline.engine.stage import Outcome

Attributes = Mapping[str, str | int | float | bool]

# For one request. The end of a run took 12 s with a full queue (2,048 spans) and a collector that never answers.
_TIMEOUT_SECONDS = 2.0
# What a stage measures → the counter it is added to, and the attributes; an absent or zero one adds nothing.
_COUNTER_OF_MEASURED: Mapping[str, tuple[str, Attributes]] = {
    "llm_paid": ("citeloom.llm.calls", {"citeloom.cached": False}),
    "llm_cached": ("citeloom.llm.calls", {"citeloom.cached": True}),
    "llm_requests": ("citeloom.llm.requests", {}),
    "llm_prompt_tokens": ("citeloom.llm.tokens", {"gen_ai.token.type": "input"}),
    "llm_completion_tokens": ("citeloom.llm.tokens", {"gen_ai.token.type": "output"}),
    "api_requests": ("citeloom.arxiv.requests", {}),
}
_COUNTERS = (
    "citeloom.stage.months", "citeloom.stage.rows", "citeloom.ledger.entries", "citeloom.llm.calls",
    "citeloom.llm.requests", "citeloom.llm.tokens", "citeloom.arxiv.requests",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Sdk:
    """What sends spans and metrics to the collector, and the instruments of the metrics."""

    tracers: TracerProvider
    meters: MeterProvider
    counters: Mapping[str, Counter]
    duration: Histogram


_sdk: _Sdk | None = None


def check(settings: Settings) -> None:
    """Raise SettingError where CITELOOM_OTEL_ENDPOINT is set but not an address, or its packages are missing."""
    if settings.otel_endpoint is None:
        return
    parts = split_url("CITELOOM_OTEL_ENDPOINT", settings.otel_endpoint, "http://localhost:4318")
    if parts.username or parts.password or parts.query:
        raise SettingError(
            "CITELOOM_OTEL_ENDPOINT contains a user name, a password or a query: put the collector's credentials into "
            "OTEL_EXPORTER_OTLP_HEADERS"
        )
    try:
        import opentelemetry.exporter.otlp.proto.http
        import opentelemetry.sdk  # noqa: F401
    except ImportError as error:
        raise SettingError(
            f"CITELOOM_OTEL_ENDPOINT is set, and its packages are not installed ({error}): run "
            "pip install --constraint constraints.txt --editable '.[otel]', or unset it"
        ) from error


@contextmanager
def run_span(settings: Settings, months: int) -> Iterator[None]:
    """Trace a run over this many months; everything is sent when it ends. Raises SettingError as `check` does."""
    _start(settings)
    try:
        with span("run", {"citeloom.months": months}):
            yield
    finally:
        end()


@contextmanager
def stage_span(settings: Settings, stage: str, month: str) -> Iterator[None]:
    """Trace a stage of a month, also in a process that Dagster started. Raises as `run_span` does."""
    _start(settings)
    with span(f"stage {stage}", {"citeloom.stage": stage, "citeloom.month": month}):
        try:
            yield
        except BaseException:
            _count("citeloom.stage.months", 1, stage, {"citeloom.outcome": "failed"})
            raise


@contextmanager
def span(name: str, attributes: Attributes) -> Iterator[None]:
    """Trace the block, as a child of the current span. Of an error only the type is sent: its message may quote a
    paper."""
    if _sdk is None:
        yield
        return
    from opentelemetry.trace import StatusCode

    with _sdk.tracers.get_tracer("citeloom", __version__).start_as_current_span(
        name, attributes=dict(attributes), record_exception=False, set_status_on_exception=False
    ) as current:
        try:
            yield
        except BaseException as error:
            current.set_attribute("error.type", type(error).__name__)
            current.set_status(StatusCode.ERROR)
            raise


def set_attributes(attributes: Attributes) -> None:
    """Add attributes to the current span that are known only now, such as what a request cost."""
    if _sdk is not None:
        from opentelemetry.trace import get_current_span

        get_current_span().set_attributes(dict(attributes))


def record_outcome(outcome: Outcome) -> None:
    """Record the result of a stage in its span, which is the current one, and in the metrics."""
    if _sdk is None:
        return
    stage, left_out = outcome.stage, outcome.left_out
    set_attributes(
        {"citeloom.rows": outcome.rows, "citeloom.kept": outcome.skipped, "citeloom.left_out": sum(left_out.values())}
    )
    _count("citeloom.stage.months", 1, stage, {"citeloom.outcome": "kept" if outcome.skipped else "made"})
    if outcome.skipped:
        return
    _sdk.duration.record(outcome.seconds, {"citeloom.stage": stage})
    _count("citeloom.stage.rows", outcome.rows, stage)
    for reason, number in left_out.items():
        _count("citeloom.ledger.entries", number, stage, {"citeloom.reason": reason})
    measured = outcome.measured
    numbers = {**measured, "llm_paid": measured.get("llm_calls", 0) - measured.get("llm_cached", 0)}
    for name, (counter, attributes) in _COUNTER_OF_MEASURED.items():
        if numbers.get(name):
            _count(counter, numbers[name], stage, attributes)


def _count(counter: str, number: float, stage: str, attributes: Attributes | None = None) -> None:
    if _sdk is not None:
        _sdk.counters[counter].add(number, {"citeloom.stage": stage, **(attributes or {})})


def end() -> None:
    """Send what is queued, and stop until the next span is started. The SDK does so by itself at exit."""
    global _sdk
    ended, _sdk = _sdk, None
    if ended is not None:
        ended.tracers.shutdown()
        ended.meters.shutdown()


def _start(settings: Settings) -> None:
    """Start the SDK where the settings name a collector and this process has none yet."""
    global _sdk
    if settings.otel_endpoint is None or _sdk is not None:
        return
    check(settings)
    from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.metrics import MeterProvider
    from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    endpoint = settings.otel_endpoint.rstrip("/")
    # Each process counts from zero; the instance id keeps the counters of two processes apart.
    service = {"name": "citeloom", "version": __version__, "instance.id": str(uuid.uuid4())}
    resource = Resource.create({f"service.{name}": value for name, value in service.items()})
    tracers = TracerProvider(resource=resource)
    spans = OTLPSpanExporter(f"{endpoint}/v1/traces", timeout=_TIMEOUT_SECONDS)
    tracers.add_span_processor(BatchSpanProcessor(spans))
    metrics = OTLPMetricExporter(f"{endpoint}/v1/metrics", timeout=_TIMEOUT_SECONDS)
    meters = MeterProvider([PeriodicExportingMetricReader(metrics)], resource=resource)
    meter = meters.get_meter("citeloom", __version__)
    counters = {name: meter.create_counter(name) for name in _COUNTERS}
    _sdk = _Sdk(tracers, meters, counters, meter.create_histogram("citeloom.stage.duration", "s"))
