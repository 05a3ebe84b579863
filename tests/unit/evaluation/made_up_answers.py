"""Made-up questions, answers and grades of a month, beside what `made_up.write_month` wrote."""

from dataclasses import replace

from pipeline import tables
from pipeline.answering.answer import answer_row, grounded_answer, number_claims, plain_answer
from pipeline.answering.model_calls import StepLog, passage_trace
from pipeline.answering.questions import KINDS, GoldClaim, Question, claim_rows
from pipeline.corpus.nouns import AnswerSentence, Passage
from pipeline.engine.stage import Job
from pipeline.evaluation.answers.measures import gold_shown_by_hop
from pipeline.evaluation.scores import build_answer_scores
from pipeline.evaluation.stages import ANSWER_SCORES
from pipeline.llm.messages import Spent
from pipeline.stage_names import ANSWERING_SYSTEMS
from pipeline.tables.writers import Writer
from tests.month_tables import write_table
from tests.unit.evaluation.answers import graded
from tests.unit.evaluation.made_up import same, spent
from tests.workspaces import make_workspace

SYSTEMS = ("arxivbot", "direct", "wikichat", "a chat site")
QUOTE = "The weights are learned from clicks."
_CLAIM_TURN = ("correct", "correct", "partly", "wrong", "not_checkable", None)
_GOLD_TURN = ("held", "partly", "not", "held", None)


def write_answers(
    root,
    month,
    *,
    text=same,
    questions=4,
    systems=SYSTEMS,
    judges=("judge-one",),
    model="some-model",
):
    """The tables of questions, answers and grades. `text` is applied to each text of papers, people
    and models.

    Question 1 has two hops of arXivBot, of which the second brings its last gold claim; the last
    one is abstained from.
    """
    posed = [question(month, number, text) for number in range(1, questions + 1)]
    made = {
        (system, each.id): answered(each, system, number == questions, text)
        for number, each in enumerate(posed, 1)
        for system in systems
    }
    answers = (
        answer_row(question_id, writer(system, model), answer, {"hops": 2})
        for (system, question_id), answer in sorted(made.items(), key=lambda item: item[0])
    )
    grades = [
        grade(each, system, judge, made[system, each.id], text) | writer(system, model).columns
        for each in posed
        for system in sorted(systems)
        for judge in sorted(judges)
    ]
    write_table(root, tables.QUESTIONS, month, (question_row(each) for each in posed))
    write_table(root, tables.ANSWERS, month, answers)
    write_table(root, tables.ANSWER_GRADES, month, grades)
    job = Job(make_workspace(root.path), month, ANSWER_SCORES)
    write_table(root, tables.ANSWER_SCORES, month, build_answer_scores(job))


def writer(system, model):
    return Writer(system, model if system in ANSWERING_SYSTEMS else None)


def question(month, number, text=same):
    """A question on one paper, on two for every third, with three gold claims. Not validated: texts
    may be hostile.
    """
    short = month[2:4] + month[5:]
    papers = tuple(f"{short}.{90001 + place}" for place in range(2 if number % 3 == 0 else 1))
    claims = tuple(
        GoldClaim.model_construct(
            claim=text(f"Gold claim {place} of question {number}."),
            paper=papers[0],
            evidence=(text(f"as it says in place {place}"),),
        )
        for place in (1, 2, 3)
    )
    return Question.model_construct(
        id=f"q{number}",
        question=text(f"How are the weights of study {number} learned?"),
        kind=KINDS[number % len(KINDS)],
        papers=papers,
        claims=claims,
        date=f"{month}-0{number % 9 + 1}",
    )


def question_row(asked):
    return {
        "question_id": asked.id,
        "question": asked.question,
        "kind": asked.kind,
        "papers": list(asked.papers),
        "date": asked.date,
        "reviewed": True,
        "claims": claim_rows(asked, gold_of(asked)),
    }


def gold_of(asked):
    """Place of a gold claim → its passage; the second has none that is known."""
    return {0: [f"{asked.papers[0]}-0"], 1: [], 2: [f"{asked.papers[0]}-5"]}


def found(asked, number, text=same):
    paper = asked.papers[0]
    told = text(f"Passage {number} says more. {QUOTE}")
    place = f"{paper}-{number}", paper, f"S{number}.p1", "paragraph"
    return Passage(*place, text("Learned Weights"), (text("Method"),), told)


def answered(asked, system, abstains, text=same):
    if system not in ("arxivbot", "wikichat"):
        plain = plain_answer(
            text("The weights are learned. Nobody says how.\n\nIt may be by clicks.")
        )
        return replace(plain, spent=Spent(1, 300, 80)) if system == "direct" else plain
    hops = [[found(asked, number, text) for number in (0, 1, 2)]]
    if system == "arxivbot" and asked.id == "q1":
        hops.append([found(asked, number, text) for number in (4, 5)])
    claims = [
        claim
        for hop, passages in enumerate(hops, 1)
        for claim in number_claims(
            [(text(f"Claim {hop} of the answer."), passages[0], "passage")], hop, hop - 1
        )
    ]
    told = [AnswerSentence(text(f"Sentence {claim.number}."), (claim.number,)) for claim in claims]
    queries = [text(f"weights {hop}") for hop in range(1, len(hops) + 1)]
    steps = StepLog(None, [*_steps(asked, hops, queries, text)], Spent(5, 4_000, 300))
    return grounded_answer([] if abstains else told, claims, queries, hops, steps)


def _steps(asked, hops, queries, text):
    yield {"stage": "query", "query": queries[0], "question": asked.question, "made": "model"}
    for hop, (query, passages) in enumerate(zip(queries, hops, strict=True), 1):
        ids = [passage.passage_id for passage in passages]
        window = {"from": 1, "to": 3, "missing": [3], "order": [2, 1, 3]}
        yield {"stage": "search", "hop": hop, "query": query, "found": ids}
        yield {"stage": "rank", "hop": hop, "windows": [window]}
        yield {
            "stage": "claims",
            "hop": hop,
            "shown": [passage_trace(passage) for passage in passages],
            "texts": [text("Claim.")],
            "claims": [hop],
            "dropped": {"unknown": 1},
        }
        yield {
            "stage": "reflect",
            "hop": hop,
            "query": queries[hop] if hop < len(hops) else None,
            "silent": False,
            "reasoning": text("It lacks a part."),
            "failure": text("no JSON") if hop == 2 else None,
        }
    yield {"stage": "answer", "answered": "yes", "made": False, "dropped": []}


def grade(asked, system, judge, answer, text=same):
    """All verdicts in turn, as the question, the system and the judge fall."""
    turn = int(asked.id[1:]) + len(system) + sum(map(ord, judge))
    outcome = "abstained" if answer.abstained else "answered"
    row = graded.grade(
        question_id=asked.id,
        system=system,
        judge=judge,
        kind=asked.kind,
        date=asked.date,
        outcome=outcome,
        parts=1,
        **spent(7, 5_000, 200),
    )
    row["claims"] = (
        [] if answer.abstained else [_claim(asked, turn + place, text) for place in range(3)]
    )
    row["hops_shown"], first_hop = gold_shown_by_hop(asked, answer, gold_of(asked))
    row["gold"] = [
        {
            **_gold(each.claim, turn + place, answer.abstained, text),
            "shown_in_hop": first_hop.get(place),
            "has_passage": place in first_hop,
        }
        for place, each in enumerate(asked.claims)
    ]
    return row


def _claim(asked, turn, text):
    verdict = _CLAIM_TURN[turn % len(_CLAIM_TURN)]
    words = f"{text('Learned Weights > Method')}\n{text(f'It says so. {QUOTE}')}"
    passages = [
        {"passage_id": f"{asked.papers[0]}-{n}", "anchor": f"S{n}.p1", "text": words}
        for n in (1, 2)
    ]
    told, more = text(f"Claim in turn {turn}."), {"passages": passages, "cut": turn % 5 == 0}
    if verdict is None:
        return graded.verdict_row(told, None, **more, failure=text("no JSON"))
    if verdict == "correct":
        more["passage_id"] = passages[0]["passage_id"]
        return graded.verdict_row(told, verdict, QUOTE, "passage", **more)
    return graded.verdict_row(told, verdict, text("Words of nobody."), **more)


def _gold(claim, turn, abstained, text):
    verdict = "not" if abstained else _GOLD_TURN[turn % len(_GOLD_TURN)]
    quote = text("Sentence 1. And more.") if verdict == "held" else ""
    return graded.verdict_row(claim, verdict, quote, verdict == "held")
