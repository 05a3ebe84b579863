"""A made-up month of every table that a report reads, written by hand. Not here: tests."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from pipeline import tables
from pipeline.evaluation.g_score import CRITERIA
from pipeline.evaluation.retrieval.metrics import METRICS
from pipeline.settings import load_settings
from pipeline.stages import Workspace
from pipeline.tables import LEDGER, DataRoot, MonthWriter, Provenance, Table

Text = Callable[[str], str]
Row = dict[str, Any]

GOLD = (
    "Retrieval over long documents was first studied with sparse vectors [Reference 1]. Later work replaced them by "
    "dense ones and lost exact matches [Reference 2] [Reference 3].\n\nOur index keeps both, as [Reference 3] proposed "
    "for short queries, and orders them by a learned weight $w_i = \\sigma(\\alpha x_i)$."
)
DRAFT = (
    "Sparse retrieval [Reference 1] counts terms. Dense retrieval [Reference 2] embeds them instead, and "
    "[Reference 2, Reference 3] join the two. The target paper differs from [Reference 7] in that it learns the weight."
    "\n\n## Comparison\n\n* Both need **one** pass.\n* Neither looks at tables."
)


def same(text: str) -> str:
    return text


def workspace(folder: Path, **settings: object) -> Workspace:
    """A workspace over a folder, no `.env` read."""
    return Workspace(load_settings(data=folder, _env_file=None, **settings))


def write_table(root: DataRoot, table: Table, month: str, rows: Iterable[Mapping[str, Any]]) -> None:
    """Write a month of a table with a made-up provenance."""
    _write(table, root.file(table, month), month, rows)


def write_ledger(root: DataRoot, stage: str, month: str, rows: Iterable[tuple[str, str, str]]) -> None:
    """Write a stage's ledger: (subject, reason, detail)."""
    made = [{"subject": s, "stage": stage, "reason": r, "detail": d} for s, r, d in rows]
    _write(LEDGER, root.ledger_file(stage, month), month, made)


def _write(table: Table, file: Path, month: str, rows: Iterable[Mapping[str, Any]]) -> None:
    with MonthWriter(table, file) as writer:
        for row in rows:
            writer.add(row)
        writer.commit(Provenance(table.name, month, table.version, 1, "0", "made up", {}, {}))


def write_month(
    root: DataRoot,
    month: str,
    *,
    text: Text = same,
    papers: int = 4,
    tasks: int = 2,
    systems: Sequence[str] = ("chatcite", "zero_shot"),
    judged: bool = True,
    model: str = "some-model",
) -> None:
    """Every table that a report reads. `text` is applied to each text that comes from papers or models."""
    ids = [f"{month[2:4]}{month[5:]}.{90001 + number}" for number in range(papers)]
    task_rows = [task(ids[number], text) for number in range(tasks)]
    _write_corpus(root, month, ids, text)
    write_table(root, tables.RELATED_WORK_TASKS, month, task_rows)
    write_table(root, tables.KEY_ELEMENTS, month, (e for row in task_rows for e in elements(row, text, model)))
    write_table(root, tables.SUMMARIES, month, (summary(r, s, text, model) for r in task_rows for s in systems))
    scored = (row for r in task_rows for s in systems for row in scores(r, s, systems, judged, model))
    write_table(root, tables.SCORES, month, scored)
    _write_ledgers(root, month, ids, text, judged, task_rows)


def _write_corpus(root: DataRoot, month: str, ids: Sequence[str], text: Text) -> None:
    members = [
        {"arxiv_id": f"{month[2:4]}{month[5:]}.{91000 + n}", "subset": "warning", "member": f"{n}.html"}
        for n in range(3)
    ]
    write_table(root, tables.DUMP_MEMBERS, month, [{"arxiv_id": i, "subset": "no_problem"} for i in ids] + members)
    write_table(root, tables.METADATA, month, [{"arxiv_id": i, "status": "present"} for i in ids])
    write_table(root, tables.PAPERS, month, [paper(i, text) for i in ids])
    write_table(root, tables.PASSAGES, month, (row for i in ids for row in passages(i, text)))
    write_table(root, tables.REFERENCES, month, (row for i in ids for row in references(i, ids, text)))
    write_table(root, tables.EMBEDDINGS, month, [{"passage_id": f"{i}-{n}"} for i in ids for n in range(12)])
    write_table(root, tables.INDEX_RECEIPTS, month, [receipt(12 * len(ids), text)])
    write_table(root, tables.RETRIEVAL_QUERIES, month, [retrieval_query(i, ids[0], text) for i in ids[1:]])
    write_table(root, tables.RETRIEVAL_SCORES, month, retrieval_scores(len(ids), text) if ids else [])


def paper(arxiv_id: str, text: Text = same) -> Row:
    title = "Learned Weights for Sparse and Dense Retrieval over Long Scientific Documents"
    return {
        "arxiv_id": arxiv_id, "subset": "no_problem", "title": text(title), "primary_category": text("cs.IR"),
        "sections": [{"anchor": f"S{n}", "title": "S", "depth": 1, "number": str(n), "path": ["S"]} for n in range(6)],
        "chars_seen": 31_200, "chars_kept": 30_914, "truncated": arxiv_id.endswith("2"),
    }  # fmt: skip


def passages(arxiv_id: str, text: Text) -> Iterable[Row]:
    for number in range(12):
        words = 15 + (number * 53) % 300
        yield {"passage_id": f"{arxiv_id}-{number}", "arxiv_id": arxiv_id, "words": words, "text": text("words")}


def references(arxiv_id: str, known: Sequence[str], text: Text) -> Iterable[Row]:
    for number in range(9):
        cited = known[number] if number < len(known) else None
        yield {"arxiv_id": arxiv_id, "key": f"bib{number}", "ordinal": number, "cited_arxiv_id": cited}


def receipt(points: int, text: Text) -> Row:
    return {
        "collection": text("citeloom"), "engine": "edge", "model": text("minilm"), "expected": points,
        "present": points, "missing": 0, "stale": 0, "ids_sha256": "0",
    }  # fmt: skip


def retrieval_query(arxiv_id: str, cited: str, text: Text) -> Row:
    asked = text("Sparse vectors find rare words that dense ones miss")
    return {
        "query_id": f"{arxiv_id}?", "arxiv_id": arxiv_id, "passage_id": f"{arxiv_id}-3", "text": asked,
        "cited": [cited],
    }  # fmt: skip


def retrieval_scores(papers: int, text: Text) -> Iterable[Row]:
    base = {"queries": papers, "papers": papers, "passages": 12 * papers, "model": text("minilm")}
    for form in ("passage", "title", "sections"):
        for place, method in enumerate(("dense", "sparse", "fused", "bm25")):
            for depth, metric in enumerate(METRICS):
                value = 0.3 + 0.1 * place + 0.05 * depth
                measured = {"value": value, "low": value - 0.1, "high": value + 0.1}
                yield {**base, **measured, "method": method, "form": form, "metric": metric}
    gained = {"value": -0.1, "low": -0.25, "high": 0.05}
    yield {**base, **gained, "method": "fused_minus_bm25", "form": "sections", "metric": "R@10"}


def task(arxiv_id: str, text: Text = same) -> Row:
    cited = [_task_reference(number, text) for number in (1, 2, 3)]
    return {
        "task_id": f"{arxiv_id}#S2", "arxiv_id": arxiv_id, "title": text("Learned Weights for Retrieval"),
        "description": text("# Learned Weights for Retrieval\n\n## Abstract\n\nWe learn weights."),
        "section_title": text("Related Work"), "references": cited, "outside": 5, "gold": text(GOLD),
    }  # fmt: skip


def _task_reference(number: int, text: Text) -> Row:
    title = text(f"Cited Work {number}: A Study")
    return {
        "number": number, "arxiv_id": f"2401.0000{number}", "key": f"bib{number}", "title": title,
        "year": 2020 + number,
    }  # fmt: skip


def elements(row: Row, text: Text, model: str) -> Iterable[Row]:
    names = (
        "research_questions",
        "methodology",
        "results",
        "conclusions",
        "contributions",
        "innovations",
        "limitations",
    )
    for number, arxiv_id in enumerate([row["arxiv_id"], *(item["arxiv_id"] for item in row["references"])]):
        answers = {name: text(f"The paper's {name.replace('_', ' ')}: it weighs both vectors.") for name in names}
        yield {
            "task_id": row["task_id"], "arxiv_id": arxiv_id, "number": number, "model": model, **answers,
            "content_cut": number == 2, "calls": 1, "prompt_tokens": 900, "completion_tokens": 200,
        }  # fmt: skip


def summary(row: Row, system: str, text: Text = same, model: str = "some-model") -> Row:
    return {
        "task_id": row["task_id"], "system": system, "model": model, "settings": "{}",
        "text": text(DRAFT if system == "chatcite" else GOLD), "sentences": [], "trace": trace(system, text),
        "calls": 42 if system == "chatcite" else 1, "prompt_tokens": 61_204, "completion_tokens": 9_120,
    }  # fmt: skip


def trace(system: str, text: Text = same) -> str:
    """As `related_work.chatcite` records it: one round for each of three references."""
    citations = {"respelt": 0, "out_of_range": [7], "uncited": []}
    rounds = [_round(number, text) for number in (1, 2, 3)] if system == "chatcite" else []
    return json.dumps({"rounds": rounds, "citations": citations} if rounds else {"citations": citations})


def _round(reference: int, text: Text) -> Row:
    drafts = [
        {"choice": choice, "parent": 0 if reference == 1 else 1 + choice % 2, "text": text(f"Draft {choice}. {DRAFT}")}
        for choice in (1, 2, 3, 4)
    ]
    return {
        "reference": reference, "drafts": drafts, "votes": [2, 3, 2, None, 2], "abstentions": 1,
        "tallies": [0, 3, 1, 0], "kept": [2, 3], "cut": reference == 3,
    }  # fmt: skip


def scores(row: Row, system: str, systems: Sequence[str], judged: bool, judge: str) -> Iterable[Row]:
    base = {"task_id": row["task_id"], "system": system, "repeat": 0}
    seed = int(hashlib.sha256(f"{row['task_id']}{system}".encode()).hexdigest(), 16)
    for metric, value in (("rouge1", 25.5), ("rouge2", 6.25), ("rougeL", 22.125)):
        yield {**base, "metric": metric, "value": value + seed % 4, "judge": None, "order": None}
    if not judged:
        return
    marks = {f"g_{name}": float(1 + (seed >> place) % 5) for place, name in enumerate(CRITERIA)}
    best = float(system == systems[0])
    for metric, value in {**marks, "g_score": sum(marks.values()) / 6, "g_vote": best}.items():
        yield {**base, "metric": metric, "value": value, "judge": judge, "order": ",".join(reversed(systems))}


def _write_ledgers(
    root: DataRoot, month: str, ids: Sequence[str], text: Text, judged: bool, task_rows: Sequence[Row]
) -> None:
    left_out = [
        (f"{month[2:4]}{month[5:]}.91000", "not_in_categories", text("math.AG")),
        ("2403.91001", "withdrawn", ""),
    ]
    write_ledger(root, "papers", month, left_out)
    without = ids[len(task_rows) :]
    write_ledger(root, "related_work_tasks", month, [(i, "no_related_work_section", text("none")) for i in without])
    unread = [] if judged else [(row["task_id"], "unreadable_judgement", text("no JSON")) for row in task_rows]
    write_ledger(root, "scores", month, unread)
