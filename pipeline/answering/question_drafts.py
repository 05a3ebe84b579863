"""The stage `question_drafts`: questions with gold claims that a model or the tables propose, unreviewed until a person
accepts them.

A claim stands only where its evidence is a phrase of a passage of its paper. What is left out is in the ledger.
"""

from __future__ import annotations

import calendar
import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from difflib import SequenceMatcher
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator

from pipeline import tables
from pipeline.answering.corpus_retriever import FrontMatterTables, MonthSpan
from pipeline.answering.draft_subjects import (
    Paper,
    Subject,
    choose_papers,
    cited_papers,
    read_papers,
    related_papers,
    subjects_of,
)
from pipeline.answering.facts import Author, FrontMatter
from pipeline.answering.model_calls import CHARS_PER_TOKEN, NOTHING, PROMPTS, as_word, ask
from pipeline.answering.questions import (
    FEWEST_WORDS,
    KINDS,
    MOST_WORDS,
    GoldClaim,
    Kind,
    Question,
    claim_rows,
    gold_passages,
    plain,
)
from pipeline.arxiv.identifiers import month_of
from pipeline.engine.digests import digest_of
from pipeline.engine.stage import Job, Stage, Workspace
from pipeline.llm.client import REPAIR_TOKENS, LlmClient, Spent, open_client
from pipeline.llm.context import cut_to_share
from pipeline.llm.loop import run, side_by_side
from pipeline.llm.structured import AnswerForm, AtMost
from pipeline.settings import Settings
from pipeline.storage.writing import Row

PROMPT = "propose"
# The shipped set has 4.2 claims a question.
MOST_CLAIMS = 5
# Nobody is expected to list more authors; of longer lists the question asks for the first author.
MOST_AUTHORS = 8
QUESTION_CHARS, CLAIM_CHARS, EVIDENCE_CHARS, TITLE_CHARS = 240, 240, 160, 300
_ANSWER_TOKENS = int(
    64 + QUESTION_CHARS / CHARS_PER_TOKEN + MOST_CLAIMS * (24 + (CLAIM_CHARS + EVIDENCE_CHARS) / CHARS_PER_TOKEN)
)
# An endpoint that ignores bounds may write more; a set's file takes 2,000 characters, titles included.
_MOST_CHARS = 1000
_LEDGER_CHARS = 120
# Of a phrase with the model's own words around it, the words that a passage has; fewer occur in any paper.
_FEWEST_COPIED = 6
_CONTROLS = re.compile("[\x00-\x1f\x7f-\x9f]+")
_QUOTES = " \"'“”‘’«»….,;:"
# Nobody can answer such a question who does not see the passages.
_POINTS_AT_A_PAPER = re.compile(
    r"\b(?:the|this|these|both|each|two|first|second) (?:\w+ )?(?:papers?|passages?|stud(?:y|ies)|authors|articles?)\b",
    re.IGNORECASE,
)

Omission = tuple[str, str]
"""The reason of what is left out, and a detail of it, for the ledger."""


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


@dataclass(frozen=True, slots=True)
class Draft:
    """A question for a kind and a paper, or None, with what was left out of it. model: None for one from tables."""

    paper: str
    kind: Kind
    question: Question | None = None
    omissions: tuple[Omission, ...] = ()
    model: str | None = None
    spent: Spent = NOTHING


async def draft_by_model(client: LlmClient, subject: Subject, settings: Settings, date: str | None) -> Draft:
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
    if answer.value is None:
        question, omissions = None, [("unreadable_answer", answer.failure or "")]
    else:
        question, omissions = read_proposal(answer.value, subject, date)
    paper = subject.papers[0].arxiv_id
    return Draft(paper, subject.kind, question, tuple(omissions), settings.llm_model, answer.spent)


def read_proposal(proposed: Any, subject: Subject, date: str | None) -> tuple[Question | None, list[Omission]]:
    """The question with the claims that stand, or None, and what is left out.

    There is no question without a claim of every paper that it is about.
    """
    text = _one_line(proposed.question)
    if proposed.answerable == "no":
        return None, [("not_answerable", "the model says that the passages do not hold enough")]
    if not text or _is_title(text, subject):
        return None, [("no_question", f"the model asks for nothing: {_short(text)}")]
    if len(text) > _MOST_CHARS:
        return None, [("too_long", _short(text))]
    claims: dict[str, GoldClaim] = {}
    omissions: list[Omission] = []
    for item in proposed.claims[:MOST_CLAIMS]:
        number = getattr(item, "paper", 1)
        paper = subject.papers[number - 1] if 1 <= number <= len(subject.papers) else None
        claim = _one_line(item.claim)
        phrase = copied_phrase(item.evidence, paper) if paper else _one_line(item.evidence)
        reason = _reason_against(claim, phrase, paper, subject)
        if reason is None and plain(claim) in claims:
            reason = "repeated_claim"
        if paper is None or reason is not None:
            omissions.append((reason or "unknown_paper", f"{_short(claim)} | {_short(phrase)}"))
        else:
            claims[plain(claim)] = GoldClaim(claim=claim, paper=paper.arxiv_id, evidence=(phrase,))
    omissions += [("over_the_most", _short(_one_line(item.claim))) for item in proposed.claims[MOST_CLAIMS:]]
    papers = tuple(paper.arxiv_id for paper in subject.papers)
    lacking = sorted(set(papers) - {claim.paper for claim in claims.values()})
    if lacking:
        omissions.append(
            ("one_sided" if claims else "no_claim_left", f"no claim of {', '.join(lacking)}: {_short(text)}")
        )
        return None, omissions
    return make_question(_standing_alone(text, subject), subject.kind, papers, [*claims.values()], date), omissions


def _reason_against(claim: str, phrase: str, paper: Paper | None, subject: Subject) -> str | None:
    """Why a claim cannot stand; None if it can."""
    if paper is None:
        return "unknown_paper"
    if not claim or _is_title(claim, subject):
        return "empty_claim"
    if len(claim) > _MOST_CHARS:
        return "too_long"
    if len(plain(phrase).split()) < FEWEST_WORDS:
        return "evidence_too_short"
    return None if paper.holds(phrase) else "evidence_not_found"


def _is_title(text: str, subject: Subject) -> bool:
    """Whether a text is the title of a paper, which SmolLM2 gave for the question in 3 of 4 drafts."""
    return plain(text).rstrip("?. ") in {plain(paper.title).rstrip("?. ") for paper in subject.papers}


def _standing_alone(text: str, subject: Subject) -> str:
    """The question, after the titles of its papers if it points at a paper without its title, or names nothing."""
    titles = [_one_line(paper.title)[:TITLE_CHARS] or f"arXiv:{paper.arxiv_id}" for paper in subject.papers]
    has_name = any(word != word.lower() for word in text.split()[1:])
    has_titles = all(plain(title) in plain(text) for title in titles)
    if has_titles or (has_name and not _POINTS_AT_A_PAPER.search(text)):
        return text
    quoted = " and ".join(f'"{title}"' for title in titles)
    return f"On {quoted}: {text}"


def copied_phrase(text: str, paper: Paper) -> str:
    """The phrase that a model copied; if no passage has it, the longest run of its words that one has.

    Qwen2.5-Coder-1.5B put "The passage states that" before 3 of 9 phrases, and copied the rest of them correctly. A run
    of fewer than six words leaves the phrase as it is.
    """
    phrase = tidy_phrase(text)
    if paper.holds(phrase):
        return phrase
    words = _one_line(text).split()
    compared = [plain(word).strip(_QUOTES) for word in words]
    best = ""
    for passage in paper.passages:
        other = [word.strip(_QUOTES) for word in plain(passage.text).split()]
        run = SequenceMatcher(None, compared, other, autojunk=False).find_longest_match()
        longest = tidy_phrase(" ".join(words[run.a : run.a + run.size]))
        if run.size >= _FEWEST_COPIED and len(longest) > len(best) and paper.holds(longest):
            best = longest
    return best or phrase


def tidy_phrase(text: str) -> str:
    """A copied phrase without quotes around it, cut to the most words that evidence may have."""
    words = _one_line(text).strip(_QUOTES).split()
    while len(plain(" ".join(words)).split()) > MOST_WORDS:
        words.pop()
    return " ".join(words)


def _one_line(text: str) -> str:
    """A text in one line, without control characters and lone surrogates, which no file takes."""
    return " ".join(_CONTROLS.sub(" ", text).encode("utf-8", "replace").decode().split())


def _short(text: str) -> str:
    return text if len(text) <= _LEDGER_CHARS else f"{text[:_LEDGER_CHARS]}…"


def make_question(
    text: str, kind: Kind, papers: tuple[str, ...], claims: Sequence[GoldClaim], date: str | None
) -> Question:
    """An unreviewed question. Its id is a digest of all that it says, so equal drafts have equal ids."""
    content = json.dumps([text, kind, papers, [(claim.claim, claim.paper, claim.evidence) for claim in claims]])
    digest = hashlib.sha256(content.encode()).hexdigest()[:12]
    return Question(
        id=f"{papers[0].replace('/', '-')}-{kind}-{digest}",
        question=text,
        kind=kind,
        papers=papers,
        claims=tuple(claims),
        date=date,
    )


def draft_of_authors(front: FrontMatter | None, paper: Paper, date: str | None) -> Draft:
    """The question who wrote a paper, where they work and when it appeared, from the tables without a model.

    The evidence of a claim is a phrase of the front matter, or nothing if that does not say it in one piece.
    """
    if front is None or not front.authors:
        reason = ("no_authors", "the tables name no author, or it has no front matter")
        return Draft(paper.arxiv_id, "author", omissions=(reason,))
    name = f'"{_one_line(paper.title)[:TITLE_CHARS]}"' if paper.title else f"arXiv:{paper.arxiv_id}"
    only_first = len(front.authors) > MOST_AUTHORS
    authors = front.authors[:1] if only_first else front.authors
    text = f"Who is the first author of {name}" if only_first else f"Who wrote {name}"
    if any(author.affiliations for author in authors):
        text += ", where does this author work" if len(authors) == 1 else ", where do its authors work"
    text += ", and when did it appear on arXiv?"
    claims = []
    for author in authors:
        affiliations = "; ".join(map(_one_line, author.affiliations))
        person = f"{_one_line(author.name)} ({affiliations})" if affiliations else _one_line(author.name)
        role = "the first author" if only_first else "an author"
        evidence = _author_evidence(author, paper)
        claims.append(GoldClaim(claim=f"{person} is {role} of {name}.", paper=paper.arxiv_id, evidence=evidence))
    if (month := month_of(paper.arxiv_id)) is not None:
        when = f"{calendar.month_name[int(month[5:])]} {month[:4]}"
        phrase = f"arXiv:{paper.arxiv_id} ({when}), categories"
        evidence = (phrase,) if paper.holds(phrase) else ()
        claims.append(
            GoldClaim(claim=f"{name} first appeared on arXiv in {when}.", paper=paper.arxiv_id, evidence=evidence)
        )
    different = list({plain(claim.claim): claim for claim in claims}.values())
    question = make_question(text, "author", (paper.arxiv_id,), different, date)
    return Draft(paper.arxiv_id, "author", question)


def _author_evidence(author: Author, paper: Paper) -> tuple[str, ...]:
    """The words of the front matter from an author's name to the end of the last affiliation that follows it.

    At least four words, with words before the name if the text ends too soon.
    """
    name = r"\s+".join(map(re.escape, _one_line(author.name).split()))
    for passage in paper.passages:
        text = passage.text
        match = re.search(rf"(?<!\w){name}(?!\w)", text, re.IGNORECASE) if passage.kind == "front_matter" else None
        if match is None or not name:
            continue
        places = [_one_line(affiliation) for affiliation in author.affiliations]
        ends = [start + len(place) for place in places if (start := text.find(place, match.end())) >= 0]
        before, after = text[: match.start()].split(), text[match.start() :].split()
        count = max(len(text[match.start() : max(ends, default=match.end())].split()), FEWEST_WORDS)
        missing = max(count - len(after), 0)
        phrase = tidy_phrase(" ".join([*before[len(before) - missing :], *after[:count]]))
        return (phrase,) if len(plain(phrase).split()) >= FEWEST_WORDS and paper.holds(phrase) else ()
    return ()


def disabled_reason(settings: Settings) -> str:
    """Why nothing is drafted; empty if a setting names papers."""
    return "" if settings.draft_questions or settings.draft_papers else "CITELOOM_DRAFT_QUESTIONS is 0"


def build(job: Job) -> Iterator[Row]:
    """Rows of `question_drafts` by paper and kind; the ledger has what could not be drafted, and claims left out."""
    root, chosen = job.workspace.root, choose_papers(job.workspace, job.month)
    related = related_papers(root, job.month, chosen)
    papers = read_papers(root, chosen) | {paper.arxiv_id: paper for paper in related.values()}
    # Read before the calls begin: the clock of an estimate does not move while a table is read.
    fronts = run(FrontMatterTables(job.workspace, MonthSpan(last=job.month)).front_matter(sorted(papers)))
    known = {front.passage.arxiv_id: front for front in fronts}
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
    drafts = run(_draft_all(job, subjects, known)) if subjects else []
    drafts += [draft_of_authors(known.get(paper), papers[paper], _date([papers[paper]], known)) for paper in present]
    for draft in sorted(drafts, key=lambda draft: (draft.paper, KINDS.index(draft.kind))):
        for reason, detail in draft.omissions:
            job.leave_out(f"{draft.paper} {draft.kind}", reason, detail)
        if draft.question is not None:
            yield _row(draft.question, draft, papers)


async def _draft_all(job: Job, subjects: Sequence[Subject], known: Mapping[str, FrontMatter]) -> list[Draft]:
    """The drafts in the order of their subjects, made concurrently within the limit on calls in flight."""
    job.expect(len(subjects))
    done = 0

    async def draft(client: LlmClient, subject: Subject) -> Draft:
        nonlocal done
        made = await draft_by_model(client, subject, job.settings, _date(subject.papers, known))
        done += 1
        job.advance(done)
        return made

    async with open_client(job.workspace) as client:
        drafts = await side_by_side(draft(client, subject) for subject in subjects)
        job.measured |= client.usage.measured()
    return drafts


def _date(papers: Sequence[Paper], known: Mapping[str, FrontMatter]) -> str | None:
    """The day on which the newest of these papers first appeared; None if only its month is known."""
    dates = [known[paper.arxiv_id].date if paper.arxiv_id in known else month_of(paper.arxiv_id) for paper in papers]
    newest = max((date for date in dates if date), default="")
    return newest if len(newest) == len("2024-03-07") else None


def _row(question: Question, draft: Draft, papers: Mapping[str, Paper]) -> Row:
    gold = gold_passages(question, {paper: papers[paper].rows() for paper in question.papers})
    return {
        "question_id": question.id,
        "question": question.question,
        "kind": question.kind,
        "papers": list(question.papers),
        "date": question.date or question.month,
        "reviewed": False,
        "claims": claim_rows(question, gold),
        "model": draft.model,
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
    upstream=(tables.METADATA, tables.PAPERS, tables.PASSAGES, tables.CITATIONS),
    settings=("llm_model", "llm_context"),
    inputs=inputs,
    disabled_reason=disabled_reason,
    pool="llm",
)
