"""Check every fact of the suite, and write docs/experiments/facts.md.

`python -m tests.facts.report` writes the page; `--strangers` measures the real sources too, which
are not part of the repository; `--failures` prints what fails, but in held-out papers.
"""

import argparse
from collections import Counter
from pathlib import Path

from tests.conftest import SHARED_DATA
from tests.facts.facts import KINDS
from tests.facts.strangers import strangers
from tests.facts.suite import PARTS, facts_of_paper, papers

PAGE = Path(__file__).resolve().parents[2] / "docs" / "experiments" / "facts.md"
TEMPLATE = Path(__file__).with_name("page.md")


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--strangers", action="store_true", help="measure real sources too")
    parser.add_argument("--failures", action="store_true", help="print what fails")
    arguments = parser.parse_args()
    checked = [(paper, facts_of_paper(paper)) for paper in papers()]
    if arguments.failures:
        print_failures((paper.name, facts) for paper, facts in checked if paper.part != "held out")
    section = kept_strangers()
    if arguments.strangers:
        found = list(real_papers())
        if arguments.failures:
            print_failures((name, facts) for name, facts in found if not isinstance(facts, str))
        section = strangers_table(found)
    PAGE.write_text(page(checked, section), encoding="utf-8")


def real_papers():
    """(arXiv id, facts or why there are none) of the real papers among arXiv's sources."""
    folder = SHARED_DATA / "today"
    members = (folder / "tar_members.tsv").read_text("utf-8").splitlines()
    ids = {Path(line.split("\t")[0]).stem for line in members if "real source" in line}
    return strangers(folder, "2025-01", SHARED_DATA / "ar5iv-bindings", ids)


def kept_strangers():
    """The table of strangers' sources as the page has it."""
    return PAGE.read_text("utf-8").split("\n## ")[1].partition("\n")[2].strip()


def strangers_table(found):
    """A line per kind, and one with the share of each paper."""
    facts = [fact for _, facts in found if not isinstance(facts, str) for fact in facts]
    lines = ["| kind | strangers |", "|---|---|"]
    for kind in (*KINDS, "all"):
        held = [fact.holds for fact in facts if kind in (fact.kind, "all")]
        if held:
            lines.append(f"| {kind} | {_share((sum(held), len(held)))} |")
    return "\n".join([*lines, "", "; ".join(map(_of_stranger, found)) + "."])


def _of_stranger(found):
    name, facts = found
    if isinstance(facts, str):
        return f"{name}: {facts}"
    return f"{name}: {_share((sum(fact.holds for fact in facts), len(facts)))}"


def page(checked, section):
    """The page of the documentation. section: the table of strangers' sources."""
    return TEMPLATE.read_text("utf-8").format(
        strangers=section,
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
