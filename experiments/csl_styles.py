"""Score printed references in CSL styles, which no rule was made with: table in
methods/references.md.

    .venv/bin/python -m experiments.csl_styles tuned|held [--form page|txt|md] [--mistakes FIELD]

Sets the works of examples/styles/references.bib, and 40 of the public works of
../shared/data/labelled/hallmark, in 40 styles by pandoc. They are read as a page that LaTeXML makes
of a list which the author typed, and as the list of a draft in plain text and in Markdown, an item
a line or a paragraph. Needs Debian's pandoc and citation-style-language-styles.
"""

from __future__ import annotations

import argparse
import gzip
import json
import re
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from html import escape
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from selectolax.lexbor import LexborHTMLParser, LexborNode

from pipeline.arxiv.person_names import PARTICLES
from pipeline.corpus.parse import html
from pipeline.draft_check.markdown import read_markdown
from pipeline.text import text_digest
from tests.conformance import truth
from tests.conformance.report import print_mistakes, table
from tests.conformance.scoring import PrintedItem, Score, score_item
from tests.conformance.truth import TrueReference

STYLES = Path("/usr/share/citation-style-language/styles")
KNOWN_WORKS = truth.PROJECT.parent / "shared/data/labelled/hallmark/known_works.jsonl.gz"
ENGLISH, OTHERS = 70, 10
FORMS = ("page", "txt", "md")

Work = dict[str, Any]


def hash_of(name: str) -> str:
    return text_digest(name)


def style_names(part: str) -> list[str]:
    """The styles of a part, `tuned` or `held`: every other one by the hash of its name."""
    english, others = list[str](), list[str]()
    for file in sorted(STYLES.glob("*.csl"), key=lambda file: hash_of(file.stem)):
        text = file.read_text(encoding="utf-8")
        if "independent-parent" in text or "<bibliography" not in text:
            continue
        locale = re.search(r'<style[^>]*default-locale="([a-z]+)', text)
        (english if locale is None or locale[1] == "en" else others).append(file.stem)
    start = ("tuned", "held").index(part)
    return english[start:ENGLISH:2] + others[start:OTHERS:2]


@cache
def works() -> tuple[list[Work], dict[str, TrueReference]]:
    """Works in CSL JSON, and what is true of each by its id."""
    items, references = _invented_works()
    if KNOWN_WORKS.is_file():
        known = list(_known_works())
        items += [item for item, _ in known]
        references |= {reference.key: reference for _, reference in known}
    return items, references


def _invented_works() -> tuple[list[Work], dict[str, TrueReference]]:
    """The works of the conformance suite. pandoc takes "{\\AA}se" for a particle: names and titles
    are those of the truth.
    """
    command = ["pandoc", "-f", "bibtex", "-t", "csljson", str(truth.STYLES / "references.bib")]
    items = json.loads(subprocess.run(command, capture_output=True, check=True).stdout)
    references = {reference.key: reference for reference in truth.true_references()}
    for item in items:
        reference = references[item["id"]]
        item["title"] = reference.title
        if reference.authors:
            item["author"] = [_csl_name(*name.split(", ")) for name in reference.authors]
    return items, references


def _csl_name(family: str, given: str = "", suffix: str = "") -> Work:
    if not given:
        return {"literal": family}
    name = {"family": family, "given": given, "suffix": suffix}
    return {part: value for part, value in name.items() if value}


class _Kind(NamedTuple):
    """How a known work is printed: the CSL type, how many works, and what is its venue."""

    type: str
    count: int
    venue: str


_KINDS = (
    _Kind("article-journal", 10, "container-title"),
    _Kind("paper-conference", 8, "container-title"),
    _Kind("article", 4, "publisher"),
    _Kind("book", 4, "publisher"),
    _Kind("chapter", 4, "container-title"),
    _Kind("thesis", 4, "publisher"),
    _Kind("report", 3, "publisher"),
    _Kind("webpage", 3, "container-title"),
)
_PUBLISHERS = ("Cambridge University Press", "Springer", "MIT Press", "John Wiley & Sons")
_PLACES = ("Cambridge", "Berlin", "Cambridge, MA", "New York")
_SCHOOLS = ("University of Edinburgh", "Stanford University", "ETH Zürich", "Université Laval")
_INSTITUTES = ("SRI International", "Inria", "Bell Laboratories")
_SITES = ("OpenAI", "PyTorch Blog", "The Gradient")


def _known_works() -> Iterator[tuple[Work, TrueReference]]:
    """Known works as works of several kinds: journals and meetings as they are, else invented."""
    with gzip.open(KNOWN_WORKS, "rt", encoding="utf-8") as lines:
        rows = sorted(map(json.loads, lines), key=lambda row: hash_of(row["title"]))
    rows = [row for row in rows if _has_plain_names(row)]
    archived = [row for row in rows if "arxiv" in row.get("doi", "").lower()]
    articles = [row for row in rows if row.get("journal")]
    meetings = [row for row in rows if row.get("booktitle")]
    for kind in _KINDS:
        source = {"article-journal": articles, "article": archived}.get(kind.type, meetings)
        for number in range(kind.count):
            yield _known_work(kind, number, source.pop(), source[-1])


def _known_work(kind: _Kind, number: int, row: Work, other: Work) -> tuple[Work, TrueReference]:
    authors = _authors(row)
    title, year = row["title"].rstrip("."), int(row["year"])
    digits = int(hash_of(title)[:8], 16)
    first = digits % 900 + 1
    item = {
        "id": f"{kind.type}{number}",
        "type": kind.type,
        "title": title,
        "author": [_csl_name(*name.split(", ")) for name in authors],
        "issued": {"date-parts": [[year, digits % 12 + 1]]},
    }
    doi = row.get("doi", "") if kind.venue == "container-title" or kind.type == "article" else ""
    extra: Work = {}
    venue, arxiv_id = "", None
    if kind.type == "article-journal":
        venue = row["journal"]
        extra = {"volume": str(digits % 90 + 1), "page": f"{first}-{first + 12}"}
        if number % 2:
            extra["issue"] = str(digits % 11 + 1)
    elif kind.type == "paper-conference":
        meeting = f"Proceedings of the {year} Conference on {row['booktitle']}"
        venue = row["booktitle"] if number % 2 else meeting
        extra = {"page": f"{first}-{first + 9}"}
        if number % 3:
            extra |= {"publisher": "IEEE", "publisher-place": "Montreal, Canada"}
    elif kind.type == "article":
        venue = "arXiv"
        doi = re.sub(r"v\d+$", "", doi)
        arxiv_id = doi.lower().partition("arxiv.")[2]
        extra = {"number": f"arXiv:{arxiv_id}", "URL": f"https://arxiv.org/abs/{arxiv_id}"}
    elif kind.type == "chapter":
        venue = other["title"].rstrip(".").split(":")[0]
        extra = {
            "editor": [_csl_name(*name.split(", ")) for name in _authors(other)[:2]],
            "page": f"{first}-{first + 20}",
            "publisher": _PUBLISHERS[number],
            "publisher-place": _PLACES[number],
        }
    elif kind.type == "book":
        venue = _PUBLISHERS[number]
        extra = {"publisher-place": _PLACES[number], "edition": "2" if number % 2 else ""}
    elif kind.type == "thesis":
        venue = _SCHOOLS[number]
        extra = {"genre": "PhD thesis" if number % 2 else "Master’s thesis"}
    elif kind.type == "report":
        venue = _INSTITUTES[number]
        extra = {"number": f"TR-{first}", "genre": "Technical report"}
    else:
        venue = _SITES[number]
        accessed = {"date-parts": [[year + 1, 3, digits % 27 + 1]]}
        extra = {"URL": f"https://example.org/{first}", "accessed": accessed}
        doi = ""
    item |= extra | {kind.venue: venue} | ({"DOI": doi} if doi else {})
    optional = kind.type in ("book", "thesis", "report", "webpage", "article")
    readings = (f"… {venue}", "") if optional else (venue,)
    reference = TrueReference(
        str(item["id"]), title, tuple(authors), readings, year, doi or None, arxiv_id
    )
    return {name: value for name, value in item.items() if value}, reference


def _authors(row: Work) -> list[str]:
    """The authors as "Family, Given", without the numbers of DBLP."""
    names = re.sub(r" \d{4}\b", "", row["author"]).split(" and ")
    return list(map(_family_first, names))


def _has_plain_names(row: Work) -> bool:
    """Whether a work names all authors, given names first, and no two have one surname: which of
    them an "et al." leaves out is seen by surnames.
    """
    families = [name.partition(", ")[0] for name in _authors(row)]
    is_whole = all(", " in name for name in _authors(row)) and "," not in row["author"]
    return is_whole and len(families) == len(set(families))


def _family_first(name: str) -> str:
    words = name.split()
    start = len(words) - 1
    while start > 1 and words[start - 1].lower() in PARTICLES:
        start -= 1
    return ", ".join(filter(None, (" ".join(words[start:]), " ".join(words[:start]))))


@dataclass(frozen=True, slots=True)
class SetItem:
    """An item as pandoc sets it: label and text, and the text as HTML and as Markdown."""

    key: str
    label: str
    text: str
    html: str
    markdown: str
    links: tuple[str, ...]


def set_items(style: str) -> list[SetItem]:
    """All works in a style. Raises CalledProcessError where pandoc fails."""
    command = ["pandoc", "-f", "csljson", "-t", "html", "--wrap=none", "--citeproc"]
    command += ["--csl", str(STYLES / f"{style}.csl")]
    content = json.dumps(works()[0]).encode()
    page = subprocess.run(command, input=content, capture_output=True, check=True).stdout
    return [_set_item(node) for node in LexborHTMLParser(page).css(".csl-entry")]


def _set_item(node: LexborNode) -> SetItem:
    label = node.css_first(".csl-left-margin")
    name = label.text().strip() if label else ""
    if label:
        label.decompose()
    inner = node.html or ""
    key = (node.attributes.get("id") or "").removeprefix("ref-")
    inner = re.sub(r"^<div[^>]*>|</div>$", "", inner.strip())
    inner = re.sub(r"</?div[^>]*>|\s+", " ", inner).strip()
    inner = re.sub(r"( )(</(?:em|i)>)", r"\2\1", inner)
    text = one_line(node.text())
    number = re.match(r"\d{1,2}\.\s+", text)  # some styles print it within the text
    if number:
        name, text, inner = number[0].strip(), text[number.end() :], inner[number.end() :]
    markdown = re.sub(r"</?(?:em|i)>", "*", inner)
    markdown = LexborHTMLParser(f"<p>{markdown}</p>").text()
    latexml = re.sub(r"<(?:em|i)>", '<em class="ltx_emph ltx_font_italic">', inner)
    latexml = latexml.replace("<a ", '<a class="ltx_ref" ')
    latexml = latexml.replace("<strong>", '<span class="ltx_text ltx_font_bold">')
    latexml = latexml.replace("</strong>", "</span>")
    links = tuple(link.attributes.get("href") or "" for link in node.css("a"))
    return SetItem(key, name, text, latexml, one_line(markdown), links)


def one_line(text: str) -> str:
    return " ".join(text.split())


def read_page(items: Sequence[SetItem]) -> dict[str, Any]:
    """What the corpus reads of the items, by work, as items of a `thebibliography`."""
    body = "\n".join(
        f'<li id="bib.{escape(item.key)}" class="ltx_bibitem">'
        f'<span class="ltx_tag ltx_role_refnum ltx_tag_bibitem">{escape(item.label)}</span>'
        f'<span class="ltx_bibblock">{item.html}</span></li>'
        for item in items
    )
    page = (
        "<!DOCTYPE html><html><body><article class='ltx_document'>"
        "<h1 class='ltx_title ltx_title_document'>A List</h1>"
        "<div class='ltx_para'><p class='ltx_p'>Words are read.</p></div>"
        f"<section class='ltx_bibliography'><ul class='ltx_biblist'>{body}</ul></section>"
        "</article></body></html>"
    )
    read = html.parse(page.encode()).bibliography
    return {item.key.removeprefix("bib."): item for item in read}


def read_draft(items: Sequence[SetItem], form: str) -> dict[str, Any]:
    """What is read of the items as the list of a draft, by work; empty where it is split wrongly.

    An item is a line of plain text, or a paragraph of Markdown.
    """
    between = "\n" if form == "txt" else "\n\n"
    printed = [
        f"{item.label} {item.text if form == 'txt' else item.markdown}".strip() for item in items
    ]
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / f"draft.{form}"
        file.write_text("Words are read.\n\nReferences\n\n" + between.join(printed) + "\n")
        draft = read_markdown(file)
    entries = list(draft.entries.values())
    lines = dict(pairwise([*(entry.line for entry in entries), 0]))
    step = len(between)
    right = {}
    for number, item in enumerate(items):
        line = 5 + number * step
        is_last = number + 1 == len(items)
        entry = next((entry for entry in entries if entry.line == line), None)
        if entry is not None and lines[line] == (0 if is_last else line + step):
            right[item.key] = entry
    return right


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("part", choices=("tuned", "held"))
    parser.add_argument("--form", choices=FORMS, nargs="*", default=FORMS)
    parser.add_argument("--mistakes", nargs="*", default=(), metavar="FIELD")
    parser.add_argument("--styles", nargs="*", metavar="STYLE")
    arguments = parser.parse_args()
    for form in arguments.form:
        score = Score()
        split = total = 0
        for style in arguments.styles or style_names(arguments.part):
            items = set_items(style)
            read = read_page(items) if form == "page" else read_draft(items, form)
            total += len(items)
            split += len(read)
            for item in items:
                if item.key not in read:
                    continue
                printed = PrintedItem(item.key, item.text, item.links if form == "page" else ())
                score_item(score, style, printed, works()[1][item.key], read[item.key])
        texts = arguments.mistakes
        print_mistakes([mistake for mistake in score.mistakes if mistake.field in texts])
        print(table(score))
        print(f"{form}: {split} of {total} items split rightly")


if __name__ == "__main__":
    main()
