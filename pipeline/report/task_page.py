"""The two pages of each task of a month: sections side by side, each sentence with its citations,
quotes and passages; and how each section was written, from the trace that its summary keeps.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pipeline import tables
from pipeline.evaluation.prose import Piece, paragraphs, parted, pieces, printable
from pipeline.llm.models import small_model_among
from pipeline.report.data import LeftOut, RelatedWorkData, ReportData, Scores, rows_by
from pipeline.report.figures import system_colour
from pipeline.report.formatting import (
    MISSING,
    passage_link,
    references,
    task_file,
    words,
)
from pipeline.report.grid import Cell, Grid, RowGroup
from pipeline.report.measures import CITATIONS, FORMAT, MARKS, MEASURES, ROUGE, Measure
from pipeline.report.summary import Row, read_or_empty
from pipeline.tables.writers import with_display_name, writer_name

# A section with its trace may have a megabyte, and a task eight sections.
_TASKS_AT_ONCE = 20
# A passage of the corpus has some 200 words; an abstract given by a file may be a book.
_MOST_PASSAGE_CHARS = 6_000
_BEGINNING_CHARS = 400
# Parts of a trace that a system may lack.
_EMPTY_TRACE: dict[str, Any] = {
    "citations": {},
    "plan": {},
    "summaries": (),
    "rounds": (),
}
_VERDICTS = ("supported", "partly", "not", "unjudged")
_ELEMENTS = (
    "research_questions",
    "methodology",
    "results",
    "conclusions",
    "contributions",
    "innovations",
    "limitations",
)


@dataclass(frozen=True, slots=True)
class PassageExcerpt:
    """A passage around a quote, and where it can be read; holds_quote: whether the quote is said to
    be from it.
    """

    before: str
    quote: str
    after: str
    url: str
    holds_quote: bool
    arxiv_id: str | None = None


@dataclass(frozen=True, slots=True)
class JudgedCitation:
    """A row of `citation_support`. title: of the cited work, '' for no reference of the task.
    passages: the quote is marked in the one that holds it.
    """

    row: Row
    verdict: str
    title: str
    passages: Sequence[PassageExcerpt]


@dataclass(frozen=True, slots=True)
class JudgedSentence:
    """A sentence of a section. place: counted from 1."""

    place: int
    text: str
    citations: Sequence[JudgedCitation] = ()

    @property
    def verdict(self) -> str:
        """That of its judged citations where they agree, else partly; unjudged where none was
        judged, '' where there is none.
        """
        if not self.citations:
            return ""
        judged = {citation.verdict for citation in self.citations} - {"unjudged"}
        if len(judged) > 1:
            return "partly"
        return judged.pop() if judged else "unjudged"


@dataclass(frozen=True, slots=True)
class TextRun:
    """A part of a paragraph: a sentence, or the text between two."""

    pieces: Sequence[Piece]
    sentence: JudgedSentence | None = None


@dataclass(frozen=True, slots=True)
class DraftVersion:
    """A draft of a round. row: as the trace has it. rank: among the kept, 0 where it was dropped.
    whole: whether its paragraphs are all of its text.
    """

    row: Row
    votes: int
    rank: int
    paragraphs: Sequence[Sequence[Piece]]
    whole: bool


@dataclass(frozen=True, slots=True)
class Round:
    """A round of the search, one for each reference. row: as the trace has it."""

    row: Row
    drafts: Sequence[DraftVersion]


@dataclass(frozen=True, slots=True)
class Trace:
    """How a section was written. data: as the summary keeps it, with an empty value for each part
    that the system lacks. notes: what was repaired or cut, one sentence each. failure: why the plan
    could not be read, '' where it could.
    """

    data: Row
    rounds: Sequence[Round]
    notes: Sequence[str]
    failure: str

    @property
    def has_steps(self) -> bool:
        """Whether there is more to show than the section."""
        plan = self.data["plan"].get("lines")
        return any((self.rounds, self.notes, self.failure, plan, self.data["summaries"]))


@dataclass(frozen=True, slots=True)
class WrittenSection:
    """A row of `summaries` with its text and its trace laid out. verdicts: its citations by
    verdict. best: whether it has most votes of the judge.
    """

    row: Row
    paragraphs: Sequence[Sequence[TextRun]]
    verdicts: Sequence[tuple[str, int]]
    trace: Trace
    best: bool

    @property
    def system(self) -> str:
        return str(self.row["system"])

    @property
    def colour(self) -> int:
        return system_colour(self.system)


@dataclass(frozen=True, slots=True)
class PaperElements:
    """The key elements of one paper. answers: (element, text)."""

    paper: str
    cut: bool
    answers: Sequence[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class TaskEntry:
    """A task as the month's page lists it. references, outside: how many works of its gold section
    it has, and how many others are cited there. page: its file.
    """

    task_id: str
    arxiv_id: str | None
    title: str
    references: int
    outside: int
    page: str


@dataclass(frozen=True, slots=True)
class TaskPage:
    """The two pages of a task. task: its row; gold: its section as published, by paragraph."""

    month: str
    task: Row
    gold: Sequence[Sequence[Piece]]
    sections: Sequence[WrittenSection]
    scores: Grid | None
    elements: Sequence[PaperElements]
    small_model: str

    @property
    def file(self) -> str:
        return task_file(self.task["task_id"])

    @property
    def written_file(self) -> str:
        return task_file(self.task["task_id"], "-written")

    @property
    def entry(self) -> TaskEntry:
        task = self.task
        return TaskEntry(
            task["task_id"],
            task["arxiv_id"],
            task["title"],
            len(task["references"]),
            task["outside"],
            self.file,
        )

    @property
    def traced(self) -> list[WrittenSection]:
        """Sections that have more to show than their text."""
        return [section for section in self.sections if section.trace.has_steps]

    @property
    def has_steps(self) -> bool:
        """Whether there is anything for the page of how the sections were written."""
        return bool(self.elements or self.traced)

    @property
    def unreadable(self) -> list[LeftOut]:
        """Answers that could not be read, which systems went on without."""
        return [
            LeftOut(
                section.system,
                self.task["task_id"],
                "unreadable answer: plan",
                f"plan: {section.trace.failure}",
                self.file,
            )
            for section in self.sections
            if section.trace.failure
        ]


def task_pages(data: ReportData) -> Iterator[TaskPage]:
    """The pages of each task of a month, by task id, with the rows of 20 tasks in memory."""
    (month,) = data.months
    column = read_or_empty(data.root, tables.RELATED_WORK_TASKS, month.month, ["task_id"])
    ids = sorted(column["task_id"].to_pylist())
    for first in range(0, len(ids), _TASKS_AT_ONCE):
        yield from _task_pages(data, month.month, ids[first : first + _TASKS_AT_ONCE])


def _task_pages(data: ReportData, month: str, ids: Sequence[str]) -> Iterator[TaskPage]:
    tasks, summaries, elements, support = (
        rows_by(data.root, month, table, "task_id", ids)
        for table in (
            tables.RELATED_WORK_TASKS,
            tables.SUMMARIES,
            tables.KEY_ELEMENTS,
            tables.CITATION_SUPPORT,
        )
    )
    names = data.related.names
    for task_id in ids:
        (task,) = tasks[task_id]
        sections = sorted(
            (row for row in summaries[task_id] if row["repeat"] == 0), key=writer_name
        )
        yield _task_page(
            month,
            task,
            [with_display_name(row, names) for row in sections],
            sorted(elements[task_id], key=lambda row: (row["number"], row["model"])),
            [with_display_name(row, names) for row in support[task_id]],
            data.related,
        )


def _task_page(
    month: str,
    task: Row,
    summaries: Sequence[Row],
    elements: Sequence[Row],
    support: Sequence[Row],
    data: RelatedWorkData,
) -> TaskPage:
    titles = {reference["number"]: reference["title"] for reference in task["references"]}
    systems = [row["system"] for row in summaries]
    best = data.scores.best_voted(task["task_id"], systems)
    models = {row["model"] for row in summaries} | {row["judge"] for row in support}
    models |= set(data.scores.judges)
    sections = []
    for row in summaries:
        mine = [citation for citation in support if citation["system"] == row["system"]]
        sections.append(_section(row, task, titles, mine, best=row["system"] in best))
    return TaskPage(
        month=month,
        task=task,
        gold=paragraphs(task["gold"], set(titles)),
        sections=sections,
        scores=_scores_grid(task["task_id"], systems, data),
        elements=[_paper_elements(row, task["title"], titles, elements) for row in elements],
        small_model=small_model_among(models),
    )


def _section(
    row: Row, task: Row, titles: Mapping[int, str], support: Sequence[Row], *, best: bool
) -> WrittenSection:
    trace = read_trace(row["trace"], set(titles))
    sentences = judged_sentences(row, support, titles)
    counts = Counter(citation["verdict"] or "unjudged" for citation in support)
    return WrittenSection(
        row=row,
        paragraphs=lay_out(row["text"], sentences, set(titles)),
        verdicts=[(verdict, counts[verdict]) for verdict in _VERDICTS if counts[verdict]],
        trace=trace,
        best=best,
    )


def _scores_grid(task_id: str, systems: Sequence[str], data: RelatedWorkData) -> Grid | None:
    g_score, support = data.scores.judge, ", ".join(data.support_judges)
    marks = f"marks from 1 to 5 by {g_score}, in one conversation, mean over the orders"
    basis = {
        ROUGE: "F1 against the gold section, in percent",
        MARKS: marks if g_score else "",
        CITATIONS: f"verdicts by {support}" if support else "",
        FORMAT: "",
    }
    groups = []
    for title, about in basis.items():
        measures = [measure for measure in MEASURES if measure.group == title]
        for candidates in data.sets if title == MARKS else data.sets[:1]:
            rows = [
                _score_row(task_id, systems, candidates.scores, measure) for measure in measures
            ]
            measured = [row for row in rows if row]
            suffix = candidates.suffix if title == MARKS else ""
            if measured:
                groups.append(RowGroup(measured, f"{title}{suffix}", about))
    notes = [
        f"{MISSING}: no such number. Only systems that write step by step have retention; citation"
        " precision needs a cited work with a text."
    ]
    columns = ["Metric", *map(words, systems)]
    return Grid("scores", "Scores", columns, groups=groups, notes=notes) if groups else None


def _score_row(task_id: str, systems: Sequence[str], scores: Scores, measure: Measure) -> list[Any]:
    """The scores of a task by one measure; [] where there is none."""
    values = scores.of_task(task_id, systems, measure.metric)
    if not values:
        return []
    # Only a mean of what is out of range has a decimal.
    form = "count" if measure.form == "one" else measure.form
    scaled = {system: measure.scale * value for system, value in values.items()}
    return [measure.title, *(Cell(scaled.get(system), form) for system in systems)]


def _paper_elements(
    row: Row, target: str, titles: Mapping[int, str], elements: Sequence[Row]
) -> PaperElements:
    """The key elements of one paper, with the model's name where several extracted them."""
    number = row["number"]
    title = target if number == 0 else titles.get(number, str(row["arxiv_id"]))
    model = f" ({row['model']})" if len({other["model"] for other in elements}) > 1 else ""
    name = "Target" if number == 0 else f"Reference {number}"
    answers = [(words(element), row[element] or "") for element in _ELEMENTS]
    return PaperElements(f"{name}: {title}{model}", row["content_cut"], answers)


def judged_sentences(
    summary: Row, support: Sequence[Row], titles: Mapping[int, str]
) -> list[JudgedSentence]:
    """The sentences of a section with their citations.

    support: its rows of `citation_support`; titles: of the references by number.
    """
    sentences = []
    for place, sentence in enumerate(summary["sentences"], 1):
        rows = [row for row in support if row["sentence"] == place]
        citations = [
            judged_citation(row, titles) for row in sorted(rows, key=lambda row: int(row["number"]))
        ]
        sentences.append(JudgedSentence(place, sentence["text"], citations))
    return sentences


def judged_citation(row: Row, titles: Mapping[int, str]) -> JudgedCitation:
    """A row of `citation_support` with the passages that the judge was shown."""
    passages = []
    for place, passage in enumerate(row["passages"] or ()):
        quote = row["quote"] if place == row["quoted"] else None
        passages.append(excerpt(passage["text"], row["arxiv_id"], passage["anchor"], quote or ""))
    title = titles.get(row["number"], "")
    return JudgedCitation(row, row["verdict"] or "unjudged", title, passages)


def excerpt(
    text: str | None, arxiv_id: str | None, anchor: str | None, quote: str = ""
) -> PassageExcerpt:
    """A passage with the quote marked where it is found in it, apart from white space and case."""
    whole = printable(text or "")
    kept = whole if len(whole) <= _MOST_PASSAGE_CHARS else f"{whole[:_MOST_PASSAGE_CHARS]}…"
    words_quoted = printable(quote).split()
    match = (
        re.search(r"\s+".join(map(re.escape, words_quoted)), kept, re.IGNORECASE)
        if words_quoted
        else None
    )
    start, end = match.span() if match else (len(kept), len(kept))
    url = passage_link(arxiv_id, anchor)
    return PassageExcerpt(kept[:start], kept[start:end], kept[end:], url, bool(quote), arxiv_id)


def lay_out(
    text: str, sentences: Iterable[JudgedSentence], known: Collection[int]
) -> list[list[TextRun]]:
    """The paragraphs of a text as sentences and the text between them, which joined give each
    paragraph back.

    The text of sentences, in order, may have other white space. A sentence that is in no paragraph
    after the one before it stays part of the text around it. known: numbers of the task's
    references.
    """
    laid_out = [_Paragraph(part, known) for part in parted(text)]
    first = 0
    for sentence in sentences:
        for place in range(first, len(laid_out)):
            if laid_out[place].take(sentence):
                first = place
                break
    return [paragraph.runs() for paragraph in laid_out]


class _Paragraph:
    """A paragraph whose sentences are taken one after another, compared without white space."""

    def __init__(self, text: str, known: Collection[int]) -> None:
        self._text, self._known = text, known
        self._places = [place for place, character in enumerate(text) if not character.isspace()]
        self._characters = "".join(text[place] for place in self._places)
        self._next = 0
        self._end = 0
        self._runs: list[TextRun] = []

    def take(self, sentence: JudgedSentence) -> bool:
        """Take a sentence if it follows those taken before; return whether it does."""
        characters = "".join(printable(sentence.text).split())
        first = self._characters.find(characters, self._next)
        if not characters or first < 0:
            return False
        self._next = first + len(characters)
        self._add(self._places[first])
        self._add(self._places[self._next - 1] + 1, sentence)
        return True

    def runs(self) -> list[TextRun]:
        self._add(len(self._text))
        return self._runs

    def _add(self, until: int, sentence: JudgedSentence | None = None) -> None:
        if until > self._end:
            run = pieces(self._text[self._end : until], self._known)
            self._runs.append(TextRun(run, sentence))
            self._end = until


def read_trace(text: str | None, numbers: Collection[int]) -> Trace:
    """The trace that a summary keeps as JSON. numbers: of the task's references."""
    data = _EMPTY_TRACE | json.loads(text or "{}")
    return Trace(
        data=data,
        rounds=list(_rounds(data["rounds"], numbers)),
        notes=list(_trace_notes(data)),
        failure=data["plan"].get("failure") or "",
    )


def _rounds(rounds: Sequence[Row], numbers: Collection[int]) -> Iterator[Round]:
    """Kept drafts whole, and the beginnings of the others, which are most of a trace."""
    for item in rounds:
        kept: Sequence[int] = item["kept"]
        drafts = []
        for draft, votes in zip(item["drafts"], item["tallies"], strict=True):
            rank = kept.index(draft["choice"]) + 1 if draft["choice"] in kept else 0
            text = draft["text"]
            if not rank and len(text) > _BEGINNING_CHARS:
                text = f"{text[:_BEGINNING_CHARS]}…"
            shown = paragraphs(text, numbers)
            drafts.append(DraftVersion(draft, votes, rank, shown, whole=text == draft["text"]))
        yield Round(item, drafts)


def _trace_notes(trace: Row) -> Iterator[str]:
    """Repairs, cuts and additions, in words."""
    for name, text in (
        ("contents_cut", "cut before the summary"),
        ("summaries_cut", "cut to fit the prompt"),
    ):
        if trace.get(name):
            papers = [
                "the target" if number == 0 else f"reference {number}" for number in trace[name]
            ]
            yield f"{', '.join(papers).capitalize()}: {text}."
    if trace.get("cut"):
        yield "The section ended at the token limit."
    if trace.get("named"):
        yield f"The section {' and '.join(trace['named'])}."
    if trace.get("frame"):
        yield f"Taken off around the section: {' / '.join(trace['frame'])}"
    for name, text in (
        ("dropped", "named {}, which the task does not have"),
        ("added", "left out {}, which was added"),
    ):
        if trace["plan"].get(name):
            yield f"The plan {text.format(references(trace['plan'][name]))}."
