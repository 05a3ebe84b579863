"""Points of a month: what is joined into them, and tables that do not fit together."""

from dataclasses import replace

import numpy as np
import pytest

from pipeline import tables
from pipeline.corpus.passages.text import embedded_text
from pipeline.embedding.lexical import lexical_rows, term_id
from pipeline.errors import PermanentFailure
from pipeline.index.passage_index import Layout
from pipeline.index.points import digests_of, points_of
from tests.month_tables import write_table
from tests.unit.index.building import TEXTS, write_month

MONTH = "2024-03"


def write_vectors(workspace, dimensions=4, *, without=0):
    """Embeddings of the month's passages, made up: passage number n lies along axis n mod 4 and has
    n sparse terms.
    """
    passages = workspace.root.rows(tables.PASSAGES, MONTH)
    rows = [
        {
            "passage_id": passage["passage_id"],
            "arxiv_id": passage["arxiv_id"],
            "text_sha256": passage["text_sha256"],
            "model": "made up",
            "dense": [float(axis == number % 4) for axis in range(dimensions)],
            "sparse_ids": list(range(number)),
            "sparse_weights": [0.5] * number,
            "truncated": False,
        }
        for number, passage in enumerate(passages)
    ]
    write_table(workspace.root, tables.EMBEDDINGS, MONTH, rows[: len(rows) - without])


def points(workspace):
    """The month's points, which are few enough for one batch."""
    (batch,) = points_of(workspace.root, MONTH, Layout("a model", 4, sparse=True))
    return batch


@pytest.fixture
def month(workspace):
    """A workspace with a month."""
    write_month(workspace)
    return workspace


def test_a_point_has_the_vectors_of_its_passage(month):
    write_vectors(month)
    batch, passages = points(month), month.root.rows(tables.PASSAGES, MONTH)
    assert batch.ids == [row["passage_id"] for row in passages]
    assert (batch.dense.dtype, batch.dense.shape) == (np.float32, (len(TEXTS), 4))
    assert batch.dense[2].tolist() == [0.0, 0.0, 1.0, 0.0]
    vector = batch.sparse.row(3)
    assert (vector.ids.tolist(), vector.weights.tolist()) == ([0, 1, 2], [0.5, 0.5, 0.5])
    assert len(batch.sparse.row(0).ids) == 0
    row, found = passages[2], batch.lexical.row(2)
    expected = lexical_rows([embedded_text(row["title"], row["section_path"], row["text"])]).row(0)
    assert found.ids.tolist() == expected.ids.tolist()
    assert found.weights.tolist() == expected.weights.tolist()


def _write_metadata(month, **values):
    row = {"arxiv_id": "2403.00000", **values}
    write_table(month.root, tables.METADATA, MONTH, [row])


def test_a_payload_holds_what_a_search_restricts_or_shows(month):
    write_vectors(month)
    _write_metadata(month, journal_ref="Proc. of ACL 2024, pp. 1-9", comment="Best paper")
    payload = dict(points(month).payloads[1])
    assert len(payload.pop("digest")) == 32
    assert len(payload.pop("text_sha256")) == 64
    assert payload == {
        "arxiv_id": "2403.00000",
        "month": "2024-03",
        "month_number": 202403,
        "year": 2024,
        "categories": ["cs.CL"],
        "category_keys": ["cs", "cs.CL"],
        "primary_category": "cs.CL",
        "kind": "paragraph",
        "title": "Paper 2403.00000",
        "section_path": ["Method", "Decoding"],
        "anchor": "S1.p1",
        "subset": "no_problem",
        "grade": "C",
        "authors": ["lovelace", "noel ada lovelace"],
        "venue": ["1", "2024", "9", "acl", "best", "of", "paper", "pp", "proc"],
    }
    assert points(month).payloads[-1]["venue"] == []


def test_a_point_repeats_so_many_authors_and_words_of_its_paper_and_no_more(month):
    rows = month.root.rows(tables.PAPERS, MONTH)
    rows[0]["authors"] = [{"name": f"a{number}"} for number in range(6_000)]
    write_table(month.root, tables.PAPERS, MONTH, rows)
    _write_metadata(month, comment=" ".join(map(str, range(6_000))))
    write_vectors(month)
    payload = points(month).payloads[0]
    assert (len(payload["authors"]), len(payload["venue"]) < 3_000) == (5_000, True)


def test_the_audit_asks_for_the_digests_that_a_load_sends(month):
    write_vectors(month)
    batch = points(month)
    sent = {
        each: payload["digest"] for each, payload in zip(batch.ids, batch.payloads, strict=True)
    }
    assert digests_of(month.root, MONTH) == sent
    assert len(set(sent.values())) == len(TEXTS)


def test_a_digest_changes_with_the_text_and_with_what_is_known_of_the_paper(month):
    write_vectors(month)
    before = digests_of(month.root, MONTH)
    write_month(month, categories=["cs.IR"])
    write_vectors(month)
    recategorised = digests_of(month.root, MONTH)
    write_month(month, texts=["A new beginning.", *TEXTS[1:]])
    write_vectors(month)
    rewritten = digests_of(month.root, MONTH)
    assert not set(before.values()) & set(recategorised.values())
    assert len(set(before.values()) & set(rewritten.values())) == len(TEXTS) - 1


def _drop_first(workspace, table):
    write_table(workspace.root, table, MONTH, workspace.root.rows(table, MONTH)[1:])


def test_tables_that_do_not_fit_together_are_refused(month):
    first, *_, last = (row["passage_id"] for row in month.root.rows(tables.PASSAGES, MONTH))
    write_vectors(month, dimensions=5)
    with pytest.raises(PermanentFailure, match=f"passage {first} has 5 dimensions and not 4"):
        points(month)
    write_vectors(month, without=1)
    for read in (points, lambda workspace: digests_of(workspace.root, MONTH)):
        with pytest.raises(
            PermanentFailure, match=f"do not agree from passage {last} on.*--select embeddings"
        ):
            read(month)
    write_vectors(month)
    _drop_first(month, tables.PASSAGES)
    with pytest.raises(PermanentFailure, match=f"do not agree from passage {first} on"):
        points(month)


def test_passages_of_a_paper_that_is_gone_are_refused_and_named(month):
    write_vectors(month)
    _drop_first(month, tables.PAPERS)
    with pytest.raises(PermanentFailure, match=r"hold no 2403\.00000 any more.*--until index"):
        digests_of(month.root, MONTH)


def test_parts_of_a_table_have_the_terms_of_its_caption_and_of_abbreviations(month):
    rows = month.root.rows(tables.PASSAGES, MONTH)
    texts = [
        "We report the Sharpe ratio (SR).",
        "Table 2: Returns of funds\n| fund | SR |\n|---|---|",
        "| fund | SR |\n|---|---|\n| A | 2 |",
    ]
    for row, text in zip(rows, texts, strict=False):
        kind = "paragraph" if text is texts[0] else "table"
        row |= {"text": text, "kind": kind, "anchor": kind, "arxiv_id": rows[0]["arxiv_id"]}
    write_table(month.root, tables.PASSAGES, MONTH, rows)
    write_vectors(month)
    layout = Layout("a model", 4, sparse=True)
    for version, has_them in ((3, True), (2, False)):
        (batch,) = points_of(month.root, MONTH, replace(layout, lexical=version))
        terms = {*batch.lexical.row(2).ids.tolist()}
        assert ({term_id("returns"), term_id("sharpe")} <= terms) is has_them
        assert term_id("sharpe") not in batch.lexical.row(4).ids
