"""How many months can be searched, which searches and answers say while a load runs."""

from pipeline import tables
from pipeline.ops.run_months import loading_note
from pipeline.settings import SAMPLE_DUMP
from tests.cases import cases
from tests.month_tables import write_table
from tests.workspaces import make_workspace


@cases("unit/cases.toml", "months_are_counted", ("begun", "loaded", "note"))
def test_the_months_of_the_dump_are_counted_if_the_data_root_has_no_others(
    tmp_path, begun, loaded, note
):
    place = make_workspace(tmp_path, dump_dir=SAMPLE_DUMP)
    for table, months in ((tables.DUMP_MEMBERS, begun), (tables.INDEX_RECEIPTS, loaded)):
        for month in months:
            write_table(place.root, table, month, [])
    assert loading_note(place) == note
