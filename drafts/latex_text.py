"""Text of pieces of LaTeX and of fields of BibTeX."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

from drafts.text import one_line
from pipeline.corpus.parse.policies import LOWERED, RAISED, SCRIPT_END, with_signs

# A paragraph of a paper has 200 words. Longer ones are not given to the parser of LaTeX, which is
# recursive.
_LONGEST_PARAGRAPH = 20_000
_MOST_BRACES = 60
_LONGEST_NAME = 60
# What the simple reading removes where the parser of LaTeX fails.
_COMMAND = re.compile(r"\\[A-Za-z]+\*?(?:\[[^\[\]]*\])?|\\.|[{}~]")


def plain_text(latex: str) -> str:
    """The text of LaTeX, formulas as `$TeX$`, superscripts and subscripts as the text of a page has
    them; a simpler reading where the parser fails.
    """
    if len(latex) > _LONGEST_PARAGRAPH or latex.count("{") > _MOST_BRACES:
        return _COMMAND.sub(" ", latex)
    try:
        return with_signs(str(_converter().latex_to_text(latex, latex_context=_arguments())))
    # The parser of LaTeX raises many kinds of errors, and the simple reading is good enough.
    except Exception:
        return _COMMAND.sub(" ", latex)


# Macros for superscripts and subscripts, marks of a table's notes among them; and for fractions.
_RAISED = ("textsuperscript", "up", "tnote", "tablenotemark")
_LOWERED = ("textsubscript", "textinferior")
_FRACTIONS = ("nicefrac", "sfrac", "unitfrac", "textfrac")
# Commands that print the second of their two arguments.
_SECOND = ("href", "hyperlink", "hypertarget", "foreignlanguage")
# Macros whose words pylatexenc 2.10 leaves out, and names that it does not know.
_PRINTED = ("texttt", "textsf", "textmd", "textup", "mbox")
_LOGOS = ("TeX", "LaTeX", "BibTeX")
# Commands whose arguments are not printed where they stand, and that the parser would print.
_SILENT = {
    **dict.fromkeys(("bibliographystyle", "citestyle", "index"), "{"),
    "noopsort": "{",
    **dict.fromkeys(("pagestyle", "thispagestyle", "phantom", "hphantom", "vphantom"), "{"),
    **dict.fromkeys(("fontsize", "markboth", "addtocounter"), "{{"),
    "geometry": "{",
    "pdfbookmark": "[{{",
    "savebox": "{[[{",
    "addcontentsline": "{{{",
    "today": "",
}
# How a command that is not known sets its text: a value without braces, or an overlay, options and
# lengths; and numbers, positions, columns or an address if more arguments follow.
_UNIT = "(?:true)?(?:pt|mm|cm|in|ex|em|bp|pc|dd|sp|mu|fil+)"
_LENGTH = rf"[-+]?[\d.,]+\s*(?:{_UNIT}|\\[A-Za-z]+)"
_LAYOUT = re.compile(
    rf"""(?:=\s*[-+]?[\d.]+(?:\s*{_UNIT})?|{_LENGTH}|(?<=[A-Za-z])\d+)
    (?:\s*(?:plus|minus)\s*{_LENGTH})*
    |\*?(?:<[-+\d.,|]+>)?
    (?:\[(?:[^\[\]{{}}]|\{{[^{{}}]*\}})*+\]
    |\{{\s*(?:{_LENGTH}|\\[a-z]*(?:width|height|size|skip))\s*\}}
    |\{{(?:[-+]?[\d.]+|[*!]|[tbchlrpm|]{{1,9}}|[a-z]+://[^{{}}]*)\}}(?=[\[{{](?![-\d.]+\}}))
    )*+""",
    re.VERBOSE,
)
_NAME = re.compile(r"\\([A-Za-z@]+)\s*$")
_TAKES_VALUE = ("hskip", "vskip", "kern")


@cache
def _converter() -> Any:
    from pylatexenc.latex2text import (
        LatexNodes2Text,
        MacroTextSpec,
        get_default_latex_context_db,
    )

    fraction = f"{RAISED}%(2)s{SCRIPT_END}/{LOWERED}%(3)s{SCRIPT_END}"
    forms = {
        **dict.fromkeys(_RAISED, f"{RAISED}%s{SCRIPT_END}"),
        **dict.fromkeys(_LOWERED, f"{LOWERED}%s{SCRIPT_END}"),
        **dict.fromkeys(_FRACTIONS, fraction),
        **{name: name for name in _LOGOS},
        "LaTeXe": "LaTeX 2e",
        **dict.fromkeys(_SECOND, "%(2)s"),
        **dict.fromkeys(("SI", "qty"), "%(2)s %(3)s"),
    }
    context = get_default_latex_context_db()
    macros = [MacroTextSpec(name, form, discard=False) for name, form in forms.items()]
    macros += [MacroTextSpec(name, discard=False) for name in _PRINTED]
    macros += [MacroTextSpec(name, "") for name in _SILENT]
    context.add_context_category("own", macros=macros, prepend=True)
    return LatexNodes2Text(context, math_mode="verbatim", keep_comments=False)


@cache
def _arguments() -> Any:
    """The arguments of each macro, for the parser of LaTeX."""
    from pylatexenc.latexwalker import get_default_latex_context_db
    from pylatexenc.macrospec import (
        MacroSpec,
        MacroStandardArgsParser,
        ParsedMacroArgs,
        std_macro,
    )

    known = _converter().latex_context

    class Layout(MacroStandardArgsParser):  # type: ignore[misc]
        """Takes the arguments of an unknown command that are no text."""

        def parse_args(self, w: Any, pos: int, parsing_state: Any = None) -> tuple[Any, int, int]:
            name = _NAME.search(w.s, max(0, pos - _LONGEST_NAME), pos)
            length = 0
            if name is not None and known.get_macro_spec(name[1]) is None:
                is_apart = w.s[pos - 1].isspace() and not w.s.startswith("=", pos)
                if not is_apart or name[1].endswith(_TAKES_VALUE):
                    layout = _LAYOUT.match(w.s, pos)
                    length = layout.end() - pos if layout else 0
            return ParsedMacroArgs(), pos, length

    context = get_default_latex_context_db()
    arguments = {
        **dict.fromkeys((*_RAISED, *_LOWERED), "{"),
        **dict.fromkeys(_FRACTIONS, "[{{"),
        **dict.fromkeys(_SECOND, "{{"),
        "SI": "[{{",
        "qty": "[{{",
        **_SILENT,
    }
    context.add_context_category(
        "own", macros=[std_macro(*macro) for macro in arguments.items()], prepend=True
    )
    context.set_unknown_macro_spec(MacroSpec("", args_parser=Layout()))
    return context


def plain_field(latex: str) -> str:
    """The text of a field of BibTeX: without braces, accents as letters."""
    return one_line(plain_text(latex).replace("{", "").replace("}", "")) if latex else ""
