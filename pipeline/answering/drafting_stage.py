"""The stage `question_drafts`: questions and gold claims that a model proposes, unreviewed until a person accepts
them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass

from pipeline import tables
from pipeline.answering.binding import Span, TableFacts
from pipeline.answering.drafting import PROMPT, Paper, Proposal, Subject, propose
from pipeline.answering.drafting_authors import propose_authors
from pipeline.answering.drafting_choice import chosen_papers, cited_months, read_papers, related_papers, subjects
from pipeline.answering.facts import FrontMatter
from pipeline.answering.prompting import PROMPTS
from pipeline.answering.question_rows import claim_rows
from pipeline.answering.questions import KINDS, Question, gold_passages
from pipeline.arxiv.identifiers import month_of
from pipeline.engine.digests import digest_of
from pipeline.engine.stage import Job, Stage, Workspace
from pipeline.llm.client import LlmClient, open_client
from pipeline.llm.loop import run, side_by_side
from pipeline.settings import Settings
from pipeline.storage.writing import Row

_NO_RELATED = ("no_related_paper", "it cites no paper of the corpus up to its month")
_NO_PASSAGE = ("no_passage_of_kind", "no passage of it speaks of such things")


@dataclass(frozen=True, slots=True)
class _Known:
    """What a month's drafts are made of: papers by id, the related one of each, and what tables say of them."""

    papers: Mapping[str, Paper]
    related: Mapping[str, str]
    facts: Mapping[str, FrontMatter]

    def other(self, arxiv_id: str) -> Paper | None:
        """The paper that this one is compared with."""
        return self.papers.get(self.related.get(arxiv_id, ""))

    def date(self, *papers: Paper) -> str | None:
        """The day on which the newest of these first appeared, where metadata has it."""
        newest = max((month_of(paper.arxiv_id) or "" for paper in papers), default="")
        days = [
            known.date
            for paper in papers
            if month_of(paper.arxiv_id) == newest and (known := self.facts.get(paper.arxiv_id)) and known.date
        ]
        return max((day for day in days if len(day) == len("2024-03-07")), default=None)


def off(settings: Settings) -> str:
    """Why nothing is drafted, where no setting asks for it."""
    return "" if settings.draft_questions or settings.draft_papers else "CITELOOM_DRAFT_QUESTIONS is 0"


def build(job: Job) -> Iterator[Row]:
    """Rows of `question_drafts` by paper and kind; in the ledger what could not be drafted, and claims left out."""
    chosen = chosen_papers(job.workspace, job.month)
    known = _read(job, chosen)
    there = [paper for paper in chosen if paper in known.papers]
    for paper in sorted(set(chosen) - set(there)):
        job.leave_out(paper, "paper_not_in_corpus", "it has no passages: its page was left out, or there is none")
    job.notes |= {"papers": len(there)}
    wanted = [subject for paper in there for subject in _subjects(job, known, paper)]
    asked = run(_propose_all(job, known, wanted)) if wanted else []
    proposals = [(subject.paper.arxiv_id, subject.kind, each) for subject, each in zip(wanted, asked, strict=True)]
    proposals += [(paper, "author", _authors(known, paper)) for paper in there]
    for paper, kind, proposal in sorted(proposals, key=lambda each: (each[0], KINDS.index(each[1]))):
        for reason, detail in proposal.left_out:
            job.leave_out(f"{paper} {kind}", reason, detail)
        if proposal.question is not None:
            yield _row(proposal.question, proposal, known.papers, job.settings)


def _authors(known: _Known, paper: str) -> Proposal:
    page = known.papers[paper]
    return propose_authors(known.facts.get(paper), page, known.date(page))


def _read(job: Job, chosen: Sequence[str]) -> _Known:
    root = job.workspace.root
    related = related_papers(root, job.month, chosen)
    papers = read_papers(root, {*chosen, *related.values()})
    # Read before the calls begin: an estimate's clock stands while a table is read.
    facts = run(TableFacts(job.workspace, Span(last=job.month)).front_matter(sorted(papers)))
    return _Known(papers, related, {each.passage.arxiv_id: each for each in facts})


def _subjects(job: Job, known: _Known, paper: str) -> Iterator[Subject]:
    """What the model is asked for; kinds that the paper has nothing for go to the ledger."""
    for kind, subject in subjects(known.papers[paper], known.other(paper)):
        if subject is None:
            alone = kind == "comparison" and known.other(paper) is None
            job.leave_out(f"{paper} {kind}", *(_NO_RELATED if alone else _NO_PASSAGE))
        else:
            yield subject


async def _propose_all(job: Job, known: _Known, wanted: Sequence[Subject]) -> list[Proposal]:
    """The proposals in the order of what is wanted, all under way at once, within the limit on calls in flight."""
    job.expect(len(wanted))
    done = 0

    async def one(client: LlmClient, subject: Subject) -> Proposal:
        nonlocal done
        proposal = await propose(client, subject, job.settings.llm_context, known.date(*subject.papers))
        done += 1
        job.advance(done)
        return proposal

    async with open_client(job.workspace) as client:
        proposals = await side_by_side(one(client, subject) for subject in wanted)
        job.measured |= client.usage.measured()
    return proposals


def _row(question: Question, proposal: Proposal, papers: Mapping[str, Paper], settings: Settings) -> Row:
    gold = gold_passages(question, {paper: papers[paper].rows() for paper in question.papers})
    return {
        "question_id": question.id,
        "question": question.question,
        "kind": question.kind,
        "papers": list(question.papers),
        "date": question.date or question.month,
        "reviewed": False,
        "claims": claim_rows(question, gold),
        "model": settings.llm_model if proposal.by_model else None,
        **asdict(proposal.spent),
    }


def inputs(workspace: Workspace, month: str) -> Mapping[str, str]:
    """The prompt, the papers chosen, and the passages and dates of the months in which what they cite lies."""
    papers = chosen_papers(workspace, month)
    others = [each for each in cited_months(workspace, month, papers) if each != month]
    return {
        "prompts": PROMPTS.digest(PROMPT),
        "papers": hashlib.sha256("\n".join(papers).encode()).hexdigest(),
        "passages of cited papers": digest_of(workspace, tables.PASSAGES, others),
    }


QUESTION_DRAFTS = Stage(
    table=tables.QUESTION_DRAFTS,
    build=build,
    upstream=(tables.METADATA, tables.PAPERS, tables.PASSAGES, tables.REFERENCES),
    settings=("llm_model", "llm_context"),
    inputs=inputs,
    disabled_reason=off,
    pool="llm",
)
