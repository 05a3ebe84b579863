"""`benchmarks.judges`: labelled claims as judges read them, and figures that can be worked out by
hand.
"""

from __future__ import annotations

import gzip
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from benchmarks.judges import (
    LABEL_OF,
    SUPPORTED,
    UNREADABLE,
    Verdicts,
    figures_of,
    judge_with_model,
    macro_f1,
)
from benchmarks.labelled_claims import LabelledClaim, mark_citation, read_sets
from pipeline.evaluation.judge_figures import TaskName
from pipeline.llm.models import get_model
from tests.scripted_llm import Asked, Rule, ScriptedLlm
from tests.unit.evaluation.answers.graded import fence, form_of
from tests.unit.evaluation.made_up import workspace

CITING = [
    (
        "Boats float <|other_cit|> on water [<|cit|>].",
        "SUPPORT",
        ["Every boat of the study floats on water."],
    ),
    ("Boats sink (<|multi_cit|>,18).", "REFUTE", ["No boat of the study sank.", "Kites fly."]),
    ("Kites are old.", None, ["The recipe needs two eggs."]),
    ("Boats have sails [<|cit|>].", "SUPPORT", ["All boats had sails."]),
]
SCIFACT = [
    ("Tea cools.", "SUPPORT", "d0"),
    ("Tea freezes at once.", "CONTRADICT", "d1"),
    ("Coffee cools.", None, "d0"),
]
ABSTRACT = ["Tea cools within an hour. ", "It does not freeze."]
RIGHT = {
    "Finding": {"SUPPORT": "supported", "REFUTE": "partly", "NEI": "not"},
    "ClaimFinding": {"SUPPORT": "correct", "REFUTE": "wrong", "NEI": "not_checkable"},
}
LABELS = ["SUPPORT", "SUPPORT", "SUPPORT", "REFUTE", "REFUTE", "NEI"]
THREE = ("SUPPORT", "REFUTE", "NEI")
SIX_DOCUMENTS = list("abcdef")


def write_rows(file: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    with gzip.open(file, "wt", encoding="utf-8") as lines:
        lines.writelines(f"{json.dumps(row)}\n" for row in rows)


@pytest.fixture
def sets(tmp_path: Path) -> Mapping[str, Sequence[LabelledClaim]]:
    """Four citing sentences and three claims of SciFact, in the layout of the published files."""
    claims = [
        {
            "id": number,
            "claim": claim,
            "evidence": {str(number): [{"sentences": [0], "label": label}]} if label else {},
            "cited_doc_ids": [number],
        }
        for number, (claim, label, _) in enumerate(CITING)
    ]
    corpus = [
        {"doc_id": number, "title": "", "abstract": texts}
        for number, (_, _, texts) in enumerate(CITING)
    ]
    write_rows(tmp_path / "citation_integrity" / "claims_dev.jsonl.gz", claims)
    write_rows(tmp_path / "citation_integrity" / "corpus.jsonl.gz", corpus)
    claims = [
        {
            "id": str(number),
            "claim": claim,
            "cited": [document],
            "evidence": [{"doc": document, "label": label, "sentences": [0]}] if label else [],
        }
        for number, (claim, label, document) in enumerate(SCIFACT)
    ]
    corpus = [{"id": name, "title": "On tea", "sentences": ABSTRACT} for name in ("d0", "d1")]
    write_rows(tmp_path / "scifact" / "claims_dev.jsonl.gz", claims)
    write_rows(tmp_path / "scifact" / "corpus.jsonl.gz", corpus)
    return read_sets(tmp_path, "dev")


def knowing(sets: Mapping[str, Sequence[LabelledClaim]]) -> Rule:
    """A judge that knows every label and quotes nothing."""
    by_text = {
        text: claim
        for claims in sets.values()
        for claim in claims
        for text in (claim.marked, claim.claim)
    }

    def rule(asked: Asked) -> str | None:
        if form_of(asked) not in RIGHT:
            return None
        claim = by_text[fence(asked, "sentence") or fence(asked, "claim")]
        return json.dumps({"quote": "", "verdict": RIGHT[form_of(asked)][claim.label]})

    return rule


def judged(
    folder: Path, llm: ScriptedLlm, sets: Mapping[str, Sequence[LabelledClaim]]
) -> dict[tuple[TaskName, str], Verdicts]:
    """(Task, set) → the verdicts of the scripted model."""
    work = workspace(folder / "data", llm_url=llm.url, llm_model=llm.model)
    return {
        (each.task, each.set): each
        for each in judge_with_model(work, get_model(work.settings), sets)
    }


def test_citing_sentences_have_their_citation_marked_for_the_judge_and_no_marker_in_the_claim(
    sets: Mapping[str, Sequence[LabelledClaim]],
) -> None:
    claims = sets["Citation-Integrity"]
    assert [(claim.label, claim.marked) for claim in claims] == [
        ("SUPPORT", "Boats float [another work] on water [this work]."),
        ("REFUTE", "Boats sink [this work]."),
        ("NEI", "Kites are old. [this work]"),
        ("SUPPORT", "Boats have sails [this work]."),
    ]
    assert [claim.claim for claim in claims][:2] == ["Boats float on water .", "Boats sink ."]
    assert claims[1].passages == ("No boat of the study sank.", "Kites fly.")


@pytest.mark.parametrize(
    ("sentence", "marked"),
    [
        ("A <|cit|> B", "A [this work] B"),
        ("A [<|multi_cit|>, 14] B [<|other_cit|>]", "A [this work] B [another work]"),
        ("A [17]", "A [17] [this work]"),
        ("A <|other_cit|>.", "A [another work]. [this work]"),
    ],
)
def test_every_form_of_the_marker_is_known(sentence: str, marked: str) -> None:
    assert mark_citation(sentence) == marked


def test_a_claim_of_scifact_has_its_abstract(sets: Mapping[str, Sequence[LabelledClaim]]) -> None:
    claims = sets["SciFact"]
    assert [(claim.label, claim.document) for claim in claims] == [
        ("SUPPORT", "d0"),
        ("REFUTE", "d1"),
        ("NEI", "d0"),
    ]
    assert {claim.passages for claim in claims} == {
        ("Tea cools within an hour. It does not freeze.",)
    }


def test_the_published_sets_have_the_claims_that_their_papers_count(shared_data: Path) -> None:
    folder = shared_data / "labelled"
    if not folder.is_dir():
        pytest.skip("the labelled sets (../shared/data/labelled) are not on this machine")
    counts = {
        name: Counter(claim.label for claim in claims)
        for name, claims in read_sets(folder, "dev").items()
    }
    assert counts == {
        "Citation-Integrity": {"SUPPORT": 191, "REFUTE": 101, "NEI": 24},
        "SciFact": {"SUPPORT": 138, "REFUTE": 71, "NEI": 130},
    }


def test_a_judge_that_knows_the_labels_has_1_at_both_tasks_and_is_shown_none(
    tmp_path: Path, sets: Mapping[str, Sequence[LabelledClaim]]
) -> None:
    with ScriptedLlm(knowing(sets)) as llm:
        results = judged(tmp_path, llm, sets)
        prompts = [Asked(body, 0).prompt for body in llm.requests]
    integrity, scifact = (
        results["claim_grade", "Citation-Integrity"],
        results["claim_grade", "SciFact"],
    )
    measured = {key: each.measure() for key, each in results.items()}
    # What contradicts a claim of SciFact and what says nothing of it is one verdict for the judge
    # of citations.
    assert {key for key, each in measured.items() if each.three_classes is None} == {
        ("citation_support", "SciFact")
    }
    assert {each.three_classes.value for each in measured.values() if each.three_classes} == {1}
    assert {each.supported_or_not.value for each in measured.values()} == {1}
    assert integrity.confusion() == {
        "SUPPORT": {"correct": 2},
        "REFUTE": {"wrong": 1},
        "NEI": {"not_checkable": 1},
    }
    assert (integrity.spent.calls, scifact.spent.calls) == (4, 3)
    assert len(prompts) == 2 * 7
    assert not [
        word for word in ("SUPPORT", "REFUTE", "CONTRADICT", "NEI") if word in " ".join(prompts)
    ]
    figures = figures_of(list(results.values()), llm.model, "2026-11-26")
    assert [(each.task, [on.set for on in each.sets]) for each in figures] == [
        ("citation_support", ["Citation-Integrity", "SciFact"]),
        ("claim_grade", ["Citation-Integrity", "SciFact"]),
    ]


def test_answers_that_cannot_be_read_count_as_wrong(
    tmp_path: Path, sets: Mapping[str, Sequence[LabelledClaim]]
) -> None:
    with ScriptedLlm(
        lambda asked: "no JSON" if form_of(asked) == "ClaimFinding" else None, knowing(sets)
    ) as llm:
        integrity = judged(tmp_path, llm, sets)["claim_grade", "Citation-Integrity"]
    assert integrity.measure().three_classes == (0, 0, 0)
    assert integrity.confusion()["SUPPORT"] == {UNREADABLE: 2}
    assert integrity.spent.calls == 2 * 4, "every answer was repaired once"


def test_macro_f1_is_the_one_worked_out_by_hand() -> None:
    """SUPPORT: 2 of 3, and of 3 given; F1 2/3. REFUTE: 1 of 2, of 1 given; F1 2/3. NEI: 0 of 1; F1
    0.
    """
    score = macro_f1(
        LABELS, ["SUPPORT", "SUPPORT", "NEI", "REFUTE", "SUPPORT", UNREADABLE], THREE, SIX_DOCUMENTS
    )
    assert score.value == pytest.approx((2 / 3 + 2 / 3 + 0) / 3, abs=5e-4)
    assert score.low < score.value < score.high
    never_two = macro_f1(LABELS, ["SUPPORT"] * 6, THREE, SIX_DOCUMENTS)
    assert never_two.value == pytest.approx((2 / 3 + 0 + 0) / 3, abs=5e-4)


def test_intervals_draw_whole_documents() -> None:
    """Of one document there is nothing to draw; of two that differ the interval is all there is."""
    judgements = ["SUPPORT"] * 4 + ["NEI"] * 4
    assert macro_f1(["SUPPORT"] * 8, judgements, ("SUPPORT",), ["a"] * 4 + ["b"] * 4)[1:] == (0, 1)
    with pytest.raises(ValueError, match="two documents"):
        macro_f1(["SUPPORT"] * 8, judgements, ("SUPPORT",), ["a"] * 8)


def test_every_verdict_of_a_task_has_a_label() -> None:
    verdicts = {"citation_support": {"supported", "partly", "not"},
                "claim_grade": {"correct", "partly", "wrong", "not_checkable"}}  # fmt: skip
    assert all(set(labels) == verdicts[task] for (task, _), labels in LABEL_OF.items())
    assert all(
        LABEL_OF[task, "Citation-Integrity"][verdict] == "SUPPORT"
        for task, verdict in SUPPORTED.items()
    )
