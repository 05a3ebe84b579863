"""What annotators receive: a guide, and for each of them a page to read and a CSV sheet to fill in.

Raters read sections of one candidate set. Graders read answers with the claims into which a judge
split them, without its verdicts, quotes and passages: the search for passages is part of what is
tested, so people read the papers themselves.

Texts come from papers and models. Jinja2 escapes them, and a page's policy allows nothing but its
own style, not even a request. Names of tasks and questions are not shown: they may reveal more than
annotators should know.
"""

from __future__ import annotations

import csv
import io
import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from heapq import nsmallest
from pathlib import Path
from string import ascii_uppercase
from typing import NamedTuple

from markupsafe import Markup

from pipeline import tables
from pipeline.corpus.links import abstract_url
from pipeline.engine.sampling import shuffle_key, shuffled
from pipeline.engine.stage import Workspace
from pipeline.errors import MissingInput, SettingError
from pipeline.evaluation.annotation.study import (
    CLAIMS,
    FORMATS,
    STUDY_NAME,
    Kind,
    Part,
    Study,
    Unit,
)
from pipeline.evaluation.answers.measures import read_grades
from pipeline.evaluation.g_score.sample import candidate_sets
from pipeline.evaluation.prose import make_environment, parted, policy_hash, printable
from pipeline.identity.months import select_months
from pipeline.related_work.task_reader import section_rows
from pipeline.storage.data_root import DataRoot
from pipeline.storage.writing import Row, write_whole
from pipeline.tables.writers import full_name, parse_writer, writer_name
from pipeline.text import clip, one_line, text_digest

# Outcomes of grades that leave nothing to annotate.
SILENT = ("abstained", "claims_nothing")
# About 500 words: title, abstract and the beginning of the introduction. Nobody who rates ten tasks
# reads ten papers.
_TARGET_CHARS = 3_500
_TEMPLATES = Path(__file__).parent / "templates"
# A cell that begins with one of these signs is computed when the file is opened, whatever quotes
# are around it; an apostrophe before it makes it text (OWASP, CSV Injection; CWE-1236). The
# full-width forms too: East Asian spreadsheet programs take them for the same signs. Where the
# program separates cells by semicolons, so does each within a text.
_FORMULA = re.compile(r"(^|;[\s\"]*)(?=[=+\-@\t\r\n\uff1d\uff0b\uff0d\uff20])")


class StudyText(NamedTuple):
    """A writer's text. sha256: of what is annotated. claims: to give a verdict on; None where the
    text is rated as a whole, empty where it says nothing.
    """

    text: str
    sha256: str
    claims: Mapping[Part, Sequence[str]] | None = None

    def is_that_of(self, row: Row) -> bool:
        """Whether a row by people is on this text, and on a claim that is still one of it."""
        claims = self.claims is None or row["text"] in self.claims.get(row["part"], ())
        return row["text_sha256"] == self.sha256 and claims


class StudyItem(NamedTuple):
    """A task or question. background: (heading, paragraphs) to read before the texts; texts: system
    → its text.
    """

    item_id: str
    month: str
    title: str
    background: Sequence[tuple[str, Sequence[str]]]
    texts: dict[str, StudyText]


def draw_items(
    workspace: Workspace,
    kind: Kind,
    *,
    months: str,
    systems: Collection[str],
    candidate_set: str | None,
    with_gold: bool,
    most: int,
    seed: int,
) -> list[StudyItem]:
    """Items with a text of every system, `most` of them drawn by the seed: means over different
    items do not compare. Texts that say nothing are left out of them.

    systems: one without a model means the only writer with it; by default the candidate set to
    rate, which is the first where none is named, or all that were graded. Raises SettingError for
    an unknown set, MissingInput where there is nothing to show, and as `sections_to_rate` and
    `answers_to_grade` do.
    """
    root, texts = workspace.root, FORMATS[kind].texts
    selected = select_months(months, root.months(texts))
    rows = (row for month in selected for row in root.iterate(texts, month, ["system", "model"]))
    writers = sorted(set(map(writer_name, rows)))
    if kind == "ratings":
        sets = candidate_sets(workspace.settings, writers)
        if candidate_set not in (None, *sets):
            raise SettingError(f"--set {candidate_set} is none of {', '.join(sets) or 'no set'}")
        candidates = sets.get(candidate_set or next(iter(sets), ""), [])
        items = sections_to_rate(root, selected, with_gold=with_gold)
    else:
        candidates, items = writers, answers_to_grade(root, selected)
    names = {full_name(name, writers) for name in systems or candidates}
    fitting = (item for item in items if names and names <= item.texts.keys())
    shown = []
    for item in nsmallest(most, fitting, key=lambda item: shuffle_key(seed, "items", item.item_id)):
        of_names = {name: item.texts[name] for name in names if item.texts[name].claims != {}}
        shown += [item._replace(texts=of_names)] if of_names else []
    if not shown:
        raise MissingInput(
            f"nothing has a text of each of {', '.join(sorted(names)) or 'no system'}; there are"
            f" texts of {', '.join(writers) or 'none'}: run citeloom run --select {texts.name}, or"
            " name other --systems or --months"
        )
    return shown


def sections_to_rate(
    root: DataRoot, months: Iterable[str], *, with_gold: bool = False
) -> Iterable[StudyItem]:
    """Tasks with the sections that were written for them, to be shown with the section that was
    published or without it. Raises as `DataRoot.iterate` does.
    """
    for month in months:
        texts: dict[str, dict[str, StudyText]] = defaultdict(dict)
        for row in section_rows(root, month):
            if row["text"].strip():
                text = StudyText(row["text"], text_digest(row["text"]))
                texts[row["task_id"]][writer_name(row)] = text
        for task in root.iterate(tables.RELATED_WORK_TASKS, month):
            if task["task_id"] in texts and (task["gold"].strip() or not with_gold):
                yield StudyItem(
                    task["task_id"],
                    month,
                    task["title"] or "",
                    [*_background(task, with_gold=with_gold)],
                    texts[task["task_id"]],
                )


def _background(task: Row, *, with_gold: bool) -> Iterator[tuple[str, list[str]]]:
    target = task["description"].removeprefix(f"# {task['title']}").strip()
    if len(target) > _TARGET_CHARS:
        target = f"{target[:_TARGET_CHARS]}… (the paper continues)"
    yield "The target paper", [part.lstrip("# ") for part in parted(target)]
    yield "References", [*map(_reference_line, task["references"])]
    if with_gold:
        yield "The section that was published", parted(task["gold"])


def _reference_line(reference: Row) -> str:
    title, year, arxiv_id = reference["title"], reference["year"], reference["arxiv_id"]
    parts = [title or clip(reference["text"] or ""), year, arxiv_id and f"arXiv:{arxiv_id}"]
    return f"[Reference {reference['number']}] {', '.join(str(part) for part in parts if part)}"


def answers_to_grade(root: DataRoot, months: Iterable[str]) -> Iterable[StudyItem]:
    """Questions with the answers that a judge graded. All judges grade the same claims, so the
    first in the table is taken.

    Raises SettingError for a question that two months ask, and as `DataRoot.iterate` does.
    """
    items: dict[str, StudyItem] = {}
    for month in months:
        columns = ["question_id", "question", "papers"]
        questions = {
            row["question_id"]: row for row in root.iterate(tables.QUESTIONS, month, columns)
        }
        columns = ["question_id", "system", "model", "text"]
        answers = {
            (row["question_id"], writer_name(row)): row["text"]
            for row in root.iterate(tables.ANSWERS, month, columns)
        }
        for grade in read_grades(root, month):
            question_id, system = grade["question_id"], grade["system"]
            question, text = questions.get(question_id), answers.get((question_id, system))
            if question is None or text is None:
                continue
            # The sample's papers have no address.
            papers = [f"arXiv:{paper} {abstract_url(paper)}" for paper in question["papers"]]
            background = [("Papers", papers)]
            item = items.setdefault(
                question_id, StudyItem(question_id, month, question["question"], background, {})
            )
            if item.month != month:
                raise SettingError(
                    f"question {question_id} is asked in {month} and before: narrow --months"
                )
            claims = {
                part: [row["claim"] for row in grade[column]]
                for part, column in CLAIMS.items()
                if grade["outcome"] not in SILENT
            }
            sha256 = text_digest(f"{question['question']}\0{text}")
            item.texts.setdefault(system, StudyText(text, sha256, claims))
    return items.values()


def make_study(kind: Kind, name: str, seed: int, items: Iterable[StudyItem]) -> Study:
    """A study of these items, its letters drawn by the seed.

    Raises SettingError for a name that is no name of a file or that reveals a system or its model,
    and for more systems than letters.
    """
    if not STUDY_NAME.fullmatch(name):
        raise SettingError(
            f"--name {name!r} is no name of a study: use small letters, digits, '.', '_' and '-',"
            " 50 at most, a letter or digit first"
        )
    plain_name = re.sub("[^a-z0-9]", "", name)
    units: list[Unit] = []
    for place, item in enumerate(items, 1):
        if len(item.texts) > 26:
            raise SettingError(f"{item.item_id} has over 26 texts: name fewer --systems")
        item_name = f"{FORMATS[kind].item_letter}{place:02}"
        systems = shuffled(seed, item.item_id, item.texts)
        for letter, system in zip(ascii_uppercase, systems, strict=False):
            for part in filter(None, parse_writer(system)):
                if re.sub("[^a-z0-9]", "", part.lower()) in plain_name:
                    raise SettingError(
                        f"--name {name} reveals {part} to annotators, who must be blind: choose"
                        " another"
                    )
            text = item.texts[system]
            whole = Unit(
                item=item_name,
                label=f"{item_name}-{letter}",
                month=item.month,
                item_id=item.item_id,
                system=system,
                text_sha256=text.sha256,
                part="section",
            )
            units += (
                [whole]
                if text.claims is None
                else [
                    whole.model_copy(update={"part": part, "number": number, "text": claim})
                    for part, claims in text.claims.items()
                    for number, claim in enumerate(claims, 1)
                ]
            )
    return Study(kind=kind, study=name, seed=seed, units={unit.unit_id: unit for unit in units})


def write_files(study: Study, items: Iterable[StudyItem], folder: Path, annotators: int) -> None:
    """Write the guide, and a page and a sheet for each annotator, into a folder, each file whole or
    absent.

    Everybody tires towards the end, and not of the same items: each annotator has them in an order
    of their own.
    """
    by_id = {item.item_id: item for item in items}
    environment = make_environment(_TEMPLATES)
    environment.filters["parted"] = parted
    style = (_TEMPLATES / "page.css").read_text(encoding="utf-8")
    # Our own file, which the page's policy names by its hash.
    environment.globals.update(style=Markup(style), style_hash=policy_hash(style))  # noqa: S704
    template = environment.get_template("read.html.j2")
    guide = folder / f"{study.kind}-guide.txt"
    write_whole(guide, (_TEMPLATES / guide.name).read_bytes())
    for number in range(1, annotators + 1):
        sheet = folder / f"{study.kind}-{number}.csv"
        shown = [
            (by_id[item_id], [unit for unit in study.units.values() if unit.item_id == item_id])
            for item_id in shuffled(study.seed, f"annotator {number}", by_id)
        ]
        html = template.render(study=study.study, kind=study.kind, sheet=sheet.name, items=shown)
        write_whole(sheet.with_suffix(".html"), html.encode())
        write_whole(sheet, _sheet(study, shown, f"annotator-{number}"))


def _sheet(
    study: Study, shown: Iterable[tuple[StudyItem, Sequence[Unit]]], annotator: str
) -> bytes:
    """The sheet: a line for each unit, nothing filled in but the annotator's name; UTF-8 with the
    mark that Excel needs to see it, lines as RFC 4180.
    """
    columns = FORMATS[study.kind].columns
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(["study", "annotator", "unit", "text", *columns])
    for item, units in shown:
        for unit in units:
            words = _FORMULA.sub(r"\1'", one_line(printable(unit.text or item.title)))
            writer.writerow([study.study, annotator, unit.unit_id, words, *[""] * len(columns)])
    return text.getvalue().encode("utf-8-sig")
