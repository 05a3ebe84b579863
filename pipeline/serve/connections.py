"""HTTP connections with deadlines: a client that sends nothing, or half a request, is let go."""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

# Seconds for the head of a request, and again for its body.
DEADLINE = 10.0
# Of one address; loopback has no such limit, since all programs of this machine share it.
MOST_OF_A_CLIENT = 50


class DeadlineProtocol(H11Protocol):
    """uvicorn's protocol, which by itself waits without end for a request to be complete."""

    deadline = DEADLINE

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._incomplete: Any = None
        self._timer = self.loop.call_later(self.deadline, self._check)
        if self.client is None or self.client[0].startswith(("127.", "::1")):
            return
        clients = [getattr(other, "client", None) for other in self.connections]
        of_this_address = [client for client in clients if client and client[0] == self.client[0]]
        if len(of_this_address) > MOST_OF_A_CLIENT:
            transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        self._timer.cancel()
        super().connection_lost(exc)

    def _check(self) -> None:
        """Close a connection that still waits for the part of a request that it waited for one
        deadline ago.
        """
        cycle = self.cycle
        waits_for_head = cycle is None or cycle.response_complete
        waits_for_body = cycle is not None and cycle.more_body
        incomplete = (cycle, waits_for_body) if waits_for_head or waits_for_body else None
        if cycle is None or (incomplete is not None and incomplete == self._incomplete):
            self.transport.close()
            return
        self._incomplete = incomplete
        self._timer = self.loop.call_later(self.deadline, self._check)
