"""Loading a month: what is sent, what is taken out, which points could not be loaded; and the audit
of a month. Points by columns: taking and splitting them, and what no engine is given.
"""

import uuid
from dataclasses import replace

import numpy as np
import pytest

from pipeline.errors import PermanentFailure, TransientFailure
from pipeline.index.batch import check_points
from pipeline.index.load import audit_month, load_month
from tests.cases import cases_beside
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
    with pytest.raises(TransientFailure, match="the server said 503"):
        load_month(index, MONTH, single(range(10)))
    loaded = len(index.points)
    assert 3 <= loaded < 9
    assert index.calls[-1] == "build"
    index.refused = {passage_id(9): PermanentFailure("its vector holds NaN")}
    with pytest.raises(PermanentFailure):
        load_month(index, MONTH, single([9]))
    index.refused = {}
    assert load_month(index, MONTH, single(range(10))).sent == 10 - loaded


def expected_of(points):
    """The digests that the tables would expect."""
    digests = [payload["digest"] for payload in points.payloads]
    return dict(zip(points.ids, digests, strict=True))


IDS = {
    "the second": passage_id(1),
    "a copy": str(uuid.uuid5(uuid.NAMESPACE_URL, "a copy")),
    "a number": 17,
    "a random one": str(uuid.UUID(int=4, version=4)),
    "of a passage that is gone": passage_id(99),
}


@cases_beside("identifier", "digest", "kind", "present")
def test_a_point_that_should_not_be_there_is_named_by_its_kind(identifier, digest, kind, present):
    points = make_points(range(4))
    index, expected = FakeIndex(points, make_points([9], month="2024-04")), expected_of(points)
    if digest == "of the second":
        digest = expected[passage_id(1)]
    index.points[IDS[identifier]] = {"month": MONTH, "digest": digest or None}
    audit = audit_month(index, MONTH, expected)
    surplus = {name: getattr(audit, name) for name in ("stale", "duplicate", "foreign")}
    nothing = dict.fromkeys(surplus, ())
    assert surplus == nothing | {kind: (IDS[identifier],)}
    assert (audit.present, audit.missing, audit.clean) == (present, (), False)
    load_month(index, MONTH, [points])
    assert audit_month(index, MONTH, expected).clean


def test_an_id_that_is_listed_twice_is_a_duplicate():
    index = FakeIndex(make_points(range(3)))
    listed = index.contents(MONTH)
    index.contents = lambda month: [*listed, listed[0]]
    audit = audit_month(index, MONTH, expected_of(make_points(range(3))))
    assert (audit.duplicate, audit.present) == ((passage_id(0),), 3)


def _terms(vector):
    return vector.ids.tolist(), vector.weights.tolist()


def _rows(points):
    """Every point's columns as values that compare."""
    return [
        (
            identifier,
            points.dense[number].tolist(),
            _terms(points.lexical.row(number)),
            _terms(points.sparse.row(number)),
            points.payloads[number],
        )
        for number, identifier in enumerate(points.ids)
    ]


def test_points_that_are_taken_keep_their_columns():
    points = make_points(range(9))
    taken = points.take(np.array([7, 2, 3], np.int64))
    assert _rows(taken) == [_rows(points)[number] for number in (7, 2, 3)]
    check_points(taken)


@pytest.mark.parametrize("most", [1, 1_500, 4 << 20])
def test_parts_hold_every_point_once_and_in_order(most):
    points = make_points(range(9))
    parts = list(points.split(most))
    assert all(map(len, parts))
    assert [row for part in parts for row in _rows(part)] == _rows(points)
    for part in parts:
        check_points(part)


def test_the_authors_of_a_paper_count_in_the_size_of_a_request():
    points = make_points(range(4), authors=["ann lee"] * 100_000)
    assert [len(part) for part in points.split()] == [1, 1, 1, 1]


@cases_beside("column", "value", "number")
def test_a_vector_that_no_engine_can_take_is_refused_by_name(column, value, number):
    points = make_points(range(3), month="2024-05")
    if column == "dense":
        points.dense[number, 4] = value
    else:
        points.lexical.weights[3 * number + 1] = value
    with pytest.raises(
        PermanentFailure, match=rf"{passage_id(number)}.*2024-05 --select embeddings"
    ):
        check_points(points)


def test_a_lexical_vector_without_a_weight_for_each_id_is_refused():
    points = make_points(range(3))
    shorter = replace(points.lexical, weights=points.lexical.weights[:-1])
    with pytest.raises(PermanentFailure, match="without a weight for each id"):
        check_points(replace(points, lexical=shorter))
