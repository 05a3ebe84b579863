"""The stage passages: papers as Arrow batches, every real page that is at hand, and the same file by
any number of workers.
"""

from pipeline import tables
from pipeline.corpus.passages.packing import (
    FEWEST_WORDS,
    MOST_CHARACTERS,
    MOST_WORDS,
    pack,
    with_ids,
)
from pipeline.corpus.passages.stages import PASSAGES
from pipeline.corpus.passages.text import count_words, embedded_text
from pipeline.engine.run import run_stage
from pipeline.settings import SAMPLE_DUMP
from pipeline.text import text_digest
from tests.month_tables import write_table
from tests.unit.corpus.building import packed, papers_of
from tests.workspaces import make_workspace


def test_a_batch_holds_the_passages_of_its_papers_in_order():
    rows = papers_of(SAMPLE_DUMP)
    made = packed(rows).passages
    assert made.schema.equals(tables.PASSAGES.schema)
    expected = [
        {"arxiv_id": row["arxiv_id"], "ordinal": ordinal, "passage_id": identifier}
        | passage._asdict()
        for row in rows
        for ordinal, (identifier, passage) in enumerate(with_ids(row["arxiv_id"], pack(row)))
    ]
    for row in expected:
        row["section_path"], row["cited_keys"] = list(row["section_path"]), list(row["cited_keys"])
    assert made.select(list(expected[0])).to_pylist() == expected


def test_the_digest_is_of_the_text_that_is_embedded():
    for row in packed(papers_of(SAMPLE_DUMP)[:2]).passages.to_pylist():
        assert row["text_sha256"] == text_digest(
            embedded_text(row["title"], row["section_path"], row["text"])
        )


def test_a_fault_costs_its_paper_and_a_passage_without_end_itself_alone():
    good, faulty, long = papers_of(SAMPLE_DUMP)[:3]
    faulty |= {"arxiv_id": "no id"}
    word, text = "x" * (MOST_CHARACTERS + 1), "x" * (MOST_CHARACTERS - len(long["title"]) - 1)
    block = {"kind": "paragraph", "anchor": "S1.p1", "section_path": ["A"], "cited_keys": []}
    titled = block | {"section_path": ["A" * MOST_CHARACTERS], "text": "Some words. " * 20}
    long |= {"blocks": [titled, block | {"text": word}, block | {"anchor": "S1.p2", "text": text}]}
    made = packed([good, faulty, long])
    assert [row[:2] for row in made.left_out] == [
        ("no id", "packing_error"),
        (long["arxiv_id"], "passage_too_long"),
        (long["arxiv_id"], "passage_too_long"),
    ]
    assert set(made.passages["arxiv_id"].to_pylist()) == {good["arxiv_id"], long["arxiv_id"]}
    assert text in made.passages["text"].to_pylist()


def test_every_real_page_keeps_its_bounds_and_its_words(shared_data):
    for row in papers_of(shared_data / "dump"):
        passages = pack(row)
        assert all(
            passage.words == count_words(passage.text) <= MOST_WORDS for passage in passages
        ), row["arxiv_id"]
        assert sum(passage.words < FEWEST_WORDS for passage in passages) <= 1, row["arxiv_id"]
        told = "\n".join(passage.text for passage in passages)
        for block in row["blocks"]:
            words = set(block["text"].split())
            assert block["text"] in told or words <= set(told.split()), (
                row["arxiv_id"],
                block["anchor"],
            )


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
