"""Tools that some tests need: without one they are not run, and the summary names them."""

import os

import pytest

_NOT_RUN = "not run: "


def missing_tool(reason):
    """End a test that cannot run; it fails where CITELOOM_REQUIRE_TOOLS=1."""
    if os.environ.get("CITELOOM_REQUIRE_TOOLS") == "1":
        pytest.fail(f"{reason}; CITELOOM_REQUIRE_TOOLS is 1")
    pytest.skip(_NOT_RUN + reason)


def tests_not_run(skipped):
    """What `missing_tool` said → the tests that it ended, in order."""
    tests = {}
    for report in skipped:
        *_, reason = report.longrepr  # the file, the line, the reason
        _, marked, missing = str(reason).partition(_NOT_RUN)
        if marked:
            tests.setdefault(missing, []).append(report.nodeid)
    return tests
