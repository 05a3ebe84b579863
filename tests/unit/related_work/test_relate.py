"""`relate`: a section for a user's own text."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pipeline.errors import SettingError
from pipeline.related_work.citation_formats import bibtex_entry, bibtex_keys, latex_section
from pipeline.related_work.relate import _arxiv_id, relate, relate_file
from pipeline.related_work.systems import SYSTEMS, beam_config
from tests.planned_calls import beam_calls
from tests.scripted_llm import Asked, ScriptedLlm
from tests.unit.related_work.building import beam, paper_row, prompts, workspace, write_corpus

pytestmark = pytest.mark.slow

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
    assert related.spent.calls == 3 + beam_calls(2, beam_config(place.settings)) == llm.generations


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
        ("\x89PNG\0\1", ["2403.00001"], "chatcite", "the draft is not text in UTF-8"),
        ("\ufffd\ufffda\ufffd", ["2403.00001"], "chatcite", "the draft is not text in UTF-8"),
        (DRAFT, [], "chatcite", "no reference is named"),
        ("  \n", ["2403.00001"], "chatcite", "the draft is empty"),
        (DRAFT, ["2403.00001"], "oracle", "--system oracle: .* write one of chatcite, chatcite_"),
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
    assert cut.notes[0].endswith("the beginning was used: the draft")


def test_what_a_reader_should_know_of_a_section_is_noted(tmp_path: Path) -> None:
    def rule(asked: Asked) -> str | None:
        if asked.schema is not None:
            return "no" if "About 2403.00002" in asked.prompt else None
        return "One [Reference 1], and another [Reference 7]."

    with ScriptedLlm(rule) as llm:
        place = workspace(llm, tmp_path)
        write_corpus(place, {})
        related = relate(place, DRAFT, ["2403.00001", "2403.00002"])
    unread, uncited, strange = related.notes
    assert "could not be read, so only the title was used: [Reference 2]" in unread
    assert uncited == "the section does not cite [Reference 2]"
    assert strange.endswith("numbers that no reference has: [Reference 7]")


def test_key_elements_are_asked_for_only_where_a_system_is_written_from_them(tmp_path: Path) -> None:
    asked = {}
    for system in ("chatcite", "chatcite_grounded", "zero_shot"):
        with ScriptedLlm() as llm:
            place = workspace(llm, tmp_path / system, **beam())
            write_corpus(place, {})
            relate(place, DRAFT, ["2403.00001", "2403.00002"], system)
        asked[system] = sum("Its seven fields" in prompt for prompt in prompts(llm))
    # The grounded system's own questions name passages: one on the draft without, one on each reference with them.
    assert asked == {"chatcite": 3, "chatcite_grounded": 3, "zero_shot": 0}


@pytest.mark.parametrize("system", sorted(SYSTEMS))
def test_every_system_relates_a_users_own_draft(tmp_path: Path, system: str) -> None:
    with ScriptedLlm() as llm:
        place = workspace(llm, tmp_path, **beam())
        write_corpus(place, {})
        related = relate(place, DRAFT, ["2403.00001", "2403.00002"], system)
    assert "[@lovelace2024paper" in related.markdown
    assert related.spent.calls == llm.generations
    assert (llm.generations > 0) == SYSTEMS[system].calls_model


def write_task(folder: Path, **changed: object) -> Path:
    references = [
        {"title": "Boats", "authors": ["Ben Yang"], "year": 2021, "source": "item", "text": "Yang. Boats. 2021."},
        {"title": "In the corpus", "arxiv_id": "2403.00001"},
    ]
    given = {"format": "citeloom-task-1", "id": "t", "title": "T", "text": "# T\n\nIt.", "references": references}
    file = folder / "task.json"
    file.write_text(json.dumps(given | changed), encoding="utf-8")
    return file


def test_a_task_file_is_related_with_what_there_is_of_its_references(tmp_path: Path) -> None:
    with ScriptedLlm() as llm:
        place = workspace(llm, tmp_path)
        write_corpus(place, {})
        related = relate_file(place, write_task(tmp_path))
        calls = llm.generations
    assert "1. [@yang2021boats] Ben Yang (2021). Boats." in related.markdown
    assert "eprint = {2403.00001}" in related.bibtex
    assert related.bibtex.count("eprint") == 1
    # Nothing is asked about a work of which there is its item alone.
    assert related.spent.calls == calls == 2 + beam_calls(2, beam_config(place.settings))
    assert any("Only the bibliography item of this work is known" in str(body["messages"]) for body in llm.requests)


def test_a_task_file_that_wants_a_paper_the_corpus_lacks_is_refused(tmp_path: Path) -> None:
    with ScriptedLlm() as llm:
        place = workspace(llm, tmp_path)
        write_corpus(place, {})
        lacking = write_task(tmp_path, references=[{"title": "X", "arxiv_id": "2403.99999"}])
        with pytest.raises(SettingError, match=r"2403\.99999: no such paper"):
            relate_file(place, lacking)
    assert llm.requests == []


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


def test_keys_of_the_users_own_bibliography_stay_and_others_avoid_them() -> None:
    papers = [paper_row("2403.00001"), paper_row("2403.00002"), paper_row("2403.00003")]
    assert bibtex_keys(papers, {"2403.00002": "lovelace2024paper", "2403.00009": "lovelace2024paper-2"}) == [
        "lovelace2024paper-3",
        "lovelace2024paper",
        "lovelace2024paper-4",
    ]


def test_a_section_in_latex_cites_keys_and_escapes_what_tex_would_read() -> None:
    text = (
        "Both [Reference 1], [Reference 2] gain 5% of $\\frac{a_1}{b}$.\n\n"
        "See \\input{x} & $\\input{/etc/passwd}$ [Reference 7]."
    )
    assert latex_section(text, {1: "one", 2: "two"}) == (
        "\\section{Related Work}\n\nBoth \\cite{one,two} gain 5\\% of $\\frac{a_1}{b}$.\n\n"
        "See \\textbackslash{}input\\{x\\} \\& \\$\\textbackslash{}input\\{/etc/passwd\\}\\$ [Reference 7].\n"
    )
