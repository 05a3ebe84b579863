"""What `citeloom check` says without a model on sentences with right, random and nearest keys, and
with a number changed.

    python -m benchmarks.evidence.citing_sentences [--held] [--root FOLDER] [--json] [--quick]

DeepScholar-Bench's sentences cite works of which the data set has the abstract: its sentences, and
the whole, stand for the passages of a full text. The labelled sentences of tests/labels cite real
papers in full. held: measure the parts that nothing was chosen on, too. root: a data root of the
real papers to make or reuse; by default a temporary one, whose embeddings take some minutes. quick:
eight targets of DeepScholar.
"""

from __future__ import annotations

import hashlib
import json
import random
import re
import tempfile
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.harness import PROJECT, Claim, argument_parser, report
from benchmarks.real_papers import DATA, make_corpus
from benchmarks.retrieval import read_rows
from drafts.citations import CitationCheck, check_citations
from drafts.draft import Draft, DraftSentence
from drafts.references import ReferenceCheck
from pipeline import tables
from pipeline.arxiv.record import Record
from pipeline.corpus.parse.policies import CITATION_MARKER
from pipeline.corpus.passages.sentences import split_sentences
from pipeline.corpus.passages.text import embedded_text
from pipeline.embedding.choice import make_embedder
from pipeline.engine.stage import Workspace
from pipeline.index.exact import lexical_scores
from pipeline.index.papers import read_paper
from pipeline.settings import load_settings
from pipeline.text import one_line
from tests.month_tables import passage_row, write_table

LABELS = PROJECT / "tests" / "labels" / "citing_sentences.jsonl"
DEEPSCHOLAR = DATA / "labelled" / "deepscholar"
MONTH = "2025-01"
QUICK = 8
SEED = 59

Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Citing:
    """A sentence with `[@KEY]` where it cites a paper, the right one, and a near wrong one."""

    text: str
    right: str
    nearest: str


def figures(
    *, held: bool = False, most: int | None = None, root: Path | None = None
) -> tuple[dict[str, Any], list[Claim]]:
    """Percentages of the verdicts by set and kind of key, and what is claimed.

    held: measure the held parts too. most: targets of DeepScholar. root: a data root of the real
    papers to make or reuse.
    """
    parts = ("open", "held") if held else ("open",)
    measured: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        workspace = deepscholar_corpus(Path(folder))
        for part in parts:
            measured[f"DeepScholar, {part}"] = deepscholar_figures(workspace, part, most)
        (Path(folder) / "real").mkdir()
        workspace = make_corpus(DATA, Path(folder) / "real", root, today=True)
        for part in parts:
            measured[f"real papers, {part}"] = real_figures(workspace, part)
    return measured, claims_of(measured)


def claims_of(measured: Mapping[str, Mapping[str, Any]]) -> list[Claim]:
    """What is claimed of each set."""
    claims = []
    for name, verdicts in measured.items():
        far = {kind: verdicts[kind]["not_about_paper, %"] for kind in ("right", "random")}
        for kind, target in (("right", 3.0), ("random", 85.0)):
            text = f"{name}: {kind} keys said not to be about the paper, %"
            claims.append(Claim(text, far[kind], target, at_most=kind == "right"))
        if "number nowhere in the paper" in verdicts:
            right, altered = (
                verdicts[kind]["number_not_found, %"]
                for kind in ("right", "number nowhere in the paper")
            )
            text = f"{name}: right sentences whose number is said to be missing, %"
            claims.append(Claim(text, right, 2.0, at_most=True))
            claims.append(Claim(f"{name}: altered numbers said to be missing, %", altered, 80.0))
    return claims


def deepscholar_corpus(folder: Path) -> Workspace:
    """A data root in which each cited work with an abstract is a paper of one month."""
    workspace = Workspace(load_settings(data=str(folder / "deepscholar"), _env_file=None))
    rows = [row for arxiv_id, work in works().items() for row in passages_of(arxiv_id, work)]
    embedder = make_embedder(workspace.settings)
    texts = [embedded_text(row["title"], (), row["text"]) for row in rows]
    vectors = (vector for batch in embedder.encode_stream(texts) for vector in batch.dense)
    embeddings = [
        {
            "passage_id": row["passage_id"],
            "arxiv_id": row["arxiv_id"],
            "text_sha256": row["text_sha256"],
            "model": embedder.name,
            "dense": vector.astype("float16"),
            "truncated": False,
        }
        for row, vector in zip(rows, vectors, strict=True)
    ]
    papers = [{"arxiv_id": arxiv_id, "paragraphs": 1, "truncated": False} for arxiv_id in works()]
    for table, of_table in (
        (tables.PAPERS, papers),
        (tables.PASSAGES, rows),
        (tables.EMBEDDINGS, embeddings),
    ):
        write_table(workspace.root, table, MONTH, of_table)
    return workspace


@cache
def works() -> dict[str, Row]:
    """The cited works that have an abstract; they get ids of one month."""
    rows = [row for row in read_rows(DEEPSCHOLAR / "cited.jsonl.gz") if row.get("abstract")]
    return {f"2501.{number:05}": row for number, row in enumerate(rows, 1)}


def passages_of(arxiv_id: str, work: Row) -> list[dict[str, Any]]:
    """The passages of a work: title and abstract, and each sentence of the abstract."""
    abstract = one_line(work["abstract"])
    texts = [f"{one_line(work['title'])}. {abstract}", *split_sentences(abstract)]
    return [
        passage_row(arxiv_id, place, one_line(work["title"]), (), text)
        for place, text in enumerate(texts)
    ]


def deepscholar_figures(workspace: Workspace, part: str, most: int | None) -> dict[str, Any]:
    """The figures of the targets of a part, each of which is a draft."""
    ids = {work["id"]: arxiv_id for arxiv_id, work in works().items()}
    abstracts = [work["abstract"] for work in works().values()]
    sentences: dict[str, list[Citing]] = defaultdict(list)
    for row in read_rows(DEEPSCHOLAR / "citing_sentences.jsonl.gz"):
        relevant = [ids[work] for work in row["relevant"] if work in ids]
        if part_of(row["paper"]) == part and relevant:
            (scores,) = lexical_scores(abstracts, [row["query"]])
            by_words = [list(works())[place] for place in np.argsort(-scores)]
            nearest = next(arxiv_id for arxiv_id in by_words if arxiv_id not in relevant)
            text = f"{row['query']} [@KEY]"
            sentences[row["paper"]] += [Citing(text, right, nearest) for right in relevant]
    return figures_of(workspace, list(sentences.values())[:most], list(works()))


def part_of(target: str) -> str:
    """The part of a target: a stable half of them is open."""
    return "held" if hashlib.sha256(target.encode()).digest()[0] % 2 else "open"


def real_figures(workspace: Workspace, part: str) -> dict[str, Any]:
    """The figures of the labelled sentences of a part, which are one draft."""
    labels = [
        row for row in map(json.loads, LABELS.read_text().splitlines()) if row["part"] == part
    ]
    texts = [sentence_of(workspace, row) for row in labels]
    right = [
        Citing(text, row["cited"], row["nearest"]) for text, row in zip(texts, labels, strict=True)
    ]
    papers = {
        row["arxiv_id"]
        for month in workspace.root.months(tables.PAPERS)
        for row in workspace.root.rows(tables.PAPERS, month, ["arxiv_id"])
    }
    measured = figures_of(workspace, [right], sorted(papers))
    for name, field in (
        ("number nowhere in the paper", "altered_absent"),
        ("number elsewhere in the paper", "altered_present"),
    ):
        altered = [
            (altered_text(text, row, field), row["cited"])
            for text, row in zip(texts, labels, strict=True)
            if field in row
        ]
        measured[name] = shares(check(workspace, altered))
    return measured


def sentence_of(workspace: Workspace, row: Row) -> str:
    """A labelled sentence: as it was written, or as the citing paper prints it."""
    if "sentence" in row:
        return one_line(row["sentence"].replace("[CITE]", "[@KEY]"))
    begin = _words(row["begins"].replace("[CITE]", ""))
    for passage in read_paper(workspace, row["citing"]).passages:
        for sentence in split_sentences(passage.text):
            text = one_line(CITATION_MARKER.sub(" ", sentence))
            if begin in _words(text):
                # A page may lack the space between two sentences.
                last = text.find(row["ends"])
                return f"{text[: last + len(row['ends'])] if last > 0 else text} [@KEY]"
    raise ValueError(f"{row['citing']} has no sentence with {row['begins']!r}")


def _words(text: str) -> str:
    return " ".join(re.findall(r"\w+", text.replace("\\xspace", "")))


def altered_text(text: str, row: Row, field: str) -> str:
    """The sentence with its number altered; the labels of printed ones have the number alone."""
    if "sentence" in row:
        return one_line(row[field].replace("[CITE]", "[@KEY]"))
    return re.sub(rf"(?<!\S){re.escape(row['number'])}[\w-]*", row[field], text, count=1)


def figures_of(
    workspace: Workspace, drafts: Sequence[Sequence[Citing]], papers: Sequence[str]
) -> dict[str, Any]:
    """The shares of verdicts with right, random and nearest keys.

    papers: those of which random keys are drawn.
    """
    chance = random.Random(SEED)
    checks: dict[str, list[CitationCheck]] = defaultdict(list)
    for draft in drafts:
        right = [(sentence.text, sentence.right) for sentence in draft]
        cited = {sentence.right for sentence in draft}
        others = [paper for paper in papers if paper not in cited]
        near = [(sentence.text, sentence.nearest) for sentence in draft]
        far = [(sentence.text, chance.choice(others)) for sentence in draft]
        checks["right"] += check(workspace, right)
        checks["random"] += check_wrong(workspace, right, far)
        checks["nearest"] += check_wrong(workspace, right, near)
    return {kind: shares(of_kind) for kind, of_kind in checks.items()}


def check_wrong(
    workspace: Workspace, right: Sequence[tuple[str, str]], wrong: Sequence[tuple[str, str]]
) -> list[CitationCheck]:
    """The checks of sentences with wrong keys, in drafts of which every second key is right."""
    checks = []
    for half in (0, 1):
        mixed = [
            pair[number % 2 == half] for number, pair in enumerate(zip(right, wrong, strict=True))
        ]
        checks += check(workspace, mixed)[half::2]
    return checks


def check(workspace: Workspace, sentences: Sequence[tuple[str, str]]) -> list[CitationCheck]:
    """The checks of a draft of (sentence with `[@KEY]`, arXiv id of KEY)."""
    draft = Draft(Path("draft.md"))
    draft.sentences = [
        DraftSentence(text.replace("@KEY", f"@{paper}"), (paper,), "draft.md", line, line)
        for line, (text, paper) in enumerate(sentences, 1)
    ]
    references = [
        ReferenceCheck(paper, "verified", paper, record=Record(paper)) for _, paper in sentences
    ]
    return check_citations(workspace, draft, references)


def shares(checks: Sequence[CitationCheck]) -> dict[str, Any]:
    """The number of sentences, and the percentage of each verdict; a sentence with several right
    keys counts once.
    """
    keys = Counter(check.sentence.plain for check in checks)
    weights: dict[str, float] = defaultdict(float)
    for check in checks:
        weights[check.verdict] += 100 / keys[check.sentence.plain] / len(keys)
    return {"sentences": len(keys)} | {
        f"{verdict}, %": round(weights[verdict], 1)
        for verdict in ("number_not_found", "not_about_paper", "read")
    }


def main() -> None:
    """Print the figures."""
    parser = argument_parser(__doc__, f"{QUICK} sentences")
    parser.add_argument("--held", action="store_true")
    parser.add_argument("--root", type=Path, default=None)
    options = parser.parse_args()
    if not DATA.is_dir():
        print(f"skipped: the real papers ({DATA}) are not on this machine")
        return
    most = QUICK if options.quick else None
    measured, claims = figures(held=options.held, most=most, root=options.root)
    report("citing_sentences", measured, claims)


if __name__ == "__main__":
    main()
