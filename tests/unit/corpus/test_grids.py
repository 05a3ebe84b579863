"""Which rows of a table are its head, and the Markdown that comes of it."""

from contextlib import nullcontext

import pytest

from pipeline.corpus.parse.grids import TableCell, head_rows, markdown_grid, span
from pipeline.corpus.parse.parsed_page import PageError
from tests.cases import cases_beside


def head(text, columns=1, rows=1):
    return TableCell(text, columns, rows, is_head=True)


def line(*texts, ruled=False):
    return [TableCell(text, ruled=ruled) for text in texts]


def test_a_head_row_of_numbers_below_one_that_spans_no_columns_is_data():
    rows = [
        [head("Model", rows=2), head("AAPL", 2)],
        [head("CR%"), head("SR")],
        [head("B&H"), head("-5.23"), head("7.5$\\pm$0.2")],
        line("MACD", "-1.49", "0.81"),
    ]
    assert head_rows(rows) == 2
    assert markdown_grid(rows)[0].splitlines()[:3] == [
        "| Model | AAPL CR% | AAPL SR |",
        "| --- | --- | --- |",
        "| B&H | -5.23 | 7.5$\\pm$0.2 |",
    ]


def test_numbers_below_a_head_that_spans_columns_name_the_columns():
    rows = [
        [head("", rows=1), head("Temperature", 2)],
        [head("Method"), head("0.5"), head("1.0")],
        line("a", "1", "2"),
    ]
    assert head_rows(rows) == 2


def test_a_first_row_that_names_groups_alone_is_joined_with_the_names_below_it():
    rows = [
        [TableCell(""), TableCell("Accuracy", 2)],
        line("Method", "en", "zh"),
        line("anchors", "69", "71", ruled=True),
    ]
    assert markdown_grid(rows)[0].splitlines()[0] == "| Method | Accuracy en | Accuracy zh |"


def test_such_a_head_reaches_to_the_first_line_across_the_table():
    rows = [
        [TableCell(""), TableCell("Low", 2)],
        line("Temp", "Standard", "Top-p"),
        line("", "Sampling", "= 0.1"),
        line("T=1", "7.55", "5.96", ruled=True),
        line("T=2", "7.55", "5.96", ruled=True),
    ]
    assert head_rows(rows) == 3


@pytest.mark.parametrize(
    "first",
    [[TableCell("Name"), TableCell("Accuracy", 2)], [TableCell(""), TableCell("x")]],
    ids=["other heads", "no spans"],
)
def test_without_empty_cells_beside_its_groups_a_first_row_is_the_head_alone(
    first,
):
    assert head_rows([first, line("a", "b", "c"), line("d", "e", "f", ruled=True)]) == 1


@cases_beside("text", "is_number")
def test_what_counts_as_a_number(text, is_number):
    assert TableCell(text).is_number is is_number


@pytest.mark.parametrize(
    ("value", "columns"), [(None, 1), ("", 1), ("-3", 1), ("3", 3), ("99999", 200)]
)
def test_spans_stay_within_bounds(value, columns):
    assert span(value) == columns


@pytest.mark.parametrize(("rows", "fits"), [(999, True), (1_001, False)])
def test_a_table_has_at_most_a_million_cells(rows, fits):
    table = [[TableCell("a")] * 1_000, *([TableCell("b")] for _ in range(rows))]
    with nullcontext() if fits else pytest.raises(PageError, match="table_too_large"):
        markdown_grid(table)
