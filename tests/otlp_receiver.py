"""An OTLP receiver on loopback: keeps the spans and metrics that are sent to it."""

from __future__ import annotations

import gzip
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any

from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span


class OtlpReceiver:
    """A collector. `delay` seconds pass before each answer, whose status is `status`."""

    def __init__(self, status: int = 200, delay: float = 0.0) -> None:
        self.status, self.delay = status, delay
        self.traces: list[ExportTraceServiceRequest] = []
        self.metrics: list[ExportMetricsServiceRequest] = []
        self.bodies: list[bytes] = []
        self.headers: list[dict[str, str]] = []
        self.closing = threading.Event()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> OtlpReceiver:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.closing.set()
        self._server.shutdown()
        self._server.server_close()

    def spans(self) -> list[Span]:
        """Every span that came in."""
        scopes = [scope for sent in self.traces for resource in sent.resource_spans for scope in resource.scope_spans]
        return [span for scope in scopes for span in scope.spans]

    def named(self, name: str) -> list[Span]:
        """The spans of a name."""
        return [span for span in self.spans() if span.name == name]

    def totals(self) -> dict[str, dict[tuple[str, ...], float]]:
        """Each counter's last value by the values of its attributes in the order of their names; histograms' sums."""
        found: dict[str, dict[tuple[str, ...], float]] = {}
        resources = [resource for sent in self.metrics for resource in sent.resource_metrics]
        for metric in [each for one in resources for scope in one.scope_metrics for each in scope.metrics]:
            for point in [*metric.sum.data_points, *metric.histogram.data_points]:
                key = tuple(str(value) for _, value in sorted(facts(point).items()))
                value = point.sum if metric.HasField("histogram") else point.as_int or point.as_double
                found.setdefault(metric.name, {})[key] = value
        return found

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                receiver.closing.wait(receiver.delay)
                receiver.keep(self.path, gzip.decompress(body) if body[:2] == b"\x1f\x8b" else body)
                receiver.headers.append(dict(self.headers))
                self.send_response(receiver.status)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_: object) -> None:
                """No line for each request."""

        return Handler

    def keep(self, path: str, body: bytes) -> None:
        """Keep one request. Raises DecodeError for what is no OTLP."""
        self.bodies.append(body)
        if path == "/v1/traces":
            self.traces.append(ExportTraceServiceRequest.FromString(body))
        elif path == "/v1/metrics":
            self.metrics.append(ExportMetricsServiceRequest.FromString(body))


def facts(told: Any) -> dict[str, Any]:
    """The attributes of a span, a data point or a resource."""
    return {
        attribute.key: getattr(attribute.value, attribute.value.WhichOneof("value") or "string_value")
        for attribute in told.attributes
    }
