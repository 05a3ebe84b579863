"""The sentence or table row of a passage that fits a query best, and what is shown around it."""

from pipeline.index.excerpts import with_excerpts
from tests.cases import cases
from tests.unit.answering.scripted_answers import passage

TABLE = """Table 3: Fuel of all boats.

| Boat | # of nets | fuel (l) |
| --- | --- | --- |
| Old | 7 | 120 |
| New \\| long | many | 60 |
| Boats without fuel are left out. | | |
"""
ROWS = TABLE.splitlines()


@cases(
    "unit/index/cases.toml", "a_row_is_best_if_the_query_names_it_and_a_column", ("query", "row")
)
def test_a_row_is_best_if_the_query_names_it_and_a_column(query, row):
    """row: of the table, the number of the best."""
    best = [] if row is None else [ROWS[row]]
    (found,) = with_excerpts(query, [passage(1, TABLE, kind="table")], 40)
    assert list(found.best_sentences) == best
    rows = [line for line in found.excerpt.splitlines() if line in ROWS[4:]]
    assert rows == (best if row in (4, 5) else ROWS[4:])
    assert found.excerpt.startswith("\n".join([ROWS[0], *ROWS[2:4]])) or rows == ROWS[4:]


def test_the_best_sentence_is_shown_with_those_after_it_up_to_a_length():
    text = "Boats are old. The new hull saves fuel [@bib.bib7]. Paint is dear. Oars rot."
    first, second = with_excerpts("fuel of the hull", [passage(1, text), passage(2, "No.")], 30)
    assert first.best_sentences == ("The new hull saves fuel [7].",)
    assert first.excerpt == "… The new hull saves fuel [7]. …"
    assert (second.best_sentences, second.excerpt) == ((), "No.")
