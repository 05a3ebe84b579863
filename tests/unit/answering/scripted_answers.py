"""One question to one system, over plain passages and a scripted endpoint."""

import asyncio
import json
import re
from dataclasses import replace

from pipeline.answering.model_calls import Tools
from pipeline.answering.systems import SYSTEMS
from pipeline.answering.user_question import UserQuestion as Question
from pipeline.corpus.nouns import Passage
from pipeline.index.scored import Scored
from pipeline.llm.client import open_client
from pipeline.llm.loop import run
from tests.scripted_llm import Asked, ScriptedLlm
from tests.unit.related_work.building import workspace

MARKS = ("relevant", "natural", "non_repetitive", "temporally_correct")
"""Criteria of a refined answer."""
QUESTION = Question("How does QuillNet judge fairness?")


def passage(number, text="", **changed):
    """Passage number n of paper 2403.0000n, which says that it holds fact n."""
    made = Passage(
        f"p{number}",
        f"2403.{number:05}",
        f"S{number}.p1",
        "paragraph",
        f"Title {number}",
        ("Method", f"Part {number}"),
        text or f"It holds fact {number} [@key{number}].",
    )
    return replace(made, **changed)


class FakeRetriever:
    """A retriever that finds its passages in the order that it has them, whatever it is asked.

    named: records that every question names.
    """

    def __init__(self, *passages, fits=True, named=()):
        self.fits, self.named = fits, named
        self.passages = list(passages) or [passage(number) for number in range(1, 31)]
        self.searches = []

    async def find(self, queries, count, papers=()):
        await asyncio.sleep(0)
        if queries:
            self.searches.append((tuple(queries), count))
        found = [each for each in self.passages if not papers or each.arxiv_id in papers]
        ranking = [Scored(passage, 1.0, self.fits) for passage in found[:count]]
        return [ranking for _ in queries]

    async def records(self, question):
        return list(self.named)


def answer(
    folder,
    system,
    *rules,
    question=QUESTION,
    retriever=None,
    **settings,
):
    """The answer of a system, and the endpoint that it called."""
    with ScriptedLlm(*rules) as llm:
        return answer_at(
            llm, folder, system, question, retriever or FakeRetriever(), **settings
        ), llm


def answer_at(
    llm,
    folder,
    system,
    question,
    retriever,
    *,
    on_step=None,
    **settings,
):
    """The answer of a system by an endpoint that runs."""

    async def ask():
        place = workspace(llm, folder, **settings)
        async with open_client(place) as client:
            tools = Tools(client, retriever, place.settings, on_step)  # type: ignore[arg-type]
            return await SYSTEMS[system].answer(question, tools)

    return run(ask())


def form_of(asked):
    """The name of a request's form; for a ranking and plain text, which have none, our own."""
    if asked.schema is not None:
        return str(asked.schema["title"])
    return "Ranking" if "Rank the" in asked.prompt else "Text"


def forms(llm):
    """Forms of the requests, in order of arrival."""
    return [form_of(Asked(body, 0)) for body in llm.requests]


def stages(answered):
    return [step["stage"] for step in answered.trace["steps"]]


def steps(answered, stage):
    return [step for step in answered.trace["steps"] if step["stage"] == stage]


def shown_ids(answered):
    return [[each.passage_id for each in hop] for hop in answered.shown]


def form_answer(name, text):
    """A rule that always gives the same answer in one form."""
    content = text if isinstance(text, str) else json.dumps(text)
    return lambda asked: content if form_of(asked) == name else None


def facts_in(prompt):
    """The facts of the passages that a prompt shows, in order."""
    return [int(number) for number in re.findall(r"It holds fact (\d+)", prompt)]


def faithful(asked):
    """An obedient model: enough after one hop, and a sentence for every claim."""
    given = {
        "Query": {"query": "QuillNet fairness evaluation method"},
        "FollowUp": {"question": "How large is QuillNet?", "query": "QuillNet size"},
        "Search": {"search": "yes", "question": "", "query": "QuillNet fairness method"},
        "Thought": {"reasoning": "All is there.", "enough": True, "query": ""},
        "Claims": _claims(asked),
        "GroundedAnswer": _sentences(asked) | {"answered": "yes"},
        "Bullets": {"bullets": [f"Bullet {number}." for number in facts_in(asked.prompt)]},
        "SplitClaims": {"claims": ["QuillNet is fair.", "QuillNet is fast."]},
        "Check": {"reasoning": "It says so.", "verdict": "SUPPORTS", "passage": 2},
        "RefinedAnswer": dict.fromkeys(MARKS, 90) | _sentences(asked, "Refined"),
    }
    name = form_of(asked)
    if name == "Ranking":
        count = int(re.findall(r"Rank the (\d+) passages", asked.prompt)[0])
        return " > ".join(f"[{number}]" for number in range(count, 0, -1))
    return json.dumps(given[name]) if name in given else None


def _claims(asked):
    told = [
        {"passage": place, "claim": f"Claim {n}."}
        for place, n in enumerate(facts_in(asked.prompt), 1)
    ]
    return {"relevant": [each["passage"] for each in told], "claims": told}


def _sentences(asked, word="Sentence"):
    numbers = re.findall(r"^\[(\d+)\]", asked.prompt, re.MULTILINE)
    return {
        "sentences": [{"text": f"{word} {number}.", "claims": [int(number)]} for number in numbers]
    }


def more_searches(*queries):
    """A model that asks for one search after the other, then has enough."""

    def rule(asked):
        if form_of(asked) != "Thought":
            return None
        before = asked.prompt.partition("<queries>\n")[2].partition("\n</queries>")[0].splitlines()
        more = queries[len(before) - 1] if len(before) <= len(queries) else ""
        return json.dumps({"reasoning": "…", "enough": not more, "query": more})

    return rule
