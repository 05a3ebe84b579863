"""Run the server in this process."""

from __future__ import annotations

import socket

from pipeline.engine.stage import Workspace
from pipeline.errors import SettingError
from pipeline.serve.app import make_app
from pipeline.serve.site import Site

# More are answered with status 503.
_MOST_CONNECTIONS = 200


def check_port(host: str, port: int) -> None:
    """Raise SettingError if another program listens on the port, or the address is not of this machine."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            raise SettingError(f"--host {host} --port {port}: cannot listen there ({error.strerror})") from error


def run_server(workspace: Workspace, host: str, port: int, token: str | None) -> None:
    """Serve until SIGINT or SIGTERM. token: what every request must bring; None for none."""
    import uvicorn
    from threadpoolctl import threadpool_limits

    # Searches run beside one another. Two threads of BLAS for each of them delayed one another: 15 searches a second on
    # a busy machine took 116 ms in the median, and 77 ms with one.
    with threadpool_limits(1, user_api="blas"):
        # uvicorn's access log would show what people search for.
        uvicorn.run(
            make_app(workspace, token),
            host=host,
            port=port,
            access_log=False,
            log_level="error",
            server_header=False,
            timeout_graceful_shutdown=5,
            limit_concurrency=_MOST_CONNECTIONS,
        )


def run_mcp(workspace: Workspace) -> None:
    """Serve the tools for assistants over standard input and output until the input ends."""
    from pipeline.serve.mcp_server import make_server

    site = Site(workspace)
    with site.index.released_when_idle():
        make_server(site).run("stdio")
