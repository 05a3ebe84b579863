"""The citations of a month that are judged, each with the passages that it is judged by."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pipeline import tables
from pipeline.corpus.parse.policies import without_markers
from pipeline.engine.sampling import evenly_spaced
from pipeline.engine.stage import Job
from pipeline.evaluation.passages import EvidencePassage, among, paragraphs_of, search
from pipeline.index.papers import count_passages
from pipeline.related_work.summary import cited_numbers
from pipeline.related_work.task_reader import in_corpus
from pipeline.storage.writing import Row
from pipeline.tables.writers import Writer, writer_of
from pipeline.text import one_line

if TYPE_CHECKING:
    from pipeline.embedding.embedder import Embedder
    from pipeline.settings import Settings

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
        elif not _has_text(reference, readable):
            unjudged = NO_TEXT
        sample.append(
            SampledCitation(row["task_id"], writer_of(row), citation, reference or {}, unjudged)
        )
    judgeable = [place for place, item in enumerate(sample) if item.unjudged is None]
    taken = {judgeable[place] for place in evenly_spaced(len(judgeable), most)}
    for place in set(judgeable) - taken:
        sample[place] = replace(sample[place], unjudged=OVER)
    return sample


def _has_text(reference: Row, readable: Collection[str]) -> bool:
    if in_corpus(reference):
        return reference["arxiv_id"] in readable
    return bool(paragraphs_of(reference))


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
