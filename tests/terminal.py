"""The command on a terminal of its own, as a user has it."""

import os
import pty
import select
import subprocess
import time

from tests.processes import COMMAND, PATIENCE, end_with_tests, environment_without_settings


class Terminal:
    """`citeloom` with some arguments on a terminal, and what it has shown; a context manager, which
    ends it.

    variables: what is set besides this process's environment, of which no setting of citeloom's is
    handed on.
    """

    def __init__(self, arguments, variables, folder):
        self._end, theirs = pty.openpty()
        self._process = subprocess.Popen(
            [COMMAND, *arguments],
            env={**environment_without_settings(), **variables},
            cwd=folder,
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            start_new_session=True,
            preexec_fn=lambda: _take_terminal(theirs),
        )
        end_with_tests(self._process)
        os.close(theirs)
        self.shown = ""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._process.kill()
        self._process.wait()
        os.close(self._end)

    def type(self, keys, until):
        """Type something, once the prompt is there, and wait for what it brings."""
        start = len(self.shown)
        os.write(self._end, keys.encode())
        self.wait(until, start)

    def wait(self, until, start=0):
        """Wait until something is shown, from a place in what is."""
        end = time.monotonic() + PATIENCE
        while until not in self.shown[start:]:
            assert time.monotonic() < end, self.shown
            if select.select([self._end], [], [], 0.2)[0]:
                self.shown += os.read(self._end, 65_536).decode(errors="replace")

    def end(self, keys):
        """Type the last keys, if there are any; the exit code."""
        if keys:
            os.write(self._end, keys.encode())
        return self._process.wait()


def _take_terminal(descriptor):
    """Make a terminal that of this session, so that Ctrl-C on it reaches the process."""
    import fcntl
    import termios

    fcntl.ioctl(descriptor, termios.TIOCSCTTY, 0)
