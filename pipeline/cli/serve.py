"""The commands `citeloom serve` and `mcp`: the corpus for a browser, for programs and for assistants."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from pipeline.cli.options import AsJson
from pipeline.cli.workspace import open_workspace
from pipeline.errors import SettingError


def serve(
    port: Annotated[int, typer.Option(metavar="PORT", min=1, max=65535, help="Port to listen on.")] = 8080,
    host: Annotated[
        str, typer.Option(metavar="ADDRESS", help="Address to listen on; another than loopback needs a token.")
    ] = "127.0.0.1",
    token: Annotated[
        str | None,
        typer.Option(
            metavar="TEXT",
            help="Token that every visitor must give. Other users of this machine can read it in the list of "
            "processes: CITELOOM_SERVE_TOKEN is safer.",
        ),
    ] = None,
    as_json: AsJson = False,
) -> int:
    """Serve search, papers, questions and reports to browsers, programs and assistants. Ctrl-C ends it.

    Examples:
      citeloom serve --port 8080
      CITELOOM_SERVE_TOKEN=... citeloom serve --host 0.0.0.0
    """
    from pipeline.cli.console import err, print_json
    from pipeline.ops.preflight import check_data_root
    from pipeline.settings.urls import is_loopback

    workspace = open_workspace(serve_token=token)
    secret = workspace.settings.serve_token
    if secret is None and not is_loopback(host):
        raise SettingError(
            f"--host {host}: everybody who reaches this address could read the corpus: set CITELOOM_SERVE_TOKEN, or "
            "leave --host out and use an SSH tunnel"
        )
    check_data_root(workspace)

    from pipeline.serve.app import check_port, run_server

    check_port(host, port)
    url = f"http://{f'[{host}]' if ':' in host else host}:{port}"
    if as_json:
        print_json({"url": url})
        sys.stdout.flush()
    err.print(f"citeloom: {url} (data in {workspace.root.path}); Ctrl-C ends it", soft_wrap=True)
    run_server(workspace, host, port, None if secret is None else secret.get_secret_value())
    return 0


def mcp() -> int:
    """Offer the corpus to an assistant as tools of the Model Context Protocol, over standard input and output.

    Examples:
      citeloom mcp
      CITELOOM_DATA=/data/papers citeloom mcp
    """
    from pipeline.serve.app import run_mcp

    run_mcp(open_workspace())
    return 0
