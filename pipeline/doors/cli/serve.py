"""The commands that serve: `citeloom serve` and `mcp` the corpus, `ui` the Dagster UI."""

from __future__ import annotations

import os
import secrets
import signal
import socket
import subprocess
import sys
from typing import Annotated

import typer

from pipeline.doors.cli.common import AsJson, export_settings, open_workspace
from pipeline.errors import SettingError, require_packages

# Dagster's own options, as environment variables.
_DAGSTER_OPTIONS = {
    # A code server that hears nothing of its proxy for 30 s ends itself, and is not started again:
    # on two cores beside a busy `citeloom run` that happened.
    "DAGSTER_GRPC_PROXY_HEARTBEAT_TTL_SECONDS": "600",
    # A backfill waits for a code location that cannot be loaded just now. Else it fails.
    "DAGSTER_BACKFILL_RETRY_DEFINITION_CHANGED_ERROR": "1",
    # Dagster recommends another of its commands at every start.
    "PYTHONWARNINGS": "ignore",
}
# At 400 guesses a second, a shorter token is guessed in days.
_SHORTEST_TOKEN = 8


def serve(
    port: Annotated[
        int, typer.Option(metavar="PORT", min=1, max=65535, help="Port to listen on.")
    ] = 8080,
    host: Annotated[
        str,
        typer.Option(
            metavar="ADDRESS", help="Address to listen on; another than loopback needs a token."
        ),
    ] = "127.0.0.1",
    token: Annotated[
        str | None,
        typer.Option(
            metavar="TEXT",
            help="Token that every visitor must give. Other users of this machine can read it in"
            " the list of processes: CITELOOM_SERVE_TOKEN is safer.",
        ),
    ] = None,
    as_json: AsJson = False,
) -> int:
    """Serve search, papers, questions and reports to browsers, programs and assistants. Ctrl-C ends
    it.

    Examples:
      citeloom serve --port 8080
      CITELOOM_SERVE_TOKEN=... citeloom serve --host 0.0.0.0
    """
    from pipeline.doors.cli.console import err, print_json
    from pipeline.ops.preflight import check_data_root
    from pipeline.settings.urls import is_loopback

    workspace = open_workspace(serve_token=token)
    secret = workspace.settings.serve_token
    if secret is None and not is_loopback(host):
        raise SettingError(
            f"--host {host}: everybody who reaches this address could read the corpus: set"
            " CITELOOM_SERVE_TOKEN, or leave --host out and use an SSH tunnel"
        )
    is_short = secret is not None and len(secret.get_secret_value()) < _SHORTEST_TOKEN
    if is_short and not is_loopback(host):
        raise SettingError(
            f"CITELOOM_SERVE_TOKEN has fewer than {_SHORTEST_TOKEN} characters, and could be"
            " guessed: make one with openssl rand -hex 24"
        )
    check_data_root(workspace)

    from pipeline.doors.web.app import run_server, without_mcp

    _listen(port, host).close()
    url = f"http://{f'[{host}]' if ':' in host else host}:{port}"
    if as_json:
        print_json({"url": url})
        sys.stdout.flush()
    err.print(f"citeloom: {url} (data in {workspace.root.path}); Ctrl-C ends it", soft_wrap=True)
    if message := without_mcp():
        err.print(message, soft_wrap=True, markup=False)
    run_server(workspace, host, port, None if secret is None else secret.get_secret_value())
    return 0


def mcp() -> int:
    """Offer the corpus to an assistant as tools of the Model Context Protocol, over standard input
    and output.

    Examples:
      citeloom mcp
      CITELOOM_DATA=/data/papers citeloom mcp
    """
    require_packages("citeloom mcp", "mcp", "mcp")
    from pipeline.doors.mcp import run_mcp
    from pipeline.doors.web.app import with_budget

    # A thread waits for standard input, which no exception would end.
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    run_mcp(with_budget(open_workspace()))
    return 0


def ui(
    port: Annotated[int, typer.Option(min=1, max=65535, help="Port on loopback.")] = 3000,
    public_host: Annotated[
        str | None,
        typer.Option(
            metavar="HOST",
            help="Host name of your own proxy in front of the UI, with its port if it has one.",
        ),
    ] = None,
    as_json: AsJson = False,
) -> int:
    """Start the Dagster UI on this machine: months, runs, schedules and checks in a browser.

    Examples:
      citeloom ui
      citeloom ui --port 3001
    """
    from pipeline.doors.cli.console import err, print_json
    from pipeline.ops.preflight import check_data_root
    from pipeline.settings import PROJECT
    from resources.dagster_home import dagster_home, open_instance

    workspace = open_workspace()
    check_data_root(workspace)
    listener = _listen(port)
    export_settings(workspace.settings)
    home = dagster_home(workspace)
    # Makes the databases and pools, and fails here where Postgres does not answer.
    with open_instance(home):
        pass
    url = f"http://127.0.0.1:{port}"
    if as_json:
        print_json({"url": url, "dagster_home": str(home)})
    err.print(f"Dagster UI: {url} (data in {workspace.root.path}); Ctrl-C ends it", soft_wrap=True)
    sys.stdout.flush()
    os.dup2(2, 1)  # what Dagster logs is not part of the command's output
    for name, value in _DAGSTER_OPTIONS.items():
        os.environ.setdefault(name, value)
    # A process that a shell starts in the background ignores SIGINT; then Dagster would ignore
    # SIGTERM as well.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    # Dagster would put `.env` of its folder over the environment, with ${NAME} replaced.
    os.chdir(home)
    # No other site can guess this address, so that its pages reach Dagster by the proxy alone.
    dagster_host, dagster_port = _unguessable_address()
    proxy = [sys.executable, "-m", "pipeline.doors.web.dagster_proxy"]
    proxy += ["--socket", str(listener.fileno()), "--parent", str(os.getpid())]
    proxy += ["--dagster", f"http://{dagster_host}:{dagster_port}"]
    if public_host is not None:
        proxy += ["--public-host", public_host]
    subprocess.Popen(proxy, pass_fds=[listener.fileno()])
    program = [sys.executable, "-m", "dagster", "dev", "-w", str(PROJECT / "workspace.yaml")]
    os.execv(sys.executable, [*program, "-h", dagster_host, "-p", str(dagster_port)])  # noqa: S606


def _listen(port: int, host: str = "127.0.0.1") -> socket.socket:
    """A socket that listens. Raises SettingError where another program does, and for an address of
    another machine.
    """
    listener = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
    # Connections of a page that was open linger for a minute after Ctrl-C.
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
        listener.listen()
    except OSError as error:
        listener.close()
        raise SettingError(
            f"cannot listen at --host {host} --port {port} ({error.strerror})"
        ) from error
    return listener


def _unguessable_address() -> tuple[str, int]:
    """A free port of a random address of 127.0.0.0/8: about 10^11 of them on Linux.

    Dagster's webserver cannot listen on a Unix socket.
    """
    host = ".".join(["127", *(str(1 + secrets.randbelow(254)) for _ in range(3))])
    with socket.socket() as probe:
        try:
            probe.bind((host, 0))
        except OSError:  # other systems than Linux have only 127.0.0.1
            probe.bind(("127.0.0.1", 0))
        address: tuple[str, int] = probe.getsockname()
    return address
