"""Made-up questions, answers and grades of a month, beside what `made_up.write_month` wrote."""

from dataclasses import replace

from pipeline import tables
from pipeline.answering.answer import ABSTAINED, answer_row, plain_answer
from pipeline.answering.model_calls import passage_trace
from pipeline.answering.questions import KINDS, GoldClaim, Question
from pipeline.corpus.nouns import Answer, AnswerSentence, Claim, Passage
from pipeline.evaluation.answers.measures import gold_shown_by_hop
from pipeline.llm.messages import Spent
from pipeline.system_names import ANSWERING_SYSTEMS
from pipeline.tables.writers import Writer
from tests.month_tables import write_table
from tests.unit.evaluation.answers import graded
from tests.unit.evaluation.made_up import same

SYSTEMS = ("arxivbot", "direct", "wikichat", "a chat site")
QUOTE = "The weights are learned from clicks."
_CLAIM_TURN = (
    "correct",
    "correct",
    "partly",
    "wrong",
    "not_checkable",
    None,
)
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
    write_table(root, tables.QUESTIONS, month, (question_row(each, text) for each in posed))
    made = {
        system: {
            each.id: answered(each, system, number == questions, text)
            for number, each in enumerate(posed, 1)
        }
        for system in systems
    }
    rows = (row for system in sorted(systems) for row in answer_rows(system, made[system], model))
    write_table(root, tables.ANSWERS, month, rows)
    grades = [
        row
        for judge in judges
        for each in posed
        for row in (grade(each, system, judge, made[system][each.id], text) for system in systems)
    ]
    named = (
        {**each, **_writer(each["system"], model).columns} for each in sorted(grades, key=_order)
    )
    write_table(root, tables.ANSWER_GRADES, month, named)
    write_table(root, tables.ANSWER_SCORES, month, [])


def _order(grade):
    return grade["question_id"], grade["system"], grade["judge"]


def question(month, number, text=same):
    """A question on one paper, on two for every third, with three gold claims."""
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
    asked = text(f"How are the weights of study {number} learned?")
    # Without validation: texts may be hostile.
    return Question.model_construct(
        id=f"q{number}",
        question=asked,
        kind=KINDS[number % len(KINDS)],
        papers=papers,
        claims=claims,
        date=f"{month}-0{number % 9 + 1}",
    )


def question_row(asked, text=same):
    gold = gold_of(asked)
    claims = [
        {
            "claim": each.claim,
            "arxiv_id": each.paper,
            "evidence": list(each.evidence),
            "passages": gold[place],
        }
        for place, each in enumerate(asked.claims)
    ]
    return {
        "question_id": asked.id,
        "question": asked.question,
        "kind": asked.kind,
        "papers": list(asked.papers),
        "date": asked.date,
        "reviewed": True,
        "claims": claims,
    }


def gold_of(asked):
    """Place of a gold claim → its passage; the second has none that is known."""
    return {0: [f"{asked.papers[0]}-0"], 1: [], 2: [f"{asked.papers[0]}-5"]}


def found(asked, number, text=same):
    title, path = text("Learned Weights"), (text("Method"),)
    told = text(f"Passage {number} says more. {QUOTE}")
    return Passage(
        f"{asked.papers[0]}-{number}",
        asked.papers[0],
        f"S{number}.p1",
        "paragraph",
        title,
        path,
        told,
    )


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
        Claim(
            number,
            text(f"Claim {number} of the answer."),
            passage.passage_id,
            passage.arxiv_id,
            passage.anchor,
            hop,
        )
        for number, (hop, passage) in enumerate(
            ((hop, each[0]) for hop, each in enumerate(hops, 1)), 1
        )
    ]
    told = [AnswerSentence(text(f"Sentence {claim.number}."), (claim.number,)) for claim in claims]
    queries = [text(f"weights {hop}") for hop in range(1, len(hops) + 1)]
    shown, trace = tuple(map(tuple, hops)), {"steps": list(_steps(asked, hops, queries, text))}
    said = ABSTAINED if abstains else " ".join(each.text for each in told)
    sentences = () if abstains else tuple(told)
    spent = Spent(5, 4_000, 300)
    return Answer(
        said, sentences, tuple(claims), tuple(queries), shown, len(hops), abstains, trace, spent
    )


def _steps(asked, hops, queries, text):
    yield {"stage": "query", "query": queries[0], "question": asked.question, "made": "model"}
    for hop, (query, passages) in enumerate(zip(queries, hops, strict=True), 1):
        ids = [passage.passage_id for passage in passages]
        yield {"stage": "search", "hop": hop, "query": query, "found": ids}
        yield {
            "stage": "rank",
            "hop": hop,
            "windows": [{"from": 1, "to": 3, "missing": [3], "order": [2, 1, 3]}],
        }
        told = {
            "suspicious": ids[:1],
            "texts": [text("Claim.")],
            "claims": [hop],
            "dropped": {"unknown": 1},
        }
        yield {
            "stage": "claims",
            "hop": hop,
            "shown": [passage_trace(passage) for passage in passages],
            **told,
        }
        query_next = queries[hop] if hop < len(hops) else None
        thought = {"query": query_next, "silent": False, "reasoning": text("It lacks a part.")}
        yield {
            "stage": "reflect",
            "hop": hop,
            **thought,
            "failure": text("no JSON") if hop == 2 else None,
        }
    yield {"stage": "answer", "answered": "yes", "made": False, "dropped": []}


def answer_rows(system, made, model):
    for question_id, each in made.items():
        yield answer_row(question_id, _writer(system, model), each, {"hops": 2})


def _writer(system, model):
    return Writer(system, model if system in ANSWERING_SYSTEMS else None)


def grade(asked, system, judge, answer, text=same):
    """All verdicts in turn, as the question, the system and the judge fall."""
    turn = int(asked.id[1:]) + len(system) + sum(map(ord, judge))
    claims = [] if answer.abstained else [_claim(asked, turn + place, text) for place in range(3)]
    gold = [
        _gold(each.claim, turn + place, answer.abstained, text)
        for place, each in enumerate(asked.claims)
    ]
    hops_shown, first_hop = gold_shown_by_hop(asked, answer, gold_of(asked))
    for place, hop in first_hop.items():
        gold[place] |= {"shown_in_hop": hop, "has_passage": True}
    outcome = "abstained" if answer.abstained else "answered"
    more = {
        "outcome": outcome,
        "hops_shown": hops_shown,
        "calls": 7,
        "prompt_tokens": 5_000,
        "completion_tokens": 200,
    }
    return _row(asked, system, judge, claims, gold) | more


def _row(asked, system, judge, claims, gold):
    return {
        **graded.grade(system=system, judge=judge, kind=asked.kind, date=asked.date or ""),
        "question_id": asked.id,
        "claims": claims,
        "gold": gold,
        "parts": 1,
    }


def _claim(asked, turn, text):
    verdict = _CLAIM_TURN[turn % len(_CLAIM_TURN)]
    ids = [f"{asked.papers[0]}-{number}" for number in (1, 2)]
    words = f"{text('Learned Weights > Method')}\n{text(f'It says so. {QUOTE}')}"
    passages = [
        {"passage_id": name, "anchor": f"S{number}.p1", "text": words}
        for number, name in enumerate(ids, 1)
    ]
    told, more = text(f"Claim in turn {turn}."), {"passages": passages, "cut": turn % 5 == 0}
    if verdict is None:
        return graded.claim_row(told, None, **more, failure=text("no JSON"))
    if verdict == "correct":
        return graded.claim_row(told, verdict, QUOTE, "passage", passage_id=ids[0], **more)
    return graded.claim_row(told, verdict, text("Words of nobody."), **more)


def _gold(claim, turn, abstained, text):
    verdict = "not" if abstained else _GOLD_TURN[turn % len(_GOLD_TURN)]
    quote = text("Sentence 1. And more.") if verdict == "held" else ""
    return graded.gold_row(claim, verdict, quote, verdict == "held")
