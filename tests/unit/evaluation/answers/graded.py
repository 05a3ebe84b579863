"""Made-up questions, answers, grades, and grading at a scripted endpoint."""

import json
import re

from pipeline.answering.answer import grounded_answer, number_claims, plain_answer
from pipeline.answering.model_calls import StepLog
from pipeline.answering.questions import GoldClaim, Question
from pipeline.corpus.nouns import AnswerSentence, Passage
from pipeline.engine.stage import Job
from pipeline.evaluation.answers.judge import grade_answers
from pipeline.evaluation.answers.sample import SampledAnswer
from pipeline.evaluation.passages import EvidencePassage, rank
from pipeline.evaluation.stages import ANSWER_GRADES
from tests.scripted_llm import Asked, ScriptedLlm
from tests.workspaces import make_workspace

PAPER, OTHER = "2403.00001", "2403.00002"
PASSAGES = {
    PAPER: [
        EvidencePassage("Ada Byron (Quay University)", 0, "p0", PAPER, "front", "Boats"),
        EvidencePassage(
            "We saw every boat float on the river.", 1, "p1", PAPER, "S1.p1", "Boats > Results"
        ),
        EvidencePassage("The study has twelve boats.", 2, "p2", PAPER, "S1.p2", "Boats > Data"),
    ],
    OTHER: [EvidencePassage("Kites fly above the river.", 0, "p9", OTHER, "S1.p1", "Kites")],
}


def question(number=1, *gold, papers=(PAPER,), kind="summary"):
    told = gold or ("Every boat of the study floats.", "The study has twelve boats.")
    return Question(
        id=f"q{number}",
        question=f"Do the boats of study {number} float?",
        kind=kind,
        papers=tuple(papers),
        claims=tuple(GoldClaim(claim=each, paper=papers[0]) for each in told),
    )


def grounded(text, *hops):
    """An answer whose hops were shown passages of these numbers, and that rests on the first of
    them.
    """
    shown = [
        [Passage(f"p{n}", PAPER, f"S{n}", "paragraph", "Boats", (), f"Passage {n}.") for n in hop]
        for hop in hops
    ]
    claims = number_claims([("Its own claim, which nobody grades.", shown[0][0], "passage")], 1)
    queries = [f"query {hop}" for hop in range(len(hops))]
    return grounded_answer([AnswerSentence(text, (1,))], claims, queries, shown, StepLog())


def answer_to_grade(
    text="All boats float. There are nine boats.", system="direct", of=None, answer=None
):
    return SampledAnswer(of or question(), system, answer or plain_answer(text), {})


def form_of(asked):
    return str(asked.schema["title"]) if asked.schema is not None else ""


def fence(asked, name):
    """What stands in a fence of a prompt; empty where there is none."""
    inside = re.search(rf"<{name}>\n(.*?)\n</{name}>", asked.prompt, re.DOTALL)
    return inside[1] if inside else ""


def sentences_as_claims(asked):
    """A splitter that takes every line of the part for a claim."""
    if form_of(asked) != "AnswerClaims":
        return None
    lines = fence(asked, "answer").split("\n")
    return json.dumps({"claims": [line for line in lines if "float" in line or "boat" in line]})


def verdicts(claim, gold):
    """A judge with a verdict and a quote for each claim, and for each gold claim."""

    def rule(asked):
        form = form_of(asked)
        if form not in ("ClaimFinding", "GoldFinding"):
            return None
        known, name, other = (
            (claim, "claim", "wrong") if form == "ClaimFinding" else (gold, "fact", "not")
        )
        verdict, quote = known.get(fence(asked, name), (other, ""))
        return json.dumps({"quote": quote, "verdict": verdict})

    return rule


def graded(folder, cases, *rules, most=2, **settings):
    """Grades of some answers, and the endpoint that gave them."""
    with ScriptedLlm(*rules) as llm:
        place = make_workspace(folder, llm_url=llm.url, llm_model=llm.model, **settings)
        by_id = {each.question.id: each.question for each in cases}

        def look_up(claims):
            evidence = {}
            for question_id, of_question in claims.items():
                evidence |= evidence_by_words(by_id[question_id], of_question, most)
            return evidence

        return grade_answers(Job(place, "2024-03", ANSWER_GRADES), cases, look_up), llm


def evidence_by_words(of, claims, most, passages=PASSAGES):
    """What claims are judged by where no passage has a vector, so that no model is loaded."""

    def no_model():
        raise AssertionError

    candidates = [passage for paper in of.papers for passage in passages.get(paper, ())]
    best = rank(candidates, claims, most, {}, no_model)
    return {(of.id, claim): shown for claim, shown in best.items()}


def forms(llm):
    return sorted(form_of(Asked(body, 0)) for body in llm.requests)


def verdict_row(claim, verdict, quote="", quoted=None, **more):
    """A claim or gold claim of a row of `answer_grades`."""
    judged = {"claim": claim, "verdict": verdict or None, "quote": quote, "quoted": quoted}
    return {**judged, "cut": False, "failure": None, **more}


def _numbered(name, verdicts):
    """(Text, verdict and what belongs to it) of claims."""
    for number, verdict in enumerate(verdicts, 1):
        yield f"{name} {number}.", *(verdict if isinstance(verdict, list) else [verdict])


def grade(claims=(), gold=(), *, number=1, hops_shown=None, first_hop=(), **columns):
    """A row of `answer_grades` with these verdicts, by hand: each a verdict, or a list of it, its
    quote and where that is. first_hop: of each gold claim that has a passage, the hop that showed
    it; "" for none.
    """
    counts = ("parts", "parts_full", "parts_cut", "calls", "prompt_tokens", "completion_tokens")
    gold_rows = [verdict_row(*each) for each in _numbered("Fact", gold)]
    for row, hop in zip(gold_rows, first_hop, strict=False):
        row |= {"shown_in_hop": hop or None, "has_passage": True}
    return {
        "question_id": f"q{number}",
        "system": "direct",
        "model": None,
        "judge": "judge",
        "kind": "summary",
        "date": "2024-03",
        "outcome": "answered",
        "claims": [verdict_row(*each, passages=[]) for each in _numbered("Claim", claims)],
        "gold": [{"shown_in_hop": None, "has_passage": False, **row} for row in gold_rows],
        "hops_shown": hops_shown,
        "split_failures": [],
        **dict.fromkeys(counts, 0),
        **columns,
    }
