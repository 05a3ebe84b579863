"""README and the pages of docs/ as the tests read them: fenced blocks and inline code."""

import re
from dataclasses import dataclass
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[1]
README = PROJECT / "README.md"
DOCS = PROJECT / "docs"
PAGES = (
    README,
    PROJECT / "CONTRIBUTING.md",
    PROJECT / "examples" / "README.md",
    *sorted(DOCS.rglob("*.md")),
)


@dataclass
class Line:
    """A line of a page that a reader types: its place in the page, and its text without comment and
    prompt.
    """

    place: str
    text: str


def fenced(text, place=""):
    """The lines to type in code blocks without a language. If a block has prompts (`$`), other
    lines are answers.
    """
    for block in re.findall(r"^```\n(.*?)^```", text, re.MULTILINE | re.DOTALL):
        lines = block.splitlines()
        prompted = any(line.startswith("$ ") for line in lines)
        for line in lines:
            typed = re.sub(r"\s+# .*$|^#.*$", "", line.removeprefix("$ ")).strip()
            if typed and (line.startswith("$ ") or not prompted):
                yield Line(f"{place}: {line}", typed)


def inline(text, place=""):
    """The text between single backticks, outside of code blocks."""
    outside = re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)
    for span in re.findall(r"(?<!`)`([^`]+)`(?!`)", outside):
        typed = " ".join(span.split())
        yield Line(f"{place}: `{typed}`", typed)
