"""Traces and metrics of runs over OpenTelemetry: where the code says what it is at, whether anybody listens or not.

Off unless CITELOOM_OTEL_ENDPOINT is set: then `span` costs one comparison, and nothing of OpenTelemetry is imported.
"""

from __future__ import annotations

import atexit
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import copy_context
from typing import TYPE_CHECKING, ParamSpec, TypeVar

from pipeline.errors import SettingError
from pipeline.settings import Settings
from pipeline.settings.urls import split_url

if TYPE_CHECKING:
    from pipeline.engine.stage import Outcome
    from pipeline.engine.telemetry.otlp import Sender

P = ParamSpec("P")
T = TypeVar("T")
Facts = Mapping[str, str | int | float | bool]

# A collector that is down may hold up the end of a run for as long, and no more.
SECONDS_TO_END = 2.0
# By it a child process knows the span that it is a part of (W3C Trace Context, as an environment variable).
_PARENT = "TRACEPARENT"


class Span:
    """Something that takes time and is told of; this one is told to nobody."""

    def tell(self, facts: Facts) -> None:
        """Add what is known only now, such as what it cost."""

    def made(self, outcome: Outcome) -> None:
        """Tell what came of a stage, and count it."""


_SILENT = Span()
_sender: Sender | None = None


def check(settings: Settings) -> None:
    """Raise SettingError where CITELOOM_OTEL_ENDPOINT is set and is no address, or the packages are not there."""
    if settings.otel_endpoint is not None:
        _parse(settings.otel_endpoint)
        _insist_on_packages()


@contextmanager
def run(settings: Settings, months: int) -> Iterator[None]:
    """Tell of a run over so many months, and of what child processes do in it; all of it is sent at the end.

    Raises SettingError as `check` does. A collector that cannot be reached is no error: it is told of once.
    """
    _begin(settings)
    before = os.environ.get(_PARENT)
    try:
        with span("run", {"citeloom.months": months}):
            if _sender is not None:
                os.environ[_PARENT] = _sender.traceparent()
            yield
    finally:
        if before is None:
            os.environ.pop(_PARENT, None)
        else:
            os.environ[_PARENT] = before
        end()


@contextmanager
def month(settings: Settings, month: str) -> Iterator[None]:
    """Tell of a month of a run. Raises as `run` does."""
    _begin(settings)
    with span("month", {"citeloom.month": month}):
        yield


@contextmanager
def stage(settings: Settings, stage: str, month: str) -> Iterator[Span]:
    """Tell of a stage at work on a month, also in a process that Dagster started. Raises as `run` does."""
    _begin(settings)
    if _sender is None:
        yield _SILENT
        return
    with _sender.stage(stage, month) as told:
        yield told


@contextmanager
def span(name: str, facts: Facts | None = None, *, remote: bool = False) -> Iterator[Span]:
    """Tell of what the block does, as a part of whatever is told of around it.

    facts: known at its beginning. remote: whether it waits for a server.
    """
    if _sender is None:
        yield _SILENT
        return
    with _sender.span(name, facts or {}, remote=remote) as told:
        yield told


def in_span(name: str, facts: Facts, function: Callable[P, T]) -> Callable[P, T]:
    """The function within a span, a part of what is told of here and now, whatever thread calls it; once."""
    if _sender is None:
        return function
    context = copy_context()

    def call(*arguments: P.args, **options: P.kwargs) -> T:
        with span(name, facts, remote=True):
            return function(*arguments, **options)

    return lambda *arguments, **options: context.run(call, *arguments, **options)


def end(seconds: float = SECONDS_TO_END) -> None:
    """Send what is left, within so many seconds, and send nothing more until the next beginning. Called at exit too."""
    global _sender
    ended, _sender = _sender, None
    if ended is not None:
        ended.close(seconds)


atexit.register(end)


def _begin(settings: Settings) -> None:
    """Send from now on, where the settings ask for it; nothing where this process does already."""
    global _sender
    if settings.otel_endpoint is None or _sender is not None:
        return
    endpoint = _parse(settings.otel_endpoint)
    _insist_on_packages()
    from pipeline.engine.telemetry.otlp import Sender

    _sender = Sender(endpoint, os.environ.get(_PARENT))


def _parse(endpoint: str) -> str:
    parts = split_url("CITELOOM_OTEL_ENDPOINT", endpoint, "http://localhost:4318")
    if parts.username or parts.password or parts.query:
        raise SettingError(
            "CITELOOM_OTEL_ENDPOINT holds a name, a password or a query: put what the collector asks for into "
            "OTEL_EXPORTER_OTLP_HEADERS"
        )
    return endpoint.rstrip("/")


def _insist_on_packages() -> None:
    try:
        import opentelemetry.exporter.otlp.proto.http
        import opentelemetry.sdk  # noqa: F401
    except ImportError as error:
        raise SettingError(
            f"CITELOOM_OTEL_ENDPOINT is set, and its packages are not installed ({error}): run "
            "pip install 'citeloom[otel]', or unset it"
        ) from error
