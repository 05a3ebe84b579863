"""The commands `citeloom serve` and `citeloom ui`: when they refuse to start, and `ui` up to the
moment at which Dagster takes its place.
"""

import os
import signal
import socket
import subprocess
from pathlib import Path

import httpx2
import psutil
import pytest

from pipeline.settings import load_settings
from tests.command import invoke
from tests.processes import free_port


@pytest.fixture(autouse=True)
def data_root(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    # The command leaves settings there for Dagster.
    monkeypatch.setattr(os, "environ", dict(os.environ))
    monkeypatch.setenv("CITELOOM_DATA", str(tmp_path / "data"))
    monkeypatch.delenv("CITELOOM_SERVE_TOKEN", raising=False)


@pytest.mark.parametrize("token", [[], ["--token", "1234567"]])
def test_another_host_needs_a_token_that_nobody_guesses(token):
    result = invoke("serve", "--host", "0.0.0.0", *token)
    assert result.exit_code == 2
    assert "CITELOOM_SERVE_TOKEN" in result.stderr


@pytest.mark.parametrize("command", [("ui",), ("serve", "--token", "of nobody")])
def test_a_port_that_is_taken_is_named(command):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        result = invoke(*command, "--port", port)
    assert result.exit_code == 2
    assert f"--port {port}" in result.stderr
    assert "of nobody" not in result.output + result.stderr


def test_dagster_starts_behind_the_proxy_and_a_ui_in_a_shells_background_can_be_ended(monkeypatch):
    port = free_port()
    handlers, answers, arguments, patience = [], [], [], []

    def in_its_place(program, words):
        handlers.append(signal.getsignal(signal.SIGINT))
        arguments.extend(words)
        patience.append(int(os.environ["DAGSTER_GRPC_PROXY_HEARTBEAT_TTL_SECONDS"]))
        answers.append(httpx2.get(f"http://127.0.0.1:{port}/", timeout=None).status_code)
        for proxy in psutil.Process().children():
            if "pipeline.doors.web.dagster_proxy" in proxy.cmdline():
                proxy.kill()

    monkeypatch.setattr(os, "execv", in_its_place)
    monkeypatch.setattr(os, "dup2", lambda *_: None)
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        done = invoke("ui", "--port", str(port))
    finally:
        signal.signal(signal.SIGINT, before)
    assert handlers == [signal.SIG_DFL], done.output
    assert answers == [503]
    assert patience[0] >= 300, "a code server ends itself on a busy machine"
    assert arguments[2:4] == ["dagster", "dev"]
    address = arguments[arguments.index("-h") + 1]
    assert address.startswith("127.")
    assert address != "127.0.0.1"


@pytest.mark.parametrize("is_users", [True, False])
def test_dagster_finds_no_env_file_and_reads_settings_as_the_commands_do(
    tmp_path, monkeypatch, *, is_users
):
    found = {}

    def in_its_place(program, words):
        found.update(os.environ, has_file=str(Path(".env").exists()))

    monkeypatch.setattr(os, "execv", in_its_place)
    monkeypatch.setattr(os, "dup2", lambda *_: None)
    monkeypatch.setattr(subprocess, "Popen", lambda *_, **__: None)
    file = tmp_path / ".env"
    file.write_text("CITELOOM_QUESTIONS=${HOME}.jsonl\n")
    if is_users:
        monkeypatch.setenv("CITELOOM_DATA", str(tmp_path))
    monkeypatch.setenv("CITELOOM_TASKS_DIR", "tasks")
    assert invoke("ui", "--port", str(free_port())).exit_code == 0
    assert found["has_file"] == "False"
    assert found["CITELOOM_ENV_FILE"] == (str(file) if is_users else "")
    assert found["CITELOOM_TASKS_DIR"] == str(tmp_path / "tasks")
    assert load_settings().questions == (tmp_path / "${HOME}.jsonl" if is_users else None)
