"""Which columns of the tables may be published."""

from pipeline.ops.export import publications
from pipeline.tables import TABLES
from tests.cases import cases


def test_each_column_of_each_table_is_published_or_withheld():
    lists = {
        table: sorted(columns.published + columns.texts + columns.withheld)
        for table, columns in publications().items()
    }
    assert lists == {name: sorted(table.schema.names) for name, table in TABLES.items()}
    assert all(
        "arxiv_id" in columns.published for columns in publications().values() if columns.texts
    )


@cases("unit/cases.toml", "withheld", ("table", "names"))
def test_vectors_texts_of_models_names_and_addresses_are_withheld(table, names):
    """The lists that the test above would also accept elsewhere."""
    assert set(publications()[table].withheld) == set(names)
