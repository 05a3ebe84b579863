"""Tables of arXivBot and its baselines: questions, answers, their grades and scores."""

from __future__ import annotations

import pyarrow as pa

from pipeline.tables.related_work import JUDGE_PASSAGE
from pipeline.tables.table import COUNT, FLAG, TEXT, TEXTS, Table, llm_usage, schema

GOLD_CLAIM = pa.struct({"claim": TEXT, "arxiv_id": TEXT, "evidence": TEXTS, "passages": TEXTS})
RETRIEVED_PASSAGE = pa.struct(
    {
        "hop": pa.int32(),
        "passage_id": TEXT,
        "arxiv_id": TEXT,
        "title": TEXT,
        "section_path": TEXTS,
        "anchor": TEXT,
        "kind": TEXT,
        "text": TEXT,
        "month": TEXT,
    }
)
ANSWER_CLAIM = pa.struct(
    {
        "number": pa.int32(),
        "text": TEXT,
        "passage_id": TEXT,
        "arxiv_id": TEXT,
        "anchor": TEXT,
        "hop": pa.int32(),
        "source": TEXT,
    }
)
ANSWER_SENTENCE = pa.struct({"text": TEXT, "claims": pa.list_(pa.int32())})
GRADED_CLAIM = pa.struct(
    {
        "claim": TEXT,
        "verdict": TEXT,
        "quote": TEXT,
        "quoted": TEXT,
        "passage_id": TEXT,
        "passages": pa.list_(JUDGE_PASSAGE),
        "cut": FLAG,
        "failure": TEXT,
    }
)
GRADED_GOLD = pa.struct(
    {
        "claim": TEXT,
        "verdict": TEXT,
        "quote": TEXT,
        "quoted": FLAG,
        "cut": FLAG,
        "failure": TEXT,
        "shown_in_hop": pa.int32(),
        "has_passage": FLAG,
    }
)


QUESTIONS = Table(
    "questions",
    "one question of a question set, with its gold claims",
    schema(
        ("question_id", TEXT, "id in the set"),
        ("question", TEXT, "what is asked"),
        ("kind", TEXT, "author, dataset, summary, limitation or comparison"),
        ("papers", TEXTS, "arXiv ids of the papers that the answer needs"),
        ("date", TEXT, "when the newest of them first appeared, YYYY-MM-DD or YYYY-MM"),
        ("reviewed", FLAG, "whether a person has accepted the question and its claims"),
        (
            "claims",
            pa.list_(GOLD_CLAIM),
            "what a full answer holds: each fact, its paper, phrases that say so, and the passages that hold one",
        ),
    ),
)
QUESTION_DRAFTS = Table(
    "question_drafts",
    "one question that was proposed for a question set, with its gold claims",
    pa.schema(
        [
            *QUESTIONS.schema,
            *schema(
                ("model", TEXT, "model that proposed it"),
                *llm_usage("LLM calls that it took"),
            ),
        ]
    ),
)
ANSWERING_SYSTEMS = ("arxivbot", "arxivbot_report", "direct", "extractive", "wikichat")
ANSWERS = Table(
    "answers",
    "one writer's answer to one question",
    schema(
        ("question_id", TEXT, "question"),
        ("system", TEXT, "system that answered, as CITELOOM_ANSWER_SYSTEMS or the file of imported answers names it"),
        ("model", TEXT, "model that answered; null for a system that calls none and for imported answers"),
        ("settings", TEXT, "settings of the system, JSON"),
        ("text", TEXT, "the answer"),
        ("sentences", pa.list_(ANSWER_SENTENCE), "its sentences with the numbers of the claims that they rest on"),
        ("claims", pa.list_(ANSWER_CLAIM), "claims with the passage that each rests on and the hop that brought it"),
        ("queries", TEXTS, "the query of each hop"),
        ("shown", pa.list_(RETRIEVED_PASSAGE), "passages that the model read, hop by hop"),
        ("hops", pa.int32(), "searches made"),
        ("abstained", FLAG, "whether it says that the corpus does not hold the answer"),
        ("trace", TEXT, "every step in order, JSON"),
        *llm_usage("LLM calls that it took"),
    ),
    rows_per_group=50,  # a trace with all retrieved passages is some 50 KB
)
ANSWER_GRADES = Table(
    "answer_grades",
    "one answer as one judge graded it",
    schema(
        ("question_id", TEXT, "question"),
        ("system", TEXT, "system that answered, or a control whose grade is known beforehand"),
        ("model", TEXT, "model that answered; null for a system that calls none and for imported answers"),
        ("judge", TEXT, "judging model"),
        ("kind", TEXT, "kind of the question"),
        ("date", TEXT, "date of the question's newest paper"),
        ("outcome", TEXT, "answered, abstained, claims_nothing or unreadable"),
        ("claims", pa.list_(GRADED_CLAIM), "claims of the answer with verdict, quote and the passages shown"),
        (
            "gold",
            pa.list_(GRADED_GOLD),
            "gold claims: whether the answer holds them, and the hop that first showed one",
        ),
        ("hops_shown", pa.list_(pa.float64()), "share of gold claims shown after each hop; null where none searched"),
        ("parts", COUNT, "parts in which the answer was split"),
        ("parts_full", COUNT, "parts that named as many claims as may be"),
        ("parts_cut", COUNT, "parts of which the end was not read"),
        ("split_failures", TEXTS, "why parts could not be read"),
        *llm_usage("LLM calls that grading took"),
    ),
    version=2,
    rows_per_group=100,
)
ANSWER_SCORES = Table(
    "answer_scores",
    "one measure of one answer",
    schema(
        ("question_id", TEXT, "question"),
        ("system", TEXT, "system that answered"),
        ("model", TEXT, "model that answered; null for a system that calls none and for imported answers"),
        ("judge", TEXT, "judging model"),
        ("kind", TEXT, "kind of the question"),
        ("date", TEXT, "date of the question's newest paper"),
        ("metric", TEXT, "factual, coverage, gold_shown and their like; claims is a count"),
        ("value", pa.float64(), "share from 0 to 1, or a count"),
    ),
    version=2,
)
HUMAN_GRADES = Table(
    "human_grades",
    "one grader's verdict on one claim of an answer, or on one gold claim beside it",
    schema(
        ("study", TEXT, "name of the study"),
        ("grader", TEXT, "name of the grader"),
        ("question_id", TEXT, "question"),
        ("system", TEXT, "system that answered, which the grader was not told"),
        ("model", TEXT, "model that answered; null for a system that calls none and for imported answers"),
        ("label", TEXT, "what the grader saw in its place, such as Q03-B"),
        ("part", TEXT, "claim: what the answer claims; gold: what a full answer holds"),
        ("number", pa.int32(), "place among the claims, or gold claims, from 1"),
        ("text", TEXT, "the claim that was graded"),
        ("verdict", TEXT, "as in answer_grades; null where the grader only commented"),
        ("comment", TEXT, "the grader's words"),
        ("text_sha256", TEXT, "SHA-256 of the question and the answer as they were graded"),
    ),
    version=2,
)
