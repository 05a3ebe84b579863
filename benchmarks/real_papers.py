"""What people type over real papers: names of methods, misspelt words, identifiers.

    python -m benchmarks.real_papers [--data FOLDER] [--root FOLDER] [--part PART]
                                     [--json] [--quick]

data: the folder with the real papers (dump, dump2, dump3 in it). root: a data root to make or
reuse; by default a temporary one, whose embeddings take some minutes. The labels lie in
benchmarks/labels, made by reading the papers before any rule was written for them; two thirds are
for tuning, one third ("held") is for reports. A further part is in the figures only where `--part`
names it:

    held4            20 names, 20 topics, 6 identifiers and 10 queries without an answer

    names.jsonl      the name of a method, system or data set, and the paper that introduces it
    topics.jsonl     a topical query (40 long, 40 short), the same with one and two misspelt words,
                     and its paper
    ids.jsonl        an identifier or address in some spelling; no paper: not in the corpus
    nothing.jsonl    a query that no paper of the corpus answers
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any
from zipfile import ZipFile

from benchmarks.harness import Claim, argument_parser, report
from citeloom import Corpus
from pipeline.doors.cli.common import open_workspace
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
PARTS = (*MAIN_PARTS, "held4")
# Papers of the first page.
FIRST_PAGE = 5
# Every such topic is looked at on all its pages.
PAGED = 4

Row = dict[str, Any]


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the figures."""
    parser = argument_parser(__doc__, f"{QUICK} rows of each kind")
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--root", type=Path, default=None)
    parser.add_argument("--part", choices=PARTS, default=None)
    options = parser.parse_args(arguments)
    if not all((options.data / dump).is_dir() for dump in DUMPS):
        print(f"skipped: the real papers ({options.data}) are not on this machine")
        return
    with tempfile.TemporaryDirectory() as folder:
        workspace = make_corpus(options.data, Path(folder), options.root)
        with Corpus(workspace) as corpus:
            measure(corpus, options.part, QUICK if options.quick else None)


def make_corpus(data: Path, folder: Path, root: Path | None, *, today: bool = False) -> Workspace:
    """A corpus of all the real papers, from zips and metadata gathered in a folder. today: with the
    pages that arXiv serves, too.
    """
    dump, snapshot = folder / "dump", folder / "snapshot.jsonl"
    dump.mkdir()
    snapshots = [*SNAPSHOTS]
    if today:
        snapshots.append("today/snapshot.jsonl")
        with ZipFile(dump / "today-ar5iv-04-2024-no-problem.zip", "w") as archive:
            for page in sorted((data / "today" / "pages").glob("*/*.html")):
                archive.write(page, f"no-problem/{page.parent.name}/{page.name}")
    for name in DUMPS:
        for archive in sorted((data / name).glob("*.zip")):
            (dump / f"{name}-{archive.name}").symlink_to(archive)
    snapshot.write_text("".join((data / name).read_text() for name in snapshots))
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
    nothing = labels("nothing", part, most)
    first_by_name = [row for row in names if first_paper(corpus, row["query"]) == row["paper"]]
    by_abstract = [row for row in names if first_passage(corpus, row["query"]) == row["paper"]]
    first_by_topic = [row for row in topics if first_paper(corpus, row["query"]) == row["paper"]]
    hidden_one = [row for row in topics if not on_first_page(corpus, row["one_word"], row)]
    hidden_two = [row for row in topics if not on_first_page(corpus, row["two_words"], row)]
    right_ids = [row for row in ids if first_paper(corpus, row["query"]) == row["paper"]]
    answered = [row for row in nothing if first_paper(corpus, row["query"])]
    say_missed("name", names, first_by_name)
    say_missed("topic", topics, first_by_topic)
    say_missed("identifier", ids, right_ids)
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
        },
        [
            Claim(
                "names of methods whose paper is the first result, share",
                share(first_by_name, names),
                0.94,
            ),
            Claim(
                "names of methods whose abstract or front matter is first, share",
                share(by_abstract, names),
                0.94,
            ),
            Claim(
                "topics whose paper is the first result, share", share(first_by_topic, topics), 0.94
            ),
            Claim(
                "topics with the same paper on two pages of results",
                len(repeating),
                0,
                at_most=True,
            ),
            Claim(
                "topics with one misspelt word whose paper is lost",
                len(hidden_one),
                0,
                at_most=True,
            ),
            Claim(
                "topics with two misspelt words whose paper is lost, share",
                share(hidden_two, topics),
                0.03,
                at_most=True,
            ),
            Claim("identifiers answered rightly, share", share(right_ids, ids), 1.0),
            Claim(
                "queries without an answer for which something is said to fit, share",
                share(answered, nothing),
                0.05,
                at_most=True,
            ),
        ],
    )


def labels(name: str, part: str | None, most: int | None) -> list[Row]:
    """The rows of a file of labels, of one part; without a part those of "tuned" and "held"."""
    parts = MAIN_PARTS if part is None else (part,)
    return [row for row in all_labels(name) if row["part"] in parts][:most]


def all_labels(name: str) -> list[Row]:
    """The rows of a file of labels, of all parts."""
    return [json.loads(line) for line in (LABELS / f"{name}.jsonl").read_text().splitlines()]


def papers_of(corpus: Corpus, query: str) -> list[str]:
    """The papers of the first page, best first; none where nothing fits."""
    try:
        results = corpus.search(query, limit=FIRST_PAGE)
    except CiteloomError:
        return []
    return [hit.paper.arxiv_id for hit in results if results.fits]


def first_paper(corpus: Corpus, query: str) -> str | None:
    """The paper of the first result; None where nothing fits."""
    return next(iter(papers_of(corpus, query)), None)


def first_passage(corpus: Corpus, query: str) -> str | None:
    """The paper of the first passage, where that is the paper's abstract or front matter."""
    hits = corpus.search_passages(query, limit=1)
    if hits and hits[0].passages[0].kind in ("abstract", "front_matter"):
        return hits[0].paper.arxiv_id
    return None


def on_first_page(corpus: Corpus, query: str, row: Row) -> bool:
    return row["paper"] in papers_of(corpus, query)


def repeats_a_paper(corpus: Corpus, query: str) -> bool:
    """Whether a paper stands on two pages of a search."""
    papers: list[str] = []
    has_more = True
    while has_more:
        page = corpus.search(query, limit=FIRST_PAGE, offset=len(papers))
        papers += [hit.paper.arxiv_id for hit in page]
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


if __name__ == "__main__":
    main()
