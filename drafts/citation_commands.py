"""Citation commands of natbib, biblatex and other packages: their names and arguments."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache

from drafts.latex_scan import Argument, Latex
from drafts.lists import word_list

# Commands that hold "cite" and cite nothing, or not by keys of their own.
# Bounded around "excite" and "cite": runs without bounds on both sides take quadratic time.
_NO_CITATIONS = re.compile(
    r"nocite\w*|bibcite|\w*citestyle|citesetup|citereset\w*|citetracker\w*|citeindex\w*"
    r"|\w*CiteCommand|\w*CiteCommands?Alias|defcitealias|newcites|citation\w*|citename\w*"
    r"|cite(?:left|right|mid|punct|dash|form|numfont|sort|options|prepunct|nameformat|title(?:font|style))"
    r"|citeauthor(?:font|format)|\w*citedelim|\w*recite|\w*incite|\w{0,60}excite\w{0,60}|plaincite(?:setup)"
    r"|@\w{0,60}cite\w{0,60}|\w*cite@\w*|mk\w+|if\w+|setcite\w*|bibliographycite|citestart|citenumwidth"
    r"|citebordercolor|citecolor|linkcitecolor|\w*CiteDelims|\w*[Cc]itehook|[Cc]iteField|citemark"
)
_CITE = re.compile(r"\\([A-Za-z@]*[Cc]ite[A-Za-z@]*|bibentry|[a-z]+cquote)(?![A-Za-z@])\*?")
_KEY = re.compile(r"[^\s{}#\\%~\[\],]+")
# REVTeX's notes before a key, and a star: *[{see }][{, p. 3}]key.
_NOTES = re.compile(r"(?:^|(?<=,))\s*+\*?(?:\[[^\[\]]{0,500}\])*+")


@cache
def known_citations() -> frozenset[str]:
    """Commands that cite, without their star."""
    of_biblatex = word_list("biblatex") | word_list("volumes")
    names = word_list("natbib") | of_biblatex | {f"{name}s" for name in of_biblatex}
    return names | {name[0].upper() + name[1:] for name in names}


@dataclass(frozen=True, slots=True)
class Citation:
    """A citation of a text. start, end: its span there. problem: of a command that is not known, or
    that has no keys; otherwise empty.
    """

    keys: tuple[str, ...]
    start: int
    end: int
    problem: str = ""


def find_citations(latex: Latex) -> Iterator[Citation]:
    """The citations of a text in order; those that are not understood have no keys. One within the
    options of another stands behind it.

    An unknown command is a citation too if its name holds "cite" and it has keys.
    """
    position = 0
    while match := _CITE.search(latex.text, position):
        position, name = match.end(), match[1]
        if _NO_CITATIONS.fullmatch(name):
            continue
        groups, end = _arguments(latex, name, match.end())
        texts = [_NOTES.sub("", group.text) for group in groups]
        if any("\\" in text for text in texts):
            continue  # citations within it are read by themselves
        keys = tuple(dict.fromkeys(key for text in texts for key in _split(text)))
        is_argument = latex.text[match.start() - 1 : end + 1] == f"{{{match[0]}}}"
        problem = ""
        if name in known_citations():
            if not groups and not is_argument:
                problem = f"\\{name} has no keys that can be read"
        elif keys:
            problem = f"\\{name} is no citation command that is known: it is read as one"
        elif groups:
            problem = f"\\{name} cites no key"
        if keys or problem:
            yield Citation(keys, match.start(), end, problem)
        if keys:
            position = end
            yield from _in_options(latex.text[match.end() : end], keys, end)


def _in_options(text: str, keys: Sequence[str], place: int) -> Iterator[Citation]:
    """The citations within the arguments of another of these keys, which ends at the place."""
    for nested in find_citations(Latex(text)) if "\\" in text else ():
        if nested.problem or not set(nested.keys) <= set(keys):
            yield replace(nested, start=place, end=place)


def _arguments(latex: Latex, name: str, start: int) -> tuple[list[Argument], int]:
    """The arguments with keys behind a command's name, and where they end."""
    position, groups = start, list[Argument]()
    singular = name.lower().removesuffix("s")
    has_volume = singular in word_list("volumes")
    is_multiple = name.lower().endswith("cites") or (has_volume and name.endswith("s"))
    if is_multiple:
        position = latex.skip_options(position, "(", 2)
    position = latex.skip_options(position, "<", 2)
    while True:
        before = latex.skip_options(position, "[", 2)
        before = latex.skip_options(before, "<")
        group = latex.argument(before)
        if group and has_volume:
            group = latex.argument(latex.skip_options(group.after))
        if group is None:
            return groups, position
        groups.append(group)
        position = group.after
        if not is_multiple:
            return groups, position


def _split(text: str) -> list[str]:
    """The keys of an argument; a parameter of a definition is none."""
    if "#" in text:
        return []
    parts = map(str.strip, text.split(","))
    return [part for part in parts if _KEY.match(part)]
