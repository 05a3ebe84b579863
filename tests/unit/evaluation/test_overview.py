"""The numbers that a report prints."""

from __future__ import annotations

import pytest

from pipeline.evaluation.g_score import CRITERIA
from pipeline.evaluation.overview import (
    colours,
    criteria_bars,
    is_small_model,
    length_bars,
    means,
    paper_lines,
    system_lines,
)
from tests.unit.evaluation.made_up import paper, summary, task


def score(task_id: str, system: str, metric: str, value: float) -> dict[str, object]:
    return {"task_id": task_id, "system": system, "metric": metric, "value": value, "repeat": 0}


def test_a_system_has_the_mean_over_its_own_tasks() -> None:
    rows = [score("a", "chatcite", "rouge1", 20.0), score("b", "chatcite", "rouge1", 30.0)]
    assert means(rows) == {"chatcite": {"rouge1": (25.0, 2)}}


def test_the_order_of_rows_does_not_show_in_a_mean() -> None:
    rows = [score(str(number), "chatcite", "rouge1", 0.1 * number) for number in range(50)]
    assert means(rows) == means(reversed(rows))


def test_calls_and_tokens_of_a_system_are_added_up() -> None:
    rows = [summary(task(identifier), "chatcite") for identifier in ("2403.90001", "2403.90002")]
    (line,) = system_lines(rows, [])
    assert (line.tasks, line.judged, line.calls, line.prompt_tokens) == (2, 0, 84, 122_408)


def test_a_system_that_was_not_judged_has_no_bar() -> None:
    written = [summary(task("2403.90001"), system) for system in ("chatcite", "zero_shot")]
    marks = [score("t", "zero_shot", f"g_{name}", 4.0) for name in CRITERIA]
    lines = system_lines(written, [*marks, score("t", "zero_shot", "g_score", 4.0)])
    bars = criteria_bars(lines)
    assert [name for name, _ in bars] == list(CRITERIA)
    assert [(bar.label, bar.share, bar.series) for _, group in bars[:1] for bar in group] == [("zero_shot", 0.8, 2)]


def test_colours_recur_after_six_systems() -> None:
    assert colours(8) == [1, 2, 3, 4, 5, 6, 1, 2]


def test_passage_lengths_fall_into_bars_of_twenty_words() -> None:
    bars = length_bars([0, 19, 20, 299, 300, 900])
    assert len(bars) == 16
    assert {bar.label: bar.value for bar in bars if bar.value} == {
        "0 to 19 words": 2,
        "20 to 39 words": 1,
        "280 to 299 words": 1,
        "300 words and more": 2,
    }
    assert length_bars([]) == []


def test_a_paper_without_visible_text_has_no_share_kept() -> None:
    empty = {**paper("2403.90002"), "chars_seen": 0, "chars_kept": 0}
    lines = paper_lines([empty, paper("2403.90001")], {"2403.90001": 3}, {}, {})
    assert [(line.arxiv_id, line.passages) for line in lines] == [("2403.90001", 3), ("2403.90002", 0)]
    assert lines[0].kept == pytest.approx(30_914 / 31_200)
    assert lines[1].kept is None


def test_the_embedded_model_is_known_by_its_name() -> None:
    assert is_small_model("SmolLM2-135M-Instruct-Q4_K_M.gguf")
    assert not is_small_model("gpt-4-turbo-preview")
    assert not is_small_model(None)
