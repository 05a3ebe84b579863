"""The stage `citation_support`: every citation of every section of a month, judged by the passages
of the work that it cites.

Retrieval comes first, since it reads months of passages one after another; then every citation is a
call of its own, all in flight over one client.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from typing import TYPE_CHECKING

from pipeline import tables
from pipeline.embedding.choice import make_embedder, model_name
from pipeline.engine.digests import digest_of
from pipeline.engine.stage import Job, Workspace
from pipeline.evaluation.citation_support.judge import (
    PROMPT,
    PROMPTS,
    Judged,
    JudgeRequest,
    judge,
    judge_request,
)
from pipeline.evaluation.citation_support.sample import (
    NO_TEXT,
    SampledCitation,
    read_citations,
    with_passages,
)
from pipeline.llm.loop import run
from pipeline.llm.messages import Spent
from pipeline.llm.models import judge_model
from pipeline.llm.stage_loop import job_client, map_concurrently
from pipeline.related_work.task_reader import MonthTasks, in_corpus
from pipeline.storage.writing import Row

if TYPE_CHECKING:
    from pipeline.embedding.embedder import Embedder
    from pipeline.settings import Settings

# Most citations of one section that are judged; few by the bundled model, which is slow.
MOST_CITATIONS = 1000
MOST_BY_BUNDLED_MODEL = 4
UNREADABLE = "unreadable_answer"

Verdicts = dict[int, tuple[JudgeRequest, Judged]]
"""Place in the sample → what the judge was shown, and its verdict."""


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
    places = [place for place, item in enumerate(sample) if item.unjudged is None]
    verdicts = run(_judge_by_model(job, sample, places)) if places else {}
    _note(job, sample, verdicts)
    for place, item in enumerate(sample):
        if place in verdicts:
            yield _row(item, model.name, *verdicts[place])
        else:
            yield _unjudged_row(item, item.unjudged)


async def _judge_by_model(
    job: Job, sample: Sequence[SampledCitation], places: Sequence[int]
) -> Verdicts:
    """The verdicts of the judge; citations whose prompts have one prefix begin together."""

    def prefix(place: int) -> tuple[str, list[int], str]:
        item = sample[place]
        return item.title, sorted(shown.ordinal for shown in item.passages), item.citation.marked

    async def judge_place(place: int) -> tuple[JudgeRequest, Judged]:
        item = sample[place]
        request = judge_request(item.title, item.passages, item.citation.marked, model.context)
        # Without its messages, which would be held until all are judged.
        return replace(request, messages=()), await judge(client, request)

    model = judge_model(job.settings)
    order = sorted(places, key=prefix)
    async with job_client(job, model.name) as client:
        verdicts = await map_concurrently(job, order, judge_place, model.concurrency)
    return dict(zip(order, verdicts, strict=True))


def _note(job: Job, sample: Sequence[SampledCitation], verdicts: Verdicts) -> None:
    """Notes of the month, and into the ledger what its rows do not have: why an answer could not be
    read, and which papers have no passages.
    """
    unjudged = Counter(item.unjudged for item in sample if item.unjudged)
    for place, (_, judged) in sorted(verdicts.items()):
        if judged.failure is not None:
            unjudged[UNREADABLE] += 1
            item = sample[place]
            marker = f"sentence {item.citation.sentence}, [Reference {item.citation.number}]"
            job.leave_out(
                f"{item.task_id} {item.writer.name}", UNREADABLE, f"{marker}: {judged.failure}"
            )
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
        passages_cut=sum(request.cut for request, _ in verdicts.values()),
    )


def _row(item: SampledCitation, judge_name: str, request: JudgeRequest, judged: Judged) -> Row:
    readable = judged.verdict is not None
    return {
        **_unjudged_row(item, None if readable else UNREADABLE),
        "verdict": judged.verdict,
        "quote": judged.quote if readable else None,
        "quote_found": judged.quoted is not None if readable else None,
        "passages": [
            {"passage_id": passage.passage_id, "anchor": passage.anchor, "text": passage.text}
            for passage in request.shown
        ],
        "quoted": judged.quoted,
        "judge": judge_name,
        **asdict(judged.spent),
    }


def _unjudged_row(item: SampledCitation, reason: str | None) -> Row:
    return {
        "task_id": item.task_id,
        **item.writer.columns,
        "sentence": item.citation.sentence,
        "number": item.citation.number,
        "arxiv_id": item.reference.get("arxiv_id"),
        "source": item.reference.get("source"),
        "unjudged": reason,
        "passages": [],
        **asdict(Spent()),
    }


def inputs(workspace: Workspace, month: str) -> Mapping[str, str]:
    """The judge, its prompt, the embedder's model, and passages and vectors of cited papers."""
    months = MonthTasks(workspace, month).cited_months
    digests = {
        f"{table.name} of cited papers": digest_of(workspace, table, months)
        for table in (tables.PASSAGES, tables.EMBEDDINGS)
    }
    return {
        "prompt": PROMPTS.digest(PROMPT),
        "judge": judge_model(workspace.settings).fingerprint,
        "model": model_name(workspace.settings),
        **digests,
    }
