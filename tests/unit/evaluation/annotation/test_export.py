"""What annotators receive: blind, inert, the same for the same seed."""

import base64
import hashlib
import re
from itertools import pairwise

import pytest
from selectolax.lexbor import LexborHTMLParser

from pipeline.errors import MissingInput, PermanentFailure, SettingError
from pipeline.evaluation.annotation.study import (
    StudyItem,
    StudyText,
    key_file,
    make_study,
    read_key,
    select_items,
    write_key,
)
from pipeline.stage_names import ANSWERING_SYSTEMS, RELATED_WORK_SYSTEMS
from pipeline.tables import CRITERIA
from tests.cases import cases
from tests.unit.evaluation.annotation.studies import (
    WRITERS,
    give_out,
    month_grades,
    rows_of,
    write_answers,
    write_sections,
)
from tests.unit.evaluation.answers.graded import grade
from tests.unit.evaluation.made_up import workspace

pytestmark = pytest.mark.slow

CASES = "unit/evaluation/cases.toml"


@pytest.fixture
def root(tmp_path):
    """A data root with one month."""
    root = workspace(tmp_path / "data").root
    write_sections(root)
    write_answers(root)
    return root


def rate(root, folder, annotators=1, **choices):
    """A study of ratings, and its first sheet."""
    study, sheets = give_out(root, folder, annotators, kind="ratings", **choices)
    return study, sheets[0]


def page_of(sheet):
    return LexborHTMLParser(sheet.with_suffix(".html").read_text())


@pytest.mark.parametrize(("kind", "letter"), [("ratings", "t"), ("grades", "q")])
def test_no_system_judge_seed_or_key_is_in_anything_that_annotators_get(
    root, tmp_path, kind, letter
):
    give_out(root, tmp_path / "out", 2, kind=kind, seed=771)
    ends = ("1.csv", "1.html", "2.csv", "2.html", "guide.txt")
    files = sorted((tmp_path / "out").iterdir())
    assert [file.name for file in files] == [f"{kind}-{end}" for end in ends]
    assert key_file(root, "pilot").is_relative_to(root.path)
    names = {name.replace("_", "") for name in (*RELATED_WORK_SYSTEMS, *ANSWERING_SYSTEMS)}
    secret = {*names - {"passages"}, "judge", "771", f"{letter}1#"}
    for file in files:
        letters = re.sub("[^a-z0-9#]", "", file.read_text().lower())
        assert [word for word in secret if word in letters] == []


@pytest.mark.parametrize("with_gold", [False, True])
def test_each_label_is_the_text_of_its_system_and_of_a_sheets_line(root, tmp_path, with_gold):
    study, sheet = rate(root, tmp_path, with_gold=with_gold)
    page, rows = page_of(sheet), rows_of(sheet)
    articles = {article.attributes["id"]: article.text() for article in page.css("article")}
    assert [row["unit"] for row in rows] == [*articles]
    for label, text in articles.items():
        unit = study.units[label]
        assert f"Text {WRITERS.index(unit.system)} on {unit.item_id[:10]}." in text
    assert ("The authors wrote this themselves" in page.text()) == with_gold
    assert "[Reference 1] Cited work, 2021" in page.text()
    empty = dict.fromkeys((*CRITERIA, "preferred", "comment"), "")
    columns = ["study", "annotator", "unit", "text", *empty]
    about = {"study": "pilot", "annotator": "annotator-1", **empty}
    assert all([*row] == columns and row | about == row for row in rows)
    assert sheet.read_bytes().startswith(b"\xef\xbb\xbf")
    guide = (tmp_path / "ratings-guide.txt").read_text().splitlines()
    assert {*CRITERIA} <= {*guide}


def test_grades_have_a_line_for_each_claim_and_answers_to_a_question_side_by_side(root, tmp_path):
    for first in (3, 5, 7):
        write_answers(root, f"2024-0{first + 1}", first=first)
    study, sheets = give_out(root, tmp_path, 3)
    texts = {unit_id: unit.text for unit_id, unit in study.units.items()}
    orders = []
    for sheet in sheets:
        rows = rows_of(sheet)
        assert {row["unit"]: row["text"] for row in rows} == texts
        orders.append([row["unit"] for row in rows])
        assert [line.text() for line in page_of(sheet).css(".lines span")] == orders[-1]
        changes = [one[:3] != other[:3] for one, other in pairwise(orders[-1])]
        assert sum(changes) == 8 - 1
    assert len(set(map(tuple, orders))) == 3
    assert "Boats, https://arxiv.org/abs/2403.00001" in page_of(sheets[0]).text()


def test_the_same_seed_gives_the_same_bytes_and_another_seed_another_study(root, tmp_path):
    study, sheet = rate(root, tmp_path / "1")
    key = key_file(root, "pilot").read_bytes()
    again, same = rate(root, tmp_path / "2")
    assert (study, sheet.read_bytes()) == (again, same.read_bytes())
    with pytest.raises(SettingError, match="another --name"):
        rate(root, tmp_path / "3", seed=8)
    assert key_file(root, "pilot").read_bytes() == key
    other, _ = rate(root, tmp_path / "3", seed=8, name="other")
    assert [*study.units.values()] != [*other.units.values()]


def study_of(tasks, systems, name="pilot"):
    texts = {system: StudyText(system, "", {}) for system in systems}
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


def test_a_key_is_read_back_and_one_that_is_missing_or_damaged_is_named(root):
    study = study_of(1, WRITERS)
    write_key(root, study)
    assert read_key(root, "pilot") == study
    key_file(root, "old").parent.mkdir()
    key_file(root, "old").write_text(OLD_KEY)
    (unit,) = read_key(root, "old").units.values()
    assert (unit.unit_id, unit.system) == ("Q01-A-gold-2", "arxivbot@m")
    for name in ("none", "../pilot", "", "/etc/passwd"):
        with pytest.raises(MissingInput, match="no study"):
            read_key(root, name)
    key_file(root, "pilot").write_text("{}")
    with pytest.raises(PermanentFailure, match="damaged"):
        read_key(root, "pilot")


def test_only_items_with_a_text_of_every_system_are_selected():
    writers = {"t1": {"one", "two@m"}, "t2": {"one"}, "t3": {"one", "two@m"}, "t4": set()}
    found = select_items(writers, None, most=5, seed=1)
    assert (found.systems, {*found.item_ids}, found.left_out) == (["one", "two@m"], {"t1", "t3"}, 2)
    alone = select_items(writers, ["one"], most=2, seed=1)
    assert (len(alone.item_ids), alone.left_out) == (2, 1)
    assert select_items(writers, ["two"], most=5, seed=1).systems == ["two@m"]
    with pytest.raises(MissingInput, match="of three, and there are texts of one, two@m"):
        select_items(writers, ["three"], most=5, seed=1)
    with pytest.raises(MissingInput, match="any name, and there are texts of none"):
        select_items({"t4": set()}, None, most=5, seed=1)


def test_a_task_without_a_gold_section_is_left_out_only_where_that_is_shown(root, tmp_path):
    without = lambda text: "" if text.startswith("The authors") else text  # noqa: E731
    write_sections(root, "2024-04", text=without)
    for with_gold, name in ((True, "shown"), (False, "hidden")):
        study, _ = rate(root, tmp_path, name=name, with_gold=with_gold)
        assert len(study.units) == 4 * 3 * (1 if with_gold else 2)


def test_what_abstains_needs_no_grader(root, tmp_path):
    write_answers(root, "2024-04", first=3, grades=month_grades(first=3)[:1])
    study, _ = give_out(root, tmp_path)
    labels = {(unit.item_id, unit.system) for unit in study.units.values()}
    assert labels == {("q1", "arxivbot"), ("q1", "direct"), ("q2", "arxivbot")}
    alone, _ = give_out(root, tmp_path, name="alone", systems=["arxivbot"])
    assert {unit.item_id for unit in alone.units.values()} == {"q1", "q2", "q3"}
    write_answers(root, "2024-05", first=5, grades=[grade(gold=["not"], outcome="abstained")])
    with pytest.raises(MissingInput):
        give_out(root, tmp_path, months="2024-05")
    write_answers(root, "2024-04")
    with pytest.raises(SettingError, match="question q1 is asked in 2024-04 and before"):
        give_out(root, tmp_path)


@cases(CASES, "formulas", ["formula", "text_of_it"])
def test_a_cell_that_a_spreadsheet_would_compute_is_text(root, tmp_path, formula, text_of_it):
    write_sections(root, text=lambda text: f"{formula} {text}")
    titles = {row["text"] for row in rows_of(rate(root, tmp_path)[1])}
    assert len(titles) == 4
    assert all(title.startswith(f"{text_of_it} Weights") for title in titles)


def test_a_page_may_load_nothing_and_its_texts_are_escaped(root, tmp_path):
    write_sections(root, text=lambda text: f"<script>{text}")
    page = page_of(rate(root, tmp_path)[1])
    assert page.css("script") == []
    policy = page.css_first("meta[http-equiv]").attributes["content"]
    style = hashlib.sha256(page.css_first("style").text().encode()).digest()
    allowed = f"style-src 'sha256-{base64.b64encode(style).decode()}'"
    assert policy == f"default-src 'none'; {allowed}; base-uri 'none'; form-action 'none'"
