"""The stage `citation_support`: every citation of every section of a month, judged by the passages
of the work that it cites.

Retrieval comes first, since it reads months of passages one after another; then every citation is a
call of its own. Instructions come first in a prompt, then work and passages, then the sentence:
passages are most of a prompt, and sentences that cite one work, in whichever system's section, are
often answered by the same ones. They are in the order of the work, not of their rank, so that two
sets that begin alike are one prefix, and no place says which passage the search held for the best.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

from pydantic import ConfigDict

from pipeline.embedding.choice import make_embedder, model_name
from pipeline.engine.stage import Job, Workspace
from pipeline.evaluation.citation_support.sample import (
    NO_TEXT,
    SampledCitation,
    read_citations,
    with_passages,
)
from pipeline.evaluation.judged import (
    FINDING_TOKENS,
    Quoting,
    Reply,
    ask,
    evidence_digests,
    judge_all,
    read_prompts,
)
from pipeline.evaluation.passages import EvidencePassage
from pipeline.evaluation.quotes import place_of
from pipeline.llm.client import REPAIR_TOKENS, LlmClient
from pipeline.llm.context import count_tokens, fit, shares
from pipeline.llm.messages import Message, Spent
from pipeline.llm.models import judge_model
from pipeline.llm.stage_loop import leave_out_failed
from pipeline.related_work.task_reader import MonthTasks, in_corpus
from pipeline.storage.writing import Row

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


async def judge(client: LlmClient, request: JudgeRequest) -> Reply[Finding]:
    """One verdict: one call, or two where the answer had to be repaired."""
    return await ask(client, request.messages, Finding, FINDING_TOKENS)


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
        # Without its messages, which would be held until all are judged.
        return replace(request, messages=()), await judge(client, request)

    to_judge = [item for item in sample if item.unjudged is None]
    verdicts = judge_all(job, to_judge, judge_item, begin=_prefix)
    _note(job, sample, to_judge, verdicts)
    remaining = iter(verdicts)
    for item in sample:
        yield _row(item) | (_judged(model.name, *next(remaining)) if item.unjudged is None else {})


def _prefix(item: SampledCitation) -> tuple[str, list[int], str]:
    """Citations whose prompts have one prefix begin together."""
    return item.title, sorted(shown.ordinal for shown in item.passages), item.citation.marked


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


def _row(item: SampledCitation) -> dict[str, Any]:
    """The row of a citation without its verdict."""
    return {
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
