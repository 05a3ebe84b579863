"""What annotators receive: blind, inert whatever the texts hold, the same for the same seed."""

from __future__ import annotations

import base64
import csv
import hashlib
import io
import re
from pathlib import Path

import pytest
from selectolax.lexbor import LexborHTMLParser, LexborNode

from pipeline.errors import MissingInput, PermanentFailure, SettingError
from pipeline.evaluation.annotation.export import (
    annotator_files,
    csv_bytes,
    guarded,
    unguarded,
    write_files,
)
from pipeline.evaluation.annotation.ratings import RATINGS, TARGET_CHARS, beginning, criteria
from pipeline.evaluation.annotation.study import (
    assign_letters,
    check_name,
    key_file,
    read_key,
    select_items,
    write_key,
)
from pipeline.settings import Settings
from pipeline.storage.data_root import DataRoot
from pipeline.tables import CRITERIA, RELATED_WORK_SYSTEMS
from tests.unit.evaluation.annotation.studied import MONTH, SYSTEMS, exported, workspace, write_month

pytestmark = pytest.mark.slow

HOSTILE = (
    "<script>alert(1)</script>",
    "</script><script>alert(1)</script>",
    "</title></style></textarea><img src=x onerror=alert(1)>",
    "\" onfocus=\"alert(1)\" autofocus x=\"",
    "' onfocus='alert(1)' autofocus x='",
    "<svg onload=alert(1)>",
    "{{ 7 * 7 }} {% raw %}{{ name }}{% endraw %}",
    "<form action=https://evil.example/><button>Go</button></form>",
    "<input name=T01-A-fluency value=5 checked>",
    "<meta http-equiv=refresh content=0;url=https://evil.example/>",
    "[Reference 1](javascript:alert(1)) [Reference \"><script>alert(1)</script>]",
    "javascript:alert(1)",
)  # fmt: skip
FORMULAS = ("=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "\n=1", "＝1+1", "'=1", "''-1")
_ELEMENTS = {
    "html", "head", "meta", "title", "style", "body", "form", "header", "main", "footer", "h1", "h2", "h3", "p", "bdi",
    "a", "span", "div", "section", "article", "details", "summary", "dl", "dt", "dd", "ol", "li", "fieldset", "legend",
    "label", "input", "textarea", "button", "noscript", "script",
}  # fmt: skip


@pytest.fixture
def root(tmp_path: Path) -> DataRoot:
    """A data root with one month."""
    root = workspace(tmp_path / "data").root
    write_month(root)
    return root


def parsed(page: bytes) -> LexborHTMLParser:
    return LexborHTMLParser(page.decode())


def nodes(page: bytes) -> list[LexborNode]:
    top = parsed(page).root
    assert top is not None
    return list(top.traverse(include_text=False))


def cells(sheet: bytes) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(sheet.decode("utf-8-sig"), newline="")))


@pytest.mark.parametrize("with_gold", [False, True])
def test_no_system_model_or_setting_is_named_in_anything_that_raters_get(root: DataRoot, with_gold: bool) -> None:
    files = annotator_files(exported(root, with_gold=with_gold), 1)
    told = {
        *RELATED_WORK_SYSTEMS,
        "some-model-7b",
        "CITELOOM_",
        "2403.9",
        *(f"{name}=" for name in Settings.model_fields),
    }
    for name, content in files.items():
        text = content.decode().lower()
        # Sections say of which task they are, as the texts of these tests do to be told apart.
        text = re.sub(r"text number \d on 2403\.\d{5}", "", text)
        spelt = re.sub(r"[^a-z0-9]", "", text)
        assert [each for each in told if each.lower() in text] == [], name
        assert [system for system in RELATED_WORK_SYSTEMS if system.replace("_", "") in spelt] == [], name


def test_the_key_is_not_among_what_raters_get(root: DataRoot, tmp_path: Path) -> None:
    choice = exported(root)
    files = write_files(choice, tmp_path / "sheets", 1)
    assert sorted(file.name for file in (tmp_path / "sheets").iterdir()) == sorted(file.name for file in files)
    assert {file.name for file in files} == {"README.txt", "form-1.html", "sheet-1.csv"}
    assert key_file(root, "pilot").parent.parent.parent == root.path
    assert str(choice.study.seed) not in (tmp_path / "sheets" / "README.txt").read_text()


def test_each_letter_is_the_text_of_its_system(root: DataRoot) -> None:
    export = exported(root)
    page = parsed(annotator_files(export, 1)["form-1.html"])
    assert len(page.css("article[data-unit]")) == 4 * len(SYSTEMS)
    for article in page.css("article[data-unit]"):
        unit = export.study.units[article.attributes["data-unit"] or ""]
        place = SYSTEMS.index(unit.system)
        assert article.css_first(".prose").text().strip().startswith(f"Text number {place} on {unit.item_id[:10]}.")


def test_letters_are_shuffled_over_tasks() -> None:
    first = [assign_letters(1, f"task {number}", SYSTEMS)["A"] for number in range(300)]
    assert all(70 < first.count(system) < 130 for system in SYSTEMS)
    with pytest.raises(SettingError, match="26 have a letter"):
        assign_letters(1, "task", [f"system{number}" for number in range(27)])


def test_the_same_seed_gives_the_same_bytes_and_another_seed_another_order(root: DataRoot) -> None:
    one, again, other = exported(root), exported(root), exported(root, "other", seed=8)
    assert annotator_files(one, 2) == annotator_files(again, 2)
    assert one.study == again.study
    assert list(one.study.units.values()) != list(other.study.units.values())


def test_each_annotator_has_the_same_units_in_an_order_of_their_own(root: DataRoot) -> None:
    write_month(root, "2024-04", tasks=8)
    few, more = (annotator_files(exported(root), annotators) for annotators in (2, 3))
    units = [[row["unit"] for row in cells(more[f"sheet-{number}.csv"])] for number in (1, 2, 3)]
    assert sorted(units[0]) == sorted(units[1]) == sorted(units[2])
    assert len({tuple(unit) for unit in units}) == 3
    assert [node.attributes["data-unit"] for node in parsed(more["form-2.html"]).css("[data-unit]")] == units[1]
    assert {row["annotator"] for row in cells(more["sheet-2.csv"])} == {"annotator-2"}
    assert few["sheet-2.csv"] == more["sheet-2.csv"], "one more annotator changes no sheet that is out"


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
    ["", "..", "a/b", "Übung", "x" * 51, "chatcite-1", "few-shot", "my_zero_shot_study", "gpt4-pilot"],
)
def test_a_name_that_is_no_file_or_reveals_a_system_or_its_model_is_refused(name: str) -> None:
    with pytest.raises(SettingError, match="--name"):
        check_name(name, ("chatcite@gpt-4", "few_shot", "zero_shot"))


def test_a_system_is_an_opaque_label_that_may_hold_its_model() -> None:
    texts = {f"task {number}": ("zero_shot@gpt-4", "zero_shot@gpt-3.5-turbo") for number in range(3)}
    selection = select_items(texts, ["zero_shot@gpt-4", "zero_shot@gpt-3.5-turbo"], most=2, seed=1)
    assert selection.systems == ("zero_shot@gpt-3.5-turbo", "zero_shot@gpt-4")
    assert check_name("pilot", selection.systems) == "pilot"


def test_only_tasks_with_a_section_of_every_system_are_taken_and_no_more_than_requested(root: DataRoot) -> None:
    write_month(root, "2024-04", systems=("chatcite",))
    write_month(root, "2024-05", text=lambda text: " \n" if text.startswith("Text number 1") else text)
    choice = exported(root, systems=None)
    assert choice.systems == SYSTEMS
    assert choice.study.months == [MONTH]
    assert choice.lacking == {"few_shot": 8, "zero_shot": 4}
    assert any("8 tasks have nothing of few_shot" in note for note in choice.notes)
    assert any("there are 4 tasks, and 10 were requested" in note for note in choice.notes)
    fewer = exported(root, "second", items=3)
    assert fewer.study.items == ["T01", "T02", "T03"]
    assert fewer.notes[-1] == "each annotator has 9 sections of 3 tasks to rate"


def test_a_task_without_a_gold_section_is_left_out_only_where_that_is_shown(root: DataRoot) -> None:
    write_month(root, "2024-04", text=lambda text: "" if text.startswith("The authors") else text)
    assert exported(root).lacking == {}
    choice = exported(root, "second", with_gold=True)
    assert (choice.lacking, len(choice.items)) == ({"the gold section": 4}, 4)


def test_where_no_task_fits_it_is_said_what_is_missing(root: DataRoot, tmp_path: Path) -> None:
    write_month(root, "2024-04", systems=("litllm",))
    with pytest.raises(MissingInput, match="4 without chatcite, 4 without litllm"):
        exported(root, systems=("chatcite", "litllm"))
    with pytest.raises(MissingInput, match="no section is written"):
        exported(workspace(tmp_path / "empty").root)


def test_the_sheet_has_a_line_for_each_section_and_nothing_filled_in(root: DataRoot) -> None:
    choice = exported(root)
    content = annotator_files(choice, 1)["sheet-1.csv"]
    rows = cells(content)
    assert content.startswith(b"\xef\xbb\xbf")
    assert tuple(rows[0]) == RATINGS.columns
    assert len(rows) == 4 * len(SYSTEMS)
    given = {(row["study"], row["annotator"], row["preferred"], row["comment"]) for row in rows}
    assert given == {("pilot", "annotator-1", "", "")}
    assert all(row[criterion] == "" for row in rows for criterion in CRITERIA)
    task = rows[0]["unit"][:3]
    assert [row["unit"] for row in rows[:3]] == [f"{task}-A", f"{task}-B", f"{task}-C"]


@pytest.mark.parametrize("formula", FORMULAS)
def test_a_cell_that_a_spreadsheet_would_compute_becomes_text_and_comes_back(formula: str) -> None:
    assert guarded(formula).startswith("'")
    assert unguarded(guarded(formula)) == formula
    row = next(csv.reader(io.StringIO(csv_bytes([[formula]]).decode("utf-8-sig"), newline="")))
    assert row == [f"'{formula}"]
    for other in ("", "a=1", "'quoted'", "it's -1", "4"):
        assert guarded(other) == unguarded(other) == other


@pytest.mark.parametrize("payload", HOSTILE)
def test_a_hostile_text_is_shown_and_does_nothing(root: DataRoot, payload: str) -> None:
    write_month(root, text=lambda text: f"{payload} {text}")
    page = annotator_files(exported(root, with_gold=True), 1)["form-1.html"]
    shown = " ".join(parsed(page).text().split())
    for words in ("Weights for retrieval, part 0", "We learn weights.", "Cited work 1", "Text number 0", "The authors"):
        assert " ".join(f"{payload} {words}".split()) in shown
    assert_inert(page)


def assert_inert(page: bytes) -> None:
    for node in nodes(page):
        assert node.tag in _ELEMENTS, node.tag
        for name, value in node.attributes.items():
            assert not name.startswith("on"), name
            if name in ("href", "src", "action", "formaction"):
                assert re.match(r"#T\d\d-reference-\d+$|https://arxiv\.org/abs/", value or ""), value
    assert [len(parsed(page).css(tag)) for tag in ("script", "style", "form", "meta[http-equiv]")] == [1, 1, 1, 1]
    assert not parsed(page).css("input:not([type=radio]):not([name=annotator])")


def test_the_form_allows_its_own_style_and_script_and_nothing_else(root: DataRoot) -> None:
    page, other = (
        parsed(annotator_files(exported(root, name, seed=seed), 1)["form-1.html"])
        for seed, name in enumerate(("one", "two"))
    )

    def source(tag: str) -> str:
        text = page.css_first(tag).text()
        return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"

    policy = page.css_first("meta[http-equiv]").attributes["content"]
    assert policy == (
        f"default-src 'none'; style-src {source('style')}; script-src {source('script')}; base-uri 'none'; "
        "form-action 'none'"
    )
    assert page.css_first("script").text() == other.css_first("script").text()
    assert page.css_first("form").attributes["data-content"] != other.css_first("form").attributes["data-content"]


def test_every_field_has_a_name_that_a_screen_reader_says(root: DataRoot) -> None:
    page = parsed(annotator_files(exported(root), 1)["form-1.html"])
    assert len(page.css("fieldset")) == 4 * (3 * 6 + 1)
    assert_fields_are_named(page)


def assert_fields_are_named(page: LexborHTMLParser) -> None:
    assert len(page.css("fieldset")) == len(page.css("fieldset > legend:first-child")) > 0
    for field in page.css("input, textarea"):
        assert field.parent is not None
        assert field.parent.tag == "label" or page.css(f"label[for={field.attributes['id']}]"), field.html
    ids = [node.attributes["id"] for node in page.css("[id]")]
    assert len(ids) == len(set(ids))


def test_citations_lead_to_the_list_and_headings_are_those_of_the_target_alone(root: DataRoot) -> None:
    write_month(root, text=lambda text: f"## {text}" if text.startswith("Text") else text)
    page = parsed(annotator_files(exported(root), 1)["form-1.html"])
    section = page.css_first("article[data-item=T01] .prose")
    assert [link.attributes["href"] for link in section.css("a")] == ["#T01-reference-1"]
    assert "and on [Reference 9]." in section.text()
    assert " ".join(page.css_first("#T01-reference-1").text().split()) == "[Reference 1] Cited work 1 (2021) arXiv"
    assert [node.text() for node in page.css("#T01 > details h3")] == ["Abstract", "Introduction"]
    assert section.text().strip().startswith("## Text number")


@pytest.mark.parametrize("with_gold", [False, True])
def test_all_six_marks_are_explained_and_the_published_section_is_shown_only_where_asked(
    root: DataRoot, with_gold: bool
) -> None:
    files = annotator_files(exported(root, with_gold=with_gold), 1)
    for criterion in criteria(with_gold=with_gold):
        for name in ("README.txt", "form-1.html"):
            text = " ".join(parsed(files[name]).text().split())
            assert criterion["heading"] in text
            assert criterion["question"] in text
    assert b"&#" not in files["README.txt"]
    assert (b"published section" in files["README.txt"]) == with_gold
    showing = {name for name, content in files.items() if b"The authors wrote this themselves" in content}
    assert showing == ({"form-1.html"} if with_gold else set())


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
