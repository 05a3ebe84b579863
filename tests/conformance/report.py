"""Rates of names, bylines and bibliographies that are right by field, with every mistake.

`python -m tests.conformance.report` scores the pages of examples/styles, and names and affiliations of
the second real dump.
"""

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

# In per cent.
TARGETS = {
    "author names": 97,
    "affiliations": 95,
    "title": 98,
    "venue": 95,
    "year": 99,
    "DOI": 99,
    "arXiv id": 99,
}
FIELDS = (*BYLINE_FIELDS, *ITEM_FIELDS)
DUMP2 = truth.PROJECT.parent / "shared" / "data" / "dump2"


def score_styles():
    """Score the pages of the styles."""
    score = Score()
    for style in truth.style_names():
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
    del score.total["e-mails"]
    score.mistakes = [mistake for mistake in score.mistakes if mistake.field != "e-mails"]
    return score


def table(score):
    """The rate of each field in per cent, and its target."""
    rates = [(name, score.rate(name)) for name in FIELDS if score.total[name]]
    return "\n".join(
        f"{name:<24}{100 * rate:6.1f}  {TARGETS.get(name, '')}" for name, rate in rates
    )


def main():
    """Print the mistakes and the rates of the styles, then those of the real pages."""
    for score in (score_styles(), score_real_bylines()):
        for mistake in score.mistakes:
            print(f"{mistake.page} {mistake.place} {mistake.field}")
            print(f"    expected {mistake.expected}\n    read     {mistake.read}")
        print(table(score))


if __name__ == "__main__":
    main()
