"""Tasks: the section is taken out whole, its citations are numbered, and files are checked."""

import json

import pytest

from pipeline import tables
from pipeline.engine.run import State, run_stage, state
from pipeline.errors import SettingError
from pipeline.related_work.task import read_task_file, tasks_of_month, write_task_file
from pipeline.related_work.task_reader import task_of
from pipeline.related_work.tasks import (
    RELATED_WORK_TASKS,
    CitedWork,
    gold_text,
    make_task,
    related_work_section,
)
from pipeline.report.frames import read_ledger
from tests.cases import cases, cases_beside
from tests.month_tables import write_table
from tests.unit.related_work.building import paper_row
from tests.workspaces import make_workspace


def block(text, *path, keys=()):
    return {
        "kind": "paragraph",
        "anchor": "p",
        "section_path": list(path),
        "text": text,
        "cited_keys": list(keys),
    }


def section(title, depth=1, anchor="S1"):
    return {"anchor": anchor, "number": "1", "title": title, "depth": depth, "path": [title]}


RELATED = section("Related Work", anchor="S2")
PAPER = {
    "arxiv_id": "2404.90001",
    "title": "Fusion",
    "abstract": "We fuse.",
    "sections": [section("Introduction"), RELATED, section("Method", anchor="S3")],
    "blocks": [
        block("It began [@b9].", "Introduction", keys=("b9",)),
        block("First [@b2; @b1] and others [@b3].", "Related Work", keys=("b2", "b1", "b3")),
        block("Again [@b1].", "Related Work", "Fusion", keys=("b1",)),
        block("We do this.", "Method"),
    ],
}
CITATIONS = {
    ("2404.90001", "b1"): CitedWork("2403.90001", "2403.90001", "Tidepool", 2024, place=1),
    ("2404.90001", "b2"): CitedWork(
        "2403.90002", "2403.90002", "Lanternfish", 2024, authors=("Ada Li",), place=2
    ),
}
HARBOUR = CitedWork(
    "2404.90001 b3", None, "Harbour", 1999, "item", "A. Nobody. Harbour. 1999.", place=3
)


def made(paper=PAPER, citations=CITATIONS, most=100):
    """The task, with the citation key of each reference by its number."""
    task = make_task(paper, RELATED, citations, most=most)
    return task, {each["number"]: each["key"] for each in task["references"]}


def test_the_section_is_taken_out_and_its_citations_are_numbered_as_in_the_bibliography():
    task, keys = made()
    assert keys == {1: "b1", 2: "b2"}
    assert [(each["arxiv_id"], each["authors"]) for each in task["references"]] == [
        ("2403.90001", []),
        ("2403.90002", ["Ada Li"]),
    ]
    assert (task["outside"], task["task_id"]) == (1, "2404.90001#S2")
    assert task["gold"] == "First [Reference 2] [Reference 1] and others.\n\nAgain [Reference 1]."
    parts = ("It began.", "We do this.", "First", "Again")
    assert [part in task["description"] for part in parts] == [True, True, False, False]


def test_another_section_on_related_work_is_taken_out_as_well():
    name = "Additional Related Work"
    sections = [*PAPER["sections"], section(name, anchor="A1")]
    blocks = [*PAPER["blocks"], block("All of it at length [@b1].", name, keys=("b1",))]
    task, _ = made(PAPER | {"sections": sections, "blocks": blocks})
    assert "at length" not in task["description"] + task["gold"]
    assert "We do this." in task["description"]


def test_no_more_references_than_asked_for_and_two_items_of_one_paper_are_one():
    task, keys = made(most=1)
    assert (keys, task["outside"]) == ({1: "b1"}, 2)
    assert "[Reference 2]" not in task["gold"]
    again = CitedWork("2403.90002", "2403.90002", "Lanternfish", 2024, place=3)
    task, keys = made(citations={**CITATIONS, ("2404.90001", "b3"): again})
    assert keys == {1: "b1", 2: "b2"}
    assert task["gold"].startswith("First [Reference 2] [Reference 1] and others [Reference 2].")


def test_the_outermost_related_work_section_is_taken():
    inner, outer = section("Related Work", depth=3), section("Prior Work")
    assert related_work_section(PAPER | {"sections": [inner, outer]}) == outer
    assert related_work_section(PAPER | {"sections": [section("Method")]}) is None


def test_a_marker_with_nothing_known_leaves_no_hole_before_a_stop():
    assert gold_text([block("Seen [@x], and [@y; @z].")], {}) == "Seen, and."


def test_a_work_outside_the_corpus_is_a_reference_marked_by_what_there_is_of_it():
    task, _ = made(citations={**CITATIONS, ("2404.90001", "b3"): HARBOUR})
    texts = [each["text"] for each in task["references"]]
    assert (texts, task["outside"]) == ([None, None, HARBOUR.text], 0)
    read = task_of(task, {"2403.90001": "# Tidepool\n\nFull."})
    assert [(reference.source, reference.text) for reference in read.references] == [
        ("full_text", "# Tidepool\n\nFull."),
        ("full_text", "# Lanternfish"),
        ("item", f"# Harbour\n\nOf this work only its bibliography item is known: {HARBOUR.text}"),
    ]


def corpus(place):
    """2404.90001 cites one paper, one that metadata alone describes, one that nobody describes, and
    an unread item.
    """
    cites = {"b1": "2403.90001", "b2": "2403.90002", "b3": "2403.90003", "b4": None}
    item = {"arxiv_id": "2404.90001", "title": None, "year": 2001}
    items = [
        item | {"key": key, "raw": f"Item {key}.", "cited_arxiv_id": cited}
        for key, cited in cites.items()
    ]
    blocks = [block("All [@b1; @b2; @b3; @b4].", "Related Work", keys=tuple(cites))]
    target = paper_row("2404.90001") | {"sections": [RELATED], "blocks": blocks}
    described = {"arxiv_id": "2403.90002", "title": "Described", "abstract": "It is."}
    described["published"] = "2024-03-05"
    for table, month, rows in (
        (tables.PAPERS, "2024-03", [paper_row("2403.90001")]),
        (tables.METADATA, "2024-03", [described]),
        (tables.PAPERS, "2024-04", [target]),
        (tables.REFERENCES, "2024-04", items),
    ):
        write_table(place.root, table, month, rows)


def place_with(folder, **settings):
    own = {"llm_url": "http://127.0.0.1:9/v1", "llm_model": "m", "min_references": 1}
    return make_workspace(folder, **own | settings)


def tasks_with(folder, **settings):
    place = place_with(folder, **settings)
    corpus(place)
    run_stage(RELATED_WORK_TASKS, place, "2024-04")
    return place.root.rows(tables.RELATED_WORK_TASKS, "2024-04")


@cases(
    "unit/related_work/cases.toml",
    "a_setting_says_what_becomes_of_works_outside",
    ["settings", "references", "outside"],
)
def test_a_setting_says_what_becomes_of_works_outside_the_corpus_and_how_many_make_a_task(
    tmp_path, settings, references, outside
):
    tasks = [
        (
            [
                [each["source"], each["arxiv_id"] or "none", each["year"], each["text"] or "none"]
                for each in task["references"]
            ],
            task["outside"],
        )
        for task in tasks_with(tmp_path, **settings)
    ]
    assert tasks == ([(references, outside)] if references else [])


def test_a_limit_on_all_months_leaves_later_ones_what_earlier_ones_have_not_used(tmp_path):
    assert len(tasks_with(tmp_path, max_tasks_in_all=1)) == 1
    of_file = write_file(tmp_path / "tasks", id="mine-2", month="2024-05").parent
    tasks = []
    for most in (1, 2, 0):
        place = place_with(tmp_path, tasks_dir=of_file, max_tasks_in_all=most)
        for table in (tables.PAPERS, tables.REFERENCES):
            write_table(place.root, table, "2024-05", [])
        tasks.append(run_stage(RELATED_WORK_TASKS, place, "2024-05").rows)
    assert tasks == [0, 1, 1]
    place = place_with(tmp_path, max_tasks_in_all=1)
    assert state(RELATED_WORK_TASKS, place, "2024-04") is State.DONE


def left_out(place):
    ledger = read_ledger(place.root, "2024-04", [tables.RELATED_WORK_TASKS])
    return [(item.reason, item.detail) for item in ledger]


def test_a_month_without_a_task_says_why(tmp_path):
    assert tasks_with(tmp_path, min_references=3) == []
    place = place_with(tmp_path)
    known = "2 of 4 cited works have a known text"
    assert left_out(place) == [("too_few_references", known)]
    note = place.root.provenance(tables.RELATED_WORK_TASKS, "2024-04").notes["no_task"]
    assert "(CITELOOM_MIN_REFERENCES): at most 2 have one, in 1 paper" in note


def test_references_over_the_most_are_in_the_ledger(tmp_path, monkeypatch):
    monkeypatch.setattr("pipeline.related_work.tasks.MAX_REFERENCES", 2)
    (task,) = tasks_with(tmp_path)
    most = "a task has 2 references at most; 2 items are not used"
    assert len(task["references"]) == 2
    assert left_out(place_with(tmp_path)) == [("at_max_references", most)]


FILE = {
    "format": "citeloom-task-1",
    "id": "mine-1",
    "month": "2024-04",
    "title": "Mine",
    "text": "# Mine\n\nWords.",
    "related_work": "As [Reference 1] says.",
    "references": [{"title": "Theirs", "year": 1999, "source": "abstract", "text": "They say."}],
}


def write_file(folder, name="mine.json", **changed):
    folder.mkdir(exist_ok=True)
    file = folder / name
    file.write_text(json.dumps(FILE | changed))
    return file


def test_a_task_of_a_file_joins_those_of_its_month_and_a_changed_file_makes_it_again(tmp_path):
    folder = tmp_path / "tasks"
    task = read_task_file(write_file(folder))
    assert read_task_file(write_task_file(task, tmp_path / "out")) == task
    write_file(folder, "other.json", id="other-1", month="2024-05")
    rows = tasks_with(tmp_path / "data", tasks_dir=folder)
    assert [row["task_id"] for row in rows] == ["2404.90001#S2", "mine-1"]
    assert (rows[1]["arxiv_id"], rows[1]["references"][0]["text"]) == (None, "They say.")
    place = place_with(tmp_path / "data", tasks_dir=folder)
    write_file(folder, "other.json", id="other-1", month="2024-05", title="Changed")
    assert state(RELATED_WORK_TASKS, place, "2024-04") is State.DONE
    write_file(folder, title="Changed")
    assert state(RELATED_WORK_TASKS, place, "2024-04") is State.STALE


@cases_beside("changed", "message")
def test_a_wrong_task_file_is_named_with_its_fault(tmp_path, changed, message):
    with pytest.raises(SettingError, match=message):
        read_task_file(write_file(tmp_path, **changed))


def test_two_files_with_one_id_and_a_file_without_a_month_are_refused(tmp_path):
    write_file(tmp_path / "a")
    write_file(tmp_path / "a", "again.json")
    with pytest.raises(SettingError, match="both have the id mine-1"):
        tasks_of_month(tmp_path / "a", "2024-04")
    write_file(tmp_path / "b", month=None)
    with pytest.raises(SettingError, match="has no month"):
        tasks_of_month(tmp_path / "b", "2024-04")
    with pytest.raises(SettingError, match="no folder"):
        tasks_of_month(tmp_path / "c", "2024-04")
