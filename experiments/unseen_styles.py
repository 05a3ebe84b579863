"""Score bibliographies set in BibTeX styles that the parser's rules were not made with: table in
methods/references.md.

    .venv/bin/python -m experiments.unseen_styles FOLDER [--mistakes]

Sets examples/styles/references.bib, whose truth is known, in each of STYLES by BibTeX, converts the
result with LaTeXML, and prints the share of each field that the parser reads as it is printed.
FOLDER keeps the pages, so that a second run only scores them. Needs Debian's latexml,
texlive-bibtex-extra and texlive-publishers.
"""

from __future__ import annotations

import argparse
import os
import subprocess
from pathlib import Path

from pipeline.corpus.parse import html
from tests.conformance import truth
from tests.conformance.report import print_mistakes, table
from tests.conformance.scoring import Score, match_references, printed_items, score_item

# Styles of TeX Live that print English bibliographies and work with natbib. No rule was made with a
# list set in one of them: they are neither in examples/styles nor among the 80 styles with which
# the rules were tried.
STYLES = """
abbrvurl agecon aichej aipauth4-1 aipnum4-2 ajae apsr biochem chetref cje elsarticle-num-names erae
ieeepes IEEEtranS
IEEEtranSA ier jae jmr jpe jss2 klunum mbplain newcastle pccp plainyr prtec regstud resphilosophica
revcompchem sageep
siam-letters thesnumb tugboat unsrturl upmplainnat usmeg-n zootaxa
""".split()  # noqa: SIM905
PAGE = r"""\documentclass{article}
\usepackage[utf8]{inputenc}\usepackage{amsmath}\usepackage{url}\usepackage{hyperref}\usepackage{natbib}
\title{A Bibliography}\author{Ann Lee}
\begin{document}\maketitle
\section{Text} The bibliography follows.
\input{page.bbl}
\end{document}
"""
LATEXMLC = (
    "latexmlc",
    "--preload=[ids]latexml.sty",
    "--format=html5",
    "--pmml",
    "--cmml",
    "--mathtex",
    "--nodefaultresources",
    "--dest=page.html",
    "page.tex",
)


def build_page(style: str, folder: Path) -> Path:
    """The page of one style, built where it is not there yet. Raises CalledProcessError where
    LaTeXML fails.
    """
    page = folder / style / "page.html"
    if page.is_file():
        return page
    page.parent.mkdir(parents=True, exist_ok=True)
    (page.parent / "references.bib").write_bytes((truth.STYLES / "references.bib").read_bytes())
    (page.parent / "page.aux").write_text(
        f"\\relax\n\\citation{{*}}\n\\bibstyle{{{style}}}\n\\bibdata{{references}}\n"
    )
    # Not checked: it warns of missing fields.
    subprocess.run(["bibtex", "page"], cwd=page.parent, capture_output=True, check=False)
    convert(PAGE, page.parent)
    return page


def convert(document: str, folder: Path) -> None:
    """Write a document to page.tex, and LaTeXML's page.html beside it. Raises CalledProcessError
    where that fails.
    """
    (folder / "page.tex").write_text(document)
    environment = os.environ | {"SOURCE_DATE_EPOCH": "1711929600", "PERL_HASH_SEED": "0"}
    subprocess.run(
        LATEXMLC, cwd=folder, env=environment, capture_output=True, check=True, timeout=300
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path, metavar="FOLDER")
    parser.add_argument("--mistakes", action="store_true", help="list every mistake")
    arguments = parser.parse_args()
    score = Score()
    for style in STYLES:
        content = build_page(style, arguments.folder.resolve()).read_bytes()
        read = {item.key: item for item in html.parse(content).bibliography}
        for printed, reference in match_references(
            printed_items(content.decode()), truth.true_references()
        ):
            score_item(score, style, printed, reference, read[printed.key])
    if arguments.mistakes:
        print_mistakes(score.mistakes)
    print(table(score))


if __name__ == "__main__":
    main()
