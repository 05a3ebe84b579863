"""The pages of a month's tasks and questions: texts side by side, each sentence with its evidence,
and what led to them. The template shows the rows of the tables.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pipeline import tables
from pipeline.answering.answer import answer_of_row
from pipeline.answering.rendering import StepRenderer
from pipeline.evaluation.answers.measures import age_of
from pipeline.evaluation.prose import Piece, paragraphs, parted, pieces
from pipeline.index.papers import rows_of_papers
from pipeline.report.figures import answering_colour, system_colour
from pipeline.report.formatting import (
    answering_system,
    question_date,
    question_file,
    task_file,
    words,
    words_pattern,
)
from pipeline.report.frames import (
    LeftOut,
    ReportData,
    Row,
    answering_order,
    read_or_empty,
)
from pipeline.stage_names import ANSWERING_SYSTEMS
from pipeline.system_names import FORMER_ANSWERING_SYSTEMS
from pipeline.tables import Table
from pipeline.tables.writers import with_display_name, writer_name

# A section with its trace may have a megabyte, and a task eight sections.
_PAGES_AT_ONCE = 20


@dataclass(frozen=True, slots=True)
class Run:
    """A part of a paragraph: a sentence, or the text between two.

    place: of the sentence, from 1; 0 for none. evidence: rows of `citation_support`, or claims.
    """

    pieces: Sequence[Piece]
    place: int = 0
    evidence: Sequence[Row] = ()

    @property
    def verdict(self) -> str:
        """That of its judged citations where they agree, else partly; unjudged where none was
        judged, '' where it has none.
        """
        verdicts = {row["verdict"] for row in self.evidence if "verdict" in row}
        judged = verdicts - {None}
        if len(judged) > 1:
            return "partly"
        return judged.pop() if judged else "unjudged" if verdicts else ""


@dataclass(frozen=True, slots=True)
class Text:
    """A section or an answer. anchor: its place on the page. row: of `summaries` or `answers`.
    trace: of a section. steps: of an answer, in words. grades: its rows of `answer_grades`.
    """

    anchor: str
    name: str
    colour: int
    row: Row
    paragraphs: Sequence[Sequence[Run]]
    best: bool = False
    trace: Any = None
    steps: Sequence[str] = ()
    grades: Sequence[Row] = ()


@dataclass(frozen=True, slots=True)
class WrittenPage:
    """The page of a task, which has another page of traces, or of a question.

    row: of the task or question. elements: the task's rows of `key_elements`. date: of the
    question, with its age. places: passage id → arXiv id and anchor. failures: answers of models
    that could not be read.
    """

    month: str
    file: str
    title: str
    row: Row
    gold: Sequence[Sequence[Run]]
    texts: Sequence[Text]
    small_model: str
    failures: Sequence[LeftOut]
    traces_file: str = ""
    elements: Sequence[Row] = ()
    date: str = ""
    places: Mapping[str, tuple[str, str]] = field(default_factory=dict)


def written_pages(data: ReportData) -> Iterator[WrittenPage]:
    """The pages of a month's tasks and questions, by id."""
    judged = (tables.SUMMARIES, tables.CITATION_SUPPORT, tables.KEY_ELEMENTS)
    for rows in _rows_by_id(data, "task_id", tables.RELATED_WORK_TASKS, judged):
        yield _task_page(data, *rows)
    graded = (tables.ANSWERS, tables.ANSWER_GRADES)
    for rows in _rows_by_id(data, "question_id", tables.QUESTIONS, graded):
        yield _question_page(data, *rows)


def _rows_by_id(
    data: ReportData, key: str, first: Table, others: Sequence[Table]
) -> Iterator[list[list[Row]]]:
    """The rows of each id of a table in it and in others, by id, with those of 20 ids in memory;
    writers by their names in the report.
    """
    root, month = data.root, data.months[0].month
    names = {**data.related.names, **data.answers.names}
    ids = sorted(read_or_empty(root, first, month, [key])[key].to_pylist())
    for start in range(0, len(ids), _PAGES_AT_ONCE):
        batch = ids[start : start + _PAGES_AT_ONCE]
        rows: dict[tuple[str, Table], list[Row]] = defaultdict(list)
        for table in (first, *others):
            if root.provenance(table, month):
                for row in root.rows_with(table, month, key, batch, table.schema.names):
                    named = with_display_name(row, names) if "system" in row else row
                    rows[row[key], table].append(named)
        for name in batch:
            yield [rows[name, table] for table in (first, *others)]


def _task_page(
    data: ReportData,
    task: Sequence[Row],
    summaries: Sequence[Row],
    support: Sequence[Row],
    elements: Sequence[Row],
) -> WrittenPage:
    row = task[0]
    task_id, file = row["task_id"], task_file(row["task_id"])
    numbers = {reference["number"] for reference in row["references"]}
    sections = sorted((row for row in summaries if row["repeat"] == 0), key=writer_name)
    best = data.related.scores.best_voted(task_id, [row["system"] for row in sections])
    texts = [
        Text(
            anchor=section["system"],
            name=words(section["system"]),
            colour=system_colour(section["system"]),
            row=section,
            paragraphs=section_paragraphs(section, support, numbers),
            best=section["system"] in best,
            trace=json.loads(section["trace"] or "{}"),
        )
        for section in sections
    ]
    failures = [
        LeftOut(text.anchor, task_id, "unreadable answer: plan", f"plan: {failure}", file)
        for text in texts
        if (failure := text.trace.get("plan", {}).get("failure"))
    ]
    has_traces = elements or any(text.trace for text in texts)
    return WrittenPage(
        month=data.months[0].month,
        file=file,
        title=row["title"],
        row=row,
        gold=[[Run(part)] for part in paragraphs(row["gold"], numbers)],
        texts=texts,
        small_model=data.related.small_model,
        failures=failures,
        traces_file=task_file(task_id, "-written") if has_traces else "",
        elements=sorted(elements, key=lambda row: (row["number"], row["model"])),
    )


def section_paragraphs(
    summary: Row, support: Sequence[Row], known: Collection[int]
) -> list[list[Run]]:
    """A section by paragraph, each sentence with its rows of `citation_support`. known: numbers of
    the task's references.
    """
    mine = sorted(
        (row for row in support if row["system"] == summary["system"]),
        key=lambda row: int(row["number"]),
    )
    sentences = [
        (item["text"], [row for row in mine if row["sentence"] == place])
        for place, item in enumerate(summary["sentences"], 1)
    ]
    return lay_out(summary["text"], sentences, known)


def lay_out(
    text: str, sentences: Sequence[tuple[str, Sequence[Any]]], known: Collection[int]
) -> list[list[Run]]:
    """The paragraphs of a text as sentences and the text between them, which joined give each
    paragraph back.

    sentences: (text, evidence). One, whose white space may differ, is looked for after the one
    before it; one that is not found stays part of the text around it. known: numbers of the task's
    references.
    """
    parts = parted(text)
    runs: list[list[Run]] = [[] for _ in parts]
    ends = [0] * len(parts)
    first = 0
    for number, (sentence, evidence) in enumerate(sentences, 1):
        pattern = words_pattern(sentence)
        for place in range(first, len(parts)) if sentence.strip() else ():
            match = pattern.search(parts[place], ends[place])
            if match:
                between = parts[place][ends[place] : match.start()]
                runs[place].append(Run(pieces(between, known)))
                runs[place].append(Run(pieces(match[0], known), number, evidence))
                first, ends[place] = place, match.end()
                break
    for part, of_part, end in zip(parts, runs, ends, strict=True):
        of_part.append(Run(pieces(part[end:], known)))
    return runs


def _question_page(
    data: ReportData, question: Sequence[Row], answers: Sequence[Row], graded: Sequence[Row]
) -> WrittenPage:
    row, judge = question[0], data.answers.scores.judge
    question_id, file = row["question_id"], question_file(row["question_id"])
    systems = sorted(answer["system"] for answer in answers)
    texts, failures = [], []
    for answer in sorted(answers, key=lambda row: answering_order(row["system"]), reverse=True):
        system, steps = answer["system"], json.loads(answer["trace"]).get("steps", ())
        passages, render_step = answer_of_row(dict(answer)).passages, StepRenderer()
        grades = [grade for grade in graded if grade["system"] == system]
        # An imported system may be called anything, so its name is no anchor.
        known = system in ANSWERING_SYSTEMS or system in FORMER_ANSWERING_SYSTEMS
        texts.append(
            Text(
                anchor=system if known else f"answer-{systems.index(system) + 1}",
                name=answering_system(system),
                colour=answering_colour(system, systems),
                row=answer,
                paragraphs=_answer_paragraphs(answer),
                steps=["\n".join(render_step(step, passages)) for step in steps],
                grades=sorted(grades, key=lambda grade: (grade["judge"] != judge, grade["judge"])),
            )
        )
        failures += [
            LeftOut(system, question_id, f"unreadable answer: {step['stage']}", failure, file)
            for step in steps
            if (failure := step.get("failure"))
        ]
    date = question_date(row)
    age = age_of(date, data.answers.cutoff)
    columns = ["passage_id", "arxiv_id", "anchor"]
    places = rows_of_papers(data.root, tables.PASSAGES, row["papers"], columns)
    return WrittenPage(
        month=data.months[0].month,
        file=file,
        title=row["question"],
        row=row,
        gold=[
            [Run([Piece(claim["claim"])], number, [claim])]
            for number, claim in enumerate(row["claims"], 1)
        ],
        texts=texts,
        small_model=data.answers.small_model,
        failures=failures,
        date=f"{date}, {age}" if age else date,
        places={row["passage_id"]: (row["arxiv_id"], row["anchor"]) for row in places},
    )


def _answer_paragraphs(answer: Row) -> list[list[Run]]:
    """An answer in one paragraph, each sentence with its claims; the text as it is where no
    sentence rests on a claim.
    """
    claims = {claim["number"]: claim for claim in answer["claims"]}
    if answer["abstained"] or not claims:
        return [[Run([Piece(part)])] for part in parted(answer["text"])]
    runs = []
    for place, sentence in enumerate(answer["sentences"], 1):
        evidence = [claims[number] for number in sentence["claims"]]
        runs += [Run([Piece(sentence["text"])], place, evidence), Run([Piece(" ")])]
    return [runs]
