"""The numbers of a month's corpus."""

from __future__ import annotations

import pytest

from pipeline.report.corpus import paper_rows
from tests.unit.evaluation.made_up import paper


def test_a_paper_without_visible_text_has_no_share_kept() -> None:
    empty = {**paper("2403.90002"), "chars_seen": 0, "chars_kept": 0}
    rows = paper_rows([empty, paper("2403.90001")], {"2403.90001": 3}, {}, {})
    assert [(row[1].value, row[5]) for row in rows] == [("2403.90001", 3), ("2403.90002", 0)]
    assert rows[0][-1].value == pytest.approx(30_914 / 31_200)
    assert rows[1][-1].value is None
