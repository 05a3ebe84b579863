"""Tasks of other data sets brought into the task format."""

import json
from pathlib import Path

import pytest

from pipeline.errors import SettingError
from pipeline.related_work.importers import (
    NameYearCitations,
    bibliography_entry,
    import_nudtrwg,
    item_text,
    make_imported_task,
)
from pipeline.related_work.task import FileReference, tasks_of_month
from tests.cases import cases
from tests.command import invoke
from tests.real_targets import read_real_targets

WORKS = [
    FileReference(
        title=title, authors=authors, year=year, source="item", text=item_text(authors, year, title)
    )
    for title, year, *authors in (
        ("Tides", 2015, "Ada Popović"),
        ("Boats", 2021, "Ben Yang", "Cy Klein"),
        ("Nets", 2021, "Di Liu", "Ed Fox", "Flo Ray"),
        ("Ropes", 2021, "Gus Liu"),
        ("Unseen", 2001, "Hal Orr"),
    )
]


def test_names_and_years_become_numbers_in_the_order_of_a_bibliography():
    text = (
        "It began with boats (Yang and Klein, 2021; see Liu et al., 2021a). Popovic´ (2016) adds"
        " tides; Liu (2021b) and others (Unknown et al., 2010) add ropes (Yang and Klein, 2021;"
        " Nobody, 1999)."
    )
    citations = NameYearCitations(WORKS)
    section = citations.mark(text)
    made = make_imported_task(
        "mine", None, "A target", "We.", section, WORKS, unmatched=citations.unmatched
    )
    assert (
        made.task.related_work
        == "It began with boats [Reference 5] [Reference 1]. Popovic´ [Reference 4] adds tides; Liu"
        " [Reference 2] and others (Unknown et al., 2010) add ropes [Reference 5] (Nobody,"
        " 1999)."
    )
    titles = [reference.title for reference in made.task.references]
    assert titles == ["Nets", "Ropes", "Unseen", "Tides", "Boats"]
    assert (made.uncited, made.unmatched) == (
        ("Unseen",),
        ("Unknown et al., 2010", "Nobody, 1999"),
    )


def test_the_five_real_targets_keep_nine_of_ten_citations(shared_data):
    made = read_real_targets(shared_data)
    references = [len(each.task.references) for each in made]
    assert (len(references), sum(references)) == (5, 67)
    assert sum(len(each.uncited) for each in made) <= 6


TARGET = """A Model of Tides
Ada Lovelace

Abstract
We model tides.

1

Introduction
Tides mat-
ter to boats.

2 Related Work
2.1 Boats
Boats ﬂoat (Yang and Klein, 2021). Popović
(2015) measures tides (Orr, 1999).

2.2 Nets

Nets of Liu et al. (2020) hold fish.

3 Method
We compare them with Popović (2015).

References
Ben Yang and Cy Klein. 2021. On boats: A study. In Proceedings of the Harbour Conference, pages 1–10.
Di Liu, Ed Fox and Flo Ray. 2020. Nets. Journal of Nets, 3(2):1–9.
Ada Popović. 2015. Measuring the tides. In Tides.
"""


def write_target(folder, name="A Model of Tides", text=TARGET):
    target = folder / name
    works = target / "Reference Papers"
    works.mkdir(parents=True)
    (target / "target_paper_title.txt").write_text("A Model of Tides\n")
    for file in (
        target / "Target Paper",
        works / "Measuring the tides",
        works / "On boats  A study",
    ):
        Path(f"{file}.pdf").write_bytes(b"%PDF-1.4")
    (target / "Target Paper.txt").write_text(text)
    boats = (
        "On boats\n\nAbstract\nBoats float.\n\n1 Introduction\nWe float.\n\nReferences\nNobody."
        " 1900. Nothing."
    )
    (works / "On boats  A study.txt").write_text(boats)
    return target


def test_a_folder_of_nudtrwg_becomes_files_that_the_pipeline_reads_and_names_what_cannot_be_read(
    tmp_path,
):
    write_target(tmp_path / "set")
    write_target(tmp_path / "set", "B", "Abstract\nNo section.\n")
    (write_target(tmp_path / "set", "C") / "Target Paper.txt").unlink()
    folder = tmp_path / "tasks"
    options = ["--from", "nudtrwg", "--output", str(folder), "--month", "2024-03", "--json"]
    done = invoke("import-tasks", str(tmp_path / "set"), *options)
    assert json.loads(done.stdout) == [str(folder / "nudtrwg-1.json")]
    assert "left out: B: " in done.stderr
    assert "left out: C: " in done.stderr
    assert "match no reference: Liu et al. (2020); Orr, 1999" in " ".join(done.stderr.split())
    ((_, task),) = tasks_of_month(folder, "2024-03")
    assert (task.id, task.title) == ("nudtrwg-1", "A Model of Tides")
    boats, tides = task.references
    assert boats == FileReference(
        title="On boats: A study",
        authors=("Ben Yang", "Cy Klein"),
        year=2021,
        source="full_text",
        text="On boats\n\n## Abstract\n\nBoats float.\n\n## Introduction\n\nWe float.",
    )
    known = (tides.title, tides.authors, tides.year, tides.source)
    assert known == ("Measuring the tides", ("Ada Popović",), 2015, "item")
    assert (
        task.related_work
        == "Boats float [Reference 1]. Popović [Reference 2] measures tides (Orr, 1999).\n\n"
        "Nets of Liu et al. (2020) hold fish."
    )
    shown = ("## Introduction\n\nTides matter to boats.", "We compare them")
    hidden = ("hold fish", "Harbour Conference")
    assert [part in task.text for part in (*shown, *hidden)] == [True, True, False, False]


@cases(
    "unit/related_work/cases.toml",
    "authors_and_year_of_a_work",
    ["bibliography", "authors", "year"],
)
def test_authors_and_year_of_a_work_are_read_from_the_bibliography(bibliography, authors, year):
    entry = bibliography_entry(bibliography, "On very small boats")
    assert entry[1:] == (tuple(authors), year)


def test_data_that_cannot_be_read_is_refused_by_name(tmp_path):
    with pytest.raises(SettingError, match=r"target_paper_title\.txt"):
        import_nudtrwg(tmp_path)
