"""The audit of one month: each kind of what can be wrong is named, and nothing else is."""

from __future__ import annotations

import uuid
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.index.batch import PointBatch
from pipeline.index.load import audit_month, load_month
from pipeline.index.passage_index import PointId
from tests.unit.index.building import make_points, passage_id
from tests.unit.index.fake import FakeIndex

MONTH = "2024-03"


def expected_of(points: PointBatch) -> dict[str, str]:
    """What the tables would ask for."""
    return {each: payload["digest"] for each, payload in zip(points.ids, points.payloads, strict=True)}


@pytest.fixture
def index() -> FakeIndex:
    """Four points as they should be."""
    made = FakeIndex()
    made.upsert(make_points(range(4)))
    return made


def test_an_index_as_it_should_be_is_clean(index: FakeIndex) -> None:
    index.upsert(make_points([9], month="2024-04"))
    audit = audit_month(index, MONTH, expected_of(make_points(range(4))))
    assert audit.clean
    assert (audit.expected, audit.present, audit.collection) == (4, 4, "passages")


def test_a_point_that_is_not_there_is_missing(index: FakeIndex) -> None:
    audit = audit_month(index, MONTH, expected_of(make_points(range(6))))
    assert audit.missing == tuple(sorted([passage_id(4), passage_id(5)]))
    assert (audit.present, audit.surplus, audit.clean) == (4, (), False)


def test_a_point_with_other_content_is_stale_and_neither_present_nor_missing(index: FakeIndex) -> None:
    index.upsert(make_points([2], content="second"))
    audit = audit_month(index, MONTH, expected_of(make_points(range(4))))
    assert (audit.stale, audit.missing, audit.present) == ((passage_id(2),), (), 3)


def test_a_point_of_a_passage_that_is_gone_is_stale(index: FakeIndex) -> None:
    audit = audit_month(index, MONTH, expected_of(make_points(range(3))))
    assert (audit.stale, audit.present) == ((passage_id(3),), 3)


def test_a_point_without_a_digest_is_stale_where_a_passage_has_its_id(index: FakeIndex) -> None:
    del index.points[passage_id(0)]["digest"]
    audit = audit_month(index, MONTH, expected_of(make_points(range(4))))
    assert (audit.stale, audit.foreign, audit.present) == ((passage_id(0),), (), 3)


def test_a_copy_under_another_id_is_a_duplicate(index: FakeIndex) -> None:
    copy = str(uuid.uuid5(uuid.NAMESPACE_URL, "a copy"))
    index.points[copy] = index.points[passage_id(1)]
    audit = audit_month(index, MONTH, expected_of(make_points(range(4))))
    assert (audit.duplicate, audit.present) == ((copy,), 4)


@pytest.mark.parametrize(
    ("identifier", "payload"),
    [
        (17, {"digest": "of somebody"}),
        (str(uuid.UUID(int=4, version=4)), {"digest": "of somebody"}),
        (passage_id(99), {}),
    ],
    ids=["a number", "a random id", "no digest"],
)
def test_a_point_of_somebody_else_is_foreign(index: FakeIndex, identifier: str | int, payload: dict[str, str]) -> None:
    index.points[identifier] = {"month": MONTH, **payload}
    audit = audit_month(index, MONTH, expected_of(make_points(range(4))))
    assert (audit.foreign, audit.present, audit.clean) == ((identifier,), 4, False)


class _Stammering(FakeIndex):
    """An index that lists its first point twice."""

    def contents(self, month: str) -> Iterator[tuple[PointId, str | None]]:
        found = list(super().contents(month))
        return iter([*found, found[0]])


def test_an_id_that_is_listed_twice_is_a_duplicate() -> None:
    index = _Stammering()
    index.upsert(make_points(range(3)))
    audit = audit_month(index, MONTH, expected_of(make_points(range(3))))
    assert (audit.duplicate, audit.present) == ((passage_id(0),), 3)


def test_a_message_tells_every_kind(index: FakeIndex) -> None:
    index.points[17] = {"month": MONTH}
    del index.points[passage_id(1)]
    audit = audit_month(index, MONTH, expected_of(make_points(range(4))))
    assert audit.describe() == "of 4 points 3 are present; 1 missing, 0 stale, 0 duplicate, 1 foreign"


@given(
    there=st.dictionaries(st.integers(0, 20), st.sampled_from(["first", "second"])),
    asked=st.sets(st.integers(0, 20)),
    strangers=st.sets(st.integers(0, 5)),
)
def test_every_difference_is_named_once_and_a_load_mends_all(
    there: dict[int, str], asked: set[int], strangers: set[int]
) -> None:
    index = FakeIndex()
    for number, content in there.items():
        index.upsert(make_points([number], content=content))
    index.points |= {number: {"month": MONTH} for number in strangers}
    points = make_points(sorted(asked))
    audit = audit_month(index, MONTH, expected_of(points))
    right = {passage_id(number) for number in asked if there.get(number) == "first"}
    assert audit.present == len(right)
    assert set(audit.missing) == {passage_id(number) for number in asked - there.keys()}
    assert set(audit.surplus) == index.points.keys() - right
    assert len(set(audit.surplus)) == len(audit.surplus)
    load = load_month(index, MONTH, [points])
    assert audit_month(index, MONTH, load.expected).clean
