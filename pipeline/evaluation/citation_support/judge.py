"""The stage `citation_support`: every citation of every section of a month, judged by the passages
of the work that it cites.

Retrieval comes first, since it reads months of passages one after another; then every citation is a
call of its own. Instructions come first in a prompt, then work and passages, then the sentence:
passages are most of a prompt, and sentences that cite one work, in whichever system's section, are
often answered by the same ones. They are in the order of the work, not of their rank, so that two
sets that begin alike are one prefix, and no place says which passage the search held for the best.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

from pydantic import ConfigDict

from pipeline import tables
from pipeline.corpus.parse.policies import without_markers
from pipeline.embedding.choice import make_embedder, model_name
from pipeline.engine.sampling import evenly_spaced
from pipeline.engine.stage import Job, Workspace
from pipeline.evaluation.judged import (
    FINDING_TOKENS,
    Quoting,
    Reply,
    ask,
    evidence_digests,
    judge_all,
    read_prompts,
)
from pipeline.evaluation.passages import EvidencePassage, among, paragraphs_of, search
from pipeline.evaluation.verdicts import place_of
from pipeline.index.papers import count_passages
from pipeline.llm.client import REPAIR_TOKENS, LlmClient
from pipeline.llm.context import count_tokens, fit, shares
from pipeline.llm.messages import Message, Spent
from pipeline.llm.models import judge_model
from pipeline.llm.stage_loop import leave_out_failed
from pipeline.related_work.summary import cited_numbers
from pipeline.related_work.task_reader import MonthTasks, in_corpus
from pipeline.storage.writing import Row
from pipeline.tables.writers import Writer, writer_of
from pipeline.text import one_line

if TYPE_CHECKING:
    from pipeline.embedding.embedder import Embedder
    from pipeline.settings import Settings

PROMPT = "judge"
PROMPTS = read_prompts(__file__)

# Most citations of one section that are judged; few by the bundled model, which is slow.
MOST_CITATIONS = 1000
MOST_BY_BUNDLED_MODEL = 4
# Of what there is to read, the sentence has this part at most, the title so many tokens; the
# passages have the rest.
_SENTENCE_SHARE, _TITLE_TOKENS = 3, 64
# Fewer tokens than this of one passage are of no use.
_FEWEST_OF_ONE = 24


class Finding(Quoting):
    """The judge's answer: the words that decide, then the verdict."""

    # The description is part of a request, and so of the keys of stored answers.
    model_config = ConfigDict(
        json_schema_extra={
            "description": "The judge's answer: first the words that decide, so that the verdict"
            " is given with them at hand."
        },
    )

    verdict: Literal["supported", "partly", "not"]


@dataclass(frozen=True, slots=True)
class JudgeRequest:
    """The request to the judge. `shown`: the passages as it reads them, best first; `cut`: how many
    are cut, or left out for want of room.
    """

    messages: Sequence[Message]
    shown: tuple[EvidencePassage, ...]
    cut: int


def judge_request(
    title: str,
    passages: Sequence[EvidencePassage],
    sentence: str,
    context: int,
    prompt: str = PROMPT,
) -> JudgeRequest:
    """The question whether these passages, best first, support a sentence, its citations marked.

    Texts without room in a context of so many tokens are cut, long passages before short ones;
    where that would leave next to nothing of each, the best are shown alone. prompt: the name of
    its template. Raises SettingError where there is no room for one.
    """
    named = fit(title, _TITLE_TOKENS).text
    left = PROMPTS.room(
        context, FINDING_TOKENS + REPAIR_TOKENS, prompt, title=named, passages="", sentence=""
    )
    claimed = fit(sentence, left // _SENTENCE_SHARE).text
    free = left - count_tokens(claimed)
    most = _most_tokens([count_tokens(passage.text) for passage in passages], free)
    best = passages[: len(most)]
    cuts = [fit(passage.text, tokens) for passage, tokens in zip(best, most, strict=True)]
    shown = tuple(replace(passage, text=cut.text) for passage, cut in zip(best, cuts, strict=True))
    in_order = sorted(shown, key=lambda passage: passage.ordinal)
    texts = "\n\n".join(passage.text for passage in in_order)
    messages = PROMPTS.messages(prompt, title=named, passages=texts, sentence=claimed)
    return JudgeRequest(messages, shown, sum(cut.cut for cut in cuts) + len(passages) - len(best))


def _most_tokens(lengths: Sequence[int], free: int) -> list[int]:
    """Tokens of each passage that may be shown, of as many of the first as leave enough of each to
    tell anything.
    """
    for count in range(min(len(lengths), free // 3), 1, -1):
        # A blank line after each passage is a token or two that no share counts.
        parts = shares(lengths[:count], free - 2 * count)
        if all(
            part >= min(length, _FEWEST_OF_ONE)
            for part, length in zip(parts, lengths, strict=False)
        ):
            return parts
    return shares(lengths[:1], free - 2)


Verdict = tuple[JudgeRequest, Reply[Finding]]


def build(
    job: Job,
    make: Callable[[Settings], Embedder] = make_embedder,
    most_citations: int | None = None,
) -> Iterator[Row]:
    """Rows of `citation_support`, by task, system, model, sentence and number.

    most_citations: of one section that are judged; None for as many as suit the judge. Raises
    SettingError where the judge's context is too small, or the embedder's model is not there.
    """
    model = judge_model(job.settings)
    most = most_citations or (MOST_CITATIONS if model.url else MOST_BY_BUNDLED_MODEL)
    sample = with_passages(job, read_citations(job, most), make)
    job.expect(len(sample))

    async def judge_item(client: LlmClient, item: SampledCitation) -> Verdict:
        request = judge_request(item.title, item.passages, item.citation.marked, model.context)
        reply = await ask(client, request.messages, Finding, FINDING_TOKENS)
        # Without its messages, which would be held until all are judged.
        return replace(request, messages=()), reply

    to_judge = [item for item in sample if item.unjudged is None]
    # Citations whose prompts have one prefix begin together.
    verdicts = judge_all(
        job,
        to_judge,
        judge_item,
        begin=lambda item: (
            item.title,
            sorted(passage.ordinal for passage in item.passages),
            item.citation.marked,
        ),
    )
    _note(job, sample, to_judge, verdicts)
    remaining = iter(verdicts)
    for item in sample:
        row = {
            "task_id": item.task_id,
            **item.writer.columns,
            "sentence": item.citation.sentence,
            "number": item.citation.number,
            "arxiv_id": item.reference.get("arxiv_id"),
            "source": item.reference.get("source"),
            "unjudged": item.unjudged,
            "passages": [],
            **asdict(Spent()),
        }
        yield row | (_judged(model.name, *next(remaining)) if item.unjudged is None else {})


def _note(
    job: Job,
    sample: Sequence[SampledCitation],
    to_judge: Sequence[SampledCitation],
    verdicts: Sequence[Verdict],
) -> None:
    """Notes of the month, and into the ledger what its rows do not have: why a judgement failed,
    and which papers have no passages.
    """
    unjudged = Counter(item.unjudged for item in sample if item.unjudged)
    for item, (_, reply) in zip(to_judge, verdicts, strict=True):
        if reply.failure is not None:
            unjudged[reply.failed] += 1
            place = f"sentence {item.citation.sentence}, [Reference {item.citation.number}]"
            leave_out_failed(job, f"{item.task_id} {item.writer.name}", reply.failure, place)
    without_text = {
        item.reference["arxiv_id"]
        for item in sample
        if item.unjudged == NO_TEXT and in_corpus(item.reference)
    }
    for arxiv_id in sorted(without_text):
        job.leave_out(arxiv_id, "cited_paper_without_passages", "citations of it are not judged")
    job.notes.update(
        citations=len(sample),
        judged=len(sample) - sum(unjudged.values()),
        unjudged=dict(sorted(unjudged.items())),
        passages_cut=sum(request.cut for request, _ in verdicts),
    )


def _judged(judge_name: str, request: JudgeRequest, reply: Reply[Finding]) -> dict[str, Any]:
    """The columns of a citation that was judged, or of which the judgement failed."""
    columns = {
        "unjudged": reply.failed or None,
        "passages": [
            {"passage_id": passage.passage_id, "anchor": passage.anchor, "text": passage.text}
            for passage in request.shown
        ],
        "judge": judge_name,
        **asdict(reply.spent),
    }
    if reply.form is None:
        return columns
    quote = reply.form.quote
    quoted = place_of(quote, [passage.text for passage in request.shown])
    return columns | {
        "verdict": reply.form.verdict,
        "quote": quote,
        "quote_found": quoted is not None,
        "quoted": quoted,
    }


def inputs(workspace: Workspace, month: str) -> Mapping[str, str]:
    """The judge, its prompt, the embedder's model, and passages and vectors of cited papers."""
    return {
        "prompt": PROMPTS.digest(PROMPT),
        "judge": judge_model(workspace.settings).fingerprint,
        "model": model_name(workspace.settings),
        **evidence_digests(workspace, MonthTasks(workspace, month).cited_months, "cited papers"),
    }


# Claims for which an estimate loads a model to rank as the run will, so that it sees which answers
# are kept. At 8 to 30 ms each on two cores this is seconds; a month of 1,000 tasks would be hours,
# for passages that are as long by words.
MOST_REHEARSED = 300
OUT_OF_RANGE, NO_TEXT, OVER = "out_of_range", "no_text", "over_the_limit"
THIS, OTHER = "[this work]", "[another work]"
MARKER = re.compile(r"\[Reference ([0-9]{1,4})\]")
_EMPTY_BRACKETS = re.compile(
    r"(?:(?<!\s)\s++)?(?:\((?:e\.g\.|i\.e\.|see|cf\.|also|[,;\s])*+\)|\[\s*+\])"
)
_SPACED_SIGN = re.compile(r"(?<!\s)\s++(?=[.,;:)\]])")


def masked(sentence: str) -> str:
    """The sentence without its markers, and without what stands for nothing without them: "(see
    [@b1])" goes whole, and so does the comma after a marker that begins the sentence.
    """
    bare = _EMPTY_BRACKETS.sub("", without_markers(sentence))
    return one_line(_SPACED_SIGN.sub("", bare).lstrip(".,;: "))


@dataclass(frozen=True, slots=True)
class Citation:
    """One number that one sentence cites. sentence: its place from 1. text: the sentence."""

    sentence: int
    number: int
    text: str

    @property
    def claim(self) -> str:
        """The sentence without its markers, as a search is asked for it."""
        return masked(MARKER.sub(" ", self.text))

    @property
    def marked(self) -> str:
        """The sentence for a judge: this citation apart from the others, all without numbers."""
        return MARKER.sub(
            lambda marker: THIS if int(marker[1]) == self.number else OTHER, self.text
        )


def citations_of(sentences: Sequence[Row]) -> Iterator[Citation]:
    """The citations of a row's `sentences` in order, each number once a sentence.

    Numbers are those of the text, for `references` has none that the task lacks; what is in
    `references` alone, as a system may say without writing it, counts too.
    """
    for place, sentence in enumerate(sentences, 1):
        numbers = [*cited_numbers(sentence["text"]), *(sentence["references"] or ())]
        for number in dict.fromkeys(numbers):
            yield Citation(place, number, sentence["text"])


@dataclass(frozen=True, slots=True)
class SampledCitation:
    """One citation of one section.

    reference: of the task; empty for a number out of range. unjudged: why it is not judged, None
    where it is to be. passages: those that it is judged by, best first.
    """

    task_id: str
    writer: Writer
    citation: Citation
    reference: Row
    unjudged: str | None = None
    passages: tuple[EvidencePassage, ...] = ()

    @property
    def title(self) -> str:
        """The work's title; its identifier where a page and its metadata have none."""
        return self.reference["title"] or self.reference["arxiv_id"] or ""


def read_citations(job: Job, most: int) -> list[SampledCitation]:
    """Every citation of the month in order, without passages. Those of repeats are left out.

    most: of one section that are judged.
    """
    tasks: dict[str, dict[int, Row]] = {
        row["task_id"]: {reference["number"]: reference for reference in row["references"]}
        for row in job.iterate(tables.RELATED_WORK_TASKS, ["task_id", "references"])
    }
    cited = {
        reference["arxiv_id"]
        for references in tasks.values()
        for reference in references.values()
        if in_corpus(reference)
    }
    readable = count_passages(job.workspace.root, cited)
    rows = job.iterate(tables.SUMMARIES, ["task_id", "system", "model", "repeat", "sentences"])
    sections = sorted(
        (row for row in rows if row["repeat"] == 0),
        key=lambda row: (row["task_id"], row["system"], row["model"] or ""),
    )
    sample: list[SampledCitation] = []
    for row in sections:
        if row["task_id"] in tasks:
            sample += _of_section(row, tasks[row["task_id"]], readable, most)
        else:
            job.leave_out(
                f"{row['task_id']} {writer_of(row).name}",
                "section_without_task",
                "the month has no such task",
            )
    return sample


def _of_section(
    row: Row,
    references: Mapping[int, Row],
    readable: Collection[str],
    most: int,
) -> list[SampledCitation]:
    """The citations of one section by sentence and number, at most `most` to be judged."""
    sample = []
    for citation in sorted(
        citations_of(row["sentences"]), key=lambda citation: (citation.sentence, citation.number)
    ):
        reference = references.get(citation.number)
        unjudged = None
        if reference is None:
            unjudged = OUT_OF_RANGE
        elif (
            reference["arxiv_id"] not in readable
            if in_corpus(reference)
            else not paragraphs_of(reference)
        ):
            unjudged = NO_TEXT
        sample.append(
            SampledCitation(row["task_id"], writer_of(row), citation, reference or {}, unjudged)
        )
    judgeable = [place for place, item in enumerate(sample) if item.unjudged is None]
    taken = {judgeable[place] for place in evenly_spaced(len(judgeable), most)}
    for place in set(judgeable) - taken:
        sample[place] = replace(sample[place], unjudged=OVER)
    return sample


def with_passages(
    job: Job, sample: Sequence[SampledCitation], make: Callable[[Settings], Embedder]
) -> list[SampledCitation]:
    """The sample with passages to judge by; a citation without any is marked NO_TEXT."""
    most = job.settings.support_passages
    claims: dict[str, dict[str, None]] = defaultdict(dict)
    for item in sample:
        if item.unjudged is None and in_corpus(item.reference):
            claims[item.reference["arxiv_id"]][item.citation.claim] = None
    # The claims of an estimate are made up, and not worth waiting for the vectors of many.
    long_rehearsal = job.rehearsal and sum(map(len, claims.values())) > MOST_REHEARSED
    by_paper = {arxiv_id: list(of_paper) for arxiv_id, of_paper in claims.items()}
    ranked = search(job.workspace, by_paper, most, None if long_rehearsal else make)
    job.notes["works_ranked"] = {
        "by_vectors_and_words": ranked.by_both,
        "by_words_alone": ranked.by_words,
    }
    completed = []
    for item in sample:
        if item.unjudged is None:
            claim = item.citation.claim
            if in_corpus(item.reference):
                passages = ranked.passages.get((item.reference["arxiv_id"], claim), ())
            else:
                passages = among(paragraphs_of(item.reference), claim, most)
            item = replace(item, passages=passages, unjudged=None if passages else NO_TEXT)
        completed.append(item)
    return completed
