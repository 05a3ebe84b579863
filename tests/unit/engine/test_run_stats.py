"""Statistics of past runs: how long they took."""

from pipeline.engine.run_stats import StageTiming, note_timing, read_timings
from pipeline.storage.data_root import DataRoot


def test_runs_with_the_same_inputs_stand_side_by_side(tmp_path):
    root = DataRoot(tmp_path)
    first, second = (
        StageTiming("a", 1.5, {"llm_calls": 3}),
        StageTiming("a", 0.5, {"llm_calls": 3, "llm_cached": 3}),
    )
    note_timing(root, "scores", "2024-03", first)
    note_timing(root, "scores", "2024-03", second)
    note_timing(root, "scores", "2024-04", second)
    assert read_timings(root, "scores", "2024-03") == [first, second]


def test_runs_with_other_inputs_are_forgotten(tmp_path):
    root = DataRoot(tmp_path)
    note_timing(root, "scores", "2024-03", StageTiming("a", 1.0, {}))
    note_timing(root, "scores", "2024-03", StageTiming("b", 2.0, {}))
    assert [timing.seconds for timing in read_timings(root, "scores", "2024-03")] == [2.0]


def test_no_more_than_twenty_runs_are_kept(tmp_path):
    root = DataRoot(tmp_path)
    for number in range(25):
        note_timing(root, "scores", "2024-03", StageTiming("a", float(number), {}))
    assert [timing.seconds for timing in read_timings(root, "scores", "2024-03")] == [
        float(n) for n in range(5, 25)
    ]


def test_a_file_that_cannot_be_read_counts_for_nothing(tmp_path):
    root = DataRoot(tmp_path)
    assert read_timings(root, "scores", "2024-03") == []
    for damage in ("{", "[3]", '[{"seconds": "long"}]'):
        file = tmp_path / "timings" / "scores" / "2024-03.json"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(damage)
        assert read_timings(root, "scores", "2024-03") == []
