"""Whether the OpenTelemetry collector answers, where one is set."""

from __future__ import annotations

from collections.abc import Iterator

from pipeline.engine import telemetry
from pipeline.engine.stage import Workspace
from pipeline.ops.doctor.findings import Finding, not_asked, ok, warning

_SECONDS = 4.0


def reach(workspace: Workspace) -> Iterator[Finding]:
    """A request without spans, which every collector takes; a run goes on without one, so that nothing is a problem."""
    endpoint = workspace.settings.otel_endpoint
    if endpoint is None:
        yield not_asked("telemetry", "CITELOOM_OTEL_ENDPOINT is not set: nothing is sent")
        return
    telemetry.check(workspace.settings)
    import httpx

    way_out = "start the collector, or correct or unset CITELOOM_OTEL_ENDPOINT; runs go on without it"
    try:
        status = httpx.post(
            f"{endpoint.rstrip('/')}/v1/traces", headers={"Content-Type": "application/x-protobuf"}, timeout=_SECONDS
        ).status_code
    except httpx.HTTPError as error:
        yield warning("telemetry", f"{endpoint} cannot be reached ({error})", way_out)
        return
    if status == 200:
        yield ok("telemetry", f"{endpoint} takes traces")
    elif status in (401, 403):
        yield ok("telemetry", f"{endpoint} answers, and asks for what OTEL_EXPORTER_OTLP_HEADERS should hold")
    else:
        yield warning("telemetry", f"{endpoint}/v1/traces answers with status {status}", way_out)
