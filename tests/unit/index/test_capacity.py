"""How many passages the doctor expects."""

from pipeline.ops.doctor.servers import expected_passages, shards_of
from pipeline.settings import PROJECT
from tests.unit.index.building import TEXTS, make_workspace, write_month


def test_months_of_the_data_root_are_counted_and_pages_of_the_dump_are_estimated(workspace):
    place = workspace.root.path
    without_dump = make_workspace(place, dump_dir=place / "absent")
    assert expected_passages(without_dump) == 0
    write_month(workspace, "2024-03")
    assert expected_passages(without_dump) == len(TEXTS)
    with_dump = make_workspace(place, dump_dir=PROJECT / "examples" / "dump")
    to_come = expected_passages(with_dump) - len(TEXTS)
    assert to_come > 0
    assert to_come % 34 == 0
    assert [shards_of(count) for count in (0, 1_500_000, 1_500_001)] == [1, 1, 2]
