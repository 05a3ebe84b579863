"""One question to one system, over plain passages and a scripted endpoint."""

import asyncio
import itertools
import json
import re
from dataclasses import replace

from pipeline.answering.model_calls import Tools
from pipeline.answering.systems import SYSTEMS
from pipeline.answering.user_question import UserQuestion
from pipeline.corpus.nouns import Passage
from pipeline.index.scored import Scored
from pipeline.llm.client import open_client
from pipeline.llm.loop import run
from tests.unit.related_work.building import workspace

QUESTION = UserQuestion("How does QuillNet judge fairness?")


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

    named: records that every question names. fits: whether its passages fit.
    """

    def __init__(self, passages=None, named=(), *, fits=True):
        listed = [passage(number) for number in range(1, 31)]
        self.passages, self.named = listed if passages is None else passages, named
        self.searches, self.fits = [], fits

    async def find(self, queries, count, papers=()):
        await asyncio.sleep(0)
        if queries:
            self.searches.append((tuple(queries), count))
        found = [each for each in self.passages if not papers or each.arxiv_id in papers]
        ranking = [Scored(passage, 1.0, self.fits) for passage in found[:count]]
        return [ranking for _ in queries]

    async def records(self, question):
        return list(self.named)


def answer_at(llm, folder, system, question, retriever, *, on_step=None, **settings):
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


def say(form, answers):
    """A rule that gives these answers in a form, one after the other, or one each time."""
    following = iter(answers) if isinstance(answers, list) else itertools.repeat(answers)

    def rule(asked):
        if form_of(asked) != form:
            return None
        content = next(following)
        return content if isinstance(content, str) else json.dumps(content)

    return rule


def faithful(asked):
    """An obedient model: enough after one hop, and a sentence for every claim."""
    facts = re.findall(r"It holds fact (\d+)", asked.prompt)
    claims = [{"passage": n, "claim": f"Claim {fact}."} for n, fact in enumerate(facts, 1)]
    marks = ("relevant", "natural", "non_repetitive", "temporally_correct")
    given = {
        "Query": {"query": "QuillNet fairness evaluation method"},
        "FollowUp": {"question": "How large is QuillNet?", "query": "QuillNet size"},
        "Search": {"search": "yes", "question": "", "query": "QuillNet fairness method"},
        "Thought": {"reasoning": "All is there.", "enough": True, "query": ""},
        "Claims": {"relevant": [claim["passage"] for claim in claims], "claims": claims},
        "GroundedAnswer": {"answered": "yes", "sentences": _sentences(asked, "Sentence")},
        "Bullets": {"bullets": [f"Bullet {fact}." for fact in facts]},
        "SplitClaims": {"claims": ["QuillNet is fair.", "QuillNet is fast."]},
        "Check": {"reasoning": "It says so.", "verdict": "SUPPORTS", "passage": 2},
        "RefinedAnswer": dict.fromkeys(marks, 90) | {"sentences": _sentences(asked, "Refined")},
    }
    name = form_of(asked)
    if name == "Ranking":
        count = int(re.findall(r"Rank the (\d+) passages", asked.prompt)[0])
        return " > ".join(f"[{number}]" for number in range(count, 0, -1))
    return json.dumps(given[name]) if name in given else None


def _sentences(asked, word):
    numbers = re.findall(r"^\[(\d+)\]", asked.prompt, re.MULTILINE)
    return [{"text": f"{word} {number}.", "claims": [int(number)]} for number in numbers]


def more_searches(*queries):
    """A model that asks for one search after the other, then has enough."""

    def rule(asked):
        if form_of(asked) != "Thought":
            return None
        before = asked.prompt.partition("<queries>\n")[2].partition("\n</queries>")[0].splitlines()
        more = queries[len(before) - 1] if len(before) <= len(queries) else ""
        return json.dumps({"reasoning": "…", "enough": not more, "query": more})

    return rule
