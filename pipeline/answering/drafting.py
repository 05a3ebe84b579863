"""Asking a model for one question on a paper, or on two, with gold claims, and what of its answer can stand.

A claim stands where its evidence is a phrase of a passage of its paper: what a model makes up is left out and told.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, create_model

from pipeline.answering.prompting import CHARS_PER_TOKEN, NOTHING, PROMPTS, as_word, ask, room, shared
from pipeline.answering.questions import FEWEST_WORDS, MOST_WORDS, GoldClaim, Kind, Question, gold_passages, plain
from pipeline.answering.retrieving import Found
from pipeline.llm.client import REPAIR_TOKENS, LlmClient, Spent
from pipeline.llm.structured import AtMost

PROMPT = "propose"
# The shipped set has 4.2 claims a question.
MOST_CLAIMS = 5
QUESTION_CHARS, CLAIM_CHARS, EVIDENCE_CHARS = 240, 240, 160
TITLE_CHARS = 300
# Endpoints that know no bounds let longer texts pass; a set's file holds 2,000 characters, titles included.
_MOST_CHARS = 1000
_PER_CLAIM = 24 + int((CLAIM_CHARS + EVIDENCE_CHARS) / CHARS_PER_TOKEN)
_LONGEST = 64 + int(QUESTION_CHARS / CHARS_PER_TOKEN) + MOST_CLAIMS * _PER_CLAIM
_CONTROLS = re.compile("[\x00-\x1f\x7f-\x9f]+")
# What models put around a phrase that they quote.
_AROUND = " \"'“”‘’«»….,;:"
_TOLD_CHARS = 120
# Of a phrase with words of the model's own about it ("The passage states that …"), the run of words that is searched
# for; of fewer words, some run stands in any paper.
_FEWEST_COPIED = 6
_MOST_SEARCHED = 60
# What nobody can answer who does not see what the model saw.
_POINTS_AT_A_PAPER = re.compile(
    r"\b(?:the|this|these|both|each|two|first|second) (?:\w+ )?(?:papers?|passages?|stud(?:y|ies)|authors|articles?)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Paper:
    """A paper to ask about, with all of its passages in order."""

    arxiv_id: str
    title: str
    passages: tuple[Found, ...]

    def rows(self) -> list[dict[str, Any]]:
        """The passages as `gold_passages` reads them."""
        return [{"passage_id": each.passage_id, "text": each.text} for each in self.passages]


@dataclass(frozen=True, slots=True)
class Subject:
    """What one question is to be on: a kind, the paper, one to compare it with, and what the model reads of both."""

    kind: Kind
    paper: Paper
    other: Paper | None
    shown: tuple[Found, ...]
    """Passages of the paper, then those of the other."""

    @property
    def papers(self) -> tuple[Paper, ...]:
        return (self.paper,) if self.other is None else (self.paper, self.other)


@dataclass(frozen=True, slots=True)
class Proposal:
    """What came of a subject: a question, or none; and (reason, detail) of what is left out."""

    question: Question | None = None
    left_out: tuple[tuple[str, str], ...] = ()
    spent: Spent = NOTHING
    by_model: bool = True


async def propose(client: LlmClient, subject: Subject, context: int, date: str | None) -> Proposal:
    """One question in one call at temperature 0, or two where the answer had to be repaired.

    context: tokens that the model reads and writes in a call; passages are cut to it. date: of the newest paper.
    """
    form = comparison_form() if subject.other else question_form()
    frame = {
        "kind": subject.kind,
        "title": subject.paper.title[:TITLE_CHARS] or subject.paper.arxiv_id,
        "other": (subject.other.title[:TITLE_CHARS] or subject.other.arxiv_id) if subject.other else "",
        "count": sum(each.arxiv_id == subject.paper.arxiv_id for each in subject.shown),
        "characters": QUESTION_CHARS,
        "most": MOST_CLAIMS,
    }
    left = room(context, _LONGEST + REPAIR_TOKENS, PROMPT, shown=[""] * len(subject.shown), **frame)
    shown, _ = shared([each.told() for each in subject.shown], left)
    told = await ask(client, PROMPTS.messages(PROMPT, shown=shown, **frame), form, _LONGEST)
    if told.value is None:
        return Proposal(None, (("unreadable_answer", told.failure or ""),), told.spent)
    question, left_out = _read(told.value, subject, date)
    return Proposal(question, left_out, told.spent)


def _read(given: Any, subject: Subject, date: str | None) -> tuple[Question | None, tuple[tuple[str, str], ...]]:
    """The question with the claims that can stand; none where it lacks any, or, comparing, those of one paper."""
    asked = tidy(given.question)
    if given.answerable == "no":
        return None, (("not_answerable", "the model finds that the passages do not hold enough"),)
    if not asked or _is_title(asked, subject):
        return None, (("no_question", f"the model asks for nothing: {short(asked)}"),)
    if len(asked) > _MOST_CHARS:
        return None, (("too_long", short(asked)),)
    left_out: list[tuple[str, str]] = []
    claims = tuple(_standing(given.claims, subject, left_out))
    covered = {claim.paper for claim in claims}
    lacking = [paper.arxiv_id for paper in subject.papers if paper.arxiv_id not in covered]
    if lacking:
        reason = "no_claim_left" if not claims else "one_sided"
        left_out.append((reason, f"no claim on {', '.join(lacking)} can stand: {short(asked)}"))
        return None, tuple(left_out)
    papers = tuple(paper.arxiv_id for paper in subject.papers)
    return make_question(_standing_alone(asked, subject), subject.kind, papers, claims, date), tuple(left_out)


def _standing_alone(asked: str, subject: Subject) -> str:
    """The question; with the titles before it where it points at a paper that it does not name, or names nothing."""
    titles = [tidy(paper.title)[:TITLE_CHARS] or f"arXiv:{paper.arxiv_id}" for paper in subject.papers]
    # A name has a capital, and does not begin the question.
    named = any(word != word.lower() for word in asked.split()[1:])
    if all(plain(title) in plain(asked) for title in titles) or (named and not _POINTS_AT_A_PAPER.search(asked)):
        return asked
    quoted = " and ".join(f'"{title}"' for title in titles)
    return f"On {quoted}: {asked}"


def _standing(given: Sequence[Any], subject: Subject, left_out: list[tuple[str, str]]) -> Iterator[GoldClaim]:
    """The claims that say something, once, with a phrase that a passage of their paper has."""
    papers = dict(enumerate(subject.papers, 1))
    seen: set[str] = set()
    for each in given[:MOST_CLAIMS]:
        paper = papers.get(getattr(each, "paper", 1))
        claim, phrase = tidy(each.claim), copied(each.evidence, paper)
        fault = "empty_claim" if _is_title(claim, subject) else _fault(claim, phrase, paper, seen)
        if paper is None or fault is not None:
            left_out.append((str(fault), f"{short(claim)} | {short(phrase)}"))
            continue
        seen.add(plain(claim))
        yield GoldClaim(claim, paper.arxiv_id, (phrase,))
    left_out += [("over_the_most", short(tidy(each.claim))) for each in given[MOST_CLAIMS:]]


def _is_title(text: str, subject: Subject) -> bool:
    """Whether a text says nothing but the title of a paper, which SmolLM2 gave for the question in 3 of 4 drafts."""
    return plain(text).rstrip("?. ") in {plain(paper.title).rstrip("?. ") for paper in subject.papers}


def _fault(claim: str, phrase: str, paper: Paper | None, seen: set[str]) -> str | None:
    if paper is None:
        return "unknown_paper"
    if not claim:
        return "empty_claim"
    if len(claim) > _MOST_CHARS:
        return "too_long"
    if plain(claim) in seen:
        return "repeated_claim"
    if len(plain(phrase).split()) < FEWEST_WORDS:
        return "evidence_too_short"
    return None if stands(phrase, paper) else "evidence_not_found"


def stands(phrase: str, paper: Paper) -> bool:
    """Whether a passage of the paper holds the phrase, as the grades will look for it."""
    probe = Question("", "", "summary", (paper.arxiv_id,), (GoldClaim("", paper.arxiv_id, (phrase,)),), False, None)
    return bool(gold_passages(probe, {paper.arxiv_id: paper.rows()})[0])


def make_question(
    asked: str, kind: Kind, papers: tuple[str, ...], claims: tuple[GoldClaim, ...], date: str | None
) -> Question:
    """An unreviewed question, whose id depends on all that it says: two drafts have one id where they are the same."""
    said = json.dumps([asked, kind, papers, [(each.claim, each.paper, each.evidence) for each in claims]])
    digest = hashlib.sha256(said.encode()).hexdigest()[:12]
    return Question(f"{papers[0].replace('/', '-')}-{kind}-{digest}", asked, kind, papers, claims, False, date)


def tidy(text: str) -> str:
    """A model's text in one line, without controls, and such as a file can hold."""
    return " ".join(_CONTROLS.sub(" ", text).encode("utf-8", "replace").decode().split())


def tidy_phrase(text: str) -> str:
    """A copied phrase without the quotes around it, cut to as many words as evidence may have."""
    words = tidy(text).strip(_AROUND).split()
    while len(plain(" ".join(words)).split()) > MOST_WORDS:
        words.pop()
    return " ".join(words)


def copied(text: str, paper: Paper | None) -> str:
    """The phrase that a model gave; where no passage has it, the longest run of its words that one has.

    Qwen2.5-Coder-1.5B put "The passage states that" before 3 of 9 phrases, and copied the rest of them rightly. Runs of
    fewer than six words are none: then the phrase stays as it was given.
    """
    phrase = tidy_phrase(text)
    if paper is None or stands(phrase, paper):
        return phrase
    words = tidy(text).split()[:_MOST_SEARCHED]
    bodies = [f" {plain(each.text)} " for each in paper.passages]
    for length in range(min(len(words), MOST_WORDS), _FEWEST_COPIED - 1, -1):
        for start in range(len(words) - length + 1):
            run = tidy_phrase(" ".join(words[start : start + length]))
            searched = plain(run)
            if any(searched in body for body in bodies) and stands(run, paper):
                return run
    return phrase


def short(text: str) -> str:
    """A text as the ledger tells it."""
    return text if len(text) <= _TOLD_CHARS else f"{text[:_TOLD_CHARS]}…"


_YesNo = Annotated[Literal["yes", "no"], BeforeValidator(as_word)]


def _form(name: str, **first: Any) -> type[BaseModel]:
    """The form of an answer, bounded so that a small model under constrained decoding comes to an end."""
    claim = create_model(
        f"{name}Claim",
        __config__=ConfigDict(extra="forbid"),
        **first,
        claim=(Annotated[str, AtMost(CLAIM_CHARS)], ...),
        evidence=(Annotated[str, AtMost(EVIDENCE_CHARS)], ...),
    )
    some = Annotated[list[claim], AtMost(MOST_CLAIMS)]  # type: ignore[valid-type]
    fields: Mapping[str, Any] = {
        "answerable": (_YesNo, ...),
        "question": (Annotated[str, AtMost(QUESTION_CHARS)], ...),
        "claims": (some, ...),
    }
    return create_model(name, __config__=ConfigDict(extra="forbid"), **fields)


@cache
def question_form() -> type[BaseModel]:
    """A question on one paper."""
    return _form("Proposed")


@cache
def comparison_form() -> type[BaseModel]:
    """A question on two papers, each claim with the number of its own."""
    return _form("ProposedComparison", paper=(int, ...))
