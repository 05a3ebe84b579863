"""What is told of the time that a stage takes."""

import pytest

from pipeline.engine.progress import StageClock, duration
from tests.fake_clock import FakeClock


def test_the_time_left_follows_from_the_pace_so_far():
    clock = FakeClock()
    stage = StageClock(clock)
    clock.time += 60
    assert stage.describe(1200, 7200) == "1,200 of 7,200, about 5 min left"
    assert stage.describe(7200, 7200) == "7,200 of 7,200"
    assert stage.describe(0, 7200) == "0 of 7,200"


def test_without_a_total_rows_are_told_alone():
    assert StageClock().describe(1200, None) == "1,200 rows"


def test_a_log_is_told_every_half_minute():
    clock = FakeClock()
    stage = StageClock(clock)
    due = []
    for _ in range(7):
        clock.time += 10
        due.append(stage.is_due())
    assert due == [False, False, True, False, False, True, False]


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0, "0 s"), (59, "59 s"), (150, "2 min"), (7300, "2 h"), (17 * 86_400, "17 d")],
)
def test_durations_have_one_unit(seconds, words):
    assert duration(seconds) == words
