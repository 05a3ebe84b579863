"""Answers and steps as a reader sees them: every claim with its source, nothing that steers a
terminal.
"""

from dataclasses import replace

import pytest

from pipeline.answering.answer import ABSTAINED, plain_answer
from pipeline.answering.model_calls import passage_trace
from pipeline.answering.rendering import StepRenderer
from pipeline.corpus.nouns import Answer, AnswerSentence, Claim
from pipeline.doors.present import answer_notes, as_json, as_markdown, cost_line
from pipeline.index.excerpts import with_excerpts
from pipeline.llm.messages import Prices, Usage
from tests.scripted_llm import ScriptedLlm
from tests.unit.answering.scripted_answers import (
    QUESTION,
    FakeRetriever,
    answer_at,
    faithful,
    form_answer,
    more_searches,
    passage,
)

HOSTILE = "\x1b[2J\x9b31m[red]Boo[/]\u202eoob\r\n[link=file:///etc]x[/link]"


def claim(number, found, text="", source="passage"):
    return Claim(
        number,
        text or f"Claim {number}.",
        found.passage_id,
        found.arxiv_id,
        found.anchor,
        1,
        source,
    )


def told(answer, system="arxivbot", usage=None):
    """The answer as somebody gets it who asked just now."""
    cost = {**(usage or Usage()).measured(), "seconds": 1.25}
    return replace(answer, question="What is it?", system=system, model="a model", cost=cost)


def grounded(claims, *sentences, found=()):
    text = " ".join(sentence.text for sentence in sentences) or ABSTAINED
    return Answer(text, sentences, tuple(claims), ("words",), (tuple(found),), 1, not sentences)


ONE, TWO = (
    passage(1),
    passage(2, section_path=(), kind="front_matter", anchor="front_matter", arxiv_id="1706.03762"),
)
BOTH = [claim(1, ONE), claim(2, TWO, source="front_matter"), claim(3, ONE, source="model")]


@pytest.mark.parametrize(
    ("sentences", "lines"),
    [
        (
            [("First.", (1,)), ("Second.", (2, 1)), ("Third.", (3,))],
            [
                r"First. \[1\] Second. \[2\]\[1\] Third. \[3\]",
                "Sources:",
                r"\[1\] Claim 1.\ [Title 1 › Method › Part 1 (arXiv:2403.00001)](https://arxiv.org/html/2403.00001#S1.p1)",
                r"\[2\] Claim 2.\ [Title 2 › front matter (arXiv:1706.03762)](https://ar5iv.labs.arxiv.org/html/1706.03762)"
                " (from the tables)",
                r"\[3\] Claim 3.\ [Title 1 › Method › Part 1 (arXiv:2403.00001)](https://arxiv.org/html/2403.00001#S1.p1)"
                " (said by the model, which names this passage as its source)",
            ],
        ),
        (  # no text is printed twice
            [("Claim 2.", (2,))],
            [
                r"Claim 2. \[2\]",
                "Sources:",
                r"\[2\] [Title 2 › front matter (arXiv:1706.03762)](https://ar5iv.labs.arxiv.org/html/1706.03762)"
                " (from the tables)",
            ],
        ),
    ],
)
def test_every_sentence_has_the_numbers_of_its_claims_and_these_their_places(sentences, lines):
    parts = [AnswerSentence(text, claims) for text, claims in sentences]
    answer = told(grounded(BOTH, *parts, found=[ONE, TWO]))
    assert as_markdown(answer).replace("\\\n", "\\ ").split("\n\n") == lines
    assert list(answer_notes(answer)) == []


def test_passages_that_are_shown_in_place_of_an_answer_have_their_best_sentence_marked():
    text = "Paint is dear. What the new hull saves is fuel [@b1]. Oars are old."
    (found,) = with_excerpts("What fuel does the new hull save?", [passage(1, text)])
    answer = told(Answer("No paper here names X\nClosest", (), (), ("words",), ((found,),)))
    assert as_markdown(answer).splitlines() == [
        "No paper here names X\\",
        "Closest",
        "",
        "1. [Title 1 › Method › Part 1 (arXiv:2403.00001)](https://arxiv.org/html/2403.00001#S1.p1):",
        "",
        "   > Paint is dear. **What the new hull saves is fuel.** Oars are old.",
    ]
    document = as_json(answer)
    assert document["shown"][0][0]["best_sentences"] == ["What the new hull saves is fuel."]
    assert (document["claims"], document["abstained"]) == ([], False)


def test_no_answer_and_what_a_model_says_by_itself_are_told_to_be_that():
    nothing = told(grounded(BOTH, found=[ONE, TWO]))
    assert as_markdown(nothing) == ABSTAINED
    assert list(answer_notes(nothing)) == [
        "searched for: words",
        "2 passages read, 3 claims extracted: they do not hold the answer",
    ]
    alone = told(plain_answer("From memory.\n- a list"), "direct")
    assert as_markdown(alone) == "From memory.\\\n\\- a list"
    assert list(answer_notes(alone)) == [
        "direct reads no paper: this is what a model says by itself"
    ]


def test_the_cost_is_what_was_paid_now():
    usage = Usage(calls=7, cached=2, requests=5, prompt_tokens=2_643, completion_tokens=152)
    line = (
        "arxivbot · a model · 7 calls, 2 of them answered by the cache · 2,643 tokens read, 152"
        " written"
    )
    assert cost_line(told(plain_answer("x"), usage=usage)) == f"{line} · 1.2 s"
    usage.prices = Prices(10, 100)
    assert cost_line(told(plain_answer("x"), usage=usage)) == f"{line} · 0.0416 to pay · 1.2 s"


def test_what_would_steer_a_terminal_is_a_sign():
    found = passage(1, HOSTILE, title=HOSTILE, section_path=(HOSTILE,))
    answer = grounded(
        [claim(1, found, HOSTILE)], AnswerSentence(f"So: {HOSTILE}\ud800", (1,)), found=[found]
    )
    texts = [as_markdown(told(answer)), as_markdown(told(plain_answer(HOSTILE), "direct"))]
    lines = [line for text in texts for line in text.splitlines()]
    steps = [
        {
            "stage": "query",
            "query": HOSTILE,
            "question": HOSTILE,
            "made": "model",
            "failure": HOSTILE,
        },
        {"stage": "search", "query": HOSTILE, "found": ["p1"]},
        {"stage": "reflect", "query": HOSTILE, "reasoning": HOSTILE, "silent": False},
        {"stage": "generate", "text": HOSTILE},
        {"stage": "records", "shown": [passage_trace(found)]},
        {"stage": "quote", "read": [passage_trace(found)], "quotes": [HOSTILE]},
        {"stage": "quote", "read": [], "quotes": []},
        {"stage": "a stage of tomorrow", "text": HOSTILE},
    ]
    lines += [line for step in steps for line in StepRenderer()(step, {"p1": found})]
    assert not [sign for line in lines for sign in line if not sign.isprintable()]
    assert any("[red]Boo[/]" in line for line in lines)
    "\n".join(lines).encode()


def test_the_document_holds_claims_passages_and_links():
    document = as_json(told(grounded(BOTH, AnswerSentence("First.", (1,)), found=[ONE, TWO])))
    assert (document["text"], document["abstained"], document["system"], document["hops"]) == (
        "First.",
        False,
        "arxivbot",
        1,
    )
    assert document["sentences"] == [{"text": "First.", "claims": [1]}]
    assert [each["number"] for each in document["claims"]] == [1, 2, 3]
    assert document["claims"][0]["url"] == "https://arxiv.org/html/2403.00001#S1.p1"
    assert document["shown"][0][0]["text"] == ONE.text
    assert document["cost"]["seconds"] == 1.25
    assert {"trace", "spent"}.isdisjoint(document)


def lines_of_steps(folder, system, *rules):
    """What is said of the steps of a question, while it is answered."""
    lines = []
    retriever = FakeRetriever()
    render_step = StepRenderer()
    known = {passage.passage_id: passage for passage in retriever.passages}
    with ScriptedLlm(*rules, faithful) as llm:
        answer_at(
            llm,
            folder,
            system,
            QUESTION,
            retriever,
            on_step=lambda step: lines.extend(render_step(step, known)),
        )
    return lines


MULTI_HOP_LINES = {"  Title 23 › Method › Part 23 (arXiv:2403.00023)", "  texts: Claim 23."}


@pytest.mark.parametrize(
    ("system", "wanted"),
    [
        ("arxivbot", MULTI_HOP_LINES),
        ("arxivbot_fused", MULTI_HOP_LINES),
        (
            "wikichat",
            {"  texts: Bullet 20.", "  claims: QuillNet is fair."},
        ),
        ("direct", set()),
    ],
)
def test_every_step_of_a_system_is_shown(tmp_path, system, wanted):
    lines = lines_of_steps(tmp_path, system, more_searches("another query"))
    assert not [line for line in lines if "{" in line]
    assert wanted <= set(lines), lines


def test_what_was_dropped_is_told(tmp_path):
    told = [
        {"passage": 1, "claim": "Kept."},
        {"passage": 9, "claim": "Of nowhere."},
        {"passage": 2, "claim": "Other."},
    ]
    loose = [{"text": "Kept so.", "claims": [1]}, {"text": "Out of thin air.", "claims": []}]
    lines = lines_of_steps(
        tmp_path,
        "arxivbot",
        form_answer("Claims", {"relevant": [1], "claims": told}),
        form_answer("GroundedAnswer", {"answered": "partly", "sentences": loose}),
        form_answer("Thought", {"reasoning": "All is said.", "enough": True, "query": ""}),
    )
    assert any(line.endswith("dropped unknown 1, irrelevant 1") for line in lines), lines
    assert "  dropped: Out of thin air." in lines
    assert "answer: answered partly; made no" in lines
    assert "    https://arxiv.org/html/2403.00020#S20.p1" in lines
