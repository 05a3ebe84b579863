"""Answers and steps as a reader sees them: every claim with its source, nothing that steers a
terminal.
"""

from dataclasses import replace

from pipeline.answering.answer import ABSTAINED, plain_answer
from pipeline.answering.model_calls import passage_trace
from pipeline.answering.rendering import StepRenderer
from pipeline.corpus.nouns import Answer, AnswerSentence, Claim
from pipeline.doors.present import answer_notes, as_json, as_markdown, cost_line
from pipeline.index.excerpts import with_excerpts
from pipeline.llm.messages import Prices, Usage
from tests.cases import cases
from tests.unit.answering.scripted_answers import passage

HOSTILE = "\x1b[2J\x9b31m[red]Boo[/]\u202eoob\r\n[link=file:///etc]x[/link]"
ONE = passage(1)
TWO = passage(2, section_path=(), kind="front_matter", anchor="front_matter", arxiv_id="1706.03762")


def claim(number, found, source="passage", text=None):
    place = (found.passage_id, found.arxiv_id, found.anchor)
    return Claim(number, text or f"Claim {number}.", *place, 1, source)


CLAIMS = [claim(1, ONE), claim(2, TWO, "front_matter"), claim(3, ONE, "model")]


def delivered(answer, system="arxivbot", usage=None):
    """The answer as somebody gets it who asked just now."""
    cost = {**(usage or Usage()).measured(), "seconds": 1.25}
    return replace(answer, question="What is it?", system=system, model="a model", cost=cost)


def grounded(claims, *sentences, found=()):
    text = " ".join(sentence.text for sentence in sentences) or ABSTAINED
    shown = (tuple(found),)
    return delivered(
        Answer(text, sentences, tuple(claims), ("words",), shown, 1, abstained=not sentences)
    )


@cases("unit/answering/cases.toml", "every_sentence_has_the_numbers", ["sentences", "lines"])
def test_every_sentence_has_the_numbers_of_its_claims_and_these_their_places(sentences, lines):
    parts = [AnswerSentence(text, tuple(claims)) for text, claims in sentences]
    answer = grounded(CLAIMS, *parts, found=[ONE, TWO])
    assert as_markdown(answer).replace("\\\n", "\\ ").split("\n\n") == lines
    assert list(answer_notes(answer)) == []
    assert {"trace", "spent"}.isdisjoint(as_json(answer))


def test_passages_that_are_shown_in_place_of_an_answer_have_their_best_sentence_marked():
    text = "Paint is dear. What the new hull saves is fuel [@bib.bib12; @bib.bib3]. Oars rot [@bib.bibx1]."
    (found,) = with_excerpts("What fuel does the new hull save?", [passage(1, text)])
    answer = delivered(Answer("No paper here names X\nClosest", (), (), ("words",), ((found,),)))
    assert as_markdown(answer).splitlines() == [
        "No paper here names X\\",
        "Closest",
        "",
        "1. [Title 1 › Method › Part 1 (arXiv:2403.00001)](https://arxiv.org/html/2403.00001#S1.p1):",
        "",
        "   > Paint is dear. **What the new hull saves is fuel \\[12, 3\\].** Oars rot \\[…\\].",
    ]
    (shown,) = as_json(answer)["shown"][0]
    assert shown["best_sentences"] == ["What the new hull saves is fuel [12, 3]."]


def test_no_answer_and_what_a_model_says_by_itself_are_named_as_that():
    nothing = grounded(CLAIMS, found=[ONE, TWO])
    assert as_markdown(nothing) == ABSTAINED
    assert list(answer_notes(nothing)) == [
        "searched for: words",
        "2 passages read, 3 claims extracted: they do not hold the answer",
    ]
    alone = delivered(plain_answer("From memory.\n- a list"), "direct")
    assert as_markdown(alone) == "From memory.\\\n\\- a list"


def test_the_cost_is_what_was_paid_now():
    usage = Usage(calls=7, cached=2, requests=5, prompt_tokens=2_643, completion_tokens=152)
    usage.prices = Prices(10, 100)
    answer = delivered(plain_answer("x"), usage=usage)
    paid = "2 of them answered by the cache · 2,643 tokens read, 152 written · 0.0416 to pay"
    assert cost_line(answer) == f"arxivbot · a model · 7 calls, {paid} · 1.2 s"
    assert cost_line(replace(answer, model=None)) == "arxivbot · no model · 1.2 s"


def test_what_would_steer_a_terminal_is_a_sign():
    found = passage(1, HOSTILE, title=HOSTILE, section_path=(HOSTILE,))
    sentence = AnswerSentence(f"So: {HOSTILE}\ud800", (1,))
    lines = as_markdown(grounded([claim(1, found, text=HOSTILE)], sentence, found=[found]))
    steps = [
        {"stage": "query", "query": HOSTILE, "found": ["p1"], "silent": False},
        {"stage": "records", "shown": [passage_trace(found)], "quotes": [HOSTILE]},
        {"stage": "a stage of tomorrow", "text": HOSTILE},
    ]
    for step in steps:
        lines = "\n".join([lines, *StepRenderer()(step, {"p1": found})])
    assert not [sign for sign in lines if not (sign.isprintable() or sign == "\n")]
    assert "[red]Boo[/]" in lines
    lines.encode()
