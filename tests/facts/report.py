"""Check every fact of the suite, and write docs/experiments/facts.md.

`python -m tests.facts.report` writes the page; `--failures` prints what fails, but in held-out papers.
"""

import argparse
from collections import Counter
from pathlib import Path

from tests.facts.facts import KINDS
from tests.facts.suite import PARTS, facts_of_paper, papers

PAGE = Path(__file__).resolve().parents[2] / "docs" / "experiments" / "facts.md"
TEMPLATE = Path(__file__).with_name("page.md")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--failures", action="store_true", help="print what fails")
    checked = [(paper, facts_of_paper(paper)) for paper in papers()]
    if parser.parse_args().failures:
        print_failures((paper.name, facts) for paper, facts in checked if paper.part != "held out")
    PAGE.write_text(page(checked), encoding="utf-8")


def page(checked):
    """The page of the documentation."""
    return TEMPLATE.read_text("utf-8").format(
        facts=sum(len(facts) for _, facts in checked),
        papers=len(checked),
        table=table(checked),
    )


def print_failures(checked):
    """Print each fact that fails with what was read."""
    for name, facts in checked:
        for fact in facts:
            if not fact.holds:
                print(f"{name}: {fact.kind}: {fact.expected!r} <- {fact.read[:200]!r}")


def shares(checked):
    """(facts that hold, facts) by part and kind; the kind "all" sums up a part."""
    right = Counter()
    total = Counter()
    for paper, facts in checked:
        for fact in facts:
            for kind in (fact.kind, "all"):
                total[paper.part, kind] += 1
                right[paper.part, kind] += fact.holds
    return {key: (right[key], count) for key, count in total.items()}


def table(checked):
    """A column per part, a line per kind of which a fact fails, and one for all."""
    counted = shares(checked)
    lines = [f"| kind | {' | '.join(PARTS)} |", "|---|---|---|---|"]
    for kind in (*KINDS, "all"):
        rates = [counted.get((part, kind), (0, 0)) for part in PARTS]
        if kind == "all" or any(right < total for right, total in rates):
            lines.append(f"| {kind} | {' | '.join(map(_share, rates))} |")
    return "\n".join(lines)


def _share(counts):
    right, total = counts
    share = "" if right == total else f" of {total:,} ({100 * right / total:.1f} %)"
    return f"{right:,}{share}"


if __name__ == "__main__":
    main()
