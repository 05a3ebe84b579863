"""Every hostile text is shown on the pages of every template, and inert there.

The pages of a report are made once as data, with a mark in all that papers, models, judges and
settings say; each payload is put in the mark's place and the pages are rendered from that.
"""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from pathlib import Path

import pytest
from selectolax.lexbor import LexborHTMLParser

from pipeline.engine.run import run_stage
from pipeline.evaluation.prose import printable
from pipeline.report import publish, rendering
from pipeline.report.stages import REPORT
from tests.unit.evaluation.hostile import HOSTILE
from tests.unit.evaluation.made_up import write_ledger, write_month
from tests.unit.evaluation.made_up_answers import write_answers
from tests.unit.report.test_pages import assert_inert, folded
from tests.workspaces import make_workspace

pytestmark = pytest.mark.slow

PROJECT = Path(__file__).resolve().parents[3]
TEMPLATES = sorted(PROJECT.glob("pipeline/**/*.html.j2"))
MONTH, MARK = "2024-03", "Zmarkz"
# Each is tried by a test of its own, with what the two share.
ANNOTATION_PAGES = {"read.html.j2"}
# Tried over HTTP by tests/unit/doors/test_pages.py, with hostile papers and queries.
SERVED = {
    f"{name}.html.j2"
    for name in (
        "ask", "corpus", "header", "layout", "outside_paper", "paper", "papers", "problem",
        "result_parts", "results",
    )
}  # fmt: skip
# Extended or imported by the others.
PARTS = {"base.html.j2", "parts.html.j2"}


def marked(text):
    return f"{MARK} {text}"


@pytest.fixture(scope="module")
def views(tmp_path_factory):
    """What each template of the report was given to show, by template."""
    found = defaultdict(list)
    place = make_workspace(tmp_path_factory.mktemp("templates"), judges=MARK, llm_model=MARK)
    write_month(place.root, MONTH, text=marked, tasks=1, papers=2, model=MARK, judges=(MARK,))
    write_answers(place.root, MONTH, text=marked, model=MARK)
    write_ledger(place.root, "key_elements", MONTH, [("2403.90001#S2 2401.00001", MARK, MARK)])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(publish, "render", lambda template, page: found[template].append(page) or b"")
        run_stage(REPORT, place, MONTH)
    return found


def put(value, change):
    """The value with every text in it changed."""
    if type(value) is str:
        return change(value)
    if is_dataclass(value):
        names = [field.name for field in fields(value)]
        return replace(value, **{name: put(getattr(value, name), change) for name in names})
    if isinstance(value, Mapping):
        return {put(name, change): put(each, change) for name, each in value.items()}
    if isinstance(value, list | tuple):
        parts = [put(each, change) for each in value]
        return type(value)(*parts) if hasattr(value, "_fields") else type(value)(parts)
    return value


def test_every_template_is_among_those_that_are_tried(views):
    """A new one fails here until a view of it is made above."""
    of_report = {file.name for file in TEMPLATES if file.parent == rendering.TEMPLATES}
    assert of_report - PARTS == views.keys()
    assert {
        file.name for file in TEMPLATES if file.parent != rendering.TEMPLATES
    } == ANNOTATION_PAGES | SERVED
    silent = [template for template, seen in views.items() if MARK not in str(seen)]
    assert silent == [], "these were given nothing foreign to show"


@pytest.mark.parametrize("payload", HOSTILE)
def test_a_hostile_text_is_inert_on_every_page(views, payload):
    for template, seen in views.items():
        for view in seen if template == "page.html.j2" else seen[:1]:
            page = rendering.render(template, put(view, lambda text: text.replace(MARK, payload)))
            assert_inert(template, page)
            if MARK in str(view):
                assert folded(printable(payload)) in folded(
                    LexborHTMLParser(page.decode()).text()
                ), template


def test_no_template_of_html_turns_escaping_off():
    """Ruff's rule S701 holds that their environments escape."""
    for file in TEMPLATES:
        text = file.read_text()
        assert "|safe" not in text.replace(" ", ""), file
        assert "autoescape" not in text, file
