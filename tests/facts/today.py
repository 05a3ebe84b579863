"""Check arXiv's pages of today against their labels, and against ar5iv's page of the same paper.

`python -m tests.facts.today` prints two tables, each label that does not hold and each paragraph
that differs; `--held` adds the labels kept back, of which only numbers are printed.
"""

import re
import sys
import tomllib
from collections import Counter
from pathlib import Path

from pipeline.corpus.pages import _require_text
from pipeline.corpus.parse import html
from pipeline.corpus.parse.parsed_page import PageError
from tests.conftest import SHARED_DATA
from tests.facts.facts import Reading, _grids

LABELS = Path(__file__).parents[1] / "data" / "today"
PAGES = SHARED_DATA / "today"
FIELDS = ("kind", "title", "abstract", "sections", "appendices", "references", "cell", "formula")


def main():
    right, total, pairs = Counter(), Counter(), []
    for name in ("labels", "labels_held")[: 1 + ("--held" in sys.argv)]:
        labels = tomllib.loads((LABELS / f"{name}.toml").read_text("utf-8"))
        frames = labels.get("frame", {})
        for label in labels["page"]:
            for kind, holds, read in check(label, frames):
                total[name, kind] += 1
                right[name, kind] += holds
                if not holds and name == "labels":
                    print(f"{label['id']}: {kind}: {read}")
        pairs += [(name, pair) for pair in labels.get("pair", ())]
    for (name, kind), count in total.items():
        print(f"| {name} | {kind} | {right[name, kind]} of {count} |")
    for name, pair in pairs:
        compare(pair, name == "labels")


def check(label, frames):
    """(kind of label, whether it holds, what was read instead) of a page."""
    (path,) = [path for path in PAGES.rglob(f"{label['id']}.html")]
    paper = html.parse(path.read_bytes(), [one["name"] for one in label.get("authors", ())])
    try:
        _require_text(paper)
    except PageError as error:
        yield "kind", label["kind"] == error.reason, error
        return
    yield "kind", label["kind"] == "paper", "paper"
    yield "title", squeezed(paper.title) == squeezed(label["title"]), paper.title
    abstract = squeezed(paper.abstract)
    yield "abstract", abstract.startswith(squeezed(label["abstract"])), abstract[:80]
    top = [one for one in paper.sections if one.depth == 1]
    appendices = [one for one in top if one.anchor.startswith("A")]
    for kind, count in (
        ("sections", len(top) - len(appendices)),
        ("appendices", len(appendices)),
        ("references", len(paper.bibliography)),
    ):
        yield kind, count == label[kind], f"{count}, not {label[kind]}"
    if "cell" in label:
        yield "cell", *_cell(label["cell"], Reading(paper))
    text = squeezed(" ".join([paper.abstract or "", *(block.text for block in paper.blocks)]))
    if "formula" in label:
        items = squeezed(" ".join(item.raw for item in paper.bibliography))
        yield "formula", squeezed(label["formula"]["tex"]) in text + items, ""
    body = "\n".join(block.text for block in paper.blocks if block.kind == "paragraph")
    inside = [phrase for phrase in label["frame"] + frames.get(label["era"], []) if phrase in body]
    yield "frame", not inside, inside
    yield from _authors(label, paper)


def _cell(cell, reading):
    found = []
    for block in reading.blocks("table"):
        if squeezed(cell["caption"]) in squeezed(block.text):
            for head, *rows in _grids(block.text):
                for row in rows:
                    columns = zip(head, row, strict=True)
                    if squeezed(row[0]).startswith(squeezed(cell["row"])):
                        found += [one for column, one in columns if cell["column"] in column]
    return any(squeezed(one).strip("$") == squeezed(cell["value"]) for one in found), found


def _authors(label, paper):
    """Affiliations and e-mails, of each author who has one by label or page."""
    read = {author.name: author for author in paper.authors}
    for known in label["authors"]:
        author = read.get(known["name"])
        if author is None:
            yield "names", False, (known["name"], list(read))
            continue
        yield "names", True, ""
        places = [label["places"][at - 1] for at in known.get("at", ())]
        held = [
            any(squeezed(place) in squeezed(one) for one in author.affiliations) for place in places
        ]
        if places or author.affiliations:
            exact = all(held) and len(author.affiliations) == len(places)
            kind = "affiliations" if author.affiliations else "affiliations, unlinked"
            yield kind, exact, (known["name"], author.affiliations, places)
        if known.get("emails"):
            yield (
                "e-mails",
                set(known["emails"]) == set(author.emails),
                (known["name"], author.emails),
            )


def compare(pair, shown):
    """Print how many paragraphs of a pair are equal, explained by a label, or neither."""
    (path,) = [path for path in (PAGES / "pages").rglob(f"{pair['id']}.html")]
    ours, theirs = (
        [squeezed(block.text) for block in html.parse(file.read_bytes()).blocks]
        for file in (path, PAGES / "pairs" / f"{pair['id']}.ar5iv.html")
    )
    begins = [squeezed(one) for difference in pair["differs"] for one in difference["begins"]]
    only = [*(Counter(ours) - Counter(theirs)), *(Counter(theirs) - Counter(ours))]
    if "earlier version" in pair["because"]:
        begins = [""]
    explained = [text for text in only if begins and text.startswith(tuple(begins))]
    equal = (Counter(ours) & Counter(theirs)).total()
    print(f"| {pair['id']} | {equal} | {len(explained)} | {len(only) - len(explained)} |")
    if shown:
        for text in set(only) - set(explained):
            print("   ", "arxiv" if text in ours else "ar5iv", text[:300])


def squeezed(text):
    """A text without white space and the % at the end of LaTeXML's lines, its asterisks alike."""
    return re.sub(r"%\n|\s", "", text or "").replace("∗", "*")


if __name__ == "__main__":
    main()
