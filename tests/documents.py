"""README and the pages of docs/ as the tests read them: fenced blocks and inline code."""

import re
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
