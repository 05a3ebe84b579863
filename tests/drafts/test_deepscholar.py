"""Targets of DeepScholar-Bench in the task format."""

import gzip
import json

from benchmarks.deepscholar import import_deepscholar
from pipeline.related_work.summary import cited_numbers


def write_deepscholar(folder):
    target = {
        "arxiv": "2506.00001v1",
        "title": "A target",
        "abstract": "We  sail.",
        "categories": "cs.CL",
        "date": "2025-06-03",
        "related_work_latex": (
            "\\subsection{Boats}\nBoats~\\cite{b, a} float; \\citet{a} agree% not\n.\n\n"
            "\\textbf{Nets} hold."
        ),
        "cites": {"a": "1", "b": "2"},
    }
    cited = [
        {
            "id": "1",
            "title": "Zeal {B}oats",
            "abstract": "They\nfloat.",
            "arxiv": None,
            "authors": "Li, Z{\\'e} and Fox, Ed",
            "year": "2020",
        },
        {
            "id": "2",
            "title": "Nets",
            "abstract": "",
            "arxiv": "1506.02142",
            "authors": "Ann Ash",
            "year": "",
        },
    ]
    folder.mkdir()
    for name, rows in (("targets", [target]), ("cited", cited)):
        lines = "\n".join(map(json.dumps, rows)).encode()
        (folder / f"{name}.jsonl.gz").write_bytes(gzip.compress(lines))
    return folder


def test_a_target_of_deepscholar_becomes_a_task(tmp_path):
    (made,) = import_deepscholar(write_deepscholar(tmp_path / "set"))
    assert (made.task.id, made.task.arxiv_id) == ("deepscholar-2506.00001v1", "2506.00001")
    assert made.task.text == "# A target\n\n## Abstract\n\nWe sail."
    assert [
        (reference.title, reference.authors, reference.year, reference.source, reference.text)
        for reference in made.task.references
    ] == [
        ("Nets", ("Ann Ash",), None, "item", "Ann Ash. Nets."),
        ("Zeal Boats", ("Zé Li", "Ed Fox"), 2020, "abstract", "They float."),
    ]
    assert (
        made.task.related_work
        == "Boats [Reference 1] [Reference 2] float; Li and Fox [Reference 2] agree.\n\nNets hold."
    )


def test_the_63_targets_of_deepscholar_become_tasks(shared_data):
    made = import_deepscholar(shared_data / "labelled" / "deepscholar")
    references = [reference for each in made for reference in each.task.references]
    assert (len(made), len(references)) == (63, 1627)
    assert sum(len(each.uncited) for each in made) < 10
    assert all(set(cited_numbers(each.task.related_work)) <= set(range(1, 54)) for each in made)
    assert not [each.task.id for each in made if "\\" in each.task.related_work]
    assert sum(reference.source == "abstract" for reference in references) > 900
