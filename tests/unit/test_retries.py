"""Pauses that a server asks for."""

import time
from email.utils import formatdate

import pytest

from pipeline.retries import read_retry_after
from tests.cases import cases_beside
from tests.processes import PATIENCE


@cases_beside("text", "seconds")
def test_retry_after_is_read_as_seconds(text, seconds):
    assert read_retry_after(text) == pytest.approx(seconds)


def test_retry_after_is_read_as_a_date():
    assert read_retry_after(None) is None
    date = formatdate(time.time() + 86_400, usegmt=True)
    assert read_retry_after(date) == pytest.approx(86_400, abs=PATIENCE)
