"""Papers, references and sections in Markdown, LaTeX, BibTeX, RIS and CSL-JSON."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import rispy

from pipeline.corpus.links import abstract_url, source_name
from pipeline.corpus.nouns import Paper, Reference
from pipeline.corpus.parse.policies import citation_marker
from pipeline.identity.people import parse_name
from pipeline.text import one_line, visible

_STOP_WORDS = frozenset(
    {"a", "an", "the", "on", "of", "in", "for", "to", "and", "how", "is", "are", "with", "from"}
)
_TEX_SPECIAL = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "&": r"\&",
    "%": r"\%",
    "$": r"\$",
    "#": r"\#",
    "_": r"\_",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
}
_CITATIONS = re.compile(r"\[Reference \d{1,4}\](?:[,;]? ?\[Reference \d{1,4}\])*")
_ITEMS = re.compile(r"^- .*(?:\n- .*)*", re.MULTILINE)
_FORMULA = re.compile(r"\$[^$%#&~\n]{1,400}\$")
# Formulas, escaped signs, accents, letters and fonts, which BibTeX leaves to LaTeX.
_SET_BY_TEX = re.compile(
    rf"{_FORMULA.pattern}|\\[&%$#_]|\\['`^\"~=.](?:\{{\\?[A-Za-z]\}}|\\?[A-Za-z])"
    r"|\\[uvHckrbdt]\{\\?[A-Za-z]{1,2}\}|\\(?:o|O|l|L|ss|ae|AE|oe|OE|aa|AA|i|j)(?![A-Za-z])"
    r"|\\(?:emph|text(?:it|bf|tt|sc|rm|sf|sl))(?=\{)|\\(?:TeX|LaTeX|ldots|dots)(?![A-Za-z])"
)
# Commands of formulas that can neither define nor read anything. Formulas with others are escaped.
_IN_FORMULAS = frozenset((
    "alpha", "beta", "gamma", "delta", "epsilon", "varepsilon", "zeta", "eta", "theta", "kappa",
    "lambda", "mu", "nu", "xi", "pi", "rho", "sigma", "tau", "phi", "varphi", "chi", "psi",
    "omega", "Gamma", "Delta", "Theta", "Lambda", "Pi", "Sigma", "Phi", "Psi", "Omega", "mathbf",
    "mathrm", "mathcal", "mathbb", "mathit", "boldsymbol", "text", "operatorname", "hat", "bar",
    "tilde", "vec", "overline", "underline", "frac", "sqrt", "sum", "prod", "int", "partial",
    "nabla", "infty", "log", "exp", "max", "min", "times", "cdot", "ldots", "dots", "pm", "leq",
    "le", "geq", "ge", "neq", "approx", "sim", "equiv", "propto", "in", "notin", "subseteq",
    "cup", "cap", "to", "rightarrow", "forall", "exists", "left", "right", "quad", "mid", "ell",
    "star", "langle", "rangle",
))  # fmt: skip


@dataclass(frozen=True, slots=True)
class LatexStyle:
    """The commands that a section in LaTeX may use."""

    cite: str = "cite"
    cite_as_subject: str = ""
    """Of a citation that prints the authors' names before it; empty where no command does."""
    enquotes: bool = False
    """Whether quotations are `\\enquote{…}`, which needs csquotes."""

    @classmethod
    def of_packages(cls, packages: Collection[str]) -> LatexStyle:
        """The style of a draft that loads these packages.

        `\\cite` would print the names again: of natbib's and biblatex's styles many do.
        """
        enquotes = "csquotes" in packages
        if "biblatex" in packages:
            return cls("parencite", "textcite", enquotes)
        if "natbib" in packages:
            return cls("citep", "citet", enquotes)
        return cls(enquotes=enquotes)


PLAIN_STYLE = LatexStyle()


def author_names(authors: Sequence[str]) -> str:
    """The authors as a text names them: "Gal", "Gal and Ghahramani", "Zhao et al."; "" where none
    is known.
    """
    families = [parse_name(author).family for author in authors[:3]]
    if not families or not families[0]:
        return ""
    if len(authors) > 2:
        return f"{families[0]} et al."
    return " and ".join(filter(None, families))


def markdown_section(
    text: str,
    keys: Mapping[int, str],
    papers: Sequence[Mapping[str, Any]],
    note: str = "",
    heading: str = "Related work",
) -> str:
    """A section with `[Reference i]` as Markdown with Pandoc's citations and its list of
    references. note: for the reader, above the section.
    """

    def cite(match: re.Match[str]) -> str:
        cited = _cited_keys(match[0], keys)
        return citation_marker(cited) if cited else match[0]

    body = _CITATIONS.sub(cite, text)
    items = [
        f"{number}. [@{keys[number]}] {_reference_item(paper)}"
        for number, paper in enumerate(papers, 1)
    ]
    above = [f"*{note}*", ""] if note else []
    return "\n".join([f"## {heading}", "", *above, body, "", "## References", "", *items, ""])


def latex_section(
    text: str,
    keys: Mapping[int, str],
    note: str = "",
    style: LatexStyle = PLAIN_STYLE,
    names: Mapping[int, str] | None = None,
    heading: str = "Related Work",
) -> str:
    """A section with `[Reference i]` as LaTeX; formulas with unknown commands are escaped, lines
    that begin with "- " are items.

    note: for the reader, as a comment. names: number of a reference → its authors as the text names
    them; `style.cite_as_subject` prints them in their place.
    """
    parts, last = [], 0
    for match in _CITATIONS.finditer(text):
        cited = _cited_keys(match[0], keys)
        before, command = text[last : match.start()], style.cite
        authors = (names or {}).get(int(re.findall(r"\d+", match[0])[0]), "")
        if style.cite_as_subject and authors and len(cited) == 1:
            without_names = before.removesuffix(f"{authors} ")
            if without_names != before:
                before, command = without_names, style.cite_as_subject
        parts += [
            _tex_with_formulas(before),
            f"\\{command}{{{','.join(cited)}}}" if cited else match[0],
        ]
        last = match.end()
    parts.append(_tex_with_formulas(text[last:]))
    left, right = ("\\enquote{", "}") if style.enquotes else ("``", "''")
    body = "".join(parts).replace("“", left).replace("”", right)
    body = _ITEMS.sub(_itemized, body)
    above = f"% {note}\n" if note else ""
    return f"\\section{{{heading}}}\n{above}\n{body}\n"


def _itemized(items: re.Match[str]) -> str:
    lines = [f"\\item {line.removeprefix('- ')}" for line in items[0].splitlines()]
    return "\n".join(["\\begin{itemize}", *lines, "\\end{itemize}"])


def _cited_keys(citations: str, keys: Mapping[int, str]) -> list[str]:
    """The keys of a group of `[Reference i]`, each once, without numbers that have no reference."""
    numbers = dict.fromkeys(int(number) for number in re.findall(r"\d+", citations))
    return [keys[number] for number in numbers if number in keys]


def _reference_item(paper: Mapping[str, Any]) -> str:
    year = f" ({paper['year']})" if paper["year"] else ""
    address = abstract_url(paper["arxiv_id"]) if paper["arxiv_id"] else ""
    link = f" <{address}>" if address else ""
    names = paper["authors"] or ["Unknown authors"]
    authors = ", ".join(names) if len(names) <= 3 else f"{names[0]} et al."
    return f"{authors}{year}. {paper['title']}.{link}"


def bibtex_keys(
    papers: Sequence[Mapping[str, Any]], own: Mapping[str, str] | None = None
) -> list[str]:
    """A key for each paper: its key in `own` (arXiv id → key), or the first author's family name,
    the year and the first word of the title, with a number where another paper has that key.
    """
    own = own or {}
    used = set(own.values())
    keys = []
    for paper in papers:
        key = own.get(paper["arxiv_id"] or "")
        if key is None:
            authors = paper["authors"]
            family = _letters(parse_name(authors[0]).family.split(" ")[-1]) if authors else ""
            words = [_letters(word) for word in paper["title"].split()]
            word = next((word for word in words if word and word not in _STOP_WORDS), "")
            base = f"{family or 'anonymous'}{paper['year'] or ''}{word}"
            key, number = base, 1
            while key in used:
                number += 1
                key = f"{base}-{number}"
            used.add(key)
        keys.append(key)
    return keys


def _letters(text: str) -> str:
    ascii_only = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode()
    return re.sub(r"[^a-z]", "", ascii_only.lower())


def bibtex_entry(key: str, work: Mapping[str, Any]) -> str:
    """A BibTeX entry, in arXiv's own form (https://info.arxiv.org/help/hypertex/bibstyles) where it
    is on arXiv.
    """
    fields = {
        "title": f"{{{_bibtex_text(work['title'])}}}",
        "author": " and ".join(map(_bibtex_name, work["authors"])),
        "year": str(work["year"] or ""),
        "howpublished": _bibtex_text(work.get("venue") or ""),
        "doi": _escape(work.get("doi") or "", "_"),
    }
    if work["arxiv_id"]:
        fields |= {
            "eprint": work["arxiv_id"],
            "archivePrefix": "arXiv",
            "primaryClass": work.get("primary_category") or "",
            "url": abstract_url(work["arxiv_id"]),
        }
    lines = [f"  {name} = {{{value}}}," for name, value in fields.items() if value]
    return "\n".join([f"@misc{{{key},", *lines, "}"])


def keyed_bibtex(
    papers: Sequence[Paper], own: Mapping[str, str] | None = None
) -> list[tuple[str, str]]:
    """(key, BibTeX entry) of each paper. own: as for `bibtex_keys`."""
    return [(key, bibtex_entry(key, work)) for key, work in _keyed(papers, own)]


# Works under unique keys, with the fields that entries are made of.
Keyed = Iterable[tuple[str, Mapping[str, Any]]]


def _keyed(works: Iterable[Paper | Reference], own: Mapping[str, str] | None = None) -> Keyed:
    items = list(map(_fields_of, works))
    return zip(bibtex_keys(items, own), items, strict=True)


def _fields_of(work: Paper | Reference) -> Mapping[str, Any]:
    if isinstance(work, Reference):
        fields = {"title": work.title or work.raw, "venue": work.venue, "doi": work.doi}
    else:
        fields = {"title": work.title, "primary_category": next(iter(work.categories), "")}
    return fields | {"authors": work.authors, "year": work.year, "arxiv_id": work.arxiv_id}


def csl_item(key: str, work: Mapping[str, Any]) -> dict[str, Any]:
    """A work as an item of CSL-JSON 1.0.2. Its type is `article`, which is not confined to
    journals: what the work appeared in is known by name alone.
    """
    arxiv_id = work["arxiv_id"]
    item = {
        "id": key,
        "type": "article",
        "title": one_line(work["title"]),
        "author": [_csl_name(author) for author in work["authors"]],
        "issued": {"date-parts": [[work["year"]]]} if work["year"] else None,
        "container-title": one_line(work.get("venue") or ""),
        "DOI": work.get("doi"),
        "URL": arxiv_id and abstract_url(arxiv_id),
        "publisher": arxiv_id and "arXiv",
        "number": arxiv_id and source_name(arxiv_id),
    }
    return {name: value for name, value in item.items() if value}


def _csl_name(author: str) -> dict[str, str]:
    if " and " in author:  # a group
        return {"literal": one_line(author)}
    name = parse_name(author)
    parts = {"family": name.family, "given": name.given, "suffix": name.suffix}
    return {part: text for part, text in parts.items() if text}


# Tag → field of CSL-JSON, lower case as the library needs it.
_RIS_FIELDS = {
    "TY": "type", "ID": "id", "TI": "title", "AU": "author", "PY": "issued",
    "T2": "container-title", "DO": "doi", "UR": "url", "PB": "publisher", "AN": "number",
}  # fmt: skip


class _RisWriter(rispy.RisWriter):  # type: ignore[misc]
    """Writes works of no particular type, without the number that the library puts above each."""

    DEFAULT_REFERENCE_TYPE = "GEN"

    def set_header(self, count: int) -> str:
        return ""


def _ris(works: Keyed) -> str:
    records = []
    for key, work in works:
        item = csl_item(key, work)
        if work["year"]:
            item["issued"] = work["year"]
        item["author"] = [", ".join(name.values()) for name in item.get("author", ())]
        records.append(item)
    writer = _RisWriter(mapping=_RIS_FIELDS, list_tags=["AU"], delimiter_tags_mapping={})
    return str(writer.formats(records))


@dataclass(frozen=True, slots=True)
class CitationFormat:
    """A format of reference managers. suffix: of its files."""

    title: str
    media_type: str
    suffix: str
    write: Callable[[Keyed], str]


CITATION_FORMATS: Mapping[str, CitationFormat] = {
    "bibtex": CitationFormat(
        "BibTeX",
        "application/x-bibtex",
        "bib",
        lambda works: "\n\n".join(bibtex_entry(*keyed) for keyed in works),
    ),
    "ris": CitationFormat("RIS", "application/x-research-info-systems", "ris", _ris),
    "csl": CitationFormat(
        "CSL-JSON",
        "application/vnd.citationstyles.csl+json",
        "json",
        lambda works: json.dumps([csl_item(*keyed) for keyed in works], ensure_ascii=False),
    ),
}


def entries_of(noun: Any, form: str = "bibtex") -> str:
    """The entries of works, each once, under unique keys.

    noun: a paper, references, or what holds papers, such as results. form: of CITATION_FORMATS.
    """
    items = [noun] if isinstance(noun, Paper) else noun
    works = dict.fromkeys(getattr(item, "paper", item) for item in items)
    return visible(CITATION_FORMATS[form].write(_keyed(works)))


def _tex_with_formulas(text: str) -> str:
    """Text for LaTeX. It is data: of its commands only those of `_IN_FORMULAS` reach TeX."""
    return _escape_outside(_FORMULA, text)


def _escape_outside(pattern: re.Pattern[str], text: str, left_alone: str = "") -> str:
    """Text for LaTeX in which what the pattern matches stays as it is, but for formulas that may
    do harm.
    """
    parts, last = [], 0
    for match in pattern.finditer(text):
        if not match[0].startswith("$") or _is_harmless(match[0]):
            parts += [_escape(text[last : match.start()], left_alone), match[0]]
            last = match.end()
    return "".join([*parts, _escape(text[last:], left_alone)])


def _is_harmless(formula: str) -> bool:
    commands = set(re.findall(r"\\([A-Za-z]+)", formula))
    return commands <= _IN_FORMULAS and "^^" not in formula and _braces_match(formula)


def _braces_match(formula: str) -> bool:
    depth = 0
    for brace in re.findall(r"(?<!\\)[{}]", formula):
        depth += 1 if brace == "{" else -1
        if depth < 0:
            return False
    return depth == 0


def _escape(text: str, left_alone: str = "") -> str:
    return "".join(
        character if character in left_alone else _TEX_SPECIAL.get(character, character)
        for character in text
    )


def _bibtex_name(author: str) -> str:
    """An author for BibTeX, which takes III for a family name unless it stands between commas, and
    what follows "and" for another author unless in braces.
    """
    if " and " in author:
        return f"{{{_bibtex_text(author)}}}"
    name = parse_name(author)
    parts = (name.family, name.suffix, name.given)
    return _bibtex_text(", ".join(filter(None, parts)) if name.suffix else author)


def _bibtex_text(text: str) -> str:
    """A title or a name for BibTeX: formulas, accents, letters and fonts of TeX stay as they are,
    as do braces that match; all else is escaped.
    """
    line = one_line(text)
    return _escape_outside(_SET_BY_TEX, line, "{}" if _braces_match(line) else "")
