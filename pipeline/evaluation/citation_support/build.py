"""The stage `citation_support`: every citation of every section of a month, judged by the passages
of what it cites.

Retrieval comes first, since it reads months of passages one after another; then every citation is a
call of its own, all in flight over one client.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from pipeline import tables
from pipeline.arxiv.identifiers import month_of
from pipeline.embedding.choice import make_embedder, model_name
from pipeline.engine.digests import digest_of
from pipeline.engine.sampling import evenly_spaced
from pipeline.engine.stage import Job, Workspace
from pipeline.evaluation.citation_support.judge import (
    PROMPT,
    PROMPTS,
    Judged,
    JudgeRequest,
    conversation,
    judge,
    place_of,
)
from pipeline.evaluation.citation_support.measures import Citation, citations_of
from pipeline.evaluation.citation_support.overlap_judge import OverlapJudge
from pipeline.evaluation.citation_support.overlap_judge import fingerprint as overlap_fingerprint
from pipeline.evaluation.passages import Passage, among, paragraphs_of, search
from pipeline.evaluation.retrieval.pool import papers_with_passages
from pipeline.llm.client import Spent
from pipeline.llm.loop import run
from pipeline.llm.models import judge_models
from pipeline.llm.stage_loop import job_client, map_concurrently
from pipeline.related_work.task_reader import in_corpus, reference_months
from pipeline.settings.validators import OVERLAP_JUDGE
from pipeline.storage.writing import Row
from pipeline.tables.writers import Writer, writer_of

if TYPE_CHECKING:
    from pipeline.embedding.embedder import Embedder
    from pipeline.settings import Settings

# Claims for which an estimate loads a model to rank as the run will, so that it sees which answers
# are kept. At 8 to 30 ms each on two cores this is seconds; a month of 1,000 tasks would be hours,
# for passages that are as long by words.
MOST_REHEARSED = 300
# Most citations of one section that are judged; few by the embedded model, which is slow.
MOST_CITATIONS = 1000
MOST_BY_EMBEDDED_MODEL = 4
# Citations of which the sentences are embedded together: their vectors are a few megabytes.
OVERLAP_BATCH = 256
OUT_OF_RANGE, NO_TEXT, UNREADABLE, OVER = (
    "out_of_range",
    "no_text",
    "unreadable_answer",
    "over_the_limit",
)


@dataclass(frozen=True, slots=True)
class _Case:
    """One citation of one section: the task's reference, None out of range; why it is not judged,
    None where it is to be; and the passages that it is judged by, best first.
    """

    task_id: str
    writer: Writer
    citation: Citation
    reference: Mapping[str, Any] | None
    unjudged: str | None = None
    passages: tuple[Passage, ...] = ()

    @property
    def fields(self) -> Mapping[str, Any]:
        """The reference's fields; none for a number out of range."""
        return self.reference or {}

    @property
    def title(self) -> str:
        """The work's title; its identifier where a page and its metadata have none."""
        return self.fields["title"] or self.fields["arxiv_id"] or ""


def judged_by_overlap(settings: Settings) -> bool:
    """Whether the first judge of CITELOOM_JUDGES, who judges the citations, is the one that calls
    no model.
    """
    return settings.judges[:1] == (OVERLAP_JUDGE,)


def build(
    job: Job,
    make: Callable[[Settings], Embedder] = make_embedder,
    most_citations: int | None = None,
) -> Iterator[Row]:
    """Rows of `citation_support`, by task, system, model, sentence and number.

    most_citations: of one section that are judged; None for as many as suit the judge.
    Raises SettingError where the judge's context is too small, or the embedder's model is not
    there.
    """
    by_overlap = judged_by_overlap(job.settings)
    by_embedded = not by_overlap and judge_models(job.settings)[0].url is None
    most = most_citations or (MOST_BY_EMBEDDED_MODEL if by_embedded else MOST_CITATIONS)
    cases = _with_passages(job, _cases(job, most), make)
    job.expect(len(cases))
    judged = _judge_by_overlap(job, cases, make) if by_overlap else run(_judge_all(job, cases))
    _note(job, cases, judged)
    judge_name = OVERLAP_JUDGE if by_overlap else judge_models(job.settings)[0].name
    for case, verdict in zip(cases, judged, strict=True):
        yield _row(case, judge_name, *verdict) if verdict else _unjudged_row(case, case.unjudged)


def _cases(job: Job, most: int) -> list[_Case]:
    """Every citation of the month in order, with why it is not judged where that can be told
    without reading.

    Those of repeats are left out.
    """
    tasks = {
        row["task_id"]: {each["number"]: each for each in row["references"]}
        for row in job.iterate(tables.RELATED_WORK_TASKS, ["task_id", "references"])
    }
    readable = _readable(job, tasks.values())
    rows = job.iterate(tables.SUMMARIES, ["task_id", "system", "model", "repeat", "sentences"])
    sections = sorted(
        (row for row in rows if row["repeat"] == 0),
        key=lambda row: (row["task_id"], row["system"], row["model"] or ""),
    )
    cases: list[_Case] = []
    for row in sections:
        if row["task_id"] in tasks:
            cases += _of_section(row, tasks[row["task_id"]], readable, most)
        else:
            job.leave_out(
                f"{row['task_id']} {writer_of(row).name}",
                "section_without_task",
                "the month has no such task",
            )
    return cases


def _readable(job: Job, tasks: Iterable[Mapping[int, Mapping[str, Any]]]) -> set[str]:
    """The papers of the corpus, of those that the tasks refer to, of which there are passages."""
    wanted = {
        reference["arxiv_id"]
        for references in tasks
        for reference in references.values()
        if in_corpus(reference)
    }
    months = sorted(
        {month_of(arxiv_id) or "" for arxiv_id in wanted}
        & set(job.workspace.root.months(tables.PASSAGES))
    )
    return {
        arxiv_id
        for month in months
        for arxiv_id in papers_with_passages(job.workspace, month) & wanted
    }


def _of_section(
    row: Mapping[str, Any],
    references: Mapping[int, Mapping[str, Any]],
    readable: Collection[str],
    most: int,
) -> list[_Case]:
    """The citations of one section by sentence and number; of those that can be judged, `most` at
    most.
    """
    found = sorted(citations_of(row["sentences"]), key=lambda each: (each.sentence, each.number))
    cases = [_case(row, citation, references.get(citation.number), readable) for citation in found]
    can_be = [place for place, case in enumerate(cases) if case.unjudged is None]
    taken = {can_be[place] for place in evenly_spaced(len(can_be), most)}
    return [
        case if case.unjudged or place in taken else replace(case, unjudged=OVER)
        for place, case in enumerate(cases)
    ]


def _case(
    row: Mapping[str, Any],
    citation: Citation,
    reference: Mapping[str, Any] | None,
    readable: Collection[str],
) -> _Case:
    case = _Case(row["task_id"], writer_of(row), citation, reference)
    if reference is None:
        return replace(case, unjudged=OUT_OF_RANGE)
    has_text = (
        reference["arxiv_id"] in readable
        if in_corpus(reference)
        else bool(paragraphs_of(reference))
    )
    return case if has_text else replace(case, unjudged=NO_TEXT)


def _with_passages(
    job: Job, cases: Sequence[_Case], make: Callable[[Settings], Embedder]
) -> list[_Case]:
    """The cases with the passages that they are judged by; a paper that turns out to have none
    cannot be judged.
    """
    most = job.settings.support_passages
    claims: dict[str, dict[str, None]] = defaultdict(dict)
    for case in cases:
        if case.unjudged is None and in_corpus(case.fields):
            claims[case.fields["arxiv_id"]][case.citation.claim] = None
    wanted = {arxiv_id: list(texts) for arxiv_id, texts in claims.items()}
    found = search(job.workspace, wanted, most, None if _is_long_rehearsal(job, wanted) else make)
    job.notes["works_ranked"] = {
        "by_vectors_and_words": found.by_both,
        "by_words_alone": found.by_words,
    }
    return [
        case if case.unjudged else _given(case, _passages(case, found.passages, most))
        for case in cases
    ]


def _is_long_rehearsal(job: Job, claims: Mapping[str, Sequence[str]]) -> bool:
    """Whether an estimate would wait for vectors of claims that it has made up itself."""
    return job.rehearsal and sum(map(len, claims.values())) > MOST_REHEARSED


def _passages(
    case: _Case, found: Mapping[tuple[str, str], tuple[Passage, ...]], most: int
) -> tuple[Passage, ...]:
    if in_corpus(case.fields):
        return found.get((case.fields["arxiv_id"], case.citation.claim), ())
    return among(paragraphs_of(case.fields), case.citation.claim, most)


def _given(case: _Case, passages: tuple[Passage, ...]) -> _Case:
    return replace(case, passages=passages) if passages else replace(case, unjudged=NO_TEXT)


def _judge_by_overlap(
    job: Job, cases: Sequence[_Case], make: Callable[[Settings], Embedder]
) -> list[tuple[JudgeRequest, Judged] | None]:
    """The verdicts of the judge that calls no model; its quote is the sentence that overlaps most
    with the claim.

    An estimate counts calls, of which there are none, so it judges nothing.
    """
    judged: list[tuple[JudgeRequest, Judged] | None] = [None] * len(cases)
    places = [place for place, case in enumerate(cases) if case.unjudged is None]
    if not places or job.rehearsal:
        return judged
    judge = OverlapJudge.of(job.settings, make)
    for done in range(0, len(places), OVERLAP_BATCH):
        batch = places[done : done + OVERLAP_BATCH]
        texts = [[passage.text for passage in cases[place].passages] for place in batch]
        claims = [cases[place].citation.claim for place in batch]
        for place, of_case, verdict in zip(
            batch, texts, judge.verdicts(list(zip(claims, texts, strict=True))), strict=True
        ):
            quoted = place_of(verdict.sentence, of_case)
            request = JudgeRequest((), cases[place].passages, 0)
            judged[place] = request, Judged(verdict.label, verdict.sentence, quoted, Spent())
        job.advance(len(cases) - len(places) + done + len(batch))
    return judged


async def _judge_all(job: Job, cases: Sequence[_Case]) -> list[tuple[JudgeRequest, Judged] | None]:
    """Request and verdict of each case, None where nothing was; those with one prefix begin
    together.
    """
    asked = [place for place, case in enumerate(cases) if case.unjudged is None]
    asked.sort(key=lambda place: _prefix(cases[place]))
    if not asked:
        return [None] * len(cases)
    model = judge_models(job.settings)[0]
    async with job_client(job, model.name) as client:

        async def one(place: int) -> tuple[JudgeRequest, Judged]:
            case = cases[place]
            request = conversation(case.title, case.passages, case.citation.marked, model.context)
            # Without its messages, which would be held until all are judged.
            return replace(request, messages=()), await judge(client, request)

        judged = dict(
            zip(asked, await map_concurrently(job, asked, one, model.concurrency), strict=True)
        )
    return [judged.get(place) for place in range(len(cases))]


def _prefix(case: _Case) -> tuple[str, list[int], str]:
    """What prompts have in common from their beginning on, as `judge` builds them."""
    return case.title, sorted(passage.ordinal for passage in case.passages), case.citation.marked


def _note(
    job: Job, cases: Sequence[_Case], judged: Sequence[tuple[JudgeRequest, Judged] | None]
) -> None:
    """Notes of the month, and into the ledger what its rows do not tell: why an answer could not be
    read, and which papers have no passages.
    """
    unjudged = Counter(case.unjudged for case in cases if case.unjudged)
    for case, verdict in zip(cases, judged, strict=True):
        if verdict is not None and verdict[1].failure is not None:
            unjudged[UNREADABLE] += 1
            place = f"sentence {case.citation.sentence}, [Reference {case.citation.number}]"
            job.leave_out(
                f"{case.task_id} {case.writer.name}", UNREADABLE, f"{place}: {verdict[1].failure}"
            )
    lacking = {
        case.fields["arxiv_id"]
        for case in cases
        if case.unjudged == NO_TEXT and in_corpus(case.fields)
    }
    for arxiv_id in sorted(lacking):
        job.leave_out(arxiv_id, "cited_paper_without_passages", "citations of it are not judged")
    job.notes.update(
        citations=len(cases),
        judged=len(cases) - sum(unjudged.values()),
        unjudged=dict(sorted(unjudged.items())),
        passages_cut=sum(verdict[0].cut for verdict in judged if verdict),
    )


def _row(case: _Case, judge_name: str, request: JudgeRequest, judged: Judged) -> Row:
    read = judged.verdict is not None
    return {
        **_unjudged_row(case, None if read else UNREADABLE),
        "verdict": judged.verdict,
        "quote": judged.quote if read else None,
        "quote_found": judged.quoted is not None if read else None,
        "passages": [
            {"passage_id": each.passage_id, "anchor": each.anchor, "text": each.text}
            for each in request.shown
        ],
        "quoted": judged.quoted,
        "judge": judge_name,
        **asdict(judged.spent),
    }


def _unjudged_row(case: _Case, reason: str | None) -> Row:
    return {
        "task_id": case.task_id,
        **case.writer.columns,
        "sentence": case.citation.sentence,
        "number": case.citation.number,
        "arxiv_id": case.fields.get("arxiv_id"),
        "source": case.fields.get("source"),
        "unjudged": reason,
        "passages": [],
        **asdict(Spent()),
    }


def inputs(workspace: Workspace, month: str) -> Mapping[str, str]:
    """The judge, its prompt, the embedder's model, and the months of passages and vectors that hold
    what is cited.
    """
    months = sorted(
        reference_months(workspace.root.iterate(tables.RELATED_WORK_TASKS, month, ["references"]))
    )
    read = (tables.PASSAGES, tables.EMBEDDINGS)
    held = {f"{table.name} of cited papers": digest_of(workspace, table, months) for table in read}
    if judged_by_overlap(workspace.settings):
        prompt, judge = overlap_fingerprint(), OVERLAP_JUDGE
    else:
        prompt, judge = PROMPTS.digest(PROMPT), judge_models(workspace.settings)[0].fingerprint
    return {"prompt": prompt, "judge": judge, "model": model_name(workspace.settings), **held}
