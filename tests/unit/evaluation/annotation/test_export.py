"""The pages and sheets of raters: blind, inert, the same for the same seed."""

import base64
import hashlib
import re

import pytest
from selectolax.lexbor import LexborHTMLParser

from pipeline.errors import MissingInput, PermanentFailure, SettingError
from pipeline.evaluation.annotation.export import write_files
from pipeline.evaluation.annotation.study import (
    assign_letters,
    check_name,
    key_file,
    read_key,
    write_key,
)
from pipeline.evaluation.g_score.people import TARGET_CHARS, beginning, criteria
from pipeline.settings import Settings
from pipeline.system_names import RELATED_WORK_SYSTEMS
from pipeline.tables import CRITERIA
from tests.unit.evaluation.annotation.people_month import rows_of
from tests.unit.evaluation.annotation.studied import (
    MONTH,
    SYSTEMS,
    exported,
    workspace,
    write_month,
)

pytestmark = pytest.mark.slow

TO_FILL_IN = (*CRITERIA, "preferred", "comment")


@pytest.fixture
def root(tmp_path):
    """A data root with one month."""
    root = workspace(tmp_path / "data").root
    write_month(root)
    return root


def files_of(export, folder, annotators=1):
    """Name → file of all that annotators receive."""
    return {file.name: file for file in write_files(export, folder, annotators)}


def page_of(export, folder):
    return LexborHTMLParser(files_of(export, folder)["page-1.html"].read_text())


@pytest.mark.parametrize("with_gold", [False, True])
def test_no_system_model_setting_or_key_is_in_anything_that_raters_get(root, tmp_path, with_gold):
    export = exported(root, with_gold=with_gold, seed=771)
    secret = {*RELATED_WORK_SYSTEMS, "some-model-7b", "citeloom_", "2403.9", "771"}
    secret |= {f"{name}=" for name in Settings.model_fields}
    files = files_of(export, tmp_path / "out")
    assert {file.name for file in (tmp_path / "out").iterdir()} == set(files)
    assert key_file(root, "pilot").is_relative_to(root.path)
    for file in files.values():
        # Sections say of which task they are, as the texts of these tests do to be told apart.
        text = re.sub(r"text number \d on 2403\.\d{5}", "", file.read_text().lower())
        assert [word for word in secret if word in text] == []
        letters = re.sub(r"[^a-z0-9]", "", text)
        assert [name for name in RELATED_WORK_SYSTEMS if name.replace("_", "") in letters] == []


def test_each_label_is_the_text_of_its_system_and_of_a_sheets_line(root, tmp_path):
    export = exported(root)
    articles = page_of(export, tmp_path).css("article")
    assert len(articles) == 4 * len(SYSTEMS)
    for article in articles:
        unit = export.study.units[article.attributes["aria-labelledby"] or ""]
        begin = f"Text number {SYSTEMS.index(unit.system)} on {unit.item_id[:10]}."
        assert article.css_first(".prose").text().strip().startswith(begin)
    sheet = tmp_path / "sheet-1.csv"
    rows = rows_of(sheet)
    assert sheet.read_bytes().startswith(b"\xef\xbb\xbf")
    assert tuple(rows[0]) == ("study", "annotator", "unit", "title", *TO_FILL_IN)
    assert [row["unit"] for row in rows] == [
        node.attributes["aria-labelledby"] for node in articles
    ]
    assert {(row["study"], row["annotator"]) for row in rows} == {("pilot", "annotator-1")}
    assert {row[column] for row in rows for column in TO_FILL_IN} == {""}


def test_letters_are_shuffled_over_tasks():
    first = [assign_letters(1, f"task {number}", SYSTEMS)["A"] for number in range(300)]
    assert all(70 < first.count(system) < 130 for system in SYSTEMS)
    with pytest.raises(SettingError, match="26 have a letter"):
        assign_letters(1, "task", [f"system{number}" for number in range(27)])


def test_the_same_seed_gives_the_same_bytes_and_another_seed_another_order(root, tmp_path):
    one, again, other = exported(root), exported(root), exported(root, "other", seed=8)
    first, second = files_of(one, tmp_path / "1", 2), files_of(again, tmp_path / "2", 2)
    assert [each.read_bytes() for each in first.values()] == [
        each.read_bytes() for each in second.values()
    ]
    assert one.study == again.study
    assert list(one.study.units.values()) != list(other.study.units.values())


def test_each_annotator_has_the_same_units_in_an_order_of_their_own(root, tmp_path):
    write_month(root, "2024-04", tasks=8)
    few, more = (files_of(exported(root), tmp_path / f"{number}", number) for number in (2, 3))
    units = [[row["unit"] for row in rows_of(more[f"sheet-{number}.csv"])] for number in (1, 2, 3)]
    assert sorted(units[0]) == sorted(units[1]) == sorted(units[2])
    assert len({tuple(unit) for unit in units}) == 3
    assert {row["annotator"] for row in rows_of(more["sheet-2.csv"])} == {"annotator-2"}
    assert few["sheet-2.csv"].read_bytes() == more["sheet-2.csv"].read_bytes(), (
        "no sheet that is out changes"
    )


def test_the_key_is_read_back_as_it_was_and_no_other_study_takes_its_name(root):
    export = exported(root)
    before = key_file(root, "pilot").read_bytes()
    with pytest.raises(SettingError, match="another --name"):
        exported(root, seed=8)
    write_key(root, export.study)
    assert key_file(root, "pilot").read_bytes() == before
    assert read_key(root, "pilot") == export.study
    for name in ("none", "../pilot", "", "/etc/passwd"):
        with pytest.raises(MissingInput, match=r"there: pilot"):
            read_key(root, name)
    key_file(root, "pilot").write_text("{}")
    with pytest.raises(PermanentFailure, match="damaged"):
        read_key(root, "pilot")


@pytest.mark.parametrize(
    "name", ["", "..", "a/b", "Übung", "x" * 51, "chatcite-1", "my_zero-shot_study", "gpt4-pilot"]
)
def test_a_name_that_is_no_file_or_reveals_a_system_or_its_model_is_refused(name):
    with pytest.raises(SettingError, match="--name"):
        check_name(name, ("chatcite@gpt-4", "few_shot", "zero_shot"))


def test_only_tasks_with_a_section_of_every_system_are_taken_and_no_more_than_requested(
    root,
):
    write_month(root, "2024-04", systems=("chatcite",))
    write_month(
        root, "2024-05", text=lambda text: " \n" if text.startswith("Text number 1") else text
    )
    export = exported(root, systems=None)
    assert (export.systems, export.study.months) == (SYSTEMS, [MONTH])
    assert export.lacking == {"few_shot": 8, "zero_shot": 4}
    assert "8 tasks have nothing of few_shot, and are left out" in export.notes
    assert "there are 4 tasks, and 10 were requested" in export.notes
    fewer = exported(root, "second", items=3)
    assert [item.name for item in fewer.items] == ["T01", "T02", "T03"]
    assert fewer.notes[-1] == "each annotator has 9 sections of 3 tasks to rate"


def test_a_task_without_a_gold_section_is_left_out_only_where_that_is_shown(root):
    write_month(root, "2024-04", text=lambda text: "" if text.startswith("The authors") else text)
    assert len(exported(root, with_gold=False).items) == 8
    export = exported(root, "second")
    assert len(export.items) == 4
    assert export.notes[0] == "4 tasks have no gold section, and are left out (--without-gold)"


def test_where_no_task_fits_it_is_said_what_is_missing(root, tmp_path):
    write_month(root, "2024-04", systems=("litllm",))
    write_month(root, "2024-05", text=lambda text: "" if text.startswith("The authors") else text)
    with pytest.raises(MissingInput, match="4 without chatcite, 4 without litllm"):
        exported(root, systems=("chatcite", "litllm"))
    with pytest.raises(MissingInput, match="no task has a gold section: give --without-gold"):
        exported(root, months="2024-05")
    with pytest.raises(MissingInput, match="no section is written"):
        exported(workspace(tmp_path / "empty").root)


@pytest.mark.parametrize(
    ("formula", "text_of_it"),
    [
        *((formula, f"'{formula}") for formula in ("=1+1", "+1", "-1", "@SUM(A1)", "＝1+1")),
        ('A; =1;"+2', "A; '=1;\"'+2"),
    ],
)
def test_a_cell_that_a_spreadsheet_would_compute_is_text(root, tmp_path, formula, text_of_it):
    write_month(root, text=lambda text: f"{formula} {text}")
    titles = {row["title"] for row in rows_of(files_of(exported(root), tmp_path)["sheet-1.csv"])}
    assert len(titles) == 4
    assert all(title.startswith(f"{text_of_it} Weights") for title in titles)


def test_a_page_may_load_nothing_and_its_texts_are_escaped(root, tmp_path):
    write_month(root, text=lambda text: f"<script>{text}")
    page = page_of(exported(root), tmp_path)
    assert page.css("script") == []
    policy = page.css_first("meta[http-equiv]").attributes["content"]
    style = hashlib.sha256(page.css_first("style").text().encode()).digest()
    allowed = f"style-src 'sha256-{base64.b64encode(style).decode()}'"
    assert policy == f"default-src 'none'; {allowed}; base-uri 'none'; form-action 'none'"


def test_citations_lead_to_the_list_and_headings_are_those_of_the_target_alone(root, tmp_path):
    write_month(root, text=lambda text: f"## {text}" if text.startswith("Text") else text)
    page = page_of(exported(root), tmp_path)
    section = page.css_first("#T01 article .prose")
    assert [link.attributes["href"] for link in section.css("a")] == ["#T01-reference-1"]
    assert "and on [Reference 9]." in section.text()
    reference = " ".join(page.css_first("#T01-reference-1").text().split())
    assert reference == "[Reference 1] Cited work 1 (2021) arXiv:2401.00001"
    assert [node.text() for node in page.css("#T01 > .prose h4")] == ["Abstract", "Introduction"]
    assert section.text().strip().startswith("## Text number")
    ids = [node.attributes["id"] for node in page.css("[id]")]
    assert len(ids) == len(set(ids))


@pytest.mark.parametrize("with_gold", [False, True])
def test_all_six_marks_are_explained_and_the_published_section_is_shown_unless_left_out(
    root, tmp_path, with_gold
):
    page = page_of(exported(root, with_gold=with_gold), tmp_path)
    terms = zip(page.css("dt"), page.css("dd"), strict=True)
    assert {name.text(): question.text() for name, question in terms} == criteria(
        with_gold=with_gold
    )
    assert ("published section" in page.text()) == with_gold
    assert ("The authors wrote this themselves" in page.text()) == with_gold


@pytest.mark.parametrize(
    ("description", "expected"),
    [
        ("", ("", False)),
        ("# T\n\nShort.", ("Short.", False)),
        ("x" * 9_000, ("x" * TARGET_CHARS, True)),
        ("# T\n\nShort.\n\n## Method\n\n" + "y" * 9_000, ("Short.", True)),
        (f"# T\n\n{'a' * 3_000}\n\nb\n\n{'c' * 600}\n\nd", (f"{'a' * 3_000}\n\nb", True)),
    ],
    ids=["empty", "short", "one long paragraph", "a heading at the cut", "whole paragraphs"],
)
def test_the_beginning_of_a_target(description, expected):
    assert beginning(description, "T") == expected
