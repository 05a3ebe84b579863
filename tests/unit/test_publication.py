"""Which columns of the tables may be published."""

from pipeline.ops.export import publications
from pipeline.tables import TABLES


def test_each_column_of_each_table_is_published_or_withheld():
    lists = {
        table: sorted(columns.published + columns.texts + columns.withheld)
        for table, columns in publications().items()
    }
    assert lists == {name: sorted(table.schema.names) for name, table in TABLES.items()}
    assert all(
        "arxiv_id" in columns.published for columns in publications().values() if columns.texts
    )


def test_vectors_texts_of_models_names_and_addresses_are_withheld():
    """The lists that the test above would also accept elsewhere."""
    for table, names in {
        "embeddings": {"dense", "sparse_ids", "sparse_weights", "colbert"},
        "papers": {"authors"},  # with e-mail addresses
        "metadata": {"comment"},
        "summaries": {"text", "sentences", "trace", "settings"},
        "answers": {"text", "sentences", "claims", "shown", "queries", "trace", "settings"},
        "human_ratings": {"rater", "comment", "study", "label"},
        "human_grades": {"grader", "comment", "study", "label", "text"},
    }.items():
        assert set(publications()[table].withheld) == names, table
