"""Measures of a month against its neighbours: what is measured, what is warned of."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pipeline import tables
from pipeline.engine.stage import Workspace
from pipeline.evaluation.quality import MEASURES, findings, measured, range_of
from pipeline.settings import load_settings
from pipeline.storage.provenance import Provenance
from pipeline.storage.writing import MonthWriter
from pipeline.tables import Table

MONTHS = tuple(f"2023-{number:02}" for number in range(1, 13))
ODD = "2023-07"
PAPERS_A_MONTH = 40


@pytest.fixture
def place(tmp_path: Path) -> Workspace:
    return Workspace(load_settings(data=tmp_path / "data"))


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    """A data root of twelve months that are alike, but for one that differs in everything."""
    made = Workspace(load_settings(data=tmp_path_factory.mktemp("months") / "data"))
    for number, month in enumerate(MONTHS):
        write_month(made, month, wobble=number % 3, odd=month == ODD)
    return made


def write_month(workspace: Workspace, month: str, *, wobble: int = 0, odd: bool = False) -> None:
    """A month of papers, passages, vectors and a receipt."""
    papers = [{"arxiv_id": f"p{number}"} for number in range(PAPERS_A_MONTH)]
    half = PAPERS_A_MONTH // 2 if odd else 0
    passages = PAPERS_A_MONTH * (3 if odd else 20) + 20 * wobble
    left_out = {"too_slow": 30 if odd else wobble, "withdrawn": 50}
    write(workspace, tables.PAPERS, month, papers, left_out=left_out, notes={"low_grades": half, "cut_off": half})
    write(workspace, tables.PASSAGES, month, [{"passage_id": str(number)} for number in range(passages)])
    vectors = [{"passage_id": str(number)} for number in range(passages)]
    notes = {"truncated": passages if odd else wobble, "off_norm": passages if odd else 0}
    write(workspace, tables.EMBEDDINGS, month, vectors, notes=notes)
    write(workspace, tables.INDEX_RECEIPTS, month, [{"expected": passages, "present": passages - odd}])


def write(
    workspace: Workspace,
    table: Table,
    month: str,
    rows: list[dict[str, Any]],
    *,
    left_out: dict[str, int] | None = None,
    notes: dict[str, int] | None = None,
) -> None:
    """A month of a table; columns that a row does not name are null."""
    with MonthWriter(table, workspace.root.file(table, month)) as writer:
        for row in rows:
            writer.add(row)
        writer.commit(
            Provenance(table.name, month, table.version, 1, "0", "", {}, {}, left_out=left_out or {}, notes=notes or {})
        )


def odd_ones(workspace: Workspace, month: str) -> set[str]:
    """The measures of a month that are warned of."""
    return {found.measure for found in findings(workspace, month) if not found.holds}


def test_a_month_that_falls_out_of_line_warns_in_every_measure_and_its_neighbours_do_not(workspace: Workspace) -> None:
    every_measure = {measure.name for measure in MEASURES}
    assert {month: odd_ones(workspace, month) for month in MONTHS} == {
        month: every_measure if month == ODD else set() for month in MONTHS
    }


def test_what_is_measured_is_what_the_tables_say(workspace: Workspace) -> None:
    told = {found.measure: (found.value, found.count) for found in findings(workspace, ODD)}
    assert told == {
        "parsed": (40 / 70, 70),  # the withdrawn ones were never wanted
        "low_grades": (0.5, 40),
        "cut_off": (0.5, 40),
        "passages_per_paper": (3.0, 40),
        "truncated": (1.0, 120),
        "off_norm": (1.0, 120),
        "indexed": (119 / 120, 120),
    }


def test_a_finding_names_the_value_its_range_and_the_months_it_is_held_against(workspace: Workspace) -> None:
    found = next(finding for finding in findings(workspace, ODD) if finding.measure == "passages_per_paper")
    assert list(found.neighbours) == [month for month in MONTHS if month != ODD]
    assert found.value < found.low < min(found.neighbours.values())
    assert max(found.neighbours.values()) < found.high
    assert found.describe().startswith("passages per paper: 3, expected ")
    assert found.describe().endswith(" by the 11 months around it")


def test_a_month_with_few_neighbours_is_held_to_fixed_bounds_and_measured_anew_once_made_anew(place: Workspace) -> None:
    write_month(place, "2023-01")
    write_month(place, "2023-02", odd=True)
    assert odd_ones(place, "2023-01") == set()
    assert odd_ones(place, "2023-02") == {"parsed", "cut_off", "off_norm", "indexed"}
    write_month(place, "2023-02")
    assert odd_ones(place, "2023-02") == set()


def test_a_small_month_may_differ_more_than_a_large_one() -> None:
    measure = next(each for each in MEASURES if each.name == "low_grades")
    around = [0.05, 0.06, 0.05, 0.04, 0.05]
    (_, small), (_, large) = (range_of(measure, around, count) for count in (10, 10_000))
    assert small > 0.3
    assert large < 0.15


def test_what_an_earlier_version_did_not_note_is_not_measured(place: Workspace) -> None:
    write(place, tables.EMBEDDINGS, "2023-01", [{"truncated": False}], notes={"truncated": 0})
    assert measured(place, tables.EMBEDDINGS, "2023-01") == {"truncated": (0.0, 1)}


def test_a_month_without_papers_has_nothing_to_measure(place: Workspace) -> None:
    write(place, tables.PAPERS, "2023-01", [])
    assert findings(place, "2023-01") == []
