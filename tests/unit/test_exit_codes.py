"""What ends a command from outside: SIGTERM, and files that the system refuses."""

import errno
import os
import signal
import subprocess
import sys

import pytest

from pipeline.doors.cli.exit_codes import run_command
from pipeline.errors import SettingError


def test_sigterm_ends_a_command_as_ctrl_c_does(tmp_path, capsys):
    before = signal.getsignal(signal.SIGTERM)

    def work():
        half = tmp_path / "half"
        half.touch()
        try:
            signal.raise_signal(signal.SIGTERM)
        finally:
            half.unlink()
        return 0

    assert run_command(work) == 130
    assert "interrupted" in capsys.readouterr().err
    assert not any(tmp_path.iterdir())
    assert signal.getsignal(signal.SIGTERM) == before


def test_no_line_of_an_error_is_longer_than_a_title_may_be(capsys):
    def work():
        raise SettingError(f"{'x' * 120_000} is no month\n--from is no day")

    assert run_command(work) == 2
    assert len(message := capsys.readouterr().err) < 3_000
    assert "--from is no day" in message


@pytest.mark.parametrize("number", [errno.EACCES, errno.EROFS])
def test_a_file_that_the_system_refuses_is_named_with_a_way_out(number, capsys):
    def work():
        raise OSError(number, os.strerror(number), "/data/papers/2024-03.parquet")

    assert run_command(work) == 1
    message = capsys.readouterr().err
    assert "/data/papers/2024-03.parquet cannot be used" in message
    assert "CITELOOM_DATA" in message
    assert "traceback" not in message


def test_a_reader_that_ends_early_ends_the_command_quietly():
    code = (
        "import sys; from pipeline.doors.cli.exit_codes import run_command;"
        "sys.exit(run_command(lambda: [print('x' * 100, flush=True) for _ in range(10_000)]))"
    )
    shell = f'"{sys.executable}" -c "{code}" | head -1; exit ${{PIPESTATUS[0]}}'
    done = subprocess.run(["bash", "-c", shell], check=False, capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (141, "x" * 100 + "\n", "")
