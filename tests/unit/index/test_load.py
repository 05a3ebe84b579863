"""Loading a month: what is sent, what is taken out, and what a user is told of points that could not be loaded."""

from __future__ import annotations

import hashlib

import pytest

from pipeline.errors import PermanentFailure, TransientFailure
from pipeline.index.batch import PointBatch
from pipeline.index.load import NotLoaded, digest_of, load_month
from tests.unit.index.building import make_points, passage_id
from tests.unit.index.fake import FakeIndex

MONTH = "2024-03"


def single(numbers: range) -> list[PointBatch]:
    """Points in batches of one."""
    return [make_points([number]) for number in numbers]


def test_a_first_load_sends_everything_and_a_second_nothing() -> None:
    index = FakeIndex()
    first = load_month(index, MONTH, [make_points(range(10))])
    index.calls.clear()
    second = load_month(index, MONTH, [make_points(range(10))])
    assert (first.sent, second.sent, second.removed) == (10, 0, 0)
    assert first.expected == second.expected
    assert not [call for call in index.calls if call.startswith("upsert")]


def test_only_what_is_new_or_changed_is_sent_and_what_is_stale_goes() -> None:
    index = FakeIndex()
    load_month(index, MONTH, [make_points(range(10))])
    load = load_month(index, MONTH, [make_points([0], content="second"), make_points(range(2, 12))])
    assert (load.sent, load.removed) == (3, 1)
    assert passage_id(1) not in index.points
    assert index.count(MONTH) == 11


def test_the_digest_of_a_month_is_over_its_lines_in_order() -> None:
    assert digest_of({"b": "2", "a": "1"}) == hashlib.sha256(b"a 1\nb 2").hexdigest()
    assert digest_of({}) == hashlib.sha256(b"").hexdigest()


def test_strangers_of_the_month_are_taken_out_and_other_months_are_left_alone() -> None:
    index = FakeIndex()
    index.points = {17: {"month": MONTH}, 18: {"month": "2024-04"}}
    assert load_month(index, MONTH, [make_points(range(2))]).removed == 1
    assert (17 in index.points, 18 in index.points) == (False, True)


def test_a_load_tells_how_far_it_is() -> None:
    told: list[int] = []
    load_month(FakeIndex(), MONTH, single(range(3)), on_progress=told.append)
    assert told == [1, 2, 3]


def test_a_first_load_is_indexed_once_at_its_end_and_a_small_one_goes_on_being_indexed() -> None:
    index = FakeIndex()
    load_month(index, MONTH, [make_points(range(40))], expected_rows=40)
    assert (index.calls[0], index.calls[-1], index.calls.count("build")) == ("defer", "build", 1)
    index.calls.clear()
    load_month(index, MONTH, [make_points(range(44))], expected_rows=44)
    assert (index.calls.count("defer"), index.calls[-1]) == (0, "build")


def test_a_load_that_others_follow_leaves_the_graph_to_them() -> None:
    index = FakeIndex()
    load_month(index, MONTH, [make_points(range(40))], expected_rows=40, build_graph=False)
    assert index.calls == ["upsert 40", "delete 0"]


class _Unreliable(FakeIndex):
    """An index that refuses some points, each with the error given for it."""

    refused: dict[str, Exception]

    def upsert(self, points: PointBatch) -> None:
        for identifier in points.ids:
            if identifier in self.refused:
                raise self.refused[identifier]
        super().upsert(points)


def test_what_the_index_does_not_take_is_named_and_the_rest_goes_in() -> None:
    index = _Unreliable()
    index.refused = {passage_id(3): TransientFailure("the server said 503")}
    with pytest.raises(NotLoaded, match=r"1 points could not be loaded .*the server said 503") as caught:
        load_month(index, MONTH, single(range(10)))
    assert caught.value.ids == [passage_id(3)]
    assert index.count(MONTH) == 9
    assert index.calls[-1] == "build"


def test_a_load_ends_where_nothing_goes_in_any_more_and_names_all_that_is_missing() -> None:
    index = _Unreliable()
    index.refused = {passage_id(number): TransientFailure("no answer") for number in range(100)}
    with pytest.raises(NotLoaded) as caught:
        load_month(index, MONTH, single(range(100)))
    assert sorted(caught.value.ids) == sorted(passage_id(number) for number in range(100))
    assert index.count() == 0


def test_a_load_that_failed_goes_on_where_it_was() -> None:
    index = _Unreliable()
    index.refused = {passage_id(3): TransientFailure("no answer")}
    with pytest.raises(NotLoaded):
        load_month(index, MONTH, single(range(10)))
    index.refused = {}
    assert load_month(index, MONTH, single(range(10))).sent == 1


def test_a_point_that_can_never_be_loaded_ends_the_load_at_once() -> None:
    index = _Unreliable()
    index.refused = {passage_id(0): PermanentFailure("its vector holds NaN")}
    with pytest.raises(PermanentFailure, match="NaN"):
        load_month(index, MONTH, single(range(10)))
