"""What the fault tests put in the way: a proxy that cuts connections.

It listens on a free port of loopback and counts what it did.
"""

import random
import socket
import struct
import threading
import time
from collections import Counter
from contextlib import suppress

# Bytes that a proxy hands on at once: a request of the tests is a few of these.
_CHUNK = 32_768


class CuttingProxy:
    """Hands bytes on between a client and a port, and at times does to a connection what its kind
    says.

    cut: both sides are reset. half-cut: one direction ends, and the other hangs for a while.
    swallow: nothing goes on in one direction, and nobody is told.
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
                    self._disturb(source, sink, chunk)
                    return
                sink.sendall(chunk)
        for each in (source, sink):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)

    def _disturb(self, source, sink, chunk):
        """Do what the proxy is for."""
        if self._kind == "swallow":
            while source.recv(_CHUNK):
                pass
            return
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
