"""What people type over real papers: names of methods, misspelt words, identifiers, questions.

    python -m benchmarks.real_papers [--data FOLDER] [--root FOLDER] [--part PART]
                                     [--json] [--quick]

data: the folder with the real papers (dump, dump2, dump3 in it). root: a data root to make or
reuse; by default a temporary one, whose embeddings take some minutes. The labels lie in
benchmarks/labels, made by reading the papers before any rule was written for them; two thirds are
for tuning, one third ("held") is for reports. Further parts are in the figures only where `--part`
names them; all but held4 are of questions alone:

    fresh            30 questions made after the first rules, over other papers and facts
    tuned2, held2    30 each, made before the second rules: one for tuning, one for reports
                     tuned2 ends with 60 more, made later for tuning
    held3            30 made before the score of quotations was fitted, for reports
    held4            40 questions, 20 names, 20 topics, 6 identifiers and 10 queries without an
                     answer, for reports

    names.jsonl      the name of a method, system or data set, and the paper that introduces it
    topics.jsonl     a topical query (40 long, 40 short), the same with one and two misspelt words,
                     and its paper
    ids.jsonl        an identifier or address in some spelling; no paper: not in the corpus
    nothing.jsonl    a query that no paper of the corpus answers
    questions.jsonl  a question; its answer holds one spelling of each group of `right`, or
                     abstains where the corpus has none. A proxy: readers judge better.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from benchmarks.harness import Claim, report
from citeloom import Corpus
from pipeline.cli.common import open_workspace
from pipeline.engine.stage import Workspace
from pipeline.errors import CiteloomError
from pipeline.ops.run_months import known_months, run_months
from pipeline.stages import choose_stages

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
LABELS = Path(__file__).with_name("labels")
DUMPS = ("dump", "dump2", "dump3")
SNAPSHOTS = ("metadata/snapshot.jsonl", "dump2/snapshot.jsonl", "dump3/snapshot.jsonl")
QUICK = 8
# The parts that are in the figures without `--part`.
MAIN_PARTS = ("tuned", "held")
# The parts that every file of labels has; the others are of the questions alone.
WHOLE_PARTS = (*MAIN_PARTS, "held4")
# Papers of the first page.
FIRST_PAGE = 5
# Every such topic is looked at on all its pages.
PAGED = 4

Row = dict[str, Any]


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--root", type=Path, default=None)
    parser.add_argument("--part", choices=question_parts(), default=None)
    parser.add_argument("--json", action="store_true", help="the last line is JSON in any case")
    parser.add_argument("--quick", action="store_true", help=f"{QUICK} rows of each kind")
    options = parser.parse_args(arguments)
    if not all((options.data / dump).is_dir() for dump in DUMPS):
        print(f"skipped: the real papers ({options.data}) are not on this machine")
        return
    with tempfile.TemporaryDirectory() as folder:
        workspace = make_corpus(options.data, Path(folder), options.root)
        with Corpus(workspace) as corpus:
            most = QUICK if options.quick else None
            if options.part is None or options.part in WHOLE_PARTS:
                measure(corpus, options.part, most)
            else:
                measure_questions(corpus, options.part, most)


def make_corpus(data: Path, folder: Path, root: Path | None) -> Workspace:
    """A corpus of all the real papers, from zips and metadata gathered in a folder."""
    dump, snapshot = folder / "dump", folder / "snapshot.jsonl"
    dump.mkdir()
    for name in DUMPS:
        for archive in sorted((data / name).glob("*.zip")):
            (dump / f"{name}-{archive.name}").symlink_to(archive)
    snapshot.write_text("".join((data / name).read_text() for name in SNAPSHOTS))
    settings = {
        "data": str(root or folder / "data"), "dump_dir": str(dump), "arxiv_api": False,
        "metadata_snapshot": snapshot, "_env_file": None,
    }  # fmt: skip
    workspace = open_workspace(**settings)
    months = known_months(workspace, "all")
    run_months(workspace, months, choose_stages(until="index_receipts"))
    return workspace


def measure(corpus: Corpus, part: str | None, most: int | None) -> None:
    """Ask everything that the labels hold, and print what was right and what was not."""
    names, topics, ids = (labels(name, part, most) for name in ("names", "topics", "ids"))
    nothing, questions = labels("nothing", part, most), labels("questions", part, most)
    first_by_name = [row for row in names if first_paper(corpus, row["query"]) == row["paper"]]
    by_abstract = [row for row in names if first_passage(corpus, row["query"]) == row["paper"]]
    first_by_topic = [row for row in topics if first_paper(corpus, row["query"]) == row["paper"]]
    hidden_one = [row for row in topics if not on_first_page(corpus, row["one_word"], row)]
    hidden_two = [row for row in topics if not on_first_page(corpus, row["two_words"], row)]
    right_ids = [row for row in ids if first_paper(corpus, row["query"]) == row["paper"]]
    answered = [row for row in nothing if first_paper(corpus, row["query"])]
    right, wrong, abstained = questions_by_outcome(corpus, questions)
    say_missed("name", names, first_by_name)
    say_missed("topic", topics, first_by_topic)
    say_missed("identifier", ids, right_ids)
    say_not_right(wrong, abstained)
    repeating = [row for row in topics[::PAGED] if repeats_a_paper(corpus, row["query"])]
    report(
        "real_papers" if part is None else f"real_papers_{part}",
        {
            "part": part or "tuned and held",
            "names: its paper first": counts(first_by_name, names),
            "names: its abstract or front matter first": counts(by_abstract, names),
            "topics: its paper first": counts(first_by_topic, topics),
            "topics: a paper on two pages": counts(repeating, topics[::PAGED]),
            "one misspelt word: its paper hidden": counts(hidden_one, topics),
            "two misspelt words: its paper hidden": counts(hidden_two, topics),
            "identifiers: that paper, or none": counts(right_ids, ids),
            "no answer in the corpus: something said to fit": counts(answered, nothing),
            "questions: right, wrong, abstained": f"{len(right)}, {len(wrong)}, {len(abstained)}",
        },
        [
            Claim("share of names whose paper is first", share(first_by_name, names), 0.94),
            Claim("share of names whose abstract is first", share(by_abstract, names), 0.94),
            Claim("share of topics whose paper is first", share(first_by_topic, topics), 0.94),
            Claim("topics with a paper on two pages", len(repeating), 0, at_most=True),
            Claim("one misspelt word, hidden", len(hidden_one), 0, at_most=True),
            Claim("two misspelt words, hidden", share(hidden_two, topics), 0.03, at_most=True),
            Claim("share of identifiers that are right", share(right_ids, ids), 1.0),
            Claim(
                "unanswerable, something said to fit", share(answered, nothing), 0.05, at_most=True
            ),
            Claim("share of questions that are right", share(right, questions), 0.66),
            Claim("share of questions that are wrong", share(wrong, questions), 0.1, at_most=True),
        ],
    )


def measure_questions(corpus: Corpus, part: str, most: int | None) -> None:
    """Ask the questions of a part that no other file of labels has; no claim rests on them."""
    right, wrong, abstained = questions_by_outcome(corpus, labels("questions", part, most))
    say_not_right(wrong, abstained)
    report(
        f"real_papers_{part}",
        {"questions: right, wrong, abstained": f"{len(right)}, {len(wrong)}, {len(abstained)}"},
        [],
    )


def labels(name: str, part: str | None, most: int | None) -> list[Row]:
    """The rows of a file of labels, of one part; without a part those of "tuned" and "held"."""
    parts = MAIN_PARTS if part is None else (part,)
    return [row for row in all_labels(name) if row["part"] in parts][:most]


def question_parts() -> list[str]:
    """The parts that the questions have, in the order of their file."""
    return list(dict.fromkeys(row["part"] for row in all_labels("questions")))


def all_labels(name: str) -> list[Row]:
    """The rows of a file of labels, of all parts."""
    return [json.loads(line) for line in (LABELS / f"{name}.jsonl").read_text().splitlines()]


def papers_of(corpus: Corpus, query: str) -> list[str]:
    """The papers of the first page, best first; none where nothing fits."""
    try:
        results = corpus.search(query, limit=FIRST_PAGE)
    except CiteloomError:
        return []
    return [paper.arxiv_id for paper in results if results.fits]


def first_paper(corpus: Corpus, query: str) -> str | None:
    """The paper of the first result; None where nothing fits."""
    return next(iter(papers_of(corpus, query)), None)


def first_passage(corpus: Corpus, query: str) -> str | None:
    """The paper of the first passage, where that is the paper's abstract or front matter."""
    hits = corpus.search_passages(query, limit=1)
    if hits and hits[0].kind in ("abstract", "front_matter"):
        return hits[0].arxiv_id
    return None


def on_first_page(corpus: Corpus, query: str, row: Row) -> bool:
    return row["paper"] in papers_of(corpus, query)


def questions_by_outcome(
    corpus: Corpus, rows: Sequence[Row]
) -> tuple[list[str], list[str], list[str]]:
    """The questions that were answered right, answered wrongly, and not answered."""
    questions: dict[str, list[str]] = {"right": [], "wrong": [], "abstained": []}
    for row in rows:
        questions[answer_outcome(corpus, row)].append(row["question"])
    return questions["right"], questions["wrong"], questions["abstained"]


def answer_outcome(corpus: Corpus, row: Row) -> str:
    """`right`, `wrong` or `abstained`; to abstain is right where the corpus has no answer."""
    reply = corpus.ask(row["question"], system="extractive")
    if reply.answer.abstained:
        return "abstained" if row["right"] else "right"
    if not row["right"]:
        return "wrong"
    return "right" if holds_answer(reply.answer.text, row["right"]) else "wrong"


def holds_answer(text: str, right: Sequence[Sequence[str]]) -> bool:
    """Whether a text has one spelling of each group, in any case."""
    folded = text.lower()
    return all(any(spelling.lower() in folded for spelling in spellings) for spellings in right)


def repeats_a_paper(corpus: Corpus, query: str) -> bool:
    """Whether a paper stands on two pages of a search."""
    papers: list[str] = []
    has_more = True
    while has_more:
        page = corpus.search(query, limit=FIRST_PAGE, offset=len(papers))
        papers += [paper.arxiv_id for paper in page]
        has_more = page.has_more
    return len(papers) > len(set(papers))


def counts(rows: Sequence[Row], of: Sequence[Row]) -> str:
    """How many rows, and how many of the held part where the rows have it."""
    held, of_held = (sum(row["part"] == "held" for row in some) for some in (rows, of))
    if not of_held:
        return f"{len(rows)} of {len(of)}"
    return f"{len(rows)} of {len(of)} (held: {held} of {of_held})"


def share(rows: Sequence[object], of: Sequence[object]) -> float:
    return round(len(rows) / len(of), 4)


def say_missed(kind: str, rows: Iterable[Row], right: Sequence[Row]) -> None:
    """Print the queries whose first paper was not the right one."""
    for row in rows:
        if row not in right:
            print(f"{kind} missed: {row['query']} ({row['paper']})")


def say_not_right(wrong: Sequence[str], abstained: Sequence[str]) -> None:
    """Print the questions that were answered wrongly, and those that were not answered."""
    for question in wrong:
        print(f"wrong: {question}")
    for question in abstained:
        print(f"abstained: {question}")


if __name__ == "__main__":
    main()
