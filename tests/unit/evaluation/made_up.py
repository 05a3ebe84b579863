"""A made-up month of every table that a report reads, written by hand."""

import json
from collections.abc import Callable
from dataclasses import fields
from string import ascii_uppercase
from typing import Any

from pipeline import tables
from pipeline.engine.stage import Workspace
from pipeline.evaluation.g_score.measures import metrics
from pipeline.evaluation.g_score.sample import candidate_sets
from pipeline.llm.messages import Spent
from pipeline.related_work.key_elements import KeyElements
from pipeline.related_work.summary import cited_numbers, make_summary
from pipeline.settings import load_settings
from pipeline.storage.provenance import Provenance
from pipeline.storage.writing import MonthWriter
from pipeline.tables import CRITERIA
from pipeline.tables.writers import Writer, parse_writer
from pipeline.text import text_digest
from tests.month_tables import write_table

Text = Callable[[str], str]
Row = dict[str, Any]

GOLD = (
    "Retrieval over long documents was first studied with sparse vectors [Reference 1]. Later work"
    " replaced them by dense ones and lost exact matches [Reference 2] [Reference 3].\n\nOur index"
    " keeps both, as [Reference 3] proposed for short queries, and orders them by a learned weight"
    " $w_i = \\sigma(\\alpha x_i)$."
)
DRAFT = (
    "Sparse retrieval [Reference 1] counts terms. Dense retrieval [Reference 2] embeds them"
    " instead, and [Reference 2, Reference 3] join the two. The target paper differs from"
    " [Reference 7] in that it learns the weight.\n\n## Comparison\n\n* Both need **one** pass.\n*"
    " Neither looks at tables."
)


QUOTE = "Dense retrieval embeds terms in place of counting them."
SEARCHING = ("chatcite", "chatcite_no_elements", "chatcite_no_reflection")


def same(text):
    return text


def workspace(folder, **settings):
    """A workspace over a folder, no `.env` read."""
    return Workspace(load_settings(data=folder, _env_file=None, **settings))


def write_ledger(root, stage, month, rows):
    """Write a stage's ledger: (subject, reason, detail)."""
    with MonthWriter(tables.LEDGER, root.ledger_file(stage, month)) as writer:
        for subject, reason, detail in rows:
            writer.add({"subject": subject, "stage": stage, "reason": reason, "detail": detail})
        writer.commit(Provenance("ledger", month, tables.LEDGER.version, 1, "0", "", {}, {}))


def write_month(
    root,
    month,
    *,
    text=same,
    papers=4,
    tasks=2,
    systems=("chatcite", "zero_shot"),
    judged=True,
    model="some-model",
    judges=(),
    repeats=1,
    raters=0,
):
    """Every table that a report reads. `text` is applied to each text that comes from papers or
    models.

    judges: those of G-Scores, the writing model where none is named; repeats: of each section;
    raters: of each task.
    """
    short = month[2:4] + month[5:]
    ids = [f"{short}.{90001 + number}" for number in range(papers)]
    task_rows = [task(ids[number], text) for number in range(tasks)]
    written = [summary(row, system, text, model) for system in sorted(systems) for row in task_rows]
    marked = [
        row
        for task_row in task_rows
        for judge in ((judges or (model,)) if judged else ())
        for row in judgements(task_row, systems, judge, repeats, model)
    ]
    digests = {(row["task_id"], row["system"]): text_digest(row["text"]) for row in written}
    rows = {
        tables.DUMP_MEMBERS: [
            *({"arxiv_id": i, "subset": "no_problem"} for i in ids),
            *({"arxiv_id": f"{short}.{91000 + n}", "subset": "warning"} for n in range(3)),
        ],
        tables.METADATA: [{"arxiv_id": i, "status": "present"} for i in ids],
        tables.PAPERS: [paper(i, text) for i in ids],
        tables.PASSAGES: [row for i in ids for row in passages(i, text)],
        tables.REFERENCES: [row for i in ids for row in references(i, ids)],
        tables.EMBEDDINGS: [{"passage_id": f"{i}-{n}"} for i in ids for n in range(12)],
        tables.INDEX_RECEIPTS: [receipt(12 * len(ids), text)],
        tables.RELATED_WORK_TASKS: task_rows,
        tables.KEY_ELEMENTS: [e for row in task_rows for e in elements(row, text, model)],
        tables.SUMMARIES: [row | {"repeat": n} for row in written for n in range(repeats)],
        tables.G_SCORES: marked,
        tables.CITATION_SUPPORT: [
            row | {"model": model}
            for task_row in task_rows
            for system in systems
            for row in citations(task_row, system, text, model)
        ],
        tables.SCORES: [
            row
            for task_row in task_rows
            for system in systems
            for row in scores(task_row, Writer(system, model), marked, repeats)
        ],
    }
    if raters:
        rows[tables.HUMAN_RATINGS] = [
            row | {"text_sha256": digests[row["task_id"], row["system"]], "model": model}
            for task_row in task_rows
            for row in rated(task_row, systems, raters)
        ]
    for table, of_table in rows.items():
        write_table(root, table, month, of_table)
    off = {"off": "CITELOOM_QUESTIONS names no question set"}
    for table in (tables.QUESTIONS, tables.ANSWERS, tables.ANSWER_GRADES, tables.ANSWER_SCORES):
        write_table(root, table, month, [], notes=off)
    left_out = [
        (f"{short}.91000", "not_in_categories", text("math.AG")),
        ("2403.91001", "withdrawn", ""),
    ]
    without = [(i, "no_related_work_section", text("none")) for i in ids[tasks:]]
    unread = [(row["task_id"], "failed_unreadable", text("no JSON")) for row in task_rows]
    write_ledger(root, "papers", month, left_out)
    write_ledger(root, "related_work_tasks", month, without)
    write_ledger(root, "g_scores", month, [] if judged else unread)


def paper(arxiv_id, text=same):
    title = "Learned Weights for Sparse and Dense Retrieval over Long Scientific Documents"
    return {
        "arxiv_id": arxiv_id,
        "subset": "no_problem",
        "title": text(title),
        "primary_category": text("cs.IR"),
        "sections": [
            {"anchor": f"S{n}", "title": "S", "depth": 1, "number": str(n), "path": ["S"]}
            for n in range(6)
        ],
        "chars_seen": 31_200,
        "chars_kept": 30_914,
        "truncated": arxiv_id.endswith("2"),
    }


def passages(arxiv_id, text):
    for number in range(12):
        yield {
            "passage_id": f"{arxiv_id}-{number}",
            "arxiv_id": arxiv_id,
            "anchor": f"S{number}.p1",
            "words": 15 + (number * 53) % 300,
            "text": text("words"),
        }


def references(arxiv_id, known):
    for number in range(9):
        cited = known[number] if number < len(known) else None
        yield {"arxiv_id": arxiv_id, "key": f"bib{number}", "cited_arxiv_id": cited}


def receipt(points, text):
    return {
        "collection": text("citeloom"),
        "engine": "edge",
        "model": text("minilm"),
        "expected": points,
        "present": points,
        "missing": 0,
        "stale": 0,
        "ids_sha256": "0",
    }


def task(arxiv_id, text=same):
    references = [
        {
            "number": number,
            "arxiv_id": f"2401.0000{number}",
            "key": f"bib{number}",
            "title": text(f"Cited Work {number}: A Study"),
            "year": 2020 + number,
        }
        for number in (1, 2, 3)
    ]
    return {
        "task_id": f"{arxiv_id}#S2",
        "arxiv_id": arxiv_id,
        "title": text("Learned Weights for Retrieval"),
        "description": text("# Learned Weights for Retrieval\n\n## Abstract\n\nWe learn weights."),
        "section_title": text("Related Work"),
        "references": references,
        "outside": 5,
        "gold": text(GOLD),
    }


def elements(row, text, model):
    papers = [row["arxiv_id"], *(item["arxiv_id"] for item in row["references"])]
    for number, arxiv_id in enumerate(papers):
        yield {
            "task_id": row["task_id"],
            "arxiv_id": arxiv_id,
            "number": number,
            "model": model,
            **{
                each.name: text(f"The {each.name}: it weighs both.") for each in fields(KeyElements)
            },
            "content_cut": number == 2,
            "calls": 1,
            "prompt_tokens": 900,
            "completion_tokens": 200,
        }


def summary(row, system, text=same, model="some-model"):
    whole = text(DRAFT if system in SEARCHING else GOLD)
    told = make_summary(whole, {1, 2, 3}, {}, Spent())
    sentences = [
        {
            "text": sentence.text,
            "references": list(sentence.references),
            "passages": [],
            "support": None,
        }
        for sentence in told.sentences
    ]
    return {
        "task_id": row["task_id"],
        "system": system,
        "model": model,
        "repeat": 0,
        "settings": "{}",
        "text": told.text,
        "sentences": sentences,
        "trace": trace(system, text),
        "calls": 42 if system in SEARCHING else 1,
        "prompt_tokens": 61_204,
        "completion_tokens": 9_120,
    }


def trace(system, text=same):
    """As the systems record it: rounds of the searching ones, one for each of three references;
    LitLLM's separate plan.
    """
    citations = {"respelt": 0, "bare": 0, "out_of_range": [7], "uncited": []}
    told = {"citations": citations}
    if system in SEARCHING:
        told["rounds"] = [_round(number, text) for number in (1, 2, 3)]
    if system == "litllm_plan":
        lines = [
            {"about": text("what it does"), "cites": [1]},
            {"about": text("how it differs"), "cites": []},
        ]
        told["plan"] = {"lines": lines, "dropped": [9], "added": [], "cut": False}
        told["plan"]["failure"] = text("no JSON")
    return json.dumps(told)


def _round(reference, text):
    drafts = [
        {
            "choice": choice,
            "parent": 0 if reference == 1 else 1 + choice % 2,
            "text": text(f"Draft {choice}. {DRAFT}"),
        }
        for choice in (1, 2, 3, 4)
    ]
    return {
        "reference": reference,
        "drafts": drafts,
        "votes": [2, 3, 2, None, 2],
        "abstentions": 1,
        "tallies": [0, 3, 1, 0],
        "kept": [2, 3],
        "cut": reference == 3,
    }


def judgement(task_id, marks, best=None, **changes):
    """A row of `g_scores`. marks: writer's name, in the order shown → its six marks, or one mark
    for all criteria.
    """
    return {
        "task_id": task_id,
        "candidate_set": "main",
        "section_repeat": 0,
        "judge": "strict",
        "repeat": 0,
        "order": list(marks),
        "marks": [
            {
                **parse_writer(name).columns,
                **(dict.fromkeys(CRITERIA, mark) if isinstance(mark, int) else mark),
            }
            for name, mark in marks.items()
        ],
        "best": best,
        "cut": [],
        "calls": 1,
        "prompt_tokens": 2_000,
        "completion_tokens": 160,
        **changes,
    }


def judgements(row, systems, judge, repeats, model):
    """A judge's on each candidate set: in two orders, and on each repeat in the first of these; the
    first system of the set is voted the best.
    """
    task_id = row["task_id"]
    writers = [f"{system}@{model}" for system in systems]
    for name, candidates in candidate_sets(load_settings(_env_file=None), writers).items():
        in_order = [writer for writer in writers if writer in candidates]
        orders = [(0, 0, in_order[::-1]), (0, 1, in_order)]
        orders += [(repeat, 0, in_order[::-1]) for repeat in range(1, repeats)]
        for section_repeat, repeat, order in orders:
            turn = repeat + 2 * section_repeat
            marks = {
                writer: _marks(task_id, judge, "together", turn, parse_writer(writer).system)
                for writer in order
            }
            yield judgement(
                task_id,
                marks,
                in_order[0] if len(in_order) > 1 else None,
                candidate_set=name,
                section_repeat=section_repeat,
                judge=judge,
                repeat=repeat,
                cut=["gold"] if repeat else [],
            )


def _marks(*names):
    seed = int(text_digest(repr(names)), 16)
    return {name: 1 + (seed >> 3 * place) % 5 for place, name in enumerate(CRITERIA)}


def citations(row, system, text, judge):
    """A verdict on each citation of the system's section, all kinds in turn."""
    section = summary(row, system, text)
    titles = {each["number"]: each["arxiv_id"] for each in row["references"]}
    turn = 0
    for place, sentence in enumerate(section["sentences"], 1):
        for number in cited_numbers(sentence["text"]):
            turn += 1
            yield _citation(row, system, place, number, titles.get(number), turn, text, judge)


def _citation(
    row,
    system,
    place,
    number,
    arxiv_id,
    turn,
    text,
    judge,
):
    base = {
        "task_id": row["task_id"],
        "system": system,
        "sentence": place,
        "number": number,
        "arxiv_id": arxiv_id,
    }
    spent = {"calls": 1, "prompt_tokens": 800, "completion_tokens": 60}
    if arxiv_id is None:
        return base | {
            "unjudged": "out_of_range",
            "calls": 0,
            "prompt_tokens": 0,
            "completion_tokens": 0,
        }
    shown = [
        {
            "passage_id": "p-7",
            "anchor": "S3.p2",
            "text": text(f"Terms are counted. {QUOTE} Nothing else is kept."),
        },
        {"passage_id": "p-8", "anchor": "abstract", "text": text("An abstract of the cited work.")},
    ]
    return (
        base
        | spent
        | {
            "source": "full_text",
            "verdict": ("supported", "partly", "not")[turn % 3],
            "quote": QUOTE,
            "quote_found": turn % 2 == 0,
            "passages": shown,
            "quoted": 0,
            "judge": judge,
        }
    )


def rated(row, systems, raters):
    for rater in range(raters):
        for place, system in enumerate(systems):
            yield {
                "study": "first",
                "rater": f"rater {rater}",
                "task_id": row["task_id"],
                "system": system,
                "label": ascii_uppercase[place],
                **_marks(row["task_id"], rater // 2, system),
                "preferred": place == rater % 2,
                "comment": None,
            }


def scores(row, writer, judgements, repeats):
    """As the stage makes them: ROUGE, citations, and the judgements in long form."""
    base = {"task_id": row["task_id"], **writer.columns, "repeat": 0}
    seed = int(text_digest(f"{row['task_id']}{writer.system}"), 16)
    plain = {
        "rouge1": 25.5 + seed % 4,
        "rouge2": 6.25,
        "rougeL": 22.125,
        "rougeLsum": 24.5,
        "citation_precision": 0.25 + seed % 3 / 4,
        "citation_precision_partly": 0.5,
        "citation_precision_quoted": 0.2,
        "citation_recall": 0.4,
        "reference_coverage": 1.0,
        "citation_exact": 1.0,
        "citation_out_of_range": 1.0,
        "words": 40.0 + seed % 90,
    }
    if writer.system in SEARCHING:
        plain["retention"] = 0.9
    for repeat in range(repeats):
        for metric, value in plain.items():
            yield {**base, "repeat": repeat, "metric": metric, "value": value / (1 + repeat)}
    for judged in judgements:
        for marks in judged["marks"] if judged["task_id"] == row["task_id"] else ():
            if marks["system"] == writer.system:
                shown = {name: judged[name] for name in ("judge", "candidate_set")}
                shown["repeat"] = judged["section_repeat"]
                shown["order"] = ",".join(parse_writer(each).system for each in judged["order"])
                for metric, value in metrics(marks, judged["best"]).items():
                    yield {**base, **shown, "metric": metric, "value": value}
