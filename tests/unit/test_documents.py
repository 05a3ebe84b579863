"""README and docs/ agree with the code: commands, options, settings, scripts, targets, links,
generated pages and figures.
"""

import re
import shlex
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import get_args

import pytest
import typer

from pipeline.doors.web.guard import ProblemKind
from pipeline.settings import Settings
from pipeline.stages import STAGES
from tools.generate_reference import GENERATED
from tools.generate_reference import PAGES as COMMAND_PAGES

PROJECT = Path(__file__).resolve().parents[2]
README = PROJECT / "README.md"
DOCS = PROJECT / "docs"
PAGES = (
    README,
    PROJECT / "CONTRIBUTING.md",
    PROJECT / "examples" / "README.md",
    *sorted(DOCS.rglob("*.md")),
)

# Read by tests and scripts alone, and the variable that names the file of settings.
NOT_SETTINGS = (
    "CITELOOM_TEST_", "CITELOOM_FAULTS_", "CITELOOM_REQUIRE_TOOLS", "CITELOOM_ENV_FILE"
)  # fmt: skip
# A line that calls the command, settings before it or not.
CALL = re.compile(r"(?:[A-Z_]+=\S* )*citeloom (?=[a-z])")
BUILT = (DOCS / "concepts" / "how-it-is-built.md").read_text()
pages = pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(PROJECT)))


def fenced(text):
    """The lines to type in code blocks of the shell or without a language, without comments, prompts
    and redirections. If a block has prompts (`$`), other lines are answers.
    """
    for block in re.findall(r"^```(?:bash)?\n(.*?)^```", text, re.MULTILINE | re.DOTALL):
        lines = block.splitlines()
        prompted = any(line.startswith("$ ") for line in lines)
        for line in lines:
            typed = re.sub(r"\s+[#>] .*$|^#.*$", "", line.removeprefix("$ ")).strip()
            if typed and (line.startswith("$ ") or not prompted):
                yield typed


def inline(text):
    """The text between single backticks, outside of code blocks."""
    outside = re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)
    for span in re.findall(r"(?<!`)`([^`]+)`(?!`)", outside):
        yield " ".join(span.split())


def needs_drafts():
    pytest.importorskip("drafts", reason="the documents describe the commands of drafts too")


@cache
def _citeloom():
    needs_drafts()
    from pipeline.doors.cli.app import app

    return typer.main.get_command(app)


def _command(words):
    """The command that words name, of however many words its name is, and its arguments."""
    command = _citeloom()
    while hasattr(command, "commands") and words and not words[0].startswith("-"):
        assert words[0] in command.commands, f"there is no command {words[0]}"
        command, words = command.commands[words[0]], words[1:]
    return command, words


def _options(command):
    """All that a command, or one below it, takes."""
    below = getattr(command, "commands", {}).values()
    parameters = [parameter for each in (command, *below) for parameter in each.params]
    return {"--help"}.union(*((*each.opts, *each.secondary_opts) for each in parameters))


@pages
def test_a_command_that_a_page_tells_to_type_can_be_typed(page):
    wrong = []
    for line in fenced(page.read_text()):
        if CALL.match(line):
            try:
                command, arguments = _command(shlex.split(CALL.sub("", line)))
                command.make_context(command.name, arguments)
            except (AssertionError, typer.TyperException) as error:
                wrong.append(f"{line}: {error}")
    assert wrong == []


@pages
def test_a_command_that_a_page_names_is_there_with_its_options(page):
    wrong = []
    for line in inline(page.read_text()):
        if CALL.match(line):
            words = CALL.sub("", line).split()
            try:
                gone = {word for word in words if word.startswith("--")} - _options(
                    _command(words)[0]
                )
            except AssertionError as error:
                wrong.append(f"{line}: {error}")
            else:
                wrong += [f"{line}: no option {option}" for option in gone]
    assert wrong == []


def test_the_page_on_how_it_is_built_has_every_stage_and_folder():
    _, picture, text = BUILT.split("```")
    stages = {stage.name for stage in STAGES}
    folders = {file.parent.name for file in PROJECT.glob("pipeline/*/__init__.py")}
    assert stages <= {*re.findall(r"\w+", picture)}
    assert stages | folders <= {*re.findall(r"`(\w+)`", text)}


@pytest.mark.parametrize(("name", "file"), re.findall(r"`(\w+)`\s\(`(\S+\.py)`\)", BUILT))
def test_a_function_that_the_page_on_how_it_is_built_names_is_in_its_file(name, file):
    assert re.search(rf"\b(def|class) {name}\b", (PROJECT / file).read_text())


@pytest.mark.parametrize("path", GENERATED)
def test_a_generated_file_is_up_to_date(path):
    if path.endswith("commands.md"):
        needs_drafts()
    assert (PROJECT / path).read_text() == GENERATED[path](), (
        "run python -m tools.generate_reference"
    )


def test_every_command_that_the_reference_links_to_a_page_exists():
    assert set(COMMAND_PAGES) <= set(_citeloom().commands)


@pages
def test_a_setting_that_a_page_names_is_there(page):
    known = {f"CITELOOM_{name.upper()}" for name in Settings.model_fields}
    wrong = []
    for name, more in re.findall(r"\b(CITELOOM_[A-Z_]*[A-Z])(_…)?", page.read_text()):
        there = any(each.startswith(f"{name}_") for each in known) if more else name in known
        if not there and not name.startswith(NOT_SETTINGS):
            wrong.append(name + more)
    assert wrong == []


@pages
def test_a_module_or_a_target_that_a_page_names_is_there(page):
    text = page.read_text()
    modules = re.findall(r"python -m ((?:benchmarks|tools|tests)[\w.]*)", text)
    made = re.search(r"^\.PHONY: (.*)$", (PROJECT / "Makefile").read_text(), re.MULTILINE)[1]
    typed = [line.split() for line in (*fenced(text), *inline(text)) if line.startswith("make ")]
    targets = {word for words in typed for word in words[1:] if "=" not in word}
    assert [name for name in modules if not find_spec(name)] == []
    assert targets <= set(made.split())


@pages
def test_a_link_of_a_page_leads_to_a_file_and_to_a_heading_of_it(page):
    gone = []
    for target in re.findall(r"\]\((?!https?:)([^)\s]+)\)", page.read_text()):
        name, _, anchor = target.partition("#")
        file = page.parent / name if name else page
        # `make docs` refuses a link out of docs/.
        is_outside = DOCS in page.parents and DOCS not in file.resolve().parents
        if is_outside or not file.exists() or (anchor and anchor not in _anchors(file)):
            gone.append(target)
    assert gone == []


@cache
def _anchors(page):
    """The names under which a page's headings are reached, as GitHub and its kind make them."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_the_page_of_the_server_has_every_type_of_problem():
    page = (DOCS / "how-to" / "serve.md").read_text()
    assert re.findall(r"^\| `urn:citeloom:([\w-]+)` ", page, re.MULTILINE) == [
        *get_args(ProblemKind)
    ]


def test_the_readme_has_800_words_at_most():
    assert len(README.read_text().split()) <= 800


def test_the_docs_without_the_reference_have_32000_words_at_most():
    documents = {*DOCS.rglob("*.md")} - {*DOCS.glob("reference/*")}
    assert sum(len(page.read_text().split()) for page in documents) <= 32_000
