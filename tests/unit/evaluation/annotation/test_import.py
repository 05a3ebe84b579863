"""Sheets that come back: what is right is imported, what is wrong is named and costs nothing
else.
"""

from concurrent.futures import ThreadPoolExecutor
from itertools import chain, repeat

import pytest
from typer.testing import CliRunner

from pipeline.doors.cli.app import app
from pipeline.engine.locks import month_lock
from pipeline.errors import MissingInput, SettingError
from pipeline.evaluation.annotation.study import import_files
from pipeline.tables import CRITERIA, HUMAN_GRADES, HUMAN_RATINGS
from tests.cases import cases
from tests.processes import PATIENCE
from tests.unit.evaluation.annotation.studies import (
    MONTH,
    WRITERS,
    give_out,
    graded,
    rated,
    save,
    write_sections,
)
from tests.unit.evaluation.made_up_answers import write_answers
from tests.workspaces import make_workspace

pytestmark = pytest.mark.slow

CASES = "unit/evaluation/cases.toml"
LINES = 4 * len(WRITERS)
EMPTY = dict.fromkeys((*CRITERIA, "preferred"), "")


@pytest.fixture
def work(tmp_path):
    """A workspace with one month."""
    work = make_workspace(tmp_path / "data")
    write_sections(work.root)
    write_answers(work.root, MONTH)
    return work


@pytest.fixture
def sheet(work, tmp_path):
    """The sheet of a study of that month's sections."""
    return give_out(work, tmp_path / "out")[1][0]


def imported(work, sheet, *changes):
    """Import a rater's lines, the first of them changed: the sheet as read."""
    lines = zip(rated(sheet), chain(changes, repeat({})), strict=False)
    (done,) = import_files(work, [save(sheet, [row | change for row, change in lines])])
    return done


def stored(work):
    """Label → stored rating."""
    return {row["label"]: row for row in work.root.rows(HUMAN_RATINGS, MONTH)}


def test_labels_become_the_systems_of_the_key(work, tmp_path):
    study, (sheet,) = give_out(work, tmp_path / "out")
    comment = "so, so; “fine”\nand =long"
    first, *others = rated(sheet)
    rows = [first | {"fluency": "2", "comment": comment}, *others]
    rows = [{"mine": "", **row, "annotator": "Bjørn Ö."} for row in rows]
    (done,) = import_files(work, [save(sheet, rows)])
    assert (done.annotator, len(done.rows), done.faults) == ("Bjørn Ö.", LINES, [])
    ratings = stored(work)
    for label, row in ratings.items():
        expected = study.units[label].system, label.endswith("-A") or None
        assert (row["system"], row["preferred"]) == expected
    columns = ("rater", "fluency", "coherence", "comment")
    assert [ratings["T01-A"][name] for name in columns] == ["Bjørn Ö.", 2, 4, comment]


@cases(CASES, "wrong_lines", ["column", "cell", "message", "wrong", "place"])
def test_a_line_that_is_wrong_is_named_and_costs_no_other_line(
    work, sheet, column, cell, message, wrong, place
):
    change = {column: cell, "comment": "one\ntwo"}
    done = imported(work, sheet, *[{}] * (place or 0), change)
    assert (len(done.rows), len(done.faults)) == (LINES - (wrong or 1), wrong or 1)
    assert message in done.faults[0]


def test_a_sheet_replaces_what_the_same_person_gave_in_the_study(work, sheet):
    imported(work, sheet)
    done = imported(work, sheet, {"fluency": "five"}, {"fluency": "1", "preferred": "x"}, EMPTY)
    assert (len(done.rows), len(done.faults)) == (LINES - 2, 1)
    found = stored(work)
    assert {*found} == {row["unit"] for row in rated(sheet)} - {"T01-A", "T01-C"}
    assert (found["T01-B"]["fluency"], found["T01-B"]["preferred"]) == (1, True)
    imported(work, sheet, *repeat({"annotator": "another"}, LINES))
    assert len(work.root.rows(HUMAN_RATINGS, MONTH)) == LINES - 2 + LINES


@cases(CASES, "no_sheets", ["content", "message"])
def test_a_file_that_is_no_sheet_is_refused_and_nothing_is_imported(
    work, sheet, tmp_path, content, message
):
    file = tmp_path / "strange"
    file.write_text(content)
    with pytest.raises((SettingError, MissingInput)) as refused:
        import_files(work, [save(sheet, rated(sheet)), file])
    assert str(refused.value).startswith(f"{file}: ")
    assert message in str(refused.value)
    assert not work.root.file(HUMAN_RATINGS, MONTH).exists()


def test_importing_again_or_in_another_order_gives_the_same_rows(work, tmp_path):
    write_sections(work.root, "2024-04", tasks=2)
    _, sheets = give_out(work, tmp_path / "out", 3)
    files = [save(sheet, rated(sheet)) for sheet in sheets]
    import_files(work, files)
    table = work.root.file(HUMAN_RATINGS, MONTH)
    rows, content = work.root.rows(HUMAN_RATINGS, MONTH), table.read_bytes()
    assert len(rows) == 3 * LINES
    assert len(work.root.rows(HUMAN_RATINGS, "2024-04")) == 3 * 2 * len(WRITERS)
    import_files(work, files[:1])
    assert table.read_bytes() == content
    table.unlink()
    import_files(work, files[::-1])
    assert work.root.rows(HUMAN_RATINGS, MONTH) == rows


def test_an_import_waits_while_another_one_runs(work, sheet):
    with ThreadPoolExecutor(1) as executor:
        with month_lock(work, "annotations", "all"):
            waiting = executor.submit(imported, work, sheet)
            with pytest.raises(TimeoutError):
                waiting.result(0.3)
            assert not work.root.file(HUMAN_RATINGS, MONTH).exists()
        assert len(waiting.result(PATIENCE).rows) == LINES


def test_verdicts_go_with_their_claims_into_the_table_and_those_of_the_other_kind_are_wrong(
    work, tmp_path
):
    study, (sheet,) = give_out(work, tmp_path / "out", kind="grades")
    (done,) = import_files(work, [save(sheet, graded(sheet, "held", "correct, wrong"))])
    assert (len(done.rows), len(done.faults)) == (0, len(study.units))
    import_files(work, [save(sheet, graded(sheet, "Not_checkable", "held"))])
    rows = work.root.rows(HUMAN_GRADES, MONTH)
    verdicts = {"claim": "not_checkable", "gold": "held"}
    assert {(row["question_id"], row["part"], row["text"], row["verdict"]) for row in rows} == {
        (unit.item_id, unit.part, unit.text, verdicts[unit.part]) for unit in study.units.values()
    }


@pytest.mark.parametrize("kind", ["ratings", "grades"])
def test_a_study_by_the_commands(work, tmp_path, monkeypatch, kind):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CITELOOM_DATA", str(work.root.path))

    def citeloom(*arguments):
        done = CliRunner().invoke(app, ["annotate", *map(str, arguments)])
        return done.exit_code, done.output

    (tmp_path / "a_file").touch()
    for wrong in (("--to", "a_file"), ("--to", "out", "--name", f"{WRITERS[0]}-direct")):
        assert citeloom("export", kind, *wrong)[0] == 2
    assert not (tmp_path / "out").exists()
    code, output = citeloom("export", kind, "--to", "out", "--annotators", 1)
    assert (code, "do not give it to annotators" in output) == (0, True)
    sheet = tmp_path / "out" / f"{kind}-1.csv"
    save(sheet, rated(sheet) if kind == "ratings" else graded(sheet, "correct", "held"))
    code, output = citeloom("import", sheet)
    assert (code, "citeloom run --select report shows them" in output) == (0, True)
    sheet.write_text(sheet.read_text().replace(",x,", ",y,").replace("correct", "right"))
    code, output = citeloom("import", sheet)
    assert (code, f"{kind}-1.csv: line " in output) == (1, True)
