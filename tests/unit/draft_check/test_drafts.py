"""Drafts of many forms: what they cite, their bibliographies, and what is not understood."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pipeline.draft_check.check import read_draft
from pipeline.draft_check.draft import Entry
from tests.cases import cases


def printed(entry: Entry) -> str:
    return f"{entry.title} | {', '.join(entry.authors)} | {entry.year} | {entry.venue}"


@cases("unit/draft_check/drafts.toml")
def test_a_draft_is_read_whole(tmp_path: Path, case: dict[str, Any]) -> None:
    for name, content in case.get("files", {}).items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(content)
    main = tmp_path / f"main{case.get('suffix', '.tex')}"
    main.write_text(case["text"])
    draft = read_draft(main)
    assert [key for sentence in draft.sentences for key in sentence.keys] == case["keys"]
    expected = case.get("entries", {})
    assert {key: printed(draft.entries[key]) for key in expected} == expected
    problems = [each for each in draft.problems if "no bibliography was found" not in each]
    assert len(problems) == len(case["problems"]), problems
    for words in case["problems"]:
        assert any(words in problem for problem in problems), problems
