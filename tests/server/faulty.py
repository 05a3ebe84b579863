"""What the fault tests put in the way: proxies that cut, delay and refuse.

Each proxy listens on a free port of loopback and counts what it did.
"""

import http.client
import random
import socket
import struct
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Literal

Kind = Literal["cut", "half-cut", "delay", "swallow"]

# Bytes that a proxy hands on at once: a request of the tests is a few of these.
_CHUNK = 32_768


class CuttingProxy:
    """Hands bytes on between a client and a port, and at times does to a connection what its kind
    says.

    cut: both sides are reset. half-cut: one direction ends, and the other hangs for a while. delay:
    bytes wait. swallow: nothing goes on in one direction, and nobody is told.
    """

    def __init__(self, port, kind, share, seed, *, most=1_000_000):
        """share: of the chunks at which something happens. most: how often it happens at most."""
        self._target, self._kind, self._share, self._left = port, kind, share, most
        self._random = random.Random(seed)
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port = self._listening.getsockname()[1]
        self.done = Counter()
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self):
        """Take no connection any more."""
        self._listening.close()

    def strike(self):
        """Let it happen at the next chunk."""
        self._share = 1.0

    def _accept(self):
        with suppress(OSError):
            while True:
                client, _ = self._listening.accept()
                server = socket.create_connection(("127.0.0.1", self._target))
                for source, sink in ((client, server), (server, client)):
                    threading.Thread(target=self._pump, args=(source, sink), daemon=True).start()

    def _pump(self, source, sink):
        with suppress(OSError):
            while chunk := source.recv(_CHUNK):
                if self._left > 0 and self._random.random() < self._share:
                    self._left -= 1
                    self.done[self._kind] += 1
                    if not self._disturb(source, sink, chunk):
                        return
                sink.sendall(chunk)
        for each in (source, sink):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)

    def _disturb(self, source, sink, chunk):
        """Do what the proxy is for; whether the connection goes on."""
        if self._kind == "delay":
            time.sleep(self._random.uniform(0.05, 0.5))
            return True
        if self._kind == "swallow":
            while source.recv(_CHUNK):
                pass
            return False
        sink.sendall(chunk[: len(chunk) // 2])
        if self._kind == "half-cut":
            with suppress(OSError):
                sink.shutdown(socket.SHUT_WR)
            time.sleep(self._random.uniform(0.2, 1.0))
        for each in (source, sink):
            each.setsockopt(
                socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0)
            )  # a reset, no goodbye
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()
        return False


class _Chance:
    """Every request has its own draw: refused unseen, done with its answer lost, or handed on."""

    def __init__(self, share, seed):
        self._share, self._random, self._lock = share, random.Random(seed), threading.Lock()
        self.done = Counter()

    def draw(self):
        with self._lock:
            drawn = self._random.random()
            fate = (
                "refused"
                if drawn < self._share / 2
                else "lost"
                if drawn < self._share
                else "passed"
            )
            self.done[fate] += 1
            return fate


@contextmanager
def refusing_http(port, share, seed):
    """A proxy that answers a share of the requests with 500, half of them after they were done; its
    port and counts.
    """
    chance = _Chance(share, seed)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def handle_any(self):
            body = self.rfile.read(int(self.headers.get("content-length", 0)))
            fate = chance.draw()
            status, content = (500, b"") if fate == "refused" else self._hand_on(body)
            if fate != "passed":
                status, content = 500, b'{"status": {"error": "made up by a test"}}'
            self.send_response(status)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def _hand_on(self, body):
            onward = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
            headers = {
                name: value
                for name, value in self.headers.items()
                if name.lower() != "accept-encoding"
            }
            onward.request(self.command, self.path, body, headers)
            answer = onward.getresponse()
            content = answer.read()
            onward.close()
            return answer.status, content

        def log_message(self, format, *arguments):
            pass

    for method in ("GET", "PUT", "POST", "PATCH", "DELETE"):
        setattr(Handler, f"do_{method}", Handler.handle_any)
    proxy = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=proxy.serve_forever, daemon=True).start()
    try:
        yield proxy.server_address[1], chance.done
    finally:
        proxy.shutdown()
        proxy.server_close()


@contextmanager
def refusing_grpc(port, share, seed):
    """As `refusing_http`, for gRPC, whose word for 500 is INTERNAL and for 503 UNAVAILABLE."""
    import grpc

    chance = _Chance(share, seed)
    onward = grpc.insecure_channel(f"127.0.0.1:{port}")
    codes = random.Random(seed)

    def answer(method):
        def handle(request, context):
            fate = chance.draw()
            keys = [pair for pair in context.invocation_metadata() if pair[0] == "api-key"]
            answered = (
                b"" if fate == "refused" else onward.unary_unary(method)(request, metadata=keys)
            )
            if fate != "passed":
                code = codes.choice([grpc.StatusCode.INTERNAL, grpc.StatusCode.UNAVAILABLE])
                context.abort(code, "made up by a test")
            return bytes(answered)

        return handle

    class Everything(grpc.GenericRpcHandler):
        def service(self, details):
            return grpc.unary_unary_rpc_method_handler(answer(details.method))

    proxy = grpc.server(
        ThreadPoolExecutor(8), [Everything()], options=[("grpc.max_receive_message_length", -1)]
    )
    listening = proxy.add_insecure_port("127.0.0.1:0")
    proxy.start()
    try:
        yield listening, chance.done
    finally:
        proxy.stop(None).wait()
        onward.close()
