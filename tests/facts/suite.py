"""The papers of the facts suite: sources, pages and bibliographies, and the facts of each."""

import re
import tomllib
import zipfile
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from pipeline.corpus.parse import html
from tests.conformance.scoring import printed_items
from tests.facts.facts import Work, facts_of
from tests.facts.latex import plain, read_source, words

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
STYLES, FACTS = EXAMPLES / "styles", EXAMPLES / "facts"
PARTS = ("styles", "papers", "held out")


@dataclass(frozen=True, slots=True)
class SuitePaper:
    """One source with the page that LaTeXML made from it."""

    name: str
    part: str
    tex: str
    page: bytes
    bibliography: Path
    authors: tuple[str, ...]


def papers():
    """The 35 styles, which share one text, then the papers of the suite."""
    shared = {
        name: (STYLES / "tex" / f"{name}.tex").read_text("utf-8") for name in ("abstract", "body")
    }
    for source in sorted((STYLES / "papers").glob("*.tex")):
        tex = re.sub(
            r"\\input\{(abstract|body)\}", lambda match: shared[match[1]], source.read_text("utf-8")
        )
        page = (STYLES / "pages" / f"{source.stem}.html").read_bytes()
        yield SuitePaper(
            f"styles/{source.stem}", "styles", tex, page, STYLES / "references.bib", ()
        )
    settings = _settings()
    with zipfile.ZipFile(FACTS / "pages.zip") as pages:
        for source in sorted((FACTS / "papers").glob("*.tex")):
            yield SuitePaper(
                source.stem,
                "held out" if source.stem in settings["held_out"] else "papers",
                source.read_text("utf-8"),
                pages.read(f"{source.stem}.html"),
                FACTS / "references.bib",
                tuple(settings["authors"][source.stem]),
            )


@cache
def _settings():
    return tomllib.loads((FACTS / "facts.toml").read_text("utf-8"))


def facts_of_paper(paper):
    """Every fact of a paper, checked against what the parser reads from its page."""
    source = read_source(paper.tex)
    works = _works(paper.bibliography)
    if paper.part != "styles":
        works = {key: works[key] for key in source.cited_keys()}
    text = paper.page.decode("utf-8")
    items = [f" {' '.join(words(item.text))} " for item in printed_items(text)]
    works = {
        key: replace(
            work, prints_title=any(f" {' '.join(words(work.title))} " in item for item in items)
        )
        for key, work in works.items()
    }
    if "ltx_cite" not in text:  # LaTeXML took no \\cite of this page for a citation
        source.drop_citations()
    page = html.parse(paper.page, paper.authors)
    return list(facts_of(source, page, works, paper.authors))


@cache
def _works(bibliography):
    """The works of a .bib file that has one field a line."""
    works = {}
    for entry in re.split(r"^@\w+\{", bibliography.read_text("utf-8"), flags=re.MULTILINE)[1:]:
        fields = dict(re.findall(r"^\s+(\w+)\s*=\s*\{(.*?)\},?$", entry, flags=re.M | re.S))
        first = plain(fields.get("author") or fields.get("editor") or "").split(" and ")[0]
        family = first.partition(",")[0] if "," in first else first.rpartition(" ")[2]
        works[entry.partition(",")[0]] = Work(plain(fields["title"]), family)
    return works
