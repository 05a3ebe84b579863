"""`chatcite_grounded`: its calls, sentences tied to passages, nothing lost on the way, revision of
the unsupported.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pipeline.related_work.grounded_draft import (
    TiedSentence,
    cite,
    section_text,
)
from pipeline.related_work.task import Reference, ReferencePassage
from pipeline.settings import Settings
from tests.scripted_llm import Asked, Rule
from tests.unit.related_work.building import (
    beam,
    check_planned_calls,
    make_task,
    prompts,
    with_texts,
    write,
)

pytestmark = pytest.mark.slow

NAME = "chatcite_grounded"
ONE = beam()


def most_grounded(references: int) -> int:
    """Calls at most: every structured answer repaired, every kept draft mended and that repaired,
    and a revision.
    """
    settings = Settings(llm_url="http://127.0.0.1:1/v1", _env_file=None)  # type: ignore[call-arg]
    drafts, guards, kept = 0, 0, 1
    for _ in range(references):
        written = kept * settings.chatcite_samples
        kept = min(settings.chatcite_kept, written)
        drafts, guards = drafts + written, guards + kept
    return (
        2 * (references + (references > 1) + drafts + guards + 2)
        + references * settings.chatcite_votes
    )


def form_of(asked: Asked) -> str:
    return str(asked.schema["title"]) if asked.schema else ""


def must_cite(asked: Asked) -> list[int]:
    (told,) = re.findall(r"It must cite all of these and no others: (.*)\.\n", asked.prompt)
    return [int(number) for number in re.findall(r"\d+", told)]


def newest(asked: Asked) -> int:
    """The reference that a step adds; 0 for a repair."""
    found = re.search(r"Key elements of \[Reference (\d+)\], and passages", asked.prompt)
    return int(found[1]) if found else 0


def tell(*numbers: int, **changed: Any) -> dict[str, Any]:
    text = f"Works {' and '.join(map(str, numbers))} agree."
    return {
        "text": text,
        "references": list(numbers),
        "passages": [f"R{n}P1" for n in numbers],
    } | changed


def draft(*sentences: Mapping[str, Any]) -> str:
    return json.dumps({"sentences": list(sentences)})


def in_order(asked: Asked) -> str | None:
    """One group in the order given."""
    if form_of(asked) != "Groups":
        return None
    count = int(re.findall(r"references 1 to (\d+) into (?:at most \d+ )?groups", asked.prompt)[0])
    return json.dumps({"groups": [{"name": "all", "references": list(range(1, count + 1))}]})


def faithful(asked: Asked) -> str | None:
    """Drafts that cite what they must, and a judge who finds everything supported."""
    if form_of(asked) == "TiedDraft":
        return draft(*(tell(number) for number in must_cite(asked)))
    if form_of(asked) == "Verdicts":
        return verdicts(asked, "supported")
    return in_order(asked)


def verdicts(asked: Asked, support: str) -> str:
    numbers = re.findall(r"^Sentence (\d+):", asked.prompt, re.MULTILINE)
    told = [{"sentence": int(n), "support": support, "quote": f"quote {n}"} for n in numbers]
    return json.dumps({"verdicts": told})


@pytest.mark.parametrize("search", [(1, 1, 1), (3, 5, 2)])
def test_where_nothing_needs_repair_calls_are_those_of_the_formula(
    tmp_path: Path, search: tuple[int, int, int]
) -> None:
    check_planned_calls(tmp_path, NAME, faithful, **beam(*search))


@pytest.mark.parametrize("references", [1, 2, 4, 6])
def test_a_model_that_answers_at_random_loses_no_reference_and_adds_none(
    tmp_path: Path, references: int
) -> None:
    summary, llm = write(tmp_path, NAME, make_task(references))
    assert summary.trace["citations"]["uncited"] == []
    assert summary.trace["citations"]["out_of_range"] == []
    for place, done in enumerate(summary.trace["rounds"], 1):
        assert len(done["guard"]) == len(done["kept"])
        assert (
            sum(each["reference"] <= references for each in summary.trace["rounds"][:place])
            == place
        )
    assert llm.generations <= summary.spent.calls <= most_grounded(references)


def test_a_model_whose_answers_cannot_be_read_still_gives_a_section_that_cites_all(
    tmp_path: Path,
) -> None:
    def rule(asked: Asked) -> str | None:
        return "no" if asked.schema is not None else None

    summary, llm = write(tmp_path, NAME, make_task(3), rule)
    assert summary.text.count("[Reference") == 3
    assert summary.trace["groups"]["failure"]
    assert all(each["failure"] for each in summary.trace["evidence"])
    assert all(
        guard["how"] == "patched" for done in summary.trace["rounds"] for guard in done["guard"]
    )
    assert summary.trace["support"]["failure"]
    # Drafts that are alike are mended by one call, which is counted for each of them.
    assert llm.generations <= summary.spent.calls <= most_grounded(3)


def guards(summary: Any) -> list[tuple[str, list[int], list[int]]]:
    return [
        (guard["how"], guard["missing"], guard["out_of_range"])
        for done in summary.trace["rounds"]
        for guard in done["guard"]
    ]


def forgetful(where: Callable[[Asked], bool]) -> Rule:
    """Drafts that cite the second reference alone where that holds, else what they must."""
    return lambda asked: (
        draft(tell(2)) if form_of(asked) == "TiedDraft" and where(asked) else faithful(asked)
    )


def test_a_draft_that_lost_a_reference_is_repaired_by_one_call(tmp_path: Path) -> None:
    summary, llm = write(
        tmp_path, NAME, make_task(2), forgetful(lambda asked: newest(asked) == 2), **ONE
    )
    assert guards(summary) == [("kept", [], []), ("repaired", [1], [])]
    (asked,) = [p for p in prompts(llm) if "It no longer cites these references" in p]
    assert "[Reference 1]\nWorks 1 agree [Reference 1]. (R1P1)" in asked
    assert summary.text == "Works 1 agree [Reference 1]. Works 2 agree [Reference 2]."


def test_where_no_draft_is_whole_the_sentence_of_the_draft_before_is_appended(
    tmp_path: Path,
) -> None:
    summary, _ = write(
        tmp_path, NAME, make_task(2), forgetful(lambda asked: len(must_cite(asked)) == 2), **ONE
    )
    assert guards(summary)[1] == ("patched", [1], [])
    assert summary.trace["rounds"][1]["guard"][0]["made"] == []
    assert summary.text == "Works 2 agree [Reference 2]. Works 1 agree [Reference 1]."


def test_a_citation_out_of_range_is_a_fault_and_never_stays(tmp_path: Path) -> None:
    def inventive(asked: Asked) -> str | None:
        if form_of(asked) == "TiedDraft":
            return draft(
                tell(1, text="One [Reference 1] and seven [Reference 7].", references=[1, 7])
            )
        return faithful(asked)

    summary, _ = write(tmp_path, NAME, make_task(1), inventive, **ONE)
    assert guards(summary) == [("patched", [], [7])]
    assert summary.text == "One [Reference 1] and seven."


def test_where_the_repair_fails_the_next_best_whole_draft_takes_the_place(tmp_path: Path) -> None:
    def vote(asked: Asked) -> str | None:
        return "The best choice is 1" if asked.schema is None else None

    # The first sample, and the repair of it, lack a reference.
    rule = forgetful(lambda asked: len(must_cite(asked)) == 2 and asked.seed == 0)
    summary, _ = write(tmp_path, NAME, make_task(2), vote, rule, **beam(samples=2))
    assert guards(summary)[1] == ("replaced", [1], [])
    assert summary.trace["rounds"][1]["kept"] == [2]
    assert summary.trace["citations"]["uncited"] == []


def test_what_takes_the_place_of_a_better_draft_stands_behind_those_with_more_votes(
    tmp_path: Path,
) -> None:
    def rule(asked: Asked) -> str | None:
        if asked.schema is None:
            return f"The best choice is {(1, 1, 1, 2, 2, 3)[asked.seed]}"
        if (
            form_of(asked) == "TiedDraft"
        ):  # the first sample cites nothing, and nor does the repair of it
            return draft(tell(text=f"Sample {asked.seed}.", references=[1] if asked.seed else []))
        return faithful(asked)

    summary, _ = write(tmp_path, NAME, make_task(1), rule, **beam(3, 6, 2), llm_concurrency=6)
    assert [guard["how"] for guard in summary.trace["rounds"][0]["guard"]] == ["kept", "replaced"]
    assert summary.trace["rounds"][0]["kept"] == [2, 3]
    assert summary.text == "Sample 1 [Reference 1]."


def test_a_repair_that_cannot_be_read_has_repaired_nothing(tmp_path: Path) -> None:
    def rule(asked: Asked) -> str | None:
        if form_of(asked) == "TiedDraft":
            return draft(tell(1, references=[1, 7])) if newest(asked) else "no"
        return faithful(asked)

    summary, _ = write(tmp_path, NAME, make_task(1), rule, **ONE)
    assert guards(summary) == [("patched", [], [7])]
    assert "no TiedDraft could be read" in summary.trace["rounds"][0]["guard"][0]["failure"]
    assert summary.text == "Works 1 agree [Reference 1]."


def test_the_samples_of_a_draft_are_one_request(tmp_path: Path) -> None:
    _, llm = write(tmp_path, NAME, make_task(1), faithful, **beam(samples=3))
    asked = [
        body
        for body in llm.requests
        if "Begin the related-work section" in body["messages"][-1]["content"]
    ]
    assert [body["n"] for body in asked] == [3]
    assert asked[0]["response_format"]["json_schema"]["name"] == "TiedDraft"


def test_sentences_that_the_judge_leaves_out_are_told(tmp_path: Path) -> None:
    def rule(asked: Asked) -> str | None:
        if form_of(asked) == "Verdicts":
            return (
                '{"verdicts": [{"sentence": 2, "support": "supported", "quote": "'
                + "long " * 60
                + '"}]}'
            )
        return faithful(asked)

    summary, _ = write(tmp_path, NAME, make_task(2), rule, **ONE)
    assert [sentence.support for sentence in summary.sentences] == [None, "supported"]
    told = summary.trace["support"]
    assert (told["unjudged"], told["cut"], told["failure"]) == ([1], False, None)


def elements_of(*names: str) -> str:
    first = {"answer": "It retrieves.", "passages": list(names)}
    fields = (
        "research_questions",
        "methodology",
        "results",
        "conclusions",
        "contributions",
        "innovations",
        "limitations",
    )
    return json.dumps(
        {
            field: first if field == "methodology" else {"answer": "", "passages": []}
            for field in fields
        }
    )


def test_passages_that_were_not_shown_are_dropped_and_counted(tmp_path: Path) -> None:
    def rule(asked: Asked) -> str | None:
        if form_of(asked) == "Evidence":
            return elements_of("R1P2", "R1P9", "chapter 4")
        if form_of(asked) == "TiedDraft":
            return draft(tell(1, passages=["r1p2", "R1P1"]))
        return faithful(asked)

    passages = (
        ReferencePassage("id-1", "It began."),
        ReferencePassage("id-2", "It retrieves passages."),
    )
    task = make_task(1)
    task = replace(task, references=(replace(task.references[0], passages=passages),))
    summary, llm = write(tmp_path, NAME, task, rule, **ONE)
    (evidence,) = summary.trace["evidence"]
    assert (evidence["rests_on"]["methodology"], evidence["unknown"]) == (["R1P2"], 2)
    assert summary.trace["rounds"][0]["guard"][0]["unknown_passages"] == 1
    assert summary.trace["passages"] == {
        "R1P2": {"passage_id": "id-2", "text": "It retrieves passages."}
    }
    (sentence,) = summary.sentences
    assert (sentence.references, sentence.passages, sentence.support) == (
        (1,),
        ("id-2",),
        "supported",
    )
    assert any(
        "R1P2: It retrieves passages." in p for p in prompts(llm) if "and passages of it" in p
    )


def revising(support: str, revised: str | None) -> Rule:
    def rule(asked: Asked) -> str | None:
        if form_of(asked) == "Verdicts":
            first = json.loads(verdicts(asked, "supported"))
            first["verdicts"][0]["support"] = support
            return json.dumps(first)
        if form_of(asked) == "Revisions":
            if revised is None:
                return "no"
            return json.dumps(
                {"sentences": [{"sentence": 1, "text": revised, "passages": ["R1P1"]}]}
            )
        return faithful(asked)

    return rule


def test_a_sentence_that_its_passages_do_not_support_is_revised_and_keeps_its_reference(
    tmp_path: Path,
) -> None:
    summary, llm = write(
        tmp_path, NAME, make_task(2), revising("not", "It does things [Reference 2]."), **ONE
    )
    assert summary.text == "It does things [Reference 1]. Works 2 agree [Reference 2]."
    assert [sentence.support for sentence in summary.sentences] == ["revised", "supported"]
    before = [{"sentence": 1, "before": "Works 1 agree [Reference 1]."}]
    assert summary.trace["revision"] == {"sentences": before, "cut": False, "failure": None}
    assert summary.trace["support"]["verdicts"][0] == {
        "sentence": 1,
        "support": "not",
        "quote": "quote 1",
    }
    (asked,) = [p for p in prompts(llm) if p.startswith("Sentences to revise")]
    assert "Sentence 1: Works 1 agree [Reference 1].\nR1P1: It does 1 things." in asked
    assert "Sentence 2" not in asked


def test_a_revision_that_cannot_be_read_leaves_the_sentence_with_its_verdict(
    tmp_path: Path,
) -> None:
    summary, _ = write(tmp_path, NAME, make_task(2), revising("partly", None), **ONE)
    assert [sentence.support for sentence in summary.sentences] == ["partly", "supported"]
    assert "no Revisions could be read" in summary.trace["revision"]["failure"]


def test_references_are_written_about_in_the_order_of_their_groups_and_groups_are_paragraphs(
    tmp_path: Path,
) -> None:
    def rule(asked: Asked) -> str | None:
        if form_of(asked) == "Groups":
            return json.dumps(
                {
                    "groups": [
                        {"name": "b", "references": [3, 9]},
                        {"name": "a", "references": [1, 3]},
                    ]
                }
            )
        return faithful(asked)

    summary, _ = write(tmp_path, NAME, make_task(3), rule, **ONE)
    assert [done["reference"] for done in summary.trace["rounds"]] == [3, 1, 2]
    told = summary.trace["groups"]
    assert (told["dropped"], told["repeated"], told["added"]) == ([9], [3], [2])
    assert summary.text.split("\n\n") == [f"Works {n} agree [Reference {n}]." for n in (3, 1, 2)]


def test_of_a_work_known_by_its_item_alone_nothing_is_asked(tmp_path: Path) -> None:
    task = make_task(2)
    item = "# Boats\n\nOf this work only its bibliography item is known: Yang. Boats."
    known = replace(
        task, references=(task.references[0], Reference(2, None, "Boats", "item", text=item))
    )
    summary, llm = write(tmp_path, NAME, known, faithful, **ONE)
    assert sum(p.startswith("Please extract") for p in prompts(llm)) == 1
    assert summary.trace["passages"]["R2P1"]["text"].startswith(
        "Of this work only its bibliography item is known"
    )


def test_a_small_context_cuts_and_says_so(tmp_path: Path) -> None:
    task = make_task(2)
    long = with_texts(task, *("\n\n".join([reference.text] * 400) for reference in task.references))
    summary, _ = write(
        tmp_path, NAME, long, faithful, **ONE, llm_context=2400, draft_tokens=64, element_tokens=24
    )
    assert [each["cut"] for each in summary.trace["evidence"]] == [True, True]
    many, _ = write(
        tmp_path, NAME, make_task(8), **ONE, llm_context=1500, draft_tokens=32, element_tokens=16
    )
    assert any(guard["cut"] for done in many.trace["rounds"] for guard in done["guard"])
    assert many.trace["citations"]["uncited"] == []


@pytest.mark.parametrize(
    ("text", "numbers", "cited"),
    [
        ("It is fast.", (1, 2), "It is fast [Reference 1] [Reference 2]."),
        ("It [Reference 1] is fast", (1,), "It [Reference 1] is fast"),
        ("It [Reference 9] is fast [Reference 1].", (1,), "It is fast [Reference 1]."),
        ('They say "fast."', (1,), 'They say "fast [Reference 1]."'),
        ("", (1,), ""),
    ],
)
def test_a_sentence_cites_its_references_and_no_others(
    text: str, numbers: tuple[int, ...], cited: str
) -> None:
    assert cite(text, numbers) == cited


def test_a_sentence_without_citations_stays_in_its_paragraph() -> None:
    cites = {"A.": (), "B.": (1,), "C.": (), "D.": (2,)}
    told = [TiedSentence(text, numbers, ()) for text, numbers in cites.items()]
    assert section_text(told, [(1,), (2,)]) == "A. B. C.\n\nD."
