"""Text of pieces of LaTeX and of fields of BibTeX."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

from pipeline.text import one_line

LONGEST_PARAGRAPH = 20_000
"""A paragraph of a paper has 200 words. Longer ones are not given to the parser of LaTeX, which is
recursive.
"""
_MOST_BRACES = 60
# What the simple reading removes where the parser of LaTeX fails.
_COMMAND = re.compile(r"\\[A-Za-z]+\*?(?:\[[^\[\]]*\])?|\\.|[{}~]")


def plain_text(latex: str) -> str:
    """The text of LaTeX, formulas as `$TeX$`; a simpler reading where the parser fails."""
    if len(latex) > LONGEST_PARAGRAPH or latex.count("{") > _MOST_BRACES:
        return _COMMAND.sub(" ", latex)
    try:
        return str(_converter().latex_to_text(latex))
    except (
        Exception
    ):  # the parser of LaTeX raises many kinds of errors, and the simple reading is good enough
        return _COMMAND.sub(" ", latex)


@cache
def _converter() -> Any:
    from pylatexenc.latex2text import LatexNodes2Text

    return LatexNodes2Text(math_mode="verbatim", keep_comments=False)


def plain_field(latex: str) -> str:
    """The text of a field of BibTeX: without braces, accents as letters."""
    return one_line(plain_text(latex).replace("{", "").replace("}", "")) if latex else ""
