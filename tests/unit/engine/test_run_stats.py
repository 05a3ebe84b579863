"""Statistics of past runs: how long they took."""

from pipeline.engine.run_stats import StageTiming, note_timing, read_timings
from pipeline.storage.data_root import DataRoot


def test_the_last_twenty_runs_with_the_same_inputs_are_kept(tmp_path):
    root = DataRoot(tmp_path)
    note_timing(root, "scores", "2024-03", StageTiming("other", 1.0, {}))
    runs = [StageTiming("a", float(number), {"llm_calls": number}) for number in range(25)]
    for run in runs:
        note_timing(root, "scores", "2024-03", run)
    note_timing(root, "scores", "2024-04", runs[0])
    assert read_timings(root, "scores", "2024-03") == runs[5:]
    note_timing(root, "scores", "2024-03", StageTiming("b", 2.0, {}))
    assert read_timings(root, "scores", "2024-03") == [StageTiming("b", 2.0, {})]


def test_a_file_that_cannot_be_read_counts_for_nothing(tmp_path):
    root = DataRoot(tmp_path)
    assert read_timings(root, "scores", "2024-03") == []
    for damage in ("{", "[3]", '[{"seconds": "long"}]'):
        file = tmp_path / "timings" / "scores" / "2024-03.json"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(damage)
        assert read_timings(root, "scores", "2024-03") == []
