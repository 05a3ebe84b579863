"""An index in memory, for tests of what is done with one."""

from collections import Counter
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

from pipeline.index.passage_index import INTEGERS, KEYWORDS, Layout, PassageIndex, PointId
from tests.unit.index.building import LAYOUT


@dataclass
class FakeIndex(PassageIndex):
    """One collection: payloads by id. `calls` lists the writes, in order."""

    name: str = "passages"
    place: str = "memory"
    in_flight: int = 2
    page: int = 1_000
    points: dict[PointId, dict[str, Any]] = field(default_factory=dict)
    dense: dict[PointId, Any] = field(default_factory=dict)
    made_for: Layout = LAYOUT
    calls: list[str] = field(default_factory=list)

    def layout(self):
        return self.made_for

    def count(self, month=None, *, wait=True):
        return len(self.points) if month is None else len(list(self.contents(month)))

    def month_counts(self, *, wait=True):
        return Counter(str(payload["month"]) for payload in self.points.values())

    def values(self, field):
        return sorted({str(payload[field]) for payload in self.points.values() if field in payload})

    def defer_indexing(self, new_points=None):
        self.calls.append(f"defer {new_points}")

    def build_graph(self, *, wait=False):
        self.calls.append("build")

    def close(self):
        self.calls.append("close")

    def _create(self, layout):
        self.made_for = layout

    def _create_payload_indexes(self):
        pass

    def _indexed_fields(self):
        return (*KEYWORDS, *INTEGERS)

    def _upsert(self, points):
        self.calls.append(f"upsert {len(points)}")
        for number, (identifier, payload) in enumerate(
            zip(points.ids, points.payloads, strict=True)
        ):
            self.points[identifier] = dict(payload)
            self.dense[identifier] = points.dense[number]

    def _delete(self, ids):
        self.calls.append(f"delete {len(ids)}")
        for identifier in ids:
            self.points.pop(identifier, None)

    def _page(self, where, fields, offset):
        """All points of the months that `where` names, on one page."""
        return [
            SimpleNamespace(id=identifier, payload=payload)
            for identifier, payload in self.points.items()
            if all(
                (payload.get("month") in condition.values) != condition.negated
                for condition in where
            )
        ], None

    def _query(self, searches):
        def score(point, query):
            return float(self.dense[point] @ query.dense)

        return [
            [
                SimpleNamespace(id=point, score=score(point, query), payload=self.points[point])
                for point in sorted(
                    self.points, key=lambda point: (-score(point, query), str(point))
                )[: request.limit]
            ]
            for query, request in searches
        ]

    def _retrieve(self, ids):
        return [
            SimpleNamespace(id=passage, payload=self.points[passage])
            for passage in ids
            if passage in self.points
        ]
