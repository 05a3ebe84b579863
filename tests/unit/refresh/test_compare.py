"""What differs between papers as they were and as they are."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

from pipeline.ops.refresh.compare import DIGEST_BYTES, Counts, PaperState, compare


def paper(*texts: str, version: int | None = 1, page: str = "page", metadata: str = "told") -> PaperState:
    """A paper of these passages, each with an anchor of its own."""
    return PaperState(
        version, page, metadata,
        b"".join(digest(f"{place} {text}") for place, text in enumerate(texts)),
        b"".join(map(digest, texts)),
    )  # fmt: skip


def digest(text: str) -> bytes:
    return hashlib.sha256(text.encode()).digest()[:DIGEST_BYTES]


def compared(
    before: Mapping[str, PaperState], now: Mapping[str, PaperState], *withdrawn: str, same_model: bool = True
) -> tuple[dict[str, Mapping[str, Any]], Counts]:
    counts, rows = Counts(), {}
    for row in compare(before, now, set(withdrawn), same_model=same_model):
        counts.add(row)
        rows[row["arxiv_id"]] = row
    return rows, counts


def test_each_paper_is_new_changed_withdrawn_removed_or_kept() -> None:
    before = {name: paper("a", "b") for name in ("kept", "changed", "withdrawn", "removed")}
    now = {"kept": paper("a", "b"), "changed": paper("a", "c", page="other"), "new": paper("d")}
    rows, counts = compared(before, now, "withdrawn")
    assert {name: row["change"] for name, row in rows.items()} == {name: name for name in (*before, "new")}
    assert [*rows] == sorted(rows)
    assert (counts.papers_new, counts.papers_changed, counts.papers_withdrawn) == (1, 1, 1)
    assert (counts.papers_removed, counts.papers_kept) == (1, 1)
    assert counts.any_change


def test_a_changed_paper_says_what_of_it_changed() -> None:
    before = {"it": paper("a")}
    changes = {
        "version": paper("a", version=2),
        "page": paper("a", page="other"),
        "metadata": paper("a", metadata="other"),
        "text": paper("b"),
    }
    assert {name: compared(before, {"it": now})[0]["it"]["what"] for name, now in changes.items()} == {
        name: [name] for name in changes
    }
    row = compared(before, {"it": changes["version"]})[0]["it"]
    assert (row["version_before"], row["version"]) == (1, 2)
    assert compared(before, {"it": changes["version"]})[1].new_versions == 1


def test_passages_are_counted_by_id_and_text() -> None:
    rows, counts = compared({"it": paper("a", "b", "c"), "gone": paper("z")}, {"it": paper("a", "x", "c", "d")})
    assert (rows["it"]["passages_added"], rows["it"]["passages_removed"], rows["it"]["passages_kept"]) == (2, 1, 2)
    assert (counts.passages_added, counts.passages_removed, counts.passages_kept) == (2, 2, 2)


def test_vectors_of_a_text_that_was_there_are_reused_whatever_passage_it_was_of() -> None:
    """As the embedding stage does it, over the whole month; and none where another model makes them."""
    before, now = {"one": paper("a", "b")}, {"one": paper("b"), "two": paper("new", "a")}
    assert compared(before, now)[1].vectors_reused == 2
    assert compared(before, now)[1].vectors_made == 1
    other = compared(before, before, same_model=False)[1]
    assert (other.vectors_reused, other.vectors_made, other.papers_kept) == (0, 2, 1)
    assert other.any_change


def test_where_nothing_changed_nothing_is_told() -> None:
    papers = {"one": paper("a", "b"), "two": paper("a")}
    assert not compared(papers, papers)[1].any_change
