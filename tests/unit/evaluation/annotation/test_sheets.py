"""What annotators receive: blind, inert, the same for the same seed; and their sheets that come back:
what is right is imported, what is wrong is named and costs nothing else.
"""

import base64
import hashlib
import re
from concurrent.futures import ThreadPoolExecutor
from itertools import chain, pairwise, product, repeat

import pytest
from selectolax.lexbor import LexborHTMLParser
from typer.testing import CliRunner

from pipeline.doors.cli.app import app
from pipeline.engine.locks import month_lock
from pipeline.errors import MissingInput, PermanentFailure, SettingError
from pipeline.evaluation.annotation.export import StudyItem, StudyText, make_study
from pipeline.evaluation.annotation.study import import_files, key_file, read_key
from pipeline.stage_names import ANSWERING_SYSTEMS, RELATED_WORK_SYSTEMS
from pipeline.tables import ANSWER_GRADES, CRITERIA, HUMAN_GRADES, HUMAN_RATINGS, SUMMARIES
from tests.cases import cases
from tests.month_tables import write_table
from tests.processes import PATIENCE
from tests.unit.evaluation.annotation.studies import (
    MONTH,
    WRITERS,
    give_out,
    graded,
    rated,
    rows_of,
    save,
    write_sections,
)
from tests.unit.evaluation.made_up import GOLD
from tests.unit.evaluation.made_up_answers import SYSTEMS, write_answers
from tests.workspaces import make_workspace

pytestmark = pytest.mark.slow

CASES = "unit/evaluation/cases.toml"


@pytest.fixture
def work(tmp_path):
    """A workspace with one month: four tasks, and four questions, from the last of which two systems abstain."""
    work = make_workspace(tmp_path / "data")
    write_sections(work.root)
    write_answers(work.root, MONTH)
    return work


def page_of(sheet):
    return LexborHTMLParser(sheet.with_suffix(".html").read_text())


@pytest.mark.parametrize(("kind", "letter"), [("ratings", "t"), ("grades", "q")])
def test_no_system_judge_seed_or_key_is_in_anything_that_annotators_get(
    work, tmp_path, kind, letter
):
    give_out(work, tmp_path / "out", 2, kind=kind, seed=771)
    ends = ("1.csv", "1.html", "2.csv", "2.html", "guide.txt")
    files = sorted((tmp_path / "out").iterdir())
    assert [file.name for file in files] == [f"{kind}-{end}" for end in ends]
    assert key_file(work.root, "pilot").is_relative_to(work.root.path)
    names = {name.replace("_", "") for name in (*RELATED_WORK_SYSTEMS, *ANSWERING_SYSTEMS)}
    secret = {*names - {"passages"}, "judge", "somemodel", "771", f"{letter}1#"}
    for file in files:
        letters = re.sub("[^a-z0-9#]", "", file.read_text().lower())
        assert [word for word in secret if word in letters] == []


@pytest.mark.parametrize("with_gold", [False, True])
def test_each_label_is_the_text_of_its_system_and_of_a_sheets_line(work, tmp_path, with_gold):
    study, (sheet,) = give_out(work, tmp_path, with_gold=with_gold)
    page, rows = page_of(sheet), rows_of(sheet)
    articles = {article.attributes["id"]: article.text() for article in page.css("article")}
    for label, text in articles.items():
        unit = study.units[label]
        assert f"Text {WRITERS.index(unit.system)} on {unit.item_id[:10]}." in text
    assert (GOLD[:40] in page.text()) == with_gold
    assert "[Reference 1] Cited Work 1: A Study, 2021, arXiv:2401.00001" in page.text()
    title = "Learned Weights for Retrieval"
    about = {"study": "pilot", "annotator": "annotator-1"}
    empty = dict.fromkeys((*CRITERIA, "preferred", "comment"), "")
    assert rows == [{**about, "unit": label, "text": title, **empty} for label in articles]
    assert sheet.read_bytes().startswith(b"\xef\xbb\xbf")
    assert {*CRITERIA} <= {*(tmp_path / "ratings-guide.txt").read_text().splitlines()}


def test_grades_have_a_line_for_each_claim_and_answers_to_a_question_side_by_side(work, tmp_path):
    study, sheets = give_out(work, tmp_path, 3, kind="grades")
    texts = {unit_id: unit.text for unit_id, unit in study.units.items()}
    orders = set()
    for sheet in sheets:
        lines = {row["unit"]: row["text"] for row in rows_of(sheet)}
        assert lines == texts
        assert [line.text() for line in page_of(sheet).css(".lines span")] == [*lines]
        assert sum(one[:3] != other[:3] for one, other in pairwise(lines)) == 4 - 1
        orders.add(tuple(lines))
    assert len(orders) > 1
    assert "arXiv:2403.90001" in page_of(sheets[0]).text()


def test_the_same_seed_gives_the_same_bytes_and_another_seed_another_study(work, tmp_path):
    study, (sheet,) = give_out(work, tmp_path / "1")
    again, (same,) = give_out(work, tmp_path / "2")
    assert (study, sheet.read_bytes()) == (again, same.read_bytes())
    with pytest.raises(SettingError, match="another --name"):
        give_out(work, tmp_path / "3", seed=8)
    assert read_key(work.root, "pilot") == study
    other, _ = give_out(work, tmp_path / "3", seed=8, name="other")
    assert [*study.units.values()] != [*other.units.values()]


def study_of(tasks, systems, name="pilot"):
    texts = {system: StudyText(system, "") for system in systems}
    items = [StudyItem(f"task {number}", "2024-03", "", [], texts) for number in range(tasks)]
    return make_study("ratings", name, 1, items)


def test_letters_are_shuffled_over_tasks():
    units = study_of(300, WRITERS).units.values()
    first = [unit.system for unit in units if unit.label.endswith("A")]
    assert all(70 < first.count(system) < 130 for system in WRITERS)
    with pytest.raises(SettingError, match="over 26 texts"):
        study_of(1, [f"system{n}" for n in range(27)])


@cases(CASES, "names_refused")
def test_a_name_that_is_no_file_or_reveals_a_system_or_its_model_is_refused(case):
    with pytest.raises(SettingError, match="--name"):
        study_of(1, ("chatcite@gpt-4", "zero_shot"), case)


OLD_KEY = """{"format": "citeloom-annotation-1", "kind": "grades", "study": "old", "seed": 3, "units": {
"Q01-A-gold-2": {"item": "Q01", "label": "Q01-A", "month": "2024-03", "item_id": "q1", "system":
"arxivbot_report@m", "text_sha256": "00", "part": "gold", "number": 2, "text": "Fact."}}}"""


def test_a_key_that_is_missing_or_damaged_is_named_and_one_of_the_first_format_read(work):
    file = key_file(work.root, "old")
    file.parent.mkdir(parents=True)
    file.write_text(OLD_KEY)
    (unit,) = read_key(work.root, "old").units.values()
    assert (unit.unit_id, unit.system) == ("Q01-A-gold-2", "arxivbot@m")
    for name in ("none", "../old", "", "/etc/passwd"):
        with pytest.raises(MissingInput, match="no study"):
            read_key(work.root, name)
    file.write_text("{}")
    with pytest.raises(PermanentFailure, match="damaged"):
        read_key(work.root, "old")


def pairs_of(study):
    """(Task or question, system) of each text of a study."""
    return {(unit.item_id, unit.system.partition("@")[0]) for unit in study.units.values()}


def pairs(items, systems):
    return {*product(items, systems)}


TASKS = [f"2403.9000{number}#S2" for number in (1, 2, 3, 4)]
QUESTIONS = ["q1", "q2", "q3", "q4"]


def test_only_items_with_a_text_of_every_system_are_drawn(work, tmp_path):
    rows = work.root.rows(SUMMARIES, MONTH)
    models = [row | {"model": "m"} for row in rows if row["system"] == "few_shot"]
    others = [row for row in rows if row["system"] != "few_shot"]
    write_table(work.root, SUMMARIES, MONTH, [*models[:2], *others])
    study, _ = give_out(work, tmp_path)
    assert pairs_of(study) == pairs(TASKS[:2], WRITERS)
    assert {unit.system for unit in study.units.values()} == {"chatcite", "few_shot@m", "zero_shot"}
    alone, _ = give_out(work, tmp_path, name="alone", systems=["zero_shot"], most=3)
    assert len(alone.units) == 3
    short, _ = give_out(work, tmp_path, name="short", systems=["few_shot"])
    assert pairs_of(short) == pairs(TASKS[:2], ["few_shot"])
    with pytest.raises(MissingInput, match="each of three; there are texts of chatcite, few_shot@"):
        give_out(work, tmp_path, systems=["three"])
    with pytest.raises(SettingError, match="--set other is none of main"):
        give_out(work, tmp_path, candidate_set="other")


def test_a_task_without_a_gold_section_is_left_out_only_where_that_is_shown(work, tmp_path):
    write_sections(work.root, "2024-04", text=lambda text: "" if text == GOLD else text)
    for with_gold, months in ((True, 1), (False, 2)):
        study, _ = give_out(work, tmp_path, name=f"of-{months}", with_gold=with_gold)
        assert len(study.units) == months * 4 * 3


def test_what_abstains_needs_no_grader_and_what_no_judge_graded_cannot_be_graded(work, tmp_path):
    study, _ = give_out(work, tmp_path, kind="grades")
    searching = ("arxivbot", "wikichat")
    assert pairs_of(study) == pairs(QUESTIONS, SYSTEMS) - pairs(["q4"], searching)
    choice = {"kind": "grades", "systems": searching}
    alone, _ = give_out(work, tmp_path, name="alone", **choice)
    assert pairs_of(alone) == pairs(QUESTIONS[:3], searching)
    write_answers(work.root, "2024-04", questions=1)
    with pytest.raises(MissingInput, match="run citeloom run --select answer_grades"):
        give_out(work, tmp_path, months="2024-04", **choice)
    with pytest.raises(SettingError, match="question q1 is asked in 2024-04 and before"):
        give_out(work, tmp_path, kind="grades")
    work.root.file(ANSWER_GRADES, "2024-04").unlink()
    assert give_out(work, tmp_path, kind="grades")[0] == study


@cases(CASES, "formulas", ["formula", "text_of_it"])
def test_a_cell_that_a_spreadsheet_would_compute_is_text(work, tmp_path, formula, text_of_it):
    write_sections(work.root, text=lambda text: f"{formula} {text}")
    titles = {row["text"] for row in rows_of(give_out(work, tmp_path)[1][0])}
    assert titles == {f"{text_of_it} Learned Weights for Retrieval"}


def test_a_page_may_load_nothing_and_its_texts_are_escaped(work, tmp_path):
    write_sections(work.root, text=lambda text: f"<script>{text}")
    page = page_of(give_out(work, tmp_path)[1][0])
    assert page.css("script") == []
    policy = page.css_first("meta[http-equiv]").attributes["content"]
    style = hashlib.sha256(page.css_first("style").text().encode()).digest()
    allowed = f"style-src 'sha256-{base64.b64encode(style).decode()}'"
    assert policy == f"default-src 'none'; {allowed}; base-uri 'none'; form-action 'none'"


# ---- sheets that come back ----

LINES = 4 * len(WRITERS)
EMPTY = dict.fromkeys((*CRITERIA, "preferred"), "")


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
