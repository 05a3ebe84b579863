"""arXiv's pages of today against the labels of tests/data/today, and ar5iv's of the same papers.

python -m tests.facts.today
"""

import re
import sys
import tomllib
from collections import Counter

from pipeline.corpus.pages import require_text
from pipeline.corpus.parse import html
from pipeline.corpus.parse.parsed_page import PageError
from tests.conformance.scoring import Score, score_byline
from tests.conformance.truth import PROJECT, TrueAuthor
from tests.facts.facts import table_grids

LABELS = PROJECT / "tests" / "data" / "today"
PAGES = PROJECT.parent / "shared" / "data" / "today"


def score_today(name):
    """Score the pages of a file of labels."""
    labels, score = tomllib.loads((LABELS / name).read_text("utf-8")), Score()
    for label in labels["page"]:
        text = _page(label["id"])
        paper = html.parse(text, [author["name"] for author in label.get("authors", ())])
        try:
            require_text(paper)
            read = {"kind": "paper"} | _read(label, paper)
            frame = labels.get("frame", {}).get(label["era"], []) + label["frame"]
            inside = [phrase for phrase in frame if phrase in _texts(paper, "paragraph")]
            score.add(label["id"], "page", "frame", [], inside, right=not inside)
            score_byline(score, label["id"], paper, list(_authors(label)), text.decode())
        except PageError as error:
            read = {"kind": error.reason}
        for field, value in read.items():
            right = squeezed(str(label[field])) == squeezed(str(value))
            score.add(label["id"], "page", field, label[field], value, right=right)
    return score


def _read(label, paper):
    """What was read of a page, by field of its label; where a cell or formula is found, as there."""
    top = [section.anchor.startswith("A") for section in paper.sections if section.depth == 1]
    read = {
        "title": paper.title,
        "abstract": squeezed(paper.abstract)[: len(squeezed(label["abstract"]))],
        "sections": top.count(False),
        "appendices": top.count(True),
        "references": len(paper.bibliography),
    }
    if "cell" in label:
        cells = list(_cells(label["cell"], paper))
        read["cell"] = label["cell"] if label["cell"]["value"] in cells else cells
    if "formula" in label:
        items = "".join(item.raw for item in paper.bibliography)
        found = squeezed(label["formula"]["tex"]) in squeezed(_texts(paper) + items)
        read["formula"] = label["formula"] if found else ""
    return read


def _texts(paper, *kinds):
    return "\n".join(block.text for block in paper.blocks if not kinds or block.kind in kinds)


def _cells(cell, paper):
    """The cells in a table's row and column that begin so."""
    for block in paper.blocks:
        if block.kind == "table" and squeezed(cell["caption"]) in squeezed(block.text):
            for head, *rows in table_grids(block.text):
                for row in rows:
                    if squeezed(row[0]).startswith(squeezed(cell["row"])):
                        columns = zip(head, row, strict=True)
                        yield from (
                            one.strip("$") for name, one in columns if cell["column"] in name
                        )


def _authors(label):
    for author in label["authors"]:
        places = [label["places"][at - 1] for at in author.get("at", ())]
        email = next(iter(author.get("emails", ())), None)
        yield TrueAuthor(author["name"], tuple(places), email)


def pairs(name):
    """(id, equal blocks, blocks that a label explains, others) of each pair in a file of labels."""
    for pair in tomllib.loads((LABELS / name).read_text("utf-8"))["pair"]:
        arxiv, ar5iv = (
            Counter(squeezed(block.text) for block in html.parse(_page(page)).blocks)
            for page in (pair["id"], f"{pair['id']}.ar5iv")
        )
        begins = [squeezed(text) for one in pair["differs"] for text in one["begins"]]
        if "earlier version" in pair["because"]:
            begins = [""]
        differ = [*(arxiv - ar5iv), *(ar5iv - arxiv)]
        other = [text for text in differ if not text.startswith(tuple(begins))]
        yield pair["id"], (arxiv & ar5iv).total(), len(differ) - len(other), other


def _page(name):
    (path,) = PAGES.rglob(f"{name}.html")
    return path.read_bytes()


def squeezed(text):
    """A text without white space and the % at the end of LaTeXML's lines, its asterisks alike."""
    return re.sub(r"%\n|\s", "", text or "").replace("∗", "*")


def main():
    """Print the scores of the pages, field by field, and the pairs with what nothing explains."""
    for name in sorted(path.name for path in LABELS.glob("*.toml")):
        score = score_today(name)
        for field in sorted(score.total):
            sys.stdout.write(f"{name}: {field} {score.rate(field):.3f}\n")
        for pair in pairs(name):
            sys.stdout.write(f"{pair}\n")


if __name__ == "__main__":
    main()
