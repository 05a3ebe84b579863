"""Retries on a clock that does not wait."""

import time
from email.utils import formatdate

import pytest

from pipeline.errors import TransientFailure
from pipeline.retries import Retries, read_retry_after
from tests.cases import cases_beside
from tests.fake_clock import FakeClock
from tests.processes import PATIENCE


def test_a_request_is_sent_as_often_as_allowed_with_pauses_that_double():
    fake, announced = FakeClock(), []

    def fail():
        raise TransientFailure("down")

    retries = Retries(
        lambda error: 0.0, first_pause=10.0, longest_pause=25.0, attempts=5, clock=fake.clock
    )
    with pytest.raises(TransientFailure, match="down"):
        retries.call(fail, lambda error, pause: announced.append((str(error), pause)))
    assert fake.pauses == [10.0, 20.0, 25.0, 25.0]
    assert announced == [("down", pause) for pause in fake.pauses]


@cases_beside("text", "seconds")
def test_retry_after_is_read_as_seconds(text, seconds):
    assert read_retry_after(text) == pytest.approx(seconds)


def test_retry_after_is_read_as_a_date():
    assert read_retry_after(None) is None
    date = formatdate(time.time() + 86_400, usegmt=True)
    assert read_retry_after(date) == pytest.approx(86_400, abs=PATIENCE)
