"""Check every fact of the suite, and write docs/experiments/facts.md.

`python -m tests.facts.report` writes the page, `--failures` prints what fails, and with names of
papers only that of these. Failures of held-out papers are printed only by name.
"""

import argparse
from collections import Counter
from pathlib import Path

from tests.conftest import SHARED_DATA
from tests.facts.facts import KINDS
from tests.facts.strangers import strangers
from tests.facts.suite import PARTS, facts_of_paper, papers

PAGE = Path(__file__).resolve().parents[2] / "docs" / "experiments" / "facts.md"

TEXT = """# Facts

What citeloom reads from a page, checked against the LaTeX source of the page: {facts:,} facts of {papers} papers.
Recall of words cannot see a cell in the wrong column, a citation of the wrong work or two paragraphs in the wrong order; a fact can.
The facts follow [olmOCR-Bench](https://huggingface.co/datasets/allenai/olmOCR-bench), which checks texts of PDF files in this manner.

The sources were written for this suite, and a reader of LaTeX that shares no code with the parser takes the facts from them (`tests/facts`).
LaTeXML 0.8.7 made the pages.

- **styles**: one short text in 35 combinations of class and bibliography style (`examples/styles`);
- **papers**: 13 papers of other text and classes (`examples/facts`): ACM, IEEE, LNCS, Elsevier, AMS, REVTeX, ACL, NeurIPS, ICML, JMLR, a thesis, superscript citations, German;
- **held out**: 7 papers (AAAI, ACM, CVPR, IEEE, Springer, a thesis, Chinese), of which the authors of rules see only how many facts fail. One of their facts, a title that ends in a quotation, was shown to the author of its rule.

Before the rules of 2026-11-26, 99.6 % of the styles, 98.9 % of the papers and 99.5 % of the held-out papers were right.
The sources are short and clean, so real papers fare worse: [41 real papers](first-run.md) are measured by other means.

{table}

What fails in styles and papers, by kind:

{failures}

{strangers}A fact holds where the parsed paper says the same as the source: words are compared without case and punctuation, titles of the bibliography and cells of tables by characters, code with its spaces, formulas as TeX without white space and braces.
Citations hold where the block around five words of the sentence cites the work that the source names there. What LaTeXML lost is not counted: titles that a style does not print, and the citations of a page without any link.

`python -m tests.facts.report` writes this page, `--failures` lists what fails, `--strangers` measures the table above, and `examples/build --facts` makes the pages again.
"""

STRANGERS = """The sources above were written for this suite, and its figures have stood at 100 % since. The same facts of {papers} real papers of strangers, from their own LaTeX, converted by `citeloom convert`'s converter (LaTeXML 0.8.7 with ar5iv's bindings); the reader does not know all their macros, so that part of what fails is its own:

{table}

{each}
"""
_SECTION = "## Strangers' sources\n\n"


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", metavar="PAPER")
    parser.add_argument("--kind", choices=KINDS, help="list failures of this kind alone")
    parser.add_argument("--failures", action="store_true", help="list what fails; write no page")
    parser.add_argument("--strangers", action="store_true", help="measure real sources too")
    arguments = parser.parse_args()
    checked = [(paper, facts_of_paper(paper)) for paper in papers()]
    if arguments.failures or arguments.names or arguments.kind:
        print_failures(checked, arguments.names, arguments.kind)
        print(table(checked))
    else:
        section = measure_strangers() if arguments.strangers else kept_strangers()
        PAGE.write_text(page(checked, section), encoding="utf-8")


def kept_strangers():
    """The section on strangers' sources as the page has it."""
    kept = PAGE.read_text("utf-8").partition(_SECTION)[2].partition("A fact holds where")[0]
    return f"{_SECTION}{kept}" if kept else ""


def measure_strangers():
    """The section on strangers' sources, which are not part of the repository."""
    folder = SHARED_DATA / "today"
    members = (folder / "tar_members.tsv").read_text("utf-8").splitlines()
    real = {Path(line.split("\t")[0]).stem for line in members if "real source" in line}
    found = list(strangers(folder, "2025-01", SHARED_DATA / "ar5iv-bindings", real))
    facts = [fact for _, facts in found if not isinstance(facts, str) for fact in facts]
    lines = ["| kind | strangers |", "|---|---|"]
    for kind in (*KINDS, "all"):
        held = [fact.holds for fact in facts if kind in (fact.kind, "all")]
        if held:
            lines.append(f"| {kind} | {_share((sum(held), len(held)))} |")
    each = [f"{name}: {_of_stranger(facts)}" for name, facts in found]
    text = STRANGERS.format(papers=len(found), table="\n".join(lines), each="; ".join(each) + ".")
    return f"{_SECTION}{text}\n"


def _of_stranger(facts):
    if isinstance(facts, str):
        return facts
    return _share((sum(fact.holds for fact in facts), len(facts)))


def page(checked, strangers=""):
    """The page of the documentation. strangers: its section on real sources."""
    return TEXT.format(
        strangers=strangers,
        facts=sum(len(facts) for _, facts in checked),
        papers=len(checked),
        table=table(checked),
        failures=failures_by_kind(checked),
    )


def print_failures(checked, names, kind):
    """Print each fact that fails with what was read; of held-out papers only those named."""
    for paper, facts in checked:
        if (names and paper.name not in names) or (paper.part == "held out" and not names):
            continue
        for fact in facts:
            if not fact.holds and kind in (None, fact.kind):
                print(f"{paper.name}: {fact.kind}: {fact.expected!r} <- {fact.read[:200]!r}")


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
    """A line per kind, a column per part."""
    counted = shares(checked)
    lines = [f"| kind | {' | '.join(PARTS)} |", "|---|---|---|---|"]
    for kind in (*KINDS, "all"):
        cells = [_share(counted.get((part, kind))) for part in PARTS]
        lines.append(f"| {kind} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _share(counts):
    if counts is None:
        return "–"
    right, total = counts
    return f"{right:,} of {total:,} ({100 * right / total:.1f} %)"


def failures_by_kind(checked):
    """A line per kind that fails outside of the held-out papers: how many, where, one example."""
    failing = {}
    for paper, facts in checked:
        if paper.part != "held out":
            for fact in facts:
                if not fact.holds:
                    failing.setdefault(fact.kind, []).append((paper.name, fact))
    lines = ["| kind | facts | papers | example |", "|---|---|---|---|"]
    for kind, cases in failing.items():
        names = ", ".join(dict.fromkeys(name for name, _ in cases))
        example = cases[0][1].expected.replace("|", "\\|")
        lines.append(f"| {kind} | {len(cases)} | {names} | `{example[:80]}` |")
    return "\n".join(lines) if failing else "Nothing."


if __name__ == "__main__":
    main()
