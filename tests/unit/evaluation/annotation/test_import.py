"""Sheets that come back: what is right is imported, what is wrong is named and costs nothing
else.
"""

import json
from concurrent.futures import ThreadPoolExecutor

import pytest
from typer.testing import CliRunner

from pipeline.doors.cli.app import app
from pipeline.engine.locks import month_lock
from pipeline.errors import MissingInput, SettingError
from pipeline.evaluation.annotation.importer import import_files
from pipeline.tables import CRITERIA, HUMAN_GRADES, HUMAN_RATINGS
from tests.processes import PATIENCE
from tests.unit.evaluation.annotation.studies import (
    MONTH,
    WRITERS,
    always,
    fill,
    give_out,
    imported,
    rated,
    save,
    write_answers,
    write_sections,
)
from tests.unit.evaluation.made_up import workspace

pytestmark = pytest.mark.slow

LINES = 4 * len(WRITERS)
HEAD = b"study,annotator,unit\r\n"
EMPTY = dict.fromkeys(CRITERIA, "")


@pytest.fixture
def work(tmp_path):
    """A workspace with one month."""
    work = workspace(tmp_path / "data")
    write_sections(work.root)
    return work


@pytest.fixture
def sheet(work, tmp_path):
    """The sheet of a study of that month."""
    return give_out(work.root, tmp_path / "out", kind="ratings")[1][0]


def stored(work, label=""):
    """Label → stored rating, of labels that begin so."""
    rows = work.root.rows(HUMAN_RATINGS, MONTH)
    return {row["label"]: row for row in rows if row["label"].startswith(label)}


def test_labels_become_the_systems_of_the_key(work, tmp_path):
    study, (sheet,) = give_out(work.root, tmp_path / "out", kind="ratings")
    comment = "so, so; “fine”\nand =long"
    first, *others = rated(sheet)
    rows = [first | {"fluency": "2", "comment": comment}, *others]
    done = imported(
        work, save(sheet, [{"mine": "", **row, "annotator": "Bjørn Ö."} for row in rows])
    )
    assert (done.annotator, done.entries) == ("Bjørn Ö.", LINES)
    rows = stored(work)
    assert all(row["system"] == study.units[label].system for label, row in rows.items())
    assert all(row["preferred"] == label.endswith("-A") for label, row in rows.items())
    columns = ("rater", "fluency", "coherence", "comment")
    assert [rows["T01-A"][name] for name in columns] == ["Bjørn Ö.", 2, 4, comment]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"fluency": "6"}, "line 2, column fluency: '6': write 1 or 2 or 3 or 4 or 5, or leave it"),
        ({"fluency": "3.5"}, "line 2, column fluency: '3.5'"),
        ({"coherence": "٤"}, "line 2, column coherence: '٤'"),
        ({"preferred": "maybe"}, "line 2, column preferred: 'maybe': write x, or leave it empty"),
        ({"unit": "T99-A"}, "line 2, column unit: 'T99-A': keep the units of the sheet, such as"),
        ({"unit": "T01-B"}, "line 3, column unit: T01-B is there twice: leave one line"),
        ({"annotator": "Ben"}, "line 3, column annotator: 'annotator-1': a file is of one"),
        ({"comment": "one\ntwo", "coherence": "good"}, "line 2, column coherence: 'good'"),
        ({"": "5"}, "line 2, more cells than columns: put quotes around the comment"),
    ],
)
def test_a_line_that_is_wrong_is_named_and_costs_no_other_line(work, sheet, changes, message):
    first, *others = rated(sheet)
    (done,) = import_files(work, [save(sheet, [first | changes, *others])])
    wrong = LINES - 1 if "annotator" in changes else 1
    assert (done.entries, len(done.faults)) == (LINES - wrong, wrong)
    assert message in done.faults[0]


def test_a_corrected_sheet_replaces_the_earlier_one_and_its_wrong_lines_lose_nothing(work, sheet):
    first, second, third, *others = rated(sheet)
    imported(work, save(sheet, [first, second, third, *others]))
    changed = [first | {"fluency": "five"}, second | {"fluency": "1"}, third | {"unit": "T1-C"}]
    (done,) = import_files(work, [save(sheet, [*changed, *others])])
    assert (done.entries, len(done.faults)) == (LINES - 2, 2)
    assert [row["fluency"] for row in stored(work, "T01").values()] == [4, 1, 4]
    imported(work, save(sheet, [first | {"preferred": ""}, third | EMPTY]))
    assert {*stored(work)} == {*(row["unit"] for row in [first, second, *others])}, (
        "a line that is empty now is taken back"
    )


@pytest.mark.parametrize(
    ("changes", "preferred", "faults"),
    [
        (({}, {"preferred": "x"}, {}), [None] * 3, 1),
        (({"preferred": ""}, {}, {}), [None] * 3, 0),
        (({"preferred": ""}, EMPTY | {"preferred": "x"}, EMPTY), [False, True, False], 0),
        (({"fluency": "many"}, {"preferred": "x"}, {}), [False, True, False], 1),
        (({"fluency": "many"}, {}, {}), [True, False, False], 1),
    ],
    ids=["two", "none", "without marks", "another one", "the earlier one"],
)
def test_at_most_one_section_of_a_task_is_preferred(work, sheet, changes, preferred, faults):
    imported(work, save(sheet, rated(sheet)))
    rows = [row | change for row, change in zip(rated(sheet), changes, strict=False)]
    (done,) = import_files(work, [save(sheet, rows)])
    assert len(done.faults) == faults
    assert [row["preferred"] for row in stored(work, "T01").values()] == preferred


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "no column study, annotator, unit"),
        (HEAD, "no line below its columns"),
        (HEAD + b"pilot,Ada,T01-A\r\n", "no column citation_accuracy"),
        (HEAD + b"pilot,,T01-A\r\n", "line 2, column annotator: ''"),
        (HEAD + b"pilot,a\x07b,T01-A\r\n", "annotator: 'a\\x07b'"),
        (HEAD + b"pilot," + b"x" * 101 + b",T01-A\r\n", "100 printable characters"),
        (HEAD + b"../../etc,Ada,T01-A\r\n", "no study '../../etc'"),
    ],
)
def test_a_file_that_is_no_sheet_is_refused_and_nothing_is_imported(
    work, sheet, tmp_path, content, message
):
    file = tmp_path / "strange"
    file.write_bytes(content)
    with pytest.raises((SettingError, MissingInput)) as refused:
        import_files(work, [save(sheet, rated(sheet)), file])
    assert str(refused.value).startswith(f"{file}: ")
    assert message in str(refused.value)
    assert not work.root.file(HUMAN_RATINGS, MONTH).exists()


def test_importing_again_or_in_another_order_gives_the_same_rows(work, tmp_path):
    write_sections(work.root, "2024-04", tasks=2)
    _, sheets = give_out(work.root, tmp_path / "out", 3, kind="ratings")
    files = [save(sheet, rated(sheet)) for sheet in sheets]
    import_files(work, files)
    table = work.root.file(HUMAN_RATINGS, MONTH)
    rows, content = work.root.rows(HUMAN_RATINGS, MONTH), table.read_bytes()
    assert len(rows) == 3 * LINES
    assert len(work.root.rows(HUMAN_RATINGS, "2024-04")) == 3 * 2 * len(WRITERS)
    imported(work, files[0])
    assert table.read_bytes() == content
    table.unlink()
    for file in reversed(files):
        imported(work, file)
    assert work.root.rows(HUMAN_RATINGS, MONTH) == rows


def test_an_import_waits_while_another_one_runs(work, sheet):
    file = save(sheet, rated(sheet))
    with ThreadPoolExecutor(1) as executor:
        with month_lock(work, "annotations", "all"):
            waiting = executor.submit(imported, work, file)
            with pytest.raises(TimeoutError):
                waiting.result(0.3)
            assert not work.root.file(HUMAN_RATINGS, MONTH).exists()
        assert waiting.result(PATIENCE).entries == LINES


def test_verdicts_go_with_their_claims_into_the_table_and_those_of_the_other_kind_are_wrong(
    work, tmp_path
):
    write_answers(work.root)
    _, (sheet,) = give_out(work.root, tmp_path / "out")
    imported(work, fill(sheet, always("Correct, not_checkable", "held"), comment="Sure; quite."))
    (done,) = import_files(work, [fill(sheet, always("held", "correct"), comment="Sure; quite.")])
    assert (done.entries, len(done.faults)) == (0, 7)
    rows = work.root.rows(HUMAN_GRADES, MONTH)
    columns = ("question_id", "system", "part", "text", "verdict")
    assert {tuple(row[name] for name in columns) for row in rows} == {
        ("q1", "arxivbot", "claim", "Claim 1.", "correct, not_checkable"),
        ("q1", "arxivbot", "claim", "Claim 2.", "correct, not_checkable"),
        ("q1", "arxivbot", "gold", "Fact 1.", "held"),
        ("q1", "direct", "claim", "Claim 1.", "correct, not_checkable"),
        ("q1", "direct", "gold", "Fact 1.", "held"),
        ("q2", "arxivbot", "claim", "Claim 1.", "correct, not_checkable"),
        ("q2", "arxivbot", "gold", "Fact 1.", "held"),
    }
    assert [row["comment"] for row in rows if row["comment"]] == ["Sure; quite."]


@pytest.mark.parametrize(("kind", "people"), [("ratings", "raters"), ("grades", "graders")])
def test_a_study_by_the_commands(work, tmp_path, monkeypatch, kind, people):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("CITELOOM_DATA", str(work.root.path))
    write_answers(work.root)

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
    rows = rated(sheet) if kind == "ratings" else None
    save(sheet, rows) if rows else fill(sheet, always("correct", "held"))
    assert citeloom("import", sheet)[0] == 0
    code, output = citeloom("results", kind, "--json")
    results = json.loads(output)
    annotators = (results["sets"][0] if kind == "ratings" else results)[people]
    assert (code, annotators[0].endswith("annotator-1")) == (0, True)
    assert citeloom("results", kind, "--name", "none")[0] == 1
    sheet.write_text(sheet.read_text().replace(",x,", ",y,").replace("correct", "right"))
    code, output = citeloom("import", sheet)
    assert (code, f"{kind}-1.csv: line " in output) == (1, True)
