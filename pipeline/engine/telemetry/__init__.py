"""Traces and metrics of runs over OpenTelemetry.

Off unless CITELOOM_OTEL_ENDPOINT is set: a span then costs one comparison, and OpenTelemetry is not imported.
"""

from __future__ import annotations

import atexit
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import copy_context
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from pipeline.errors import SettingError
from pipeline.settings import Settings
from pipeline.settings.urls import split_url

if TYPE_CHECKING:
    from pipeline.engine.telemetry.otlp import Exporter

P = ParamSpec("P")
T = TypeVar("T")
Attributes = Mapping[str, str | int | float | bool]

# How long a collector that is down may delay the end of a run.
SHUTDOWN_SECONDS = 2.0


class Span:
    """A unit of work in a trace. This base class records nothing; it is used where telemetry is off."""

    def set_attributes(self, attributes: Attributes) -> None:
        """Add attributes that are known only now, such as what a request cost."""

    def record_outcome(
        self,
        *,
        rows: int,
        skipped: bool,
        seconds: float,
        left_out: Mapping[str, int],
        measured: Mapping[str, Any],
    ) -> None:
        """Record the result of a stage, as attributes of its span and as metrics.

        skipped: whether the month was up to date. left_out: count by reason. measured: counters of this run.
        """


_NO_SPAN = Span()
_exporter: Exporter | None = None


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
    """Trace a run over this many months; everything is sent when it ends.

    Raises SettingError as `check` does. An unreachable collector is no error; it is logged once.
    """
    _start(settings)
    try:
        with span("run", {"citeloom.months": months}):
            yield
    finally:
        end()


@contextmanager
def month_span(settings: Settings, month: str) -> Iterator[None]:
    """Trace one month of a run. Raises as `run_span` does."""
    _start(settings)
    with span("month", {"citeloom.month": month}):
        yield


@contextmanager
def stage_span(settings: Settings, stage: str, month: str) -> Iterator[Span]:
    """Trace a stage of a month, also in a process that Dagster started. Raises as `run_span` does."""
    _start(settings)
    if _exporter is None:
        yield _NO_SPAN
        return
    with _exporter.stage_span(stage, month) as current:
        yield current


@contextmanager
def span(name: str, attributes: Attributes | None = None, *, remote: bool = False) -> Iterator[Span]:
    """Trace the block, as a child of the current span. remote: whether it waits for a server."""
    if _exporter is None:
        yield _NO_SPAN
        return
    with _exporter.span(name, attributes or {}, remote=remote) as current:
        yield current


def bind_span(name: str, attributes: Attributes, function: Callable[P, T]) -> Callable[P, T]:
    """The function within a span that is a child of the current one, whichever thread calls it; to be called once."""
    if _exporter is None:
        return function
    context = copy_context()

    def call(*arguments: P.args, **options: P.kwargs) -> T:
        with span(name, attributes, remote=True):
            return function(*arguments, **options)

    return lambda *arguments, **options: context.run(call, *arguments, **options)


def end(seconds: float = SHUTDOWN_SECONDS) -> None:
    """Send what is queued, within this time, and stop until the next span is started. Also called at exit."""
    global _exporter
    ended, _exporter = _exporter, None
    if ended is not None:
        ended.close(seconds)


atexit.register(end)


def _start(settings: Settings) -> None:
    """Start the exporter where the settings name a collector and this process has none yet."""
    global _exporter
    if settings.otel_endpoint is None or _exporter is not None:
        return
    check(settings)
    from pipeline.engine.telemetry.otlp import Exporter

    # Whoever starts this process may name the span that it belongs to (W3C Trace Context).
    _exporter = Exporter(settings.otel_endpoint.rstrip("/"), os.environ.get("TRACEPARENT"))
