"""Pages as HTML: one self-contained file each.

Everything that a page shows of papers and models is untrusted. Jinja2 escapes all of it
(`autoescape=True` for every template: `select_autoescape` goes by file name and lets `*.html.j2`
through), nothing is rendered from Markdown, and formulas become MathML of a fixed set of elements.
The policy of a page allows the one style sheet whose hash it names, and on pages with a sortable
table the one script whose hash it names (https://www.w3.org/TR/CSP3/#directive-style-src).

A click from a sentence to its quotes needs no script: the sentence links to a panel that the style
sheet shows while it is the target.
"""

from __future__ import annotations

import hashlib
import html
import re
from collections.abc import Sequence
from functools import cache, lru_cache
from pathlib import Path
from xml.etree.ElementTree import Element

from jinja2 import Environment
from markupsafe import Markup, escape

from pipeline.answering.rendering import CLAIM_ORIGINS
from pipeline.corpus.links import abstract_url
from pipeline.evaluation.answers.measures import answer_measures
from pipeline.evaluation.prose import make_environment, policy_hash, printable
from pipeline.identity.months import month_name
from pipeline.report import formatting
from pipeline.text import number_of, text_digest

TEMPLATES = Path(__file__).parent / "templates"
_FILTERS = (
    "at_quote", "beginning", "count", "fixed", "passage_link", "percent", "place_in_paper",
    "reference", "small_model_note", "words",
)  # fmt: skip
# Of citations, of claims and of gold claims: the style, and a sign and a word beside its colour,
# which not everybody sees.
_VERDICTS = {
    "supported": ("supported", "✓", "supported"),
    "partly": ("partly", "◐", "partly"),
    "not": ("not", "✗", "not supported"),
    "unjudged": ("unjudged", "?", "not judged"),
    "correct": ("supported", "✓", "correct"),
    "held": ("supported", "✓", "held"),
    "wrong": ("not", "✗", "wrong"),
    "not_held": ("not", "✗", "not held"),
    "not_checkable": ("unjudged", "?", "could not be checked"),
    "unread": ("unjudged", "?", "no readable verdict"),
}
_UNJUDGED = {
    "out_of_range": "The task has no such reference.",
    "no_text": "Only the bibliography item of this work is known.",
    "unreadable_answer": "The judge's answer could not be read.",
    "over_the_limit": "Not among the citations that were judged.",
}
# As Pandoc has it: no white space inside the dollar signs, no digit after them where one is behind
# the first, so that prices stay text.
_FORMULA = re.compile(
    r"(\$\$?)(?:(?=[^\s\d$])|(?=\d[^$\n]{0,2000}\1(?!\d)))([^$\n]{1,2000}?)(?<=\S)\1"
)
# LaTeXML's form of a space that does not break.
_TIE = re.compile(r"\\leavevmode\\nobreak(?:\\ )?")
# latex2mathml is recursive, and no formula of the corpus nests this deep.
_MOST_NESTING = 20
_MATH_ELEMENTS = {
    "math", "mrow", "mi", "mn", "mo", "ms", "mtext", "mspace", "msup", "msub", "msubsup", "mover",
    "munder", "munderover", "mfrac", "msqrt", "mroot", "mtable", "mtr", "mtd", "mstyle",
    "mpadded", "mphantom", "mmultiscripts", "mprescripts", "none",
}  # fmt: skip
_MATH_ATTRIBUTES = {
    "mathvariant", "stretchy", "fence", "separator", "form", "accent", "columnalign",
    "rowspacing", "columnspacing", "linethickness", "lspace", "rspace", "largeop",
    "movablelimits", "symmetric", "displaystyle", "scriptlevel", "width", "height", "depth",
    "minsize", "maxsize", "display",
}  # fmt: skip


def render(template: str, page: object) -> bytes:
    """A page, UTF-8; its bytes depend on the page's data and the templates alone."""
    return _environment().get_template(template).render(page=page).encode()


def templates_digest() -> str:
    """SHA-256 over the templates, the style sheet and the script: what a page is made of besides
    its data.
    """
    files = sorted(TEMPLATES.iterdir(), key=lambda file: file.name)
    parts = [
        f"{file.name}\0{hashlib.sha256(file.read_bytes()).hexdigest()}"
        for file in files
        if file.is_file()
    ]
    return text_digest("\n".join(parts))


def environment_with_filters(*folders: Path) -> Environment:
    """Templates of these folders with the filters of reports."""
    environment = make_environment(*folders)
    environment.filters.update(
        {name: getattr(formatting, name) for name in _FILTERS},
        abstract_url=abstract_url,
        answer_measures=answer_measures,
        month_name=month_name,
        number_of=number_of,
        tex=render_formulas,
    )
    return environment


@cache
def _environment() -> Environment:
    environment = environment_with_filters(TEMPLATES)
    style, script = ((TEMPLATES / name).read_text() for name in ("style.css", "sort.js"))
    policy = f"default-src 'none'; style-src {_source(style)}; base-uri 'none'; form-action 'none'"
    environment.globals.update(
        style=Markup(style),  # noqa: S704 - our own file, which the policy names by its hash
        script=Markup(script),  # noqa: S704 - our own file, which the policy names by its hash
        policy=policy,
        script_policy=f"{policy}; script-src {_source(script)}",
        verdicts=_VERDICTS,
        unjudged=_UNJUDGED,
        origins=CLAIM_ORIGINS,
        answers_file=formatting.ANSWERS_PAGE,
        failures_file=formatting.FAILURES_PAGE,
    )
    return environment


def script_source() -> str:
    """The source expression of a policy that allows the script of report pages and no other."""
    return _source((TEMPLATES / "sort.js").read_text())


def _source(text: str) -> str:
    return f"'sha256-{policy_hash(text)}'"


def render_formulas(text: str, marks: Sequence[str] = ()) -> Markup:
    """A text with its formulas, `$…$` and `$$…$$`, as MathML, or as code where they cannot be
    converted; the rest is escaped. marks: words to mark where they are no part of a formula.
    """
    parts, end = [], 0
    text = printable(text)
    if "$" not in text:
        return _with_marks(text, marks)
    for formula in _FORMULA.finditer(text):
        before = text[end : formula.start()]
        parts += [_with_marks(before, marks), _formula(formula[2], formula[1])]
        end = formula.end()
    return Markup("").join([*parts, _with_marks(text[end:], marks)])


def _with_marks(text: str, marks: Sequence[str]) -> Markup:
    words = [re.escape(printable(mark)) for mark in marks if mark]
    if not words:
        return escape(text)
    # Every second piece is a word to mark.
    pieces = re.split(rf"(?<!\w)({'|'.join(words)})(?!\w)", text)
    marked = Markup("<mark>%s</mark>")
    return Markup("").join(
        marked % piece if place % 2 else escape(piece) for place, piece in enumerate(pieces)
    )


@lru_cache(maxsize=10_000)
def _formula(tex: str, dollars: str) -> Markup:
    from latex2mathml.converter import convert_to_element

    code = Markup('<code class="tex">%s</code>') % f"{dollars}{tex}{dollars}"
    if tex.count("{") > _MOST_NESTING or tex.count("\\left") > _MOST_NESTING:
        return code
    try:
        display = "block" if dollars == "$$" else "inline"
        element = convert_to_element(_TIE.sub("~", tex), display=display)
    except Exception:
        return code
    markup = _mathml(element)
    return code if markup is None else markup


def _mathml(element: Element) -> Markup | None:
    """An element as MathML; None where it or one of its children is not of the fixed set.

    The library's own text form is not used: it undoes the escaping of texts, such as that of
    \\text{<script>}.
    """
    children = [_mathml(child) for child in element]
    if element.tag not in _MATH_ELEMENTS or None in children:
        return None
    attributes = Markup("").join(
        Markup(' %s="%s"') % (name, value)
        for name, value in element.attrib.items()
        if name in _MATH_ATTRIBUTES and value != "inline"
    )
    inner = Markup("").join([escape(html.unescape(element.text or "")), *filter(None, children)])
    return Markup("<%s%s>%s</%s>") % (element.tag, attributes, inner, element.tag)
