"""The two pages of each task of a month: sections side by side, each sentence with its citations,
quotes and passages; and how each section was written, from the trace that its summary keeps.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pipeline import tables
from pipeline.evaluation.g_score.measures import named_judgement
from pipeline.evaluation.judge_figures import judge_sentences
from pipeline.evaluation.prose import paragraphs, parted, pieces, printable
from pipeline.llm.models import is_small_model
from pipeline.related_work.summary import cited_numbers, normalize
from pipeline.report.corpus import LeftOut
from pipeline.report.figures import system_colour
from pipeline.report.formatting import (
    MISSING,
    criterion_name,
    number_of,
    passage_link,
    references,
    task_file,
    words,
)
from pipeline.report.grid import Cell, Form, Grid, RowGroup
from pipeline.report.month_data import rows_by
from pipeline.report.related_work_data import RelatedWorkData
from pipeline.report.related_work_tables import best_voted
from pipeline.storage.data_root import DataRoot
from pipeline.tables import CRITERIA
from pipeline.tables.writers import with_shown_name, writer_name

Row = Mapping[str, Any]

# A section with its trace may have a megabyte, and a task eight sections.
_TASKS_AT_ONCE = 20
# A passage of the corpus has some 200 words; an abstract given by a file may be a book.
_MOST_PASSAGE_CHARS = 6_000
# 30 references with 6 drafts of 3 KB each are 540 KB: up to here a page has every draft whole,
# beyond it those that were kept, and the beginnings of the others.
_MOST_DRAFT_CHARS = 600_000
_BEGINNING_CHARS = 400
# What `chatcite_grounded` does to a kept draft that lost a reference; its text in the trace is the
# one before.
_REPAIRED = ("repaired", "patched")
# Parts of a trace that a system may lack.
_EMPTY_TRACE: dict[str, Any] = {
    "citations": {},
    "plan": {},
    "groups": {},
    "revision": {},
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
_CRITERIA_METRICS: tuple[tuple[str, str, Form], ...] = tuple(
    (f"g_{criterion}", criterion_name(criterion), "two") for criterion in CRITERIA
)
_METRICS: tuple[tuple[str, str, tuple[tuple[str, str, Form], ...]], ...] = (
    (
        "ROUGE",
        "F1 against the gold section, in percent",
        (
            ("rouge1", "ROUGE-1", "two"),
            ("rouge2", "ROUGE-2", "two"),
            ("rougeLsum", "ROUGE-L by sentence", "two"),
            ("rougeL", "ROUGE-L of the whole", "two"),
        ),
    ),
    (
        "G-Score",
        "marks from 1 to 5 by {g_score}, all systems in one conversation, mean over the orders",
        (
            *_CRITERIA_METRICS,
            ("g_score", "G-Score, mean of the six", "two"),
            ("g_vote", "Voted best", "percent"),
        ),
    ),
    (
        "Citations",
        "verdicts by {support}",
        (
            ("citation_precision", "Citation precision", "percent"),
            ("citation_recall", "Citation recall", "percent"),
        ),
    ),
    (
        "Citation format and length",
        "",
        (
            ("reference_coverage", "References cited", "percent"),
            ("retention", "Retention", "percent"),
            ("citation_exact", "Exact format", "percent"),
            ("citation_out_of_range", "Out of range", "count"),
            ("words", "Words", "count"),
        ),
    ),
)
"""Groups of metrics: title, what they rest on, (metric, name, form)."""


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


Runs = list[Row]
"""A paragraph as sentences, as `judged_sentences` makes them, and the text between them. Each has
`pieces`, only a sentence has a `place`.
"""


@dataclass(slots=True)
class TaskTally:
    """What the other pages of the month need of the tasks, so that no trace is read twice."""

    retention: dict[str, dict[int, list[float]]] = field(default_factory=dict)
    recovered: list[LeftOut] = field(default_factory=list)
    tasks: list[dict[str, Any]] = field(default_factory=list)
    """The tasks as the month's page lists them."""

    @property
    def pages(self) -> dict[str, str]:
        """Task id → page."""
        return {task["task_id"]: task["page"] for task in self.tasks}

    def add(self, page: Row) -> None:
        """Add a task."""
        from pipeline.evaluation.citation_support.measures import retention_by_round

        task = {name: page["task"][name] for name in ("task_id", "arxiv_id", "title", "outside")}
        self.tasks.append(
            task | {"page": page["file"], "references": len(page["task"]["references"])}
        )
        for section in page["sections"]:
            name = section["system"]
            for step, share in enumerate(
                retention_by_round(section["trace"]), 2
            ):  # the first step has none to lose
                self.retention.setdefault(name, {}).setdefault(step, []).append(share)
            self.recovered += [
                LeftOut(
                    name,
                    task["task_id"],
                    step.split(" of ")[0].split(" for ")[0],
                    f"{step}: {reason}",
                    page["file"],
                )
                for step, reason in section["trace"]["failures"]
            ]


def task_pages(
    root: DataRoot, month: str, data: RelatedWorkData, tally: TaskTally
) -> Iterator[Row]:
    """What the two pages of each task of a month show, by task id, with the rows of 20 tasks in
    memory.
    """
    ids = sorted(root.read(tables.RELATED_WORK_TASKS, month, ["task_id"])["task_id"].to_pylist())
    for first in range(0, len(ids), _TASKS_AT_ONCE):
        for page in _task_pages(root, month, ids[first : first + _TASKS_AT_ONCE], data):
            tally.add(page)
            yield page


def _task_pages(
    root: DataRoot, month: str, ids: Sequence[str], data: RelatedWorkData
) -> Iterator[dict[str, Any]]:
    columns = ["task_id", "arxiv_id", "title", "section_title", "references", "outside", "gold"]
    tasks = rows_by(root, month, tables.RELATED_WORK_TASKS, "task_id", ids, columns)
    summaries, elements, judgements, support = (
        rows_by(root, month, table, "task_id", ids)
        for table in (
            tables.SUMMARIES,
            tables.KEY_ELEMENTS,
            tables.G_SCORES,
            tables.CITATION_SUPPORT,
        )
    )
    for task_id in ids:
        (task,) = tasks[task_id]
        sections = sorted(
            (row for row in summaries[task_id] if row["repeat"] == 0), key=writer_name
        )
        page = _task_page(
            task,
            [with_shown_name(row, data.names) for row in sections],
            sorted(elements[task_id], key=lambda row: (row["number"], row["model"])),
            [named_judgement(row, data.names) for row in judgements[task_id]],
            [with_shown_name(row, data.names) for row in support[task_id]],
            data,
        )
        yield page | {"month": month}


def _task_page(
    task: Row,
    summaries: Sequence[Row],
    elements: Sequence[Row],
    judgements: Sequence[Row],
    support: Sequence[Row],
    data: RelatedWorkData,
) -> dict[str, Any]:
    task_id = task["task_id"]
    titles = {reference["number"]: reference["title"] for reference in task["references"]}
    names = [row["system"] for row in summaries]
    best = best_voted(data, task_id, names)
    models = {row["model"] for row in summaries} | {row["judge"] for row in (*judgements, *support)}
    judges = sorted({row["judge"] for row in support if row["judge"]})
    sections = [
        _section(row, task, titles, support) | {"best": row["system"] in best} for row in summaries
    ]
    return {
        "file": task_file(task_id),
        "written_file": task_file(task_id, "-written"),
        "task": task,
        "gold": paragraphs(task["gold"], set(titles)),
        "sections": sections,
        "scores": _scores_grid(task_id, names, data),
        "judgements": _judgements_grid(judgements),
        "elements": [_element(row, task["title"], titles, elements) for row in elements],
        # Whether there is anything for the page of how the sections were written.
        "has_steps": bool(elements or any(section["trace"]["has_steps"] for section in sections)),
        "small_model": min((model for model in models if is_small_model(model)), default=""),
        "judge_notes": judge_sentences(judges, "citation_support"),
    }


def _section(
    row: Row, task: Row, titles: Mapping[int, str], support: Sequence[Row]
) -> dict[str, Any]:
    """A row of `summaries` with its text and its trace laid out. verdicts: its citations by
    verdict.
    """
    mine = [citation for citation in support if citation["system"] == row["system"]]
    sentences = judged_sentences(row, mine, titles, _own_passages(row, task))
    counts = Counter(citation["verdict"] or "unjudged" for citation in mine)
    return {
        **row,
        "colour": system_colour(row["system"]),
        "paragraphs": lay_out(row["text"], sentences, set(titles)),
        "verdicts": [(verdict, counts[verdict]) for verdict in _VERDICTS if counts[verdict]],
        "trace": read_trace(row["trace"], set(titles)),
    }


def _own_passages(row: Row, task: Row) -> dict[str, PassageExcerpt]:
    """Passages that a system itself based sentences on, by id. Their names, such as R3P12, tell the
    reference.
    """
    papers = {str(reference["number"]): reference["arxiv_id"] for reference in task["references"]}
    named = json.loads(row["trace"] or "{}").get("passages", {})
    return {
        passage["passage_id"]: excerpt(
            passage["text"], papers.get(name.removeprefix("R").partition("P")[0]), None
        )
        for name, passage in sorted(named.items())
    }


def _scores_grid(task_id: str, systems: Sequence[str], data: RelatedWorkData) -> Grid | None:
    judges = {"g_score": data.scores.judge, "support": ", ".join(data.support_judges)}
    groups = []
    for title, about, metrics in _METRICS:
        rows = []
        for metric, name, form in metrics:
            values = data.scores.of_task(task_id, systems, metric)
            if values:
                rows.append([name, *(Cell(values.get(system), form) for system in systems)])
        needed = [name for name in judges if f"{{{name}}}" in about]
        rests_on = about.format(**judges) if all(judges[name] for name in needed) else ""
        groups += [RowGroup(rows, title, rests_on)] if rows else []
    notes = [
        f"{MISSING}: no such number. Only systems that write step by step have retention; citation"
        " precision needs a cited work with a text."
    ]
    columns = ["Metric", *(words(system) for system in systems)]
    return (
        Grid("scores", "Scores", columns, groups=groups, notes=notes)
        if groups and systems
        else None
    )


def _judgements_grid(judgements: Sequence[Row]) -> Grid | None:
    """Every conversation with a judge: the order of the systems, its marks, and its vote."""
    rows = [
        [
            row["judge"],
            row["mode"],
            row["repeat"] + 1,
            ", ".join(
                f"{words(marks['system'])} {'-'.join(str(marks[name]) for name in CRITERIA)}"
                for marks in row["marks"]
            ),
            words(row["best"]) if row["best"] else None,
            ", ".join(words(text) for text in row["cut"] or ()),
        ]
        for row in judgements
    ]
    columns = ["Judge", "Mode", "Repeat", "Order and marks", "Vote", "Cut"]
    criteria = ", ".join(criterion_name(criterion).lower() for criterion in CRITERIA)
    about = f"Marks in this order: {criteria}. The judge saw no names."
    return Grid("judgements", "Judgements", columns, rows, about=about) if rows else None


def _element(
    row: Row, target: str, titles: Mapping[int, str], elements: Sequence[Row]
) -> dict[str, Any]:
    """The key elements of one paper, with the model's name where several extracted them."""
    number = row["number"]
    title = target if number == 0 else titles.get(number, str(row["arxiv_id"]))
    model = f" ({row['model']})" if len({other["model"] for other in elements}) > 1 else ""
    name = "Target" if number == 0 else f"Reference {number}"
    answers = [(words(element), row[element] or "") for element in _ELEMENTS]
    return {"paper": f"{name}: {title}{model}", "cut": row["content_cut"], "answers": answers}


def judged_sentences(
    summary: Row,
    support: Sequence[Row],
    titles: Mapping[int, str],
    own_passages: Mapping[str, PassageExcerpt],
) -> list[Row]:
    """The sentences of a section with their verdict, citations and own passages, not yet laid out.

    support: its rows of `citation_support`; titles: of the references by number; own_passages: by
    id, of those that the system itself named.
    """
    sentences = []
    for place, sentence in enumerate(summary["sentences"], 1):
        rows = sorted(
            (row for row in support if row["sentence"] == place), key=lambda row: int(row["number"])
        )
        citations = [judged_citation(row, titles) for row in rows]
        sentences.append(
            sentence
            | {
                "place": place,
                "verdict": combined_verdict([citation["verdict"] for citation in citations]),
                "citations": citations,
                "own_passages": [
                    own_passages[name]
                    for name in sentence["passages"] or ()
                    if name in own_passages
                ],
            }
        )
    return sentences


def combined_verdict(verdicts: Sequence[str]) -> str:
    """The verdict of a sentence: that of its judged citations where they agree, else partly;
    unjudged where none was judged, '' where there is none.
    """
    judged = {verdict for verdict in verdicts if verdict != "unjudged"}
    if len(judged) == 1:
        return judged.pop()
    return "partly" if judged else "unjudged" if verdicts else ""


def judged_citation(row: Row, titles: Mapping[int, str]) -> dict[str, Any]:
    """A row of `citation_support` with the title of the cited work, '' for no reference of the
    task, and its passages, the quote marked in the one that holds it.
    """
    passages = [
        excerpt(
            passage["text"],
            row["arxiv_id"],
            passage["anchor"],
            row["quote"] or "" if place == row["quoted"] else "",
        )
        for place, passage in enumerate(row["passages"] or ())
    ]
    verdict, title = row["verdict"] or "unjudged", titles.get(row["number"], "")
    return {**row, "verdict": verdict, "title": title, "passages": passages}


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


def lay_out(text: str, sentences: Iterable[Row], known: Collection[int]) -> list[Runs]:
    """The paragraphs of a text as sentences and the text between them, which joined give each
    paragraph back.

    The `text` of sentences, in order, may have other white space. A sentence that is in no
    paragraph after the one
    before it stays part of the text around it. known: numbers of the task's references.
    """
    laid_out = [_Paragraph(part, known) for part in parted(text)]
    at = 0
    for sentence in sentences:
        at = next(
            (place for place in range(at, len(laid_out)) if laid_out[place].take(sentence)), at
        )
    return [paragraph.runs() for paragraph in laid_out]


class _Paragraph:
    """A paragraph whose sentences are taken one after another, compared without white space."""

    def __init__(self, text: str, known: Collection[int]) -> None:
        self._text, self._known = text, known
        self._places = [place for place, character in enumerate(text) if not character.isspace()]
        self._characters = "".join(text[place] for place in self._places)
        self._next = 0
        self._end = 0
        self._runs: Runs = []

    def take(self, sentence: Row) -> bool:
        """Take a sentence where it follows those taken before; whether it does."""
        characters = "".join(printable(sentence["text"]).split())
        first = self._characters.find(characters, self._next)
        if not characters or first < 0:
            return False
        self._next = first + len(characters)
        start, end = self._places[first], self._places[self._next - 1] + 1
        self._add_text(start)
        self._runs.append({**sentence, "pieces": pieces(self._text[start:end], self._known)})
        self._end = end
        return True

    def runs(self) -> Runs:
        self._add_text(len(self._text))
        return self._runs

    def _add_text(self, until: int) -> None:
        if until > self._end:
            self._runs.append({"pieces": pieces(self._text[self._end : until], self._known)})
            self._end = until


def read_trace(text: str | None, numbers: Collection[int]) -> dict[str, Any]:
    """The trace that a summary keeps as JSON, with what its pages need beside it. numbers: of the
    task's references.

    Added are notes: what was repaired or cut, one sentence each; failures: (step, reason) of
    answers that could not be read; has_steps: whether there is more to show than the section; and
    what `_rounds` adds to each round.
    """
    trace: dict[str, Any] = _EMPTY_TRACE | json.loads(text or "{}")
    laid_out = {
        "rounds": list(_rounds(trace["rounds"], numbers)),
        "notes": list(_trace_notes(trace)),
        "failures": list(_trace_failures(trace)),
    }
    parts = (trace["plan"].get("lines"), trace["groups"].get("groups"), trace["summaries"])
    return trace | laid_out | {"has_steps": any((*laid_out.values(), *parts))}


def _rounds(rounds: Sequence[Row], numbers: Collection[int]) -> Iterator[Row]:
    """Rounds of the search, one for each reference.

    Added are earlier: how many references the rounds before had; lost: those that the best kept
    draft does not cite; and to each draft its votes, its paragraphs, its rank among the kept, 0
    where it was dropped, and whether its text is whole.
    """
    whole = (
        sum(len(draft["text"]) for item in rounds for draft in item["drafts"]) <= _MOST_DRAFT_CHARS
    )
    earlier: list[int] = []
    for item in rounds:
        kept: Sequence[int] = item["kept"]
        drafts = []
        for draft, votes in zip(item["drafts"], item["tallies"], strict=True):
            rank = kept.index(draft["choice"]) + 1 if draft["choice"] in kept else 0
            text = draft["text"]
            if not (whole or rank) and len(text) > _BEGINNING_CHARS:
                text = f"{text[:_BEGINNING_CHARS]}…"
            added = {"votes": votes, "rank": rank, "paragraphs": paragraphs(text, numbers)}
            drafts.append(draft | added | {"whole": text == draft["text"]})
        yield {**item, "drafts": drafts, "earlier": len(earlier), "lost": _lost(item, earlier)}
        earlier.append(item["reference"])


def _lost(item: Row, earlier: Sequence[int]) -> list[int]:
    """The references of earlier rounds that the best kept draft does not cite; a repaired draft
    cites them all.
    """
    if not item["kept"] or any(guard["how"] in _REPAIRED for guard in item.get("guard", ())[:1]):
        return []
    cited = cited_numbers(normalize(item["drafts"][item["kept"][0] - 1]["text"])[0])
    return [number for number in earlier if number not in cited]


def _trace_notes(trace: Row) -> Iterator[str]:
    """What was repaired, cut or added, in words."""
    if trace.get("examples"):
        yield f"The prompt had {number_of(len(trace['examples']), 'example')} of style."
    if trace.get("steps"):
        yield (
            "The papers were read in full."
            if trace["steps"] == 1
            else "The papers were first summarised one by one."
        )
    for name, text in (
        ("contents_cut", "cut before the summary"),
        ("summaries_cut", "cut to fit the prompt"),
    ):
        if trace.get(name):
            papers = [
                "the target" if number == 0 else f"reference {number}" for number in trace[name]
            ]
            yield f"{', '.join(papers).capitalize()}: {text}."
    if trace.get("truncated"):
        texts = ", ".join(
            f"{kind.replace('_', ' ')} {number}" for kind, number in trace["truncated"].items()
        )
        yield f"Texts that ended at the token limit: {texts}."
    for name, subject in (("plan", "The plan"), ("groups", "The grouping")):
        for key, text in (
            ("dropped", "named {}, which the task does not have"),
            ("repeated", "named {} twice"),
            ("added", "left out {}, which was added"),
        ):
            if trace[name].get(key):
                yield f"{subject} {text.format(references(trace[name][key]))}."
    cut = [item["reference"] for item in trace.get("evidence", ()) if item["cut"]]
    if cut:
        yield f"Not all passages were shown for {references(cut)}."


def _trace_failures(trace: Row) -> Iterator[tuple[str, str]]:
    """Structured answers that could not be read, after one repair each; the system went on without
    them.
    """
    for name, step in (
        ("plan", "plan"),
        ("groups", "grouping"),
        ("support", "own judge"),
        ("revision", "revision"),
    ):
        if trace.get(name, {}).get("failure"):
            yield step, trace[name]["failure"]
    for item in trace.get("evidence", ()):
        if item["failure"]:
            yield f"evidence of reference {item['reference']}", item["failure"]
    for item in trace["rounds"]:
        for guard in item.get("guard", ()):
            if guard["failure"]:
                yield f"draft for reference {item['reference']}", guard["failure"]
