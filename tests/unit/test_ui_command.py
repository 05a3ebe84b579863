"""`citeloom ui` up to the moment at which Dagster takes its place."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
from typer.testing import CliRunner

from pipeline.cli.app import app


def test_a_ui_that_a_shell_put_in_the_background_can_be_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    heard = []

    def in_its_place(program: str, arguments: list[str]) -> None:
        heard.append((signal.getsignal(signal.SIGINT), arguments[2:4]))

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(
        os, "environ", dict(os.environ)
    )  # the command leaves settings there for Dagster
    monkeypatch.setenv("CITELOOM_DATA", str(tmp_path / "data"))
    monkeypatch.setattr(os, "execv", in_its_place)
    monkeypatch.setattr(os, "dup2", lambda *_: None)
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        done = CliRunner().invoke(app, ["ui", "--port", "43977"])
    finally:
        signal.signal(signal.SIGINT, before)
    assert heard == [(signal.SIG_DFL, ["dagster", "dev"])], done.output
