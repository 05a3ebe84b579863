"""The commands `citeloom serve` and `citeloom ui`: when they refuse to start."""

import socket

import pytest

from tests.command import invoke


@pytest.fixture(autouse=True)
def data_root(tmp_path, monkeypatch):
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
