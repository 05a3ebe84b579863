"""Papers → passages as Arrow batches, and every real page that is at hand."""

import pyarrow as pa

from pipeline.corpus.passages.packing import (
    FEWEST_WORDS,
    MOST_CHARACTERS,
    MOST_WORDS,
    pack,
    with_ids,
)
from pipeline.corpus.passages.text import count_words, embedded_text
from pipeline.settings import SAMPLE_DUMP
from pipeline.tables import PASSAGES
from pipeline.text import text_digest
from tests.unit.corpus.building import packed, papers_of


def test_a_batch_holds_the_passages_of_its_papers_in_order():
    rows = papers_of(SAMPLE_DUMP)
    made = packed(rows).passages
    assert made.schema.equals(PASSAGES.schema)
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


def test_batches_of_any_size_give_the_same_rows():
    rows = papers_of(SAMPLE_DUMP)
    parts = [packed(rows[start : start + 5]).passages for start in range(0, len(rows), 5)]
    assert pa.Table.from_batches(parts).equals(pa.Table.from_batches([packed(rows).passages]))


def test_a_paper_without_a_title_has_passages():
    row = papers_of(SAMPLE_DUMP)[0] | {"title": None}
    made = packed([row]).passages
    assert made["title"].null_count == made.num_rows > 1
    assert made["text"][0].as_py().startswith("Authors: ")


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
