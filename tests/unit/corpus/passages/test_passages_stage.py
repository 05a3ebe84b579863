"""The stage passages over several row groups: the same file by any number of workers."""

import pytest

from pipeline import tables
from pipeline.corpus.passages.stages import PASSAGES
from pipeline.engine.run import run_stage
from tests.month_tables import write_table
from tests.workspaces import make_workspace

MONTH = "2024-03"
PAPERS_OF_MONTH = 2 * tables.PAPERS.rows_per_group + 7


def paper(number):
    """A paper of one short and one long paragraph."""
    texts = (
        "Too short alone.",
        " ".join(f"Paper {number} says it {time} times." for time in range(90)),
    )
    blocks = [
        {
            "kind": "paragraph",
            "anchor": f"S1.p{place}",
            "section_path": ["One"],
            "text": text,
            "cited_keys": [],
        }
        for place, text in enumerate(texts)
    ]
    return {
        "arxiv_id": f"2403.{number:05}",
        "title": f"Paper {number}",
        "year": 2024,
        "authors": [],
        "categories": ["cs.IR"],
        "blocks": blocks,
    }


def run(folder, count, workers):
    """What came of the stage, and its file."""
    workspace = make_workspace(folder, workers=workers)
    write_table(workspace.root, tables.PAPERS, MONTH, map(paper, range(count)))
    outcome = run_stage(PASSAGES, workspace, MONTH)
    return outcome, workspace.root.file(tables.PASSAGES, MONTH).read_bytes()


def test_any_number_of_workers_writes_the_same_file_and_notes(tmp_path):
    alone, two = (run(tmp_path / str(workers), PAPERS_OF_MONTH, workers) for workers in (1, 2))
    assert alone[0].rows == two[0].rows == 3 * PAPERS_OF_MONTH
    assert alone[1] == two[1]
    for outcome in (alone[0], two[0]):
        assert outcome.notes["kinds"] == {
            "front_matter": PAPERS_OF_MONTH,
            "paragraph": 2 * PAPERS_OF_MONTH,
        }
        assert (outcome.notes["under_20_words"], outcome.notes["over_300_words"]) == (
            PAPERS_OF_MONTH,
            0,
        )


@pytest.mark.parametrize("count", [0, 1])
def test_a_month_of_few_papers_is_packed(tmp_path, count):
    outcome, _ = run(tmp_path, count, 2)
    assert outcome.rows == 3 * count
    assert outcome.notes["kinds"] == ({"front_matter": 1, "paragraph": 2} if count else {})
