"""Points of a month: what is joined into them, and tables that do not fit together."""

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
    copied = ("passage_id", "arxiv_id", "text_sha256")
    rows = [
        {name: passage[name] for name in copied}
        | {
            "model": "made up",
            "dense": [float(axis == number % 4) for axis in range(dimensions)],
            "sparse_ids": list(range(number)),
            "sparse_weights": [0.5] * number,
            "truncated": False,
        }
        for number, passage in enumerate(passages)
    ]
    write_table(workspace.root, tables.EMBEDDINGS, MONTH, rows[: len(rows) - without])


def points(workspace, **layout):
    """The month's points, which are few enough for one batch."""
    (batch,) = points_of(workspace.root, MONTH, Layout("a model", 4, sparse=True, **layout))
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
    assert _terms(batch.sparse, 3) == {0: 0.5, 1: 0.5, 2: 0.5}
    assert _terms(batch.sparse, 0) == {}
    row = passages[2]
    expected = lexical_rows([embedded_text(row["title"], row["section_path"], row["text"])])
    assert _terms(batch.lexical, 2) == _terms(expected, 0)


def _terms(rows, number):
    vector = rows.row(number)
    return dict(zip(vector.ids.tolist(), vector.weights.tolist(), strict=True))


def _write_metadata(month, **values):
    write_table(month.root, tables.METADATA, MONTH, [{"arxiv_id": "2403.00000", **values}])


def test_a_payload_holds_what_a_search_restricts_or_shows(month):
    write_vectors(month)
    _write_metadata(month, journal_ref="Proc. of ACL 2024, pp. 1-9", comment="Best paper")
    payload = points(month).payloads[1]
    assert (len(payload["digest"]), len(payload["text_sha256"])) == (32, 64)
    assert payload == {
        "digest": payload["digest"],
        "text_sha256": payload["text_sha256"],
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


def test_a_digest_is_that_of_a_load_and_changes_with_the_text_and_the_paper(month):
    def digests(**changed):
        write_month(month, **changed)
        write_vectors(month)
        found = digests_of(month.root, MONTH)
        batch = points(month)
        sent = [payload["digest"] for payload in batch.payloads]
        assert found == dict(zip(batch.ids, sent, strict=True))
        return {*sent}

    before = digests()
    assert len(before) == len(TEXTS)
    assert not before & digests(categories=["cs.IR"])
    assert len(before & digests(texts=["A new beginning.", *TEXTS[1:]])) == len(TEXTS) - 1


def _drop_first(workspace, table):
    write_table(workspace.root, table, MONTH, workspace.root.rows(table, MONTH)[1:])


def test_tables_that_do_not_fit_together_are_refused(month):
    first, *_, last = (row["passage_id"] for row in month.root.rows(tables.PASSAGES, MONTH))
    write_vectors(month, dimensions=5)
    with pytest.raises(PermanentFailure, match=f"passage {first} has 5 dimensions and not 4"):
        points(month)
    write_vectors(month, without=1)
    for read in (points, lambda workspace: digests_of(workspace.root, MONTH)):
        with pytest.raises(PermanentFailure, match=f"do not agree from passage {last} on"):
            read(month)
    write_vectors(month)
    _drop_first(month, tables.PASSAGES)
    with pytest.raises(PermanentFailure, match=f"do not agree from passage {first} on"):
        points(month)


def test_passages_of_a_paper_that_is_gone_are_refused_and_named(month):
    write_vectors(month)
    _drop_first(month, tables.PAPERS)
    with pytest.raises(PermanentFailure, match=r"hold no 2403\.00000"):
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
    added = {term_id("returns"), term_id("sharpe")}
    for version, has_them in ((3, True), (2, False)):
        rows = points(month, lexical=version).lexical
        assert (added <= _terms(rows, 2).keys()) is has_them
        assert term_id("sharpe") not in _terms(rows, 4)
