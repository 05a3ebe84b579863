"""How often a passage that holds the truth is among those that `ask` shows without a model.

Beside it: plain search's first five passages, in the same run. The questions are `shown_passages`
of tests/labels, whose held part is measured only where it is asked for, and `questions-dump2` of
the shared data, of which `markers.jsonl` has words of the passages that hold the truth: without
any, all papers of the question have to be among those shown.
"""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.harness import PROJECT, Claim, percent
from benchmarks.real_papers import DATA, make_corpus
from citeloom import Corpus, as_markdown
from pipeline.corpus.parse.policies import without_markers

LABELS = PROJECT / "tests" / "labels" / "shown_passages.jsonl"
MARKERS = Path(__file__).with_name("markers.jsonl")
SHOWN = 5

Row = Mapping[str, Any]


def figures(
    *, held: bool = False, most: int | None = None, root: Path | None = None
) -> tuple[dict[str, Any], list[Claim]]:
    """How often the truth is among the passages shown, by set of questions, and what is claimed.

    held: measure the held part too. most: questions of each set. root: a data root to make or
    reuse.
    """
    sets = {name: rows[:most] for name, rows in question_sets(held=held).items()}
    with tempfile.TemporaryDirectory() as folder:
        workspace = make_corpus(DATA, Path(folder), root, today=True)
        with Corpus(workspace) as corpus:
            measured = {name: [measure(corpus, row) for row in rows] for name, rows in sets.items()}
    counts = {name: _counts(results) for name, results in measured.items()}
    claims = []
    for name, results in measured.items():
        less = sum(result["search"] for result in results) - sum(r["ask"] for r in results)
        text = f"{name}: questions that search answers and `ask` does not, net"
        claims.append(Claim(text, less, 0, at_most=True))
    return counts, claims


def question_sets(*, held: bool) -> dict[str, list[Row]]:
    """Name → questions, each with `question`, and `markers` or `papers`."""
    sets: dict[str, list[Row]] = {}
    for row in _rows(LABELS):
        if row["part"] == "open" or held:
            asked = "in other words" if row["other_words"] else "in the paper's words"
            sets.setdefault(f"{row['part']}, {asked}", []).append(row)
    markers = {row["line"]: row["markers"] for row in _rows(MARKERS)}
    rows = _rows(DATA / "labelled" / "questions-dump2.jsonl")
    sets["questions-dump2"] = [
        {**row, "markers": markers.get(number, [])}
        for number, row in enumerate(rows, 1)
        if row["papers"]
    ]
    return dict(sorted(sets.items()))


def measure(corpus: Corpus, row: Row) -> dict[str, bool]:
    """Whether the truth is in the passages that ask shows, in what it prints of them, and in the
    first passages of plain search.
    """
    answer = corpus.ask(row["question"], system="passages")
    passages = list(answer.passages.values())
    hits = corpus.search_passages(row["question"], limit=SHOWN)
    shown = [answer.text, *(passage.text for passage in passages)]
    if not row["markers"]:
        return {
            "ask": _holds_all(row["papers"], (passage.arxiv_id for passage in passages)),
            "printed": _holds_all(row["papers"], (passage.arxiv_id for passage in passages)),
            "search": _holds_all(row["papers"], (hit.paper.arxiv_id for hit in hits)),
        }
    return {
        "ask": holds(shown, row["markers"]),
        "printed": holds([as_markdown(answer)], row["markers"]),
        "search": holds([hit.passages[0].text for hit in hits], row["markers"]),
    }


def holds(texts: Iterable[str], markers: Sequence[str]) -> bool:
    """Whether one of the texts has the words of one of the markers in a row."""
    folded = [_folded(text) for text in texts]
    return any(_folded(marker) in text for marker in markers for text in folded)


def _folded(text: str) -> str:
    """A text without the signs of tables, formulas, marks and citations."""
    text = without_markers(text).replace("’", "'").replace("“", '"').replace("”", '"')
    return " ".join(re.sub(r"[|$\\*]", " ", text).split()).lower()


def _holds_all(papers: Sequence[str], shown: Iterable[str]) -> bool:
    return set(shown).issuperset(papers)


def _counts(results: Sequence[Mapping[str, bool]]) -> dict[str, Any]:
    counts: dict[str, Any] = {"questions": len(results)}
    for name in ("ask", "printed", "search"):
        right = sum(result[name] for result in results)
        counts[name] = {"right": right, "percent": percent(right, len(results))}
    return counts


def _rows(file: Path) -> list[Row]:
    return [json.loads(line) for line in file.read_text().splitlines()]
