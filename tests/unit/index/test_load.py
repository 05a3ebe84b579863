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

MONTH = "2024-03"


class FakeIndex:
    """One collection in memory: payloads by id. `calls` lists the writes, in order; `refused` has
    the errors of points that it does not take.
    """

    name, in_flight = "passages", 2

    def __init__(self, *batches):
        self.points, self.calls, self.refused = {}, [], {}
        for points in batches:
            self.upsert(points)

    def contents(self, month):
        return [
            (identifier, payload.get("digest"))
            for identifier, payload in self.points.items()
            if payload["month"] == month
        ]

    def upsert(self, points):
        self.calls.append(f"upsert {len(points)}")
        for identifier, payload in zip(points.ids, points.payloads, strict=True):
            if identifier in self.refused:
                raise self.refused[identifier]
            self.points[identifier] = payload

    def delete(self, ids):
        for identifier in ids:
            del self.points[identifier]

    def defer_indexing(self, new_points):
        self.calls.append(f"defer {new_points}")

    def build_graph(self):
        self.calls.append("build")

    def unindexed_fields(self):
        return ()


def single(numbers):
    """Points in batches of one."""
    return [make_points([number]) for number in numbers]


def test_the_digest_of_a_month_is_over_its_lines_in_order():
    assert digest_of({"b": "2", "a": "1"}) == hashlib.sha256(b"a 1\nb 2").hexdigest()
    assert digest_of({}) == hashlib.sha256(b"").hexdigest()


def test_an_index_is_given_the_number_of_new_points_and_built_once_at_the_end():
    index, progress = FakeIndex(make_points(range(40))), []
    index.calls.clear()
    batches = [make_points(range(40)), make_points(range(40, 44))]
    load_month(index, MONTH, batches, expected_rows=44, on_progress=progress.append)
    assert index.calls == ["defer 4", "upsert 4", "build"]
    assert progress == [40, 44]


def test_a_load_that_others_follow_leaves_the_graph_to_them():
    index = FakeIndex()
    load_month(index, MONTH, [make_points(range(40))], expected_rows=40, build_graph=False)
    assert index.calls == ["upsert 40"]


def test_a_load_ends_where_points_do_not_go_in_and_the_next_one_sends_the_rest():
    index = FakeIndex()
    index.refused = {passage_id(3): TransientFailure("the server said 503")}
    with pytest.raises(
        TransientFailure,
        match=rf"{MONTH} is not loaded completely into passages: the server said 503",
    ):
        load_month(index, MONTH, single(range(10)))
    loaded = len(index.points)
    assert 3 <= loaded < 9
    assert index.calls[-1] == "build"
    index.refused = {passage_id(9): PermanentFailure("its vector holds NaN")}
    with pytest.raises(PermanentFailure, match="NaN"):
        load_month(index, MONTH, single([9]))
    index.refused = {}
    assert load_month(index, MONTH, single(range(10))).sent == 10 - loaded


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
    index = FakeIndex(make_points(range(4)), make_points([9], month="2024-04"))
    expected = expected_of(make_points(range(4)))
    index.points[identifier] = {"month": MONTH, **payload}
    audit = audit_month(index, MONTH, expected)
    surplus = {name: getattr(audit, name) for name in ("stale", "duplicate", "foreign")}
    assert surplus == {"stale": (), "duplicate": (), "foreign": ()} | {kind: (identifier,)}
    assert (audit.present, audit.missing, audit.clean) == (present, (), False)


def test_an_id_that_is_listed_twice_is_a_duplicate():
    index = FakeIndex(make_points(range(3)))
    listed = index.contents(MONTH)
    index.contents = lambda month: [*listed, listed[0]]
    audit = audit_month(index, MONTH, expected_of(make_points(range(3))))
    assert (audit.duplicate, audit.present) == ((passage_id(0),), 3)


@given(
    there=st.dictionaries(st.integers(0, 20), st.sampled_from(["first", "second"])),
    wanted=st.sets(st.integers(0, 20)),
    strangers=st.sets(st.integers(0, 5)),
)
def test_every_difference_is_named_once_and_a_load_repairs_all(there, wanted, strangers):
    index = FakeIndex(
        *(make_points([number], content=content) for number, content in there.items())
    )
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
