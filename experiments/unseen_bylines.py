"""Score bylines set in classes and layouts that the parser's rules were not made with: table in
methods/papers.md.

    .venv/bin/python -m experiments.unseen_bylines FOLDER [--mistakes]

Converts the documents of experiments/bylines with LaTeXML, and prints the share of each field that
the parser, given the names of the authors, reads as it is printed: for the classes of truth.toml,
whose author blocks are those of their documentation, and for the layouts of more.toml, one part of
which was held out while rules were made; mistakes of that part are not listed. FOLDER keeps the
pages, so that a second run only scores them. Needs Debian's latexml and texlive-publishers.
"""

from __future__ import annotations

import argparse
import tomllib
from pathlib import Path

from experiments.unseen_styles import convert
from pipeline.corpus.parse import html
from pipeline.corpus.parse.parsed_page import Author
from tests.conformance import truth
from tests.conformance.report import print_mistakes, table
from tests.conformance.scoring import (
    Score,
    score_affiliations,
    score_byline,
    score_names,
    words,
)
from tests.conformance.truth import TrueAuthor

BYLINES = Path(__file__).with_name("bylines")
CLASSES, LAYOUTS = BYLINES / "truth.toml", BYLINES / "more.toml"


def build_page(name: str, folder: Path) -> bytes:
    """The page of one document, built where it is not there yet. Raises CalledProcessError where
    LaTeXML fails.
    """
    page = folder / name / "page.html"
    if not page.is_file():
        page.parent.mkdir(parents=True, exist_ok=True)
        convert((BYLINES / f"{name}.tex").read_text(), page.parent)
    return page.read_bytes()


def score_classes(folder: Path) -> Score:
    """The score of the classes of truth.toml."""
    score = Score()
    for name in truth.style_names(CLASSES):
        content = build_page(name, folder)
        paper = html.parse(content, truth.full_names(CLASSES))
        score_byline(score, name, paper, truth.true_authors(name, CLASSES), content.decode())
    return score


def score_layouts(folder: Path, part: str) -> Score:
    """The score of one part of more.toml: names and affiliations."""
    score = Score()
    for name, layout in tomllib.loads(LAYOUTS.read_text()).items():
        if layout["part"] != part:
            continue
        authors = [TrueAuthor(author, tuple(places)) for author, *places in layout["authors"]]
        paper = html.parse(build_page(name, folder), [author.name for author in authors])
        score_names(score, name, paper.authors, authors)
        read = {" ".join(words(author.name)): author for author in paper.authors}
        for author in authors:
            mine = read.get(" ".join(words(author.name)), Author(""))
            score_affiliations(score, name, author, mine)
    return score


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path, metavar="FOLDER")
    parser.add_argument("--mistakes", action="store_true", help="list mistakes")
    arguments = parser.parse_args()
    folder = arguments.folder.resolve()
    for title, score in (
        ("classes", score_classes(folder)),
        ("layouts, tuned", score_layouts(folder, "tuned")),
        ("layouts, held out", score_layouts(folder, "held")),
    ):
        print(f"{title}\n")
        if arguments.mistakes and "held" not in title:
            print_mistakes(score.mistakes)
        print(table(score))


if __name__ == "__main__":
    main()
