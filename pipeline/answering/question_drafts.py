"""The stage `question_drafts`: questions with gold claims that a model proposes, unreviewed.

A claim stands only where its evidence is a phrase of a passage of its paper. What is left out is in the ledger.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ValidationError

from pipeline import tables
from pipeline.answering.draft_subjects import (
    Paper,
    Subject,
    choose_papers,
    cited_papers,
    read_papers,
    related_papers,
    subjects_of,
)
from pipeline.answering.model_calls import CHARS_PER_TOKEN, PROMPTS, as_word, ask
from pipeline.answering.questions import MOST_WORDS, GoldClaim, Question, claim_rows, gold_passages, plain
from pipeline.arxiv.identifiers import month_of
from pipeline.engine.digests import digest_of
from pipeline.engine.stage import Job, Stage, Workspace
from pipeline.index.papers import rows_of_papers
from pipeline.llm.client import REPAIR_TOKENS, LlmClient, Spent, open_client
from pipeline.llm.context import cut_to_share
from pipeline.llm.loop import run, side_by_side
from pipeline.llm.structured import AnswerForm, AtMost
from pipeline.settings import Settings
from pipeline.storage.writing import Row

PROMPT = "propose"
# The shipped set has 4.2 claims a question.
MOST_CLAIMS = 5
QUESTION_CHARS, CLAIM_CHARS, EVIDENCE_CHARS, TITLE_CHARS = 240, 240, 160, 300
_ANSWER_TOKENS = int(
    64 + QUESTION_CHARS / CHARS_PER_TOKEN + MOST_CLAIMS * (24 + (CLAIM_CHARS + EVIDENCE_CHARS) / CHARS_PER_TOKEN)
)
_LEDGER_CHARS = 120
_CONTROLS = re.compile("[\x00-\x1f\x7f-\x9f]+")
_QUOTES = " \"'“”‘’«»….,;:"
# Nobody can answer such a question who does not see the passages.
_POINTS_AT_A_PAPER = re.compile(
    r"\b(?:the|this|these|both|each|two|first|second) (?:\w+ )?(?:papers?|passages?|stud(?:y|ies)|authors|articles?)\b",
    re.IGNORECASE,
)


class ProposedClaim(AnswerForm):
    """A claim, and the phrase of a passage that says it."""

    claim: Annotated[str, AtMost(CLAIM_CHARS)]
    evidence: Annotated[str, AtMost(EVIDENCE_CHARS)]


class Proposed(AnswerForm):
    """A question about one paper. The bounds end what a small model writes under constrained decoding."""

    answerable: Annotated[Literal["yes", "no"], BeforeValidator(as_word)]
    question: Annotated[str, AtMost(QUESTION_CHARS)]
    claims: Annotated[list[ProposedClaim], AtMost(MOST_CLAIMS)]


class ProposedComparisonClaim(ProposedClaim):
    """A claim of one of two papers. paper: 1 or 2."""

    paper: int


class ProposedComparison(AnswerForm):
    """A question that compares two papers."""

    answerable: Annotated[Literal["yes", "no"], BeforeValidator(as_word)]
    question: Annotated[str, AtMost(QUESTION_CHARS)]
    claims: Annotated[list[ProposedComparisonClaim], AtMost(MOST_CLAIMS)]


@dataclass(slots=True)
class Draft:
    """A question on a subject, or None, with reasons and details of what was left out of it, for the ledger."""

    subject: Subject
    question: Question | None = None
    omissions: list[tuple[str, str]] = field(default_factory=list)
    spent: Spent = field(default_factory=Spent)


async def propose(client: LlmClient, subject: Subject, settings: Settings, date: str | None) -> Draft:
    """One question in one call at temperature 0, or in two if the answer needs a repair.

    date: YYYY-MM-DD, when the newest of its papers first appeared; None if unknown.
    """
    titles = [paper.title[:TITLE_CHARS] or paper.arxiv_id for paper in subject.papers]
    values = {
        "kind": subject.kind,
        "title": titles[0],
        "other": titles[1] if len(titles) > 1 else "",
        "count": sum(passage.arxiv_id == subject.papers[0].arxiv_id for passage in subject.shown),
        "characters": QUESTION_CHARS,
        "most": MOST_CLAIMS,
    }
    left = PROMPTS.room(
        settings.llm_context, _ANSWER_TOKENS + REPAIR_TOKENS, PROMPT, shown=[""] * len(subject.shown), **values
    )
    shown, _ = cut_to_share([passage.prompt_text() for passage in subject.shown], left)
    form: type[BaseModel] = ProposedComparison if len(titles) > 1 else Proposed
    answer = await ask(client, PROMPTS.messages(PROMPT, shown=shown, **values), form, _ANSWER_TOKENS)
    draft = Draft(subject, spent=answer.spent)
    if answer.value is None:
        draft.omissions.append(("unreadable_answer", answer.failure or ""))
    else:
        _read_proposal(draft, answer.value, date)
    return draft


def _read_proposal(draft: Draft, proposed: Any, date: str | None) -> None:
    """Add to a draft the question with its valid claims, and what is left out.

    There is no question without a claim of every paper that it is about.
    """
    text, papers = _one_line(proposed.question), draft.subject.papers
    if proposed.answerable == "no":
        draft.omissions.append(("not_answerable", "the model says that the passages do not hold enough"))
        return
    claims: dict[str, GoldClaim] = {}
    for item in proposed.claims[:MOST_CLAIMS]:
        claim, phrase = _one_line(item.claim), tidy_phrase(item.evidence)
        reason = None
        number = getattr(item, "paper", 1)
        if not 1 <= number <= len(papers):
            reason = "unknown_paper"
        elif plain(claim) in claims:
            reason = "repeated_claim"
        elif not papers[number - 1].holds(phrase):
            reason = "evidence_not_found"
        else:
            try:
                claims[plain(claim)] = GoldClaim(claim=claim, paper=papers[number - 1].arxiv_id, evidence=(phrase,))
            except ValidationError as error:
                reason, phrase = "not_in_format", error.errors()[0]["msg"]
        if reason is not None:
            draft.omissions.append((reason, f"{_short(claim)} | {_short(phrase)}"))
    draft.omissions += [("over_the_most", _short(_one_line(item.claim))) for item in proposed.claims[MOST_CLAIMS:]]
    lacking = sorted({paper.arxiv_id for paper in papers} - {claim.paper for claim in claims.values()})
    if lacking:
        draft.omissions.append(("no_claim_left", f"no claim of {', '.join(lacking)}: {_short(text)}"))
        return
    try:
        draft.question = make_question(_standing_alone(text, draft.subject), draft.subject, [*claims.values()], date)
    except ValidationError as error:
        draft.omissions.append(("not_in_format", f"{_short(text)} | {error.errors()[0]['msg']}"))


def _standing_alone(text: str, subject: Subject) -> str:
    """The question, after the titles of its papers if it points at a paper without its title, or names nothing."""
    titles = [_one_line(paper.title)[:TITLE_CHARS] or f"arXiv:{paper.arxiv_id}" for paper in subject.papers]
    has_name = any(word != word.lower() for word in text.split()[1:])
    has_titles = all(plain(title) in plain(text) for title in titles)
    if not text or has_titles or (has_name and not _POINTS_AT_A_PAPER.search(text)):
        return text
    quoted = " and ".join(f'"{title}"' for title in titles)
    return f"On {quoted}: {text}"


def tidy_phrase(text: str) -> str:
    """A copied phrase without quotes around it, cut to the most words that evidence may have."""
    return " ".join(_one_line(text).strip(_QUOTES).split()[:MOST_WORDS])


def _one_line(text: str) -> str:
    """A text in one line, without control characters and lone surrogates, which no file takes."""
    return " ".join(_CONTROLS.sub(" ", text).encode("utf-8", "replace").decode().split())


def _short(text: str) -> str:
    return text if len(text) <= _LEDGER_CHARS else f"{text[:_LEDGER_CHARS]}…"


def make_question(text: str, subject: Subject, claims: Sequence[GoldClaim], date: str | None) -> Question:
    """An unreviewed question. Its id is a digest of all that it says, so equal drafts have equal ids.

    Raises ValidationError if the format of question sets does not allow it.
    """
    papers = tuple(paper.arxiv_id for paper in subject.papers)
    content = json.dumps([text, subject.kind, papers, [(claim.claim, claim.paper, claim.evidence) for claim in claims]])
    digest = hashlib.sha256(content.encode()).hexdigest()[:12]
    return Question(
        id=f"{papers[0].replace('/', '-')}-{subject.kind}-{digest}",
        question=text,
        kind=subject.kind,
        papers=papers,
        claims=tuple(claims),
        date=date,
    )


def disabled_reason(settings: Settings) -> str:
    """Why nothing is drafted; empty if a setting names papers."""
    return "" if settings.draft_questions or settings.draft_papers else "CITELOOM_DRAFT_QUESTIONS is 0"


def build(job: Job) -> Iterator[Row]:
    """Rows of `question_drafts` by paper and kind; the ledger has what could not be drafted, and claims left out."""
    root, chosen = job.workspace.root, choose_papers(job.workspace, job.month)
    related = related_papers(root, job.month, chosen)
    papers = read_papers(root, chosen) | {paper.arxiv_id: paper for paper in related.values()}
    # Read before the calls begin: the clock of an estimate does not move while a table is read.
    columns = ["arxiv_id", "published"]
    days = {row["arxiv_id"]: row["published"] for row in rows_of_papers(root, tables.METADATA, papers, columns)}
    present = [paper for paper in chosen if paper in papers]
    for paper in sorted(set(chosen) - set(present)):
        job.leave_out(paper, "paper_not_in_corpus", "it has no passages: its page was left out, or there is none")
    job.notes |= {"papers": len(present)}
    subjects = []
    for paper in present:
        for kind, subject in subjects_of(papers[paper], related.get(paper)):
            if subject is not None:
                subjects.append(subject)
            elif kind == "comparison" and paper not in related:
                job.leave_out(f"{paper} {kind}", "no_related_paper", "it cites no paper of the corpus up to its month")
            else:
                job.leave_out(f"{paper} {kind}", "no_passage_of_kind", "no passage of it speaks of such things")
    for draft in run(_draft_all(job, subjects, days)) if subjects else []:
        for reason, detail in draft.omissions:
            job.leave_out(f"{draft.subject.papers[0].arxiv_id} {draft.subject.kind}", reason, detail)
        if draft.question is not None:
            yield _row(draft.question, draft, job.settings.llm_model)


async def _draft_all(job: Job, subjects: Sequence[Subject], days: Mapping[str, str | None]) -> list[Draft]:
    """The drafts in the order of their subjects, made concurrently within the limit on calls in flight."""
    job.expect(len(subjects))
    done = 0

    async def draft(client: LlmClient, subject: Subject) -> Draft:
        nonlocal done
        proposal = await propose(client, subject, job.settings, _date(subject.papers, days))
        done += 1
        job.advance(done)
        return proposal

    async with open_client(job.workspace) as client:
        drafts = await side_by_side(draft(client, subject) for subject in subjects)
        job.measured |= client.usage.measured()
    return drafts


def _date(papers: Sequence[Paper], days: Mapping[str, str | None]) -> str | None:
    """The day on which the newest of these papers first appeared; None if only its month is known."""
    newest = max(days.get(paper.arxiv_id) or month_of(paper.arxiv_id) or "" for paper in papers)
    return newest if len(newest) == len("2024-03-07") else None


def _row(question: Question, draft: Draft, model: str) -> Row:
    gold = gold_passages(question, {paper.arxiv_id: paper.rows() for paper in draft.subject.papers})
    return {
        "question_id": question.id,
        "question": question.question,
        "kind": question.kind,
        "papers": list(question.papers),
        "date": question.date or question.month,
        "reviewed": False,
        "claims": claim_rows(question, gold),
        "model": model,
        **asdict(draft.spent),
    }


def inputs(workspace: Workspace, month: str) -> Mapping[str, str]:
    """The prompt, the chosen papers, and the passages of the other months whose papers they cite."""
    papers = choose_papers(workspace, month)
    cited = {paper for counts in cited_papers(workspace.root, month, papers).values() for paper in counts}
    months = sorted({other for paper in cited if (other := month_of(paper)) and other != month})
    return {
        "prompts": PROMPTS.digest(PROMPT),
        "papers": hashlib.sha256("\n".join(papers).encode()).hexdigest(),
        "passages of cited papers": digest_of(workspace, tables.PASSAGES, months),
    }


QUESTION_DRAFTS = Stage(
    table=tables.QUESTION_DRAFTS,
    build=build,
    version=2,
    upstream=(tables.METADATA, tables.PAPERS, tables.PASSAGES, tables.CITATIONS),
    settings=("llm_model", "llm_context"),
    inputs=inputs,
    disabled_reason=disabled_reason,
    pool="llm",
)
