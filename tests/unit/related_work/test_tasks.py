"""Tasks: the section is taken out whole, its citations are numbered, and nothing outside the corpus gets a number."""

from __future__ import annotations

from typing import Any

from pipeline.related_work.tasks import CorpusPaper, gold_text, make_task, related_work_section


def block(text: str, *path: str, keys: tuple[str, ...] = ()) -> dict[str, Any]:
    return {"kind": "paragraph", "anchor": "p", "section_path": list(path), "text": text, "cited_keys": list(keys)}


def section(title: str, depth: int = 1, anchor: str = "S1") -> dict[str, Any]:
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
    ("2404.90001", "b1"): CorpusPaper("2403.90001", "Tidepool", 2024),
    ("2404.90001", "b2"): CorpusPaper("2403.90002", "Lanternfish", 2024),
}


def test_references_are_numbered_in_order_of_first_citation() -> None:
    task = make_task(PAPER, RELATED, CITATIONS, most=100)
    assert [(each["number"], each["arxiv_id"], each["key"]) for each in task["references"]] == [
        (1, "2403.90002", "b2"),
        (2, "2403.90001", "b1"),
    ]
    assert task["outside"] == 1
    assert task["task_id"] == "2404.90001#S2"


def test_the_gold_text_cites_by_number_and_drops_what_is_outside() -> None:
    task = make_task(PAPER, RELATED, CITATIONS, most=100)
    assert task["gold"] == "First [Reference 1] [Reference 2] and others.\n\nAgain [Reference 2]."


def test_the_description_lacks_the_section_and_its_subsections() -> None:
    description = make_task(PAPER, RELATED, CITATIONS, most=100)["description"]
    assert "It began." in description
    assert "We do this." in description
    assert "First" not in description
    assert "Again" not in description


def test_no_more_references_than_asked_for() -> None:
    task = make_task(PAPER, RELATED, CITATIONS, most=1)
    assert [each["arxiv_id"] for each in task["references"]] == ["2403.90002"]
    assert "[Reference 2]" not in task["gold"]
    assert task["outside"] == 2


def test_two_items_of_one_paper_are_one_reference() -> None:
    citations = {**CITATIONS, ("2404.90001", "b3"): CorpusPaper("2403.90002", "Lanternfish", 2024)}
    task = make_task(PAPER, RELATED, citations, most=100)
    assert [each["key"] for each in task["references"]] == ["b2", "b1"]
    assert task["gold"].startswith("First [Reference 1] [Reference 2] and others [Reference 1].")


def test_the_outermost_related_work_section_is_taken() -> None:
    paper = {
        **PAPER,
        "sections": [section("Related Work", depth=3, anchor="A"), section("Prior Work", depth=1, anchor="B")],
    }
    found = related_work_section(paper)
    assert found is not None
    assert found["anchor"] == "B"
    assert related_work_section({**PAPER, "sections": [section("Method")]}) is None


def test_a_marker_with_nothing_known_leaves_no_hole_before_a_stop() -> None:
    assert gold_text([block("Seen [@x], and [@y; @z].")], {}) == "Seen, and."
