"""How often `citeloom find-quote` finds the passage that a sentence is from, beside search by the
same sentence.

    python -m benchmarks.quotes [--data FOLDER] [--root FOLDER] [--json] [--quick]

data: the folder with real papers (dump2). root: a data root to make or reuse; by default a
temporary one. Drawn are 200 sentences of at least eight words from the papers' paragraphs, each
asked as printed and with two words replaced by words of other sentences. A sentence is found if the
first result is its passage, or another passage with the same sentence. Fused search by the
sentence, which is what a user has without the command, is counted in the same way.
"""

from __future__ import annotations

import random
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from benchmarks.harness import Claim, argument_parser, report
from citeloom import Corpus
from pipeline import tables
from pipeline.corpus.parse.policies import without_markers
from pipeline.corpus.passages.sentences import split_sentences
from pipeline.doors.cli.common import open_workspace
from pipeline.engine.stage import Workspace
from pipeline.ops.run_months import known_months, run_months
from pipeline.stages import choose_stages

DATA = Path(__file__).resolve().parents[2] / "shared" / "data" / "dump2"
SENTENCES, QUICK = 200, 40
_FEWEST_WORDS = 8


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the figures."""
    parser = argument_parser(__doc__, f"{QUICK} sentences")
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--root", type=Path, default=None)
    options = parser.parse_args(arguments)
    if not options.data.is_dir():
        print(f"skipped: the real papers ({options.data}) are not on this machine")
        return
    with tempfile.TemporaryDirectory() as folder:
        settings = {
            "data": str(options.root or folder), "dump_dir": str(options.data), "arxiv_api": False,
            "metadata_snapshot": options.data / "snapshot.jsonl", "_env_file": None,
        }  # fmt: skip
        workspace = open_workspace(**settings)
        run_months(workspace, known_months(workspace, "all"), choose_stages(until="index_receipts"))
        with Corpus(workspace) as corpus:
            measure(corpus, workspace, QUICK if options.quick else SENTENCES)


def measure(corpus: Corpus, workspace: Workspace, count: int) -> None:
    """Ask for the sentences in both forms; print how many were found, and the seconds."""
    passages = [passage for month in corpus.months() for passage in paragraphs(workspace, month)]
    chosen = random.Random(7).sample(passages, count)
    vocabulary = sorted(
        {word for sentence, _ in passages for word in sentence.split() if word.isalpha()}
    )
    figures: dict[str, float] = {"sentences to draw from": len(passages), "sentences": count}
    shares: dict[str, float] = {}
    changed = [
        (change_two_words(sentence, vocabulary, seed), sentence)
        for seed, (sentence, _) in enumerate(chosen)
    ]
    for form, quotes in (
        ("as printed", [(sentence, sentence) for sentence, _ in chosen]),
        ("two words changed", changed),
    ):
        found = searched = 0
        started = time.perf_counter()
        for quote, sentence in quotes:
            sources = corpus.find_quote(quote, limit=1)
            found += any(holds(source.passages[0].text, sentence) for source in sources)
        seconds = time.perf_counter() - started
        for quote, sentence in quotes:
            hits = corpus.search_passages(quote, limit=1)
            searched += any(holds(hit.passages[0].text, sentence) for hit in hits)
        shares[form] = found / count
        figures |= {
            f"{form}: find-quote, first result": round(found / count, 4),
            f"{form}: fused search, first result": round(searched / count, 4),
            f"{form}: ms a quote": round(1000 * seconds / count, 1),
        }
    report(
        "quotes",
        figures,
        [
            Claim("share of sentences found first, as printed", shares["as printed"], 0.99),
            Claim(
                "share of sentences found first, two words changed",
                shares["two words changed"],
                0.95,
            ),
        ],
    )


def paragraphs(workspace: Workspace, month: str) -> list[tuple[str, str]]:
    """(sentence, passage id) of every sentence of eight words or more in a month's paragraphs."""
    sentences = []
    for row in workspace.root.rows(tables.PASSAGES, month, ["passage_id", "kind", "text"]):
        if row["kind"] == "paragraph":
            for sentence in split_sentences(without_markers(row["text"])):
                if len(sentence.split()) >= _FEWEST_WORDS:
                    sentences.append((sentence.strip(), row["passage_id"]))
    return sentences


def change_two_words(sentence: str, vocabulary: Sequence[str], seed: int) -> str:
    """The sentence with two of its words replaced by words drawn from the vocabulary."""
    draw, words = random.Random(seed), sentence.split()
    for place in draw.sample(range(len(words)), 2):
        words[place] = draw.choice(vocabulary)
    return " ".join(words)


def holds(text: str, sentence: str) -> bool:
    """Whether a passage holds the sentence; white space aside."""
    return " ".join(sentence.split()) in " ".join(without_markers(text).split())


if __name__ == "__main__":
    main()
