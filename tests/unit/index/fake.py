"""An index in memory, for tests of what is done with one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from pipeline.errors import PermanentFailure, SettingError
from pipeline.index.batch import PointBatch
from pipeline.index.fusion import best_first
from pipeline.index.layout import Layout
from pipeline.index.passage_index import PointId, Query, Request, ScoredPassage


@dataclass
class FakeIndex:
    """One collection: payloads by id. `calls` tells what was asked of it, in order."""

    name: str = "passages"
    in_flight: int = 2
    points: dict[PointId, dict[str, Any]] = field(default_factory=dict)
    dense: dict[PointId, Any] = field(default_factory=dict)
    made_for: Layout | None = None
    calls: list[str] = field(default_factory=list)

    def layout(self) -> Layout | None:
        return self.made_for

    def create(self, layout: Layout) -> None:
        if self.made_for not in (None, layout):
            raise PermanentFailure(f"{self.name} has another layout")
        self.made_for = layout

    def upsert(self, points: PointBatch) -> None:
        self.calls.append(f"upsert {len(points)}")
        for number, (identifier, payload) in enumerate(zip(points.ids, points.payloads, strict=True)):
            self.points[identifier] = dict(payload)
            self.dense[identifier] = points.dense[number]

    def delete(self, ids: Sequence[PointId]) -> None:
        self.calls.append(f"delete {len(ids)}")
        for identifier in ids:
            self.points.pop(identifier, None)

    def contents(self, month: str) -> Iterator[tuple[PointId, str | None]]:
        for identifier, payload in list(self.points.items()):
            if payload.get("month") == month:
                yield identifier, payload.get("digest")

    def outside(self, months: Sequence[str]) -> Iterator[PointId]:
        return iter([each for each, payload in self.points.items() if payload.get("month") not in months])

    def count(self, month: str | None = None, *, wait: bool = True) -> int:
        return len(self.points) if month is None else len(list(self.contents(month)))

    def values(self, field: str) -> list[str]:
        return sorted({str(payload[field]) for payload in self.points.values() if field in payload})

    def search(self, searches: Sequence[tuple[Query, Request]]) -> list[list[ScoredPassage]]:
        return [
            best_first(
                [
                    ScoredPassage(str(point), float(self.dense[point] @ query.dense), self.points[point])
                    for point in self.points
                ],
                request.limit,
            )
            for query, request in searches
        ]

    def payloads(self, passages: Sequence[str]) -> Mapping[str, Mapping[str, Any]]:
        return {passage: self.points[passage] for passage in passages if passage in self.points}

    def defer_indexing(self) -> None:
        self.calls.append("defer")

    def build_graph(self, *, wait: bool = False) -> None:
        self.calls.append("build")

    def close(self) -> None:
        self.calls.append("close")


@dataclass
class FakeCollections:
    """The collections of one alias."""

    alias: str = "citeloom"
    engine: Literal["edge", "server"] = "server"
    made: dict[str, FakeIndex] = field(default_factory=dict)
    live_name: str | None = None

    def live(self) -> str | None:
        return self.live_name

    def names(self) -> list[str]:
        return sorted(name for name, index in self.made.items() if index.made_for is not None)

    def collection(self, name: str) -> FakeIndex:
        return self.made.setdefault(name, FakeIndex(name))

    def make_live(self, name: str) -> None:
        self.live_name = name

    def drop(self, name: str) -> None:
        if name == self.live_name:
            raise SettingError(f"{name} is live")
        self.made.pop(name, None)

    def close(self) -> None:
        pass
