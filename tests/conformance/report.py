"""Error rates of names, bylines and bibliographies by field and by style, with every mistake.

`python -m tests.conformance.report` scores the pages of examples/styles; `--dump2` scores names and
affiliations of the second real dump; `--mistakes` lists what was read wrongly.
"""

import argparse

from benchmarks.labelled_references import pages
from pipeline.corpus.parse import html
from tests.conformance import truth
from tests.conformance.scoring import (
    BYLINE_FIELDS,
    ITEM_FIELDS,
    Score,
    match_references,
    printed_items,
    score_byline,
    score_item,
    words,
)

TARGETS = {
    "author names": 0.97,
    "affiliations": 0.95,
    "title": 0.98,
    "venue": 0.95,
    "year": 0.99,
    "DOI": 0.99,
    "arXiv id": 0.99,
}
FIELDS = (*BYLINE_FIELDS, *ITEM_FIELDS)
DUMP2 = truth.PROJECT.parent / "shared" / "data" / "dump2"


def score_styles(names=()):
    """Score the pages of the styles, all or some."""
    score = Score()
    for style in names or truth.style_names():
        score_style(score, style)
    return score


def score_style(score, style):
    """Score one page of the suite: its title, its byline, and every item of its bibliography."""
    page = (truth.STYLES / "pages" / f"{style}.html").read_bytes()
    paper = html.parse(page, truth.full_names())
    text = page.decode("utf-8")
    expected = truth.true_title()
    same = words(expected) == words(paper.title)
    score.add(style, "title", "paper title", expected, paper.title, right=same)
    score_byline(score, style, paper, truth.true_authors(style), text)
    read = {item.key: item for item in paper.bibliography}
    for printed, reference in match_references(printed_items(text), truth.true_references()):
        score_item(score, style, printed, reference, read[printed.key])


def score_real_bylines(dump=DUMP2):
    """Score the names and affiliations that are printed on the real pages; e-mails are not
    labelled.
    """
    score = Score()
    content = pages(dump)
    for paper_id, authors in truth.real_bylines(dump).items():
        paper = html.parse(content[paper_id], [author.name for author in authors])
        score_byline(score, paper_id, paper, authors, "")
    for key in [key for key in score.total if key[1] == "e-mails"]:
        del score.total[key], score.right[key]
    score.mistakes = [mistake for mistake in score.mistakes if mistake.field != "e-mails"]
    return score


def table(score):
    """Rates in per cent: a line per page, a column per field, all pages last."""
    names = [name for name in FIELDS if score.rate(name) is not None]
    every_page = sorted({page for page, _ in score.total})
    lines = [" " * 22 + " ".join(f"{name[:10]:>10}" for name in names)]
    for label, chosen in [*((page, [page]) for page in every_page), ("all", every_page)]:
        rates = [score.rate(name, chosen) for name in names]
        lines.append(
            f"{label:<22}"
            + " ".join(f"{'-' if rate is None else f'{100 * rate:.1f}':>10}" for rate in rates)
        )
    targets = [f"{100 * TARGETS[name]:.0f}" if name in TARGETS else "" for name in names]
    lines.append(f"{'target':<22}" + " ".join(f"{target:>10}" for target in targets))
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "pages", nargs="*", metavar="PAGE", help="styles, or with --dump2 papers; all unless named"
    )
    parser.add_argument("--dump2", action="store_true", help="the bylines of ../shared/data/dump2")
    parser.add_argument("--mistakes", action="store_true", help="list every mistake")
    arguments = parser.parse_args()
    score = score_real_bylines() if arguments.dump2 else score_styles(arguments.pages)
    for mistake in score.mistakes if arguments.mistakes else ():
        if not arguments.pages or mistake.page in arguments.pages:
            print(f"{mistake.page} {mistake.place} {mistake.field}")
            print(f"    expected {mistake.expected}\n    read     {mistake.read}")
    print(table(score))


if __name__ == "__main__":
    main()
