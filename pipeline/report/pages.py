"""The report's pages as HTML: views in, one self-contained file each out.

Everything that a page shows of papers and models is untrusted. Jinja2 escapes all of it (`autoescape=True` for every
template, not by file name: `select_autoescape` lets `*.html.j2` through), nothing is rendered from Markdown, and the
page's policy allows no script, no picture and no resource but the one style sheet whose hash it names
(https://www.w3.org/TR/CSP3/#directive-style-src). A click from a sentence to its quotes needs no script: the sentence
is a link to a panel that the style sheet shows while it is the target. The bytes depend on the views alone.
"""

from __future__ import annotations

import base64
import hashlib
from functools import cache
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from pipeline.evaluation.cited import printable
from pipeline.evaluation.retrieval.picture import told
from pipeline.report import filters
from pipeline.report.answers.found import name_of
from pipeline.report.answers.names import ANSWERS_PAGE
from pipeline.report.answers.views import AnswersPage, QuestionView
from pipeline.report.published import ARXIV_ID
from pipeline.report.views import ChangesView, FailedView, IndexView, MonthView, RunView, TaskView

TEMPLATES = Path(__file__).parent / "templates"

# A verdict is told by a sign and a word beside its colour, which not everybody sees.
VERDICTS = {
    "supported": ("✓", "supported"),
    "partly": ("◐", "partly supported"),
    "not": ("✗", "not supported"),
    "unjudged": ("?", "not judged"),
}
# The same of claims of answers and of gold claims: the colour it bears, a sign, a word.
GRADES = {
    "correct": ("supported", "✓", "correct"),
    "held": ("supported", "✓", "held"),
    "partly": ("partly", "◐", "partly"),
    "wrong": ("not", "✗", "wrong"),
    "not": ("not", "✗", "not held"),
    "not_checkable": ("unjudged", "?", "could not be checked"),
    "": ("unjudged", "?", "no verdict could be read"),
}


def month_page(view: MonthView) -> bytes:
    """The page of a month, UTF-8."""
    return _page("month.html.j2", view)


def task_page(view: TaskView) -> bytes:
    """The page of a task with its sections, UTF-8."""
    return _page("task.html.j2", view)


def written_page(view: TaskView) -> bytes:
    """The page of how a task's sections were written, UTF-8."""
    return _page("written.html.j2", view)


def answers_page(view: AnswersPage) -> bytes:
    """The page of a month's answers, UTF-8."""
    return _page("answers.html.j2", view)


def question_page(view: QuestionView) -> bytes:
    """The page of a question with every system's answer, UTF-8."""
    return _page("question.html.j2", view)


def failed_page(view: FailedView) -> bytes:
    """The page of what failed, UTF-8."""
    return _page("failed.html.j2", view)


def run_page(view: RunView) -> bytes:
    """The page of what runs took, UTF-8."""
    return _page("run.html.j2", view)


def changes_page(view: ChangesView) -> bytes:
    """A page of what refreshes changed, UTF-8."""
    return _page("changes.html.j2", view)


def index_page(view: IndexView) -> bytes:
    """The page over all months, UTF-8."""
    return _page("index.html.j2", view)


def templates_digest() -> str:
    """SHA-256 over the templates and the style sheet: what a page is made of besides tables."""
    files = sorted(TEMPLATES.iterdir(), key=lambda file: file.name)
    parts = [f"{file.name}\0{hashlib.sha256(file.read_bytes()).hexdigest()}" for file in files if file.is_file()]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


def _page(template: str, view: object) -> bytes:
    return _environment().get_template(template).render(view=view).encode()


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_finalize,
    )
    style = (TEMPLATES / "style.css").read_text()
    environment.globals.update(
        style=Markup(style),  # noqa: S704 - our own file, between style tags, named in the policy by its hash
        policy=_policy(style),
        verdicts=VERDICTS,
        grades=GRADES,
        answers_file=ANSWERS_PAGE,
        chatcite_url=filters.abs_url(ARXIV_ID),
    )
    names = ("abs_url", "fixed", "percent", "count", "number_of", "words", "month_name", "reference")
    environment.filters.update({name: getattr(filters, name) for name in names}, told=told, system_name=name_of)
    return environment


def _finalize(value: object) -> object:
    return printable(value) if type(value) is str else value


def _policy(style: str) -> str:
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    return f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
