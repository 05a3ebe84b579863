"""What raters receive: blind, inert whatever the texts hold, the same for the same seed."""

from __future__ import annotations

import base64
import hashlib
import re
from itertools import cycle
from pathlib import Path

import pytest
from selectolax.lexbor import LexborHTMLParser

from pipeline.errors import MissingInput, PermanentFailure, SettingError
from pipeline.evaluation.annotation.export import Export, write_files
from pipeline.evaluation.annotation.study import (
    assign_letters,
    check_name,
    key_file,
    read_key,
    select_items,
    write_key,
)
from pipeline.evaluation.g_score.people import TARGET_CHARS, beginning, criteria
from pipeline.evaluation.prose import printable
from pipeline.settings import Settings
from pipeline.storage.data_root import DataRoot
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
from tests.unit.evaluation.hostile import HOSTILE
from tests.unit.report.test_pages import folded

pytestmark = pytest.mark.slow

FORMULAS = ("=1+1", "+1", "-1", "@SUM(A1)", "＝1+1")
_ELEMENTS = {
    "html", "head", "meta", "title", "style", "body", "header", "main", "h1", "h2", "h3", "h4",
    "p", "bdi", "a", "span", "div", "section", "article", "dl", "dt", "dd", "ol", "li", "strong",
    "em",
}  # fmt: skip


@pytest.fixture
def root(tmp_path: Path) -> DataRoot:
    """A data root with one month."""
    root = workspace(tmp_path / "data").root
    write_month(root)
    return root


def files_of(export: Export, folder: Path, annotators: int = 1) -> dict[str, Path]:
    """Name → file of all that annotators receive."""
    return {file.name: file for file in write_files(export, folder, annotators)}


def parsed(page: Path) -> LexborHTMLParser:
    return LexborHTMLParser(page.read_text())


@pytest.mark.parametrize("with_gold", [False, True])
def test_no_system_model_or_setting_is_named_in_anything_that_raters_get(
    root: DataRoot, tmp_path: Path, with_gold: bool
) -> None:
    told = {
        *RELATED_WORK_SYSTEMS,
        "some-model-7b",
        "CITELOOM_",
        "2403.9",
        *(f"{name}=" for name in Settings.model_fields),
    }
    for name, file in files_of(exported(root, with_gold=with_gold), tmp_path / "out").items():
        text = file.read_text().lower()
        # Sections say of which task they are, as the texts of these tests do to be told apart.
        text = re.sub(r"text number \d on 2403\.\d{5}", "", text)
        spelt = re.sub(r"[^a-z0-9]", "", text)
        assert [each for each in told if each.lower() in text] == [], name
        assert [
            system for system in RELATED_WORK_SYSTEMS if system.replace("_", "") in spelt
        ] == [], name


def test_the_key_is_not_among_what_raters_get(root: DataRoot, tmp_path: Path) -> None:
    export = exported(root, seed=771)
    files = files_of(export, tmp_path / "out")
    assert (
        {file.name for file in (tmp_path / "out").iterdir()}
        == set(files)
        == {"page-1.html", "sheet-1.csv"}
    )
    assert key_file(root, "pilot").parent.parent.parent == root.path
    assert not [name for name, file in files.items() if "771" in file.read_text()]


def test_each_label_is_the_text_of_its_system(root: DataRoot, tmp_path: Path) -> None:
    export = exported(root)
    articles = parsed(files_of(export, tmp_path)["page-1.html"]).css("article")
    assert len(articles) == 4 * len(SYSTEMS)
    for article in articles:
        unit = export.study.units[article.attributes["aria-labelledby"] or ""]
        place = SYSTEMS.index(unit.system)
        assert (
            article.css_first(".prose")
            .text()
            .strip()
            .startswith(f"Text number {place} on {unit.item_id[:10]}.")
        )


def test_letters_are_shuffled_over_tasks() -> None:
    first = [assign_letters(1, f"task {number}", SYSTEMS)["A"] for number in range(300)]
    assert all(70 < first.count(system) < 130 for system in SYSTEMS)
    with pytest.raises(SettingError, match="26 have a letter"):
        assign_letters(1, "task", [f"system{number}" for number in range(27)])


def test_the_same_seed_gives_the_same_bytes_and_another_seed_another_order(
    root: DataRoot, tmp_path: Path
) -> None:
    one, again, other = exported(root), exported(root), exported(root, "other", seed=8)
    first, second = files_of(one, tmp_path / "1", 2), files_of(again, tmp_path / "2", 2)
    assert [file.read_bytes() for file in first.values()] == [
        file.read_bytes() for file in second.values()
    ]
    assert one.study == again.study
    assert list(one.study.units.values()) != list(other.study.units.values())


def test_each_annotator_has_the_same_units_in_an_order_of_their_own(
    root: DataRoot, tmp_path: Path
) -> None:
    write_month(root, "2024-04", tasks=8)
    export = exported(root)
    few, more = (files_of(export, tmp_path / f"{annotators}", annotators) for annotators in (2, 3))
    units = [[row["unit"] for row in rows_of(more[f"sheet-{number}.csv"])] for number in (1, 2, 3)]
    assert sorted(units[0]) == sorted(units[1]) == sorted(units[2])
    assert len({tuple(unit) for unit in units}) == 3
    assert [
        each.attributes["aria-labelledby"] for each in parsed(more["page-2.html"]).css("article")
    ] == units[1]
    assert {row["annotator"] for row in rows_of(more["sheet-2.csv"])} == {"annotator-2"}
    assert few["sheet-2.csv"].read_bytes() == more["sheet-2.csv"].read_bytes(), (
        "no sheet that is out changes"
    )


def test_the_key_is_read_back_as_it_was_and_no_other_study_takes_its_name(root: DataRoot) -> None:
    choice = exported(root)
    before = key_file(root, "pilot").read_bytes()
    with pytest.raises(SettingError, match="another --name"):
        exported(root, seed=8)
    assert key_file(root, "pilot").read_bytes() == before
    assert read_key(root, "pilot") == choice.study
    write_key(root, choice.study)
    key_file(root, "pilot").write_text("{}")
    with pytest.raises(PermanentFailure, match="damaged"):
        read_key(root, "pilot")


@pytest.mark.parametrize("name", ["none", "../pilot", "", "/etc/passwd"])
def test_a_study_that_is_not_there_is_named_with_those_that_are(root: DataRoot, name: str) -> None:
    exported(root)
    with pytest.raises(MissingInput, match=r"there: pilot"):
        read_key(root, name)


@pytest.mark.parametrize(
    "name",
    [
        "",
        "..",
        "a/b",
        "Übung",
        "x" * 51,
        "chatcite-1",
        "few-shot",
        "my_zero_shot_study",
        "gpt4-pilot",
    ],
)
def test_a_name_that_is_no_file_or_reveals_a_system_or_its_model_is_refused(name: str) -> None:
    with pytest.raises(SettingError, match="--name"):
        check_name(name, ("chatcite@gpt-4", "few_shot", "zero_shot"))


def test_a_system_is_an_opaque_label_that_may_hold_its_model() -> None:
    texts = {
        f"task {number}": ("zero_shot@gpt-4", "zero_shot@gpt-3.5-turbo") for number in range(3)
    }
    selection = select_items(
        texts, ["zero_shot@gpt-4", "zero_shot@gpt-3.5-turbo"], "tasks", most=2, seed=1
    )
    assert selection.systems == ("zero_shot@gpt-3.5-turbo", "zero_shot@gpt-4")
    assert check_name("pilot", selection.systems) == "pilot"


def test_only_tasks_with_a_section_of_every_system_are_taken_and_no_more_than_requested(
    root: DataRoot,
) -> None:
    write_month(root, "2024-04", systems=("chatcite",))
    write_month(
        root, "2024-05", text=lambda text: " \n" if text.startswith("Text number 1") else text
    )
    choice = exported(root, systems=None)
    assert choice.systems == SYSTEMS
    assert choice.study.months == [MONTH]
    assert choice.lacking == {"few_shot": 8, "zero_shot": 4}
    assert any("8 tasks have nothing of few_shot" in note for note in choice.notes)
    assert any("there are 4 tasks, and 10 were requested" in note for note in choice.notes)
    fewer = exported(root, "second", items=3)
    assert [item.name for item in fewer.items] == ["T01", "T02", "T03"]
    assert fewer.notes[-1] == "each annotator has 9 sections of 3 tasks to rate"


def test_a_task_without_a_gold_section_is_left_out_only_where_that_is_shown(root: DataRoot) -> None:
    write_month(root, "2024-04", text=lambda text: "" if text.startswith("The authors") else text)
    assert len(exported(root, with_gold=False).items) == 8
    export = exported(root, "second")
    assert len(export.items) == 4
    assert export.notes[0] == "4 tasks have no gold section, and are left out (--without-gold)"
    with pytest.raises(MissingInput, match="no task has a gold section: give --without-gold"):
        exported(root, "third", months="2024-04")


def test_where_no_task_fits_it_is_said_what_is_missing(root: DataRoot, tmp_path: Path) -> None:
    write_month(root, "2024-04", systems=("litllm",))
    with pytest.raises(MissingInput, match="4 without chatcite, 4 without litllm"):
        exported(root, systems=("chatcite", "litllm"))
    with pytest.raises(MissingInput, match="no section is written"):
        exported(workspace(tmp_path / "empty").root)


def test_the_sheet_has_a_line_for_each_section_and_nothing_filled_in(
    root: DataRoot, tmp_path: Path
) -> None:
    sheet = files_of(exported(root), tmp_path)["sheet-1.csv"]
    rows = rows_of(sheet)
    assert sheet.read_bytes().startswith(b"\xef\xbb\xbf")
    assert tuple(rows[0]) == (
        "study",
        "annotator",
        "unit",
        "title",
        *CRITERIA,
        "preferred",
        "comment",
    )
    assert len(rows) == 4 * len(SYSTEMS)
    assert {(row["study"], row["annotator"]) for row in rows} == {("pilot", "annotator-1")}
    assert {row[column] for row in rows for column in (*CRITERIA, "preferred", "comment")} == {""}
    task = rows[0]["unit"][:3]
    assert [row["unit"] for row in rows[:3]] == [f"{task}-A", f"{task}-B", f"{task}-C"]


@pytest.mark.parametrize("formula", FORMULAS)
def test_a_cell_that_a_spreadsheet_would_compute_is_text(
    root: DataRoot, tmp_path: Path, formula: str
) -> None:
    write_month(root, text=lambda text: f"{formula} {text}")
    titles = {row["title"] for row in rows_of(files_of(exported(root), tmp_path)["sheet-1.csv"])}
    assert len(titles) == 4
    assert all(title.startswith(f"'{formula} Weights") for title in titles)


def test_hostile_texts_are_shown_and_do_nothing(root: DataRoot, tmp_path: Path) -> None:
    payloads = cycle(HOSTILE)
    write_month(root, tasks=8, text=lambda text: f"{next(payloads)} {text}")
    page = files_of(exported(root), tmp_path)["page-1.html"]
    shown = folded(parsed(page).text())
    assert [payload for payload in HOSTILE if folded(printable(payload)) not in shown] == []
    assert_inert(page)


def assert_inert(page: Path) -> None:
    """Nothing on the page is active, and no address leads elsewhere than to references and
    arXiv.
    """
    top = parsed(page).root
    assert top is not None
    for node in top.traverse(include_text=False):
        assert node.tag in _ELEMENTS, node.tag
        for name, value in node.attributes.items():
            assert not name.startswith("on"), name
            if name in ("href", "src", "action", "formaction"):
                assert re.match(r"#T\d\d-reference-\d+$|https://arxiv\.org/abs/", value or ""), (
                    value
                )
    assert [len(parsed(page).css(tag)) for tag in ("style", "meta[http-equiv]")] == [1, 1]
    policy = parsed(page).css_first("meta[http-equiv]").attributes["content"]
    style = hashlib.sha256(parsed(page).css_first("style").text().encode()).digest()
    allowed = f"style-src 'sha256-{base64.b64encode(style).decode()}'"
    assert policy == f"default-src 'none'; {allowed}; base-uri 'none'; form-action 'none'"


def test_citations_lead_to_the_list_and_headings_are_those_of_the_target_alone(
    root: DataRoot, tmp_path: Path
) -> None:
    write_month(root, text=lambda text: f"## {text}" if text.startswith("Text") else text)
    page = parsed(files_of(exported(root), tmp_path)["page-1.html"])
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
    root: DataRoot, tmp_path: Path, with_gold: bool
) -> None:
    files = files_of(exported(root, with_gold=with_gold), tmp_path)
    page = parsed(files["page-1.html"])
    explained = {
        name.text(): question.text()
        for name, question in zip(page.css("dt"), page.css("dd"), strict=True)
    }
    assert explained == criteria(with_gold=with_gold)
    assert ("published section" in page.text()) == with_gold
    showing = {
        name
        for name, file in files.items()
        if "The authors wrote this themselves" in file.read_text()
    }
    assert showing == ({"page-1.html"} if with_gold else set())


def test_of_a_long_target_whole_paragraphs_are_shown() -> None:
    paragraphs = [f"{number} {'word ' * 100}".strip() for number in range(20)]
    text, cut = beginning("# T\n\n## Abstract\n\n" + "\n\n".join(paragraphs), "T")
    assert cut
    assert len(text) <= TARGET_CHARS
    assert text.split("\n\n") == ["## Abstract", *paragraphs[: text.count("\n\n")]]


@pytest.mark.parametrize(
    ("description", "expected"),
    [
        ("", ("", False)),
        ("# T\n\nShort.", ("Short.", False)),
        ("x" * 9_000, ("x" * TARGET_CHARS, True)),
        ("# T\n\nShort.\n\n## Method\n\n" + "y" * 9_000, ("Short.", True)),
    ],
    ids=["empty", "short", "one long paragraph", "a heading at the cut"],
)
def test_the_beginning_of_a_target(description: str, expected: tuple[str, bool]) -> None:
    assert beginning(description, "T") == expected
