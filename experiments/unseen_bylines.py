"""Score bylines set in classes of TeX Live that the parser's rules were not made with: table in
methods/references.md.

    .venv/bin/python -m experiments.unseen_bylines FOLDER [--mistakes]

Converts the documents of experiments/bylines, each with the author block that the documentation of
its class asks for, with LaTeXML, and prints the share of each field that the parser, given the
names of the authors, reads as it is printed. FOLDER keeps the pages, so that a second run only
scores them. Needs Debian's latexml and texlive-publishers.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from experiments.unseen_styles import convert
from pipeline.corpus.parse import html
from tests.conformance import truth
from tests.conformance.report import print_mistakes, table
from tests.conformance.scoring import Score, score_byline

BYLINES = Path(__file__).with_name("bylines")
TRUTH = BYLINES / "truth.toml"


def build_page(name: str, folder: Path) -> Path:
    """The page of one class, built where it is not there yet. Raises CalledProcessError where
    LaTeXML fails.
    """
    page = folder / name / "page.html"
    if not page.is_file():
        page.parent.mkdir(parents=True, exist_ok=True)
        convert((BYLINES / f"{name}.tex").read_text(), page.parent)
    return page


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path, metavar="FOLDER")
    parser.add_argument("--mistakes", action="store_true", help="list every mistake")
    arguments = parser.parse_args()
    score = Score()
    for name in truth.style_names(TRUTH):
        content = build_page(name, arguments.folder.resolve()).read_bytes()
        paper = html.parse(content, truth.full_names(TRUTH))
        score_byline(score, name, paper, truth.true_authors(name, TRUTH), content.decode())
    if arguments.mistakes:
        print_mistakes(score.mistakes)
    print(table(score))


if __name__ == "__main__":
    main()
