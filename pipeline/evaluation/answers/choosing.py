"""Which answers people are given to grade, and the files that they get.

A question is taken only where every system of the grading has an answer to it that was graded: means over other
questions cannot be compared.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from pipeline.arxiv.months import select_months
from pipeline.errors import MissingInput, SettingError
from pipeline.evaluation.answers.controls import HALF, OTHER, OWN
from pipeline.evaluation.answers.form import MEANINGS, form
from pipeline.evaluation.answers.grades import Grade
from pipeline.evaluation.answers.people import SILENT
from pipeline.evaluation.answers.rows import grade_of
from pipeline.evaluation.answers.sheets import Key, Shown, make_key, sheet
from pipeline.evaluation.answers.texts import shown_in
from pipeline.evaluation.human.study import check_name, shuffled
from pipeline.storage.data_root import DataRoot
from pipeline.storage.writing import write_whole
from pipeline.tables import ANSWER_GRADES, ANSWERING_SYSTEMS

CONTROLS = (OWN, HALF, OTHER)
_TEMPLATES = Path(__file__).parent / "templates"


@dataclass(frozen=True, slots=True)
class Choice:
    """A grading with what its graders see. lacking: system → questions without a graded answer of it, which were left
    out; silent: system → answers to the chosen questions with nothing to mark; asked: questions asked for; fitting:
    those that could be taken."""

    key: Key
    shown: Mapping[str, Shown]
    systems: tuple[str, ...]
    lacking: Mapping[str, int]
    silent: Mapping[str, int]
    asked: int
    fitting: int

    @property
    def lines(self) -> int:
        """Lines that a grader has to fill in."""
        return sum(len(each.claims) + len(each.gold) for each in self.key.labels.values())

    @property
    def questions(self) -> int:
        """Questions that have an answer to mark."""
        return len({each.question_id for each in self.key.labels.values()})

    def notes(self) -> list[str]:
        """What the user should know: what is not in the sheets, and how much is."""
        told = [f"{count} questions have no graded answer of {name}: left out" for name, count in self.lacking.items()]
        told += [
            f"{count} answers of {name} abstain or claim nothing: they need no grader"
            for name, count in self.silent.items()
        ]
        if self.fitting < self.asked:
            told.append(f"there are {self.fitting} questions, and {self.asked} were asked for")
        answers = f"{len(self.key.labels)} answers to {self.questions} questions"
        return [*told, f"each grader has {self.lines:,} lines to fill in, of {answers}"]


def choose(
    root: DataRoot, name: str, months: str, systems: Sequence[str] | None, *, questions: int, seed: int
) -> Choice:
    """Choose questions by the seed and give each system its letter in each. systems: None for all that were graded.

    Raises SettingError for systems that were not graded and for a name that tells one, MissingInput where no question
    has a graded answer of all of them.
    """
    graded = root.months(ANSWER_GRADES)
    chosen = select_months(months, graded) if graded else []
    shown, found = _read(root, chosen)
    wanted = _wanted(systems, found, months)
    check_name(name, (*ANSWERING_SYSTEMS, *wanted))
    lacking = {each: sum(each not in of for of in found.values()) for each in wanted}
    fitting = [question for question, of in found.items() if all(each in of for each in wanted)]
    if not fitting:
        told = ", ".join(f"{count} without {each}" for each, count in lacking.items())
        raise MissingInput(f"of --months {months}, no question has a graded answer of all systems ({told}): name fewer")
    taken = shuffled(seed, "questions", fitting)[:questions]
    grades = [found[question][each] for question in taken for each in wanted]
    return Choice(
        key=make_key(name, grades, seed, shown),
        shown=shown,
        systems=wanted,
        lacking={each: count for each, count in lacking.items() if count},
        silent=dict(sorted(Counter(grade.system for grade in grades if grade.outcome in SILENT).items())),
        asked=questions,
        fitting=len(fitting),
    )


def _read(root: DataRoot, months: Sequence[str]) -> tuple[dict[str, Shown], dict[str, dict[str, Grade]]]:
    """Question → its words, and question → system → a grade. Judges have the same claims before them, so any will do:
    the first by name."""
    shown: dict[str, Shown] = {}
    found: dict[str, dict[str, Grade]] = {}
    for month in months:
        texts = shown_in(root, month)
        for twice in sorted(shown.keys() & texts.keys()):
            raise SettingError(
                f"question {twice} is asked in {shown[twice].month} and in {month}: run citeloom run --months all, or "
                "name the months of one"
            )
        shown |= texts
        found |= {question: {} for question in texts}
        for grade in map(grade_of, root.iterate(ANSWER_GRADES, month)):
            answered = grade.question_id in texts and grade.system in texts[grade.question_id].answers
            if answered and grade.system not in CONTROLS:
                found[grade.question_id].setdefault(grade.system, grade)
    return shown, found


def _wanted(systems: Sequence[str] | None, found: Mapping[str, Mapping[str, Grade]], months: str) -> tuple[str, ...]:
    there = sorted({system for of in found.values() for system in of})
    if not there:
        raise MissingInput(
            f"of --months {months}, no answer was graded: set CITELOOM_QUESTIONS and run citeloom run --months {months}"
        )
    unknown = sorted(set(systems or ()) - set(there))
    if unknown:
        raise SettingError(f"--systems: nothing of {', '.join(unknown)} was graded; there is {', '.join(there)}")
    return tuple(sorted(set(systems))) if systems else tuple(there)


def write_sheets(choice: Choice, folder: Path, graders: int) -> list[Path]:
    """Write what graders get into a folder, each file whole or not at all; where they lie. A sheet and a form for each
    grader."""
    content = {"README.txt": instructions(choice, graders)}
    for number in range(1, graders + 1):
        whose = (choice.key, choice.shown, f"grader-{number}")
        content |= {f"form-{number}.html": form(*whose), f"sheet-{number}.csv": sheet(*whose)}
    for name, data in content.items():
        write_whole(folder / name, data)
    return [folder / name for name in content]


def instructions(choice: Choice, graders: int) -> bytes:
    """What a grader reads first, as plain text."""
    environment = Environment(
        loader=FileSystemLoader(_TEMPLATES), undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True,
        autoescape=False,  # noqa: S701 - plain text, of our own words and counts alone
    )  # fmt: skip
    told = environment.get_template("README.txt.j2").render(
        name=choice.key.study, graders=graders, lines=choice.lines, answers=len(choice.key.labels),
        questions=choice.questions, meanings=MEANINGS,
    )  # fmt: skip
    return f"{told}\n".encode()
