"""The numbers of a month's corpus."""

import pytest

from pipeline.report.pages import share_kept
from tests.unit.evaluation.made_up import paper


def test_a_paper_without_visible_text_has_no_share_kept():
    empty = {**paper("2403.90002"), "chars_seen": 0, "chars_kept": 0}
    assert share_kept(paper("2403.90001")).value == pytest.approx(30_914 / 31_200)
    assert share_kept(empty).value is None
