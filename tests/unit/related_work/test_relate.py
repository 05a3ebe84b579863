"""`relate`: a section for a user's own text."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipeline.errors import SettingError
from pipeline.related_work.chatcite import planned_calls
from pipeline.related_work.relate import _arxiv_id, bibtex_entry, bibtex_keys, relate
from pipeline.related_work.systems import search_of
from tests.scripted_llm import Asked, ScriptedLlm
from tests.unit.related_work.building import paper_row, workspace, write_corpus

DRAFT = "# My paper\n\nWe search papers.\n"


def test_a_section_with_its_citations_and_their_bibtex(tmp_path: Path) -> None:
    with ScriptedLlm() as llm:
        place = workspace(llm, tmp_path)
        write_corpus(place, {})
        related = relate(place, DRAFT, ["2403.00002", "arXiv:2403.00001v3", "2403.00002"])
    assert related.keys == {1: "lovelace2024paper", 2: "lovelace2024paper-2"}
    assert related.markdown.startswith("## Related work\n\nWork ")
    assert "is close to [@lovelace2024paper]." in related.markdown
    assert "2. [@lovelace2024paper-2] Ada Lövelace (2024)." in related.markdown
    assert related.bibtex.count("@misc{") == 2
    assert "eprint = {2403.00001}" in related.bibtex
    assert related.spent.calls == 3 + planned_calls(2, search_of(place.settings)) == llm.generations


def test_several_citations_in_a_row_become_one_group(tmp_path: Path) -> None:
    def rule(asked: Asked) -> str | None:
        return "Both [Reference 1], [Reference 2] and [Reference 7]." if asked.schema is None else None

    with ScriptedLlm(rule) as llm:
        place = workspace(llm, tmp_path)
        write_corpus(place, {})
        related = relate(place, DRAFT, ["2403.00001", "2403.00002"], system="zero_shot")
    assert "Both [@lovelace2024paper; @lovelace2024paper-2] and [Reference 7]." in related.markdown
    assert related.spent.calls == 1


@pytest.mark.parametrize(
    ("draft", "references", "system", "message"),
    [
        (DRAFT, ["2403.00001", "2403.99999", "2401.00001"], "chatcite", "2403.99999, 2401.00001: no such paper"),
        (DRAFT, ["paper one"], "chatcite", "paper one: not an arXiv id"),
        (DRAFT, ["2403.99999", "one"], "chatcite", r"(?s)one: not an arXiv id.*2403.99999: no such paper"),
        ("\x89PNG\0\1", ["2403.00001"], "chatcite", "the draft is no text in UTF-8"),
        ("\ufffd\ufffda\ufffd", ["2403.00001"], "chatcite", "the draft is no text in UTF-8"),
        (DRAFT, [], "chatcite", "no reference is named"),
        ("  \n", ["2403.00001"], "chatcite", "the draft is empty"),
        (DRAFT, ["2403.00001"], "oracle", "--system oracle: .* write one of chatcite, zero_shot"),
    ],
)
def test_wrong_arguments_are_named(
    tmp_path: Path, draft: str, references: list[str], system: str, message: str
) -> None:
    with ScriptedLlm() as llm:
        place = workspace(llm, tmp_path)
        write_corpus(place, {})
        with pytest.raises(SettingError, match=message):
            relate(place, draft, references, system)
    assert llm.requests == []


@pytest.mark.parametrize(
    "written",
    [
        "https://arxiv.org/abs/2403.00002",
        "http://www.arxiv.org/pdf/2403.00002v3.pdf#page=2",
        "arxiv.org/abs/2403.00002v1?context=cs",
        "https://ar5iv.labs.arxiv.org/html/2403.00002/",
        " arXiv: 2403.00002v2 ",
    ],
)
def test_a_reference_may_be_an_address(written: str) -> None:
    assert _arxiv_id(written) == "2403.00002"


@pytest.mark.parametrize("written", ["https://example.org/abs/2403.00002", "https://arxiv.org/list/cs/2403", "2403.2"])
def test_another_address_is_no_reference(written: str) -> None:
    assert _arxiv_id(written) is None


@pytest.mark.parametrize("system", ["chatcite", "zero_shot"])
def test_a_draft_that_was_cut_is_noted(tmp_path: Path, system: str) -> None:
    long = DRAFT + "\n\n".join(f"## Part {n}\n\n{'We search papers again. ' * 40}" for n in range(40))
    with ScriptedLlm() as llm:
        place = workspace(llm, tmp_path, llm_context=4096)
        write_corpus(place, {})
        whole, cut = (relate(place, draft, ["2403.00001"], system) for draft in (DRAFT, long))
    assert whole.notes == ()
    assert "CITELOOM_LLM_CONTEXT is 4096" in cut.notes[0]


def test_bibtex_escapes_what_tex_would_read() -> None:
    entry = bibtex_entry("k", paper_row("2403.00001"))
    assert r"title = {{The \{Paper\} \& 2403.00001}}" in entry
    assert entry.startswith("@misc{k,\n")
    assert entry.endswith("\n}")


def test_keys_are_unique_and_plain() -> None:
    nobody = paper_row("2403.00009") | {"authors": [], "title": "On the Ähnlichkeit"}
    assert bibtex_keys([paper_row("2403.00001"), nobody, paper_row("2403.00002"), nobody]) == [
        "lovelace2024paper",
        "anonymous2024ahnlichkeit",
        "lovelace2024paper-2",
        "anonymous2024ahnlichkeit-2",
    ]
