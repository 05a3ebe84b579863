"""Loading a month: what is sent, what is taken out, which points could not be loaded; and the audit
of a month.
"""

import hashlib
import uuid

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.errors import PermanentFailure, TransientFailure
from pipeline.index.load import audit_month, digest_of, load_month
from tests.unit.index.building import make_points, passage_id
from tests.unit.index.fake_index import FakeIndex

MONTH = "2024-03"


def single(numbers):
    """Points in batches of one."""
    return [make_points([number]) for number in numbers]


def test_the_digest_of_a_month_is_over_its_lines_in_order():
    assert digest_of({"b": "2", "a": "1"}) == hashlib.sha256(b"a 1\nb 2").hexdigest()
    assert digest_of({}) == hashlib.sha256(b"").hexdigest()


def test_a_load_tells_how_far_it_is():
    told = []
    load_month(FakeIndex(), MONTH, single(range(3)), on_progress=told.append)
    assert told == [1, 2, 3]


def test_an_index_is_given_the_number_of_new_points_and_built_once_at_the_end():
    index = FakeIndex()
    load_month(index, MONTH, [make_points(range(40))], expected_rows=40)
    assert index.calls == ["defer 40", "upsert 40", "build"]
    index.calls.clear()
    load_month(index, MONTH, [make_points(range(44))], expected_rows=44)
    assert index.calls == ["defer 4", "upsert 4", "build"]


def test_a_load_that_others_follow_leaves_the_graph_to_them():
    index = FakeIndex()
    load_month(index, MONTH, [make_points(range(40))], expected_rows=40, build_graph=False)
    assert index.calls == ["upsert 40"]


class _Unreliable(FakeIndex):
    """An index that refuses some points, each with the error given for it."""

    refused: dict[str, Exception]

    def upsert(self, points):
        for identifier in points.ids:
            if identifier in self.refused:
                raise self.refused[identifier]
        super().upsert(points)


def test_a_load_ends_where_points_do_not_go_in_and_the_next_one_sends_the_rest():
    index = _Unreliable()
    index.refused = {passage_id(3): TransientFailure("the server said 503")}
    with pytest.raises(
        TransientFailure,
        match=rf"{MONTH} is not loaded completely into passages: the server said 503",
    ):
        load_month(index, MONTH, single(range(10)))
    loaded = index.count(MONTH)
    assert 3 <= loaded < 9
    assert index.calls[-1] == "build"
    index.refused = {}
    assert load_month(index, MONTH, single(range(10))).sent == 10 - loaded


def test_a_point_that_can_never_be_loaded_ends_the_load_at_once():
    index = _Unreliable()
    index.refused = {passage_id(0): PermanentFailure("its vector holds NaN")}
    with pytest.raises(PermanentFailure, match="NaN"):
        load_month(index, MONTH, single(range(10)))


def expected_of(points):
    """The digests that the tables would expect."""
    return {
        point: payload["digest"] for point, payload in zip(points.ids, points.payloads, strict=True)
    }


COPY = str(uuid.uuid5(uuid.NAMESPACE_URL, "a copy"))
RANDOM = str(uuid.UUID(int=4, version=4))
DIGESTS = [payload["digest"] for payload in make_points(range(4)).payloads]


@pytest.mark.parametrize(
    ("identifier", "payload", "kind", "present"),
    [
        (passage_id(1), {"digest": "of an older text"}, "stale", 3),
        (passage_id(1), {}, "stale", 3),
        (COPY, {"digest": DIGESTS[1]}, "duplicate", 4),
        (17, {"digest": "of somebody"}, "foreign", 4),
        (RANDOM, {"digest": "of somebody"}, "foreign", 4),
        (passage_id(99), {}, "foreign", 4),
        (passage_id(99), {"digest": "of a passage that is gone"}, "stale", 4),
    ],
)
def test_a_point_that_should_not_be_there_is_named_by_its_kind(identifier, payload, kind, present):
    index = FakeIndex()
    index.upsert(make_points(range(4)))
    index.upsert(make_points([9], month="2024-04"))
    expected = expected_of(make_points(range(4)))
    index.points[identifier] = {"month": MONTH, **payload}
    audit = audit_month(index, MONTH, expected)
    surplus = {name: getattr(audit, name) for name in ("stale", "duplicate", "foreign")}
    assert surplus == {"stale": (), "duplicate": (), "foreign": ()} | {kind: (identifier,)}
    assert (audit.present, audit.missing, audit.clean) == (present, (), False)


class _Repeating(FakeIndex):
    """An index that lists its first point twice."""

    def contents(self, month):
        points = list(super().contents(month))
        return iter([*points, points[0]])


def test_an_id_that_is_listed_twice_is_a_duplicate():
    index = _Repeating()
    index.upsert(make_points(range(3)))
    audit = audit_month(index, MONTH, expected_of(make_points(range(3))))
    assert (audit.duplicate, audit.present) == ((passage_id(0),), 3)


@given(
    there=st.dictionaries(st.integers(0, 20), st.sampled_from(["first", "second"])),
    wanted=st.sets(st.integers(0, 20)),
    strangers=st.sets(st.integers(0, 5)),
)
def test_every_difference_is_named_once_and_a_load_repairs_all(there, wanted, strangers):
    index = FakeIndex()
    for number, content in there.items():
        index.upsert(make_points([number], content=content))
    index.points |= {number: {"month": MONTH} for number in strangers}
    points = make_points(sorted(wanted))
    audit = audit_month(index, MONTH, expected_of(points))
    right = {passage_id(number) for number in wanted if there.get(number) == "first"}
    assert audit.present == len(right)
    assert set(audit.missing) == {passage_id(number) for number in wanted - there.keys()}
    assert set(audit.surplus) == index.points.keys() - right
    assert len(set(audit.surplus)) == len(audit.surplus)
    load = load_month(index, MONTH, [points])
    assert audit_month(index, MONTH, load.expected).clean
