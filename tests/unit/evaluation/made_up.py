"""A made-up month of every table that a report reads, written by hand."""

import json
from dataclasses import fields
from string import ascii_uppercase

from pipeline import tables
from pipeline.engine.stage import Job
from pipeline.evaluation.citation_support.judge import citations_of
from pipeline.evaluation.g_score.sample import candidate_sets
from pipeline.evaluation.scores import build_scores
from pipeline.evaluation.stages import SCORES
from pipeline.llm.messages import Spent
from pipeline.related_work.key_elements import KeyElements
from pipeline.related_work.summary import make_summary
from pipeline.settings import load_settings
from pipeline.tables import CRITERIA
from pipeline.tables.writers import parse_writer
from pipeline.text import text_digest
from tests.month_tables import write_table
from tests.workspaces import make_workspace

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


def write_ledger(root, stage, month, rows):
    """Write a stage's ledger: (subject, reason, detail)."""
    named = [
        {"subject": subject, "stage": stage, "reason": reason, "detail": detail}
        for subject, reason, detail in rows
    ]
    write_table(root, tables.LEDGER, month, named, file=root.ledger_file(stage, month))


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
    task_rows = [task(each, text) for each in ids[:tasks]]
    written = [summary(row, system, text, model) for system in sorted(systems) for row in task_rows]
    judges = (judges or (model,)) if judged else ()
    marked = [
        row
        for task_row in task_rows
        for judge in judges
        for row in judgements(task_row["task_id"], systems, judge, repeats, model)
    ]
    sections = sorted(written, key=lambda row: (row["task_id"], systems.index(row["system"])))
    rows = {
        tables.DUMP_MEMBERS: [
            *({"arxiv_id": i, "subset": "no_problem"} for i in ids),
            *({"arxiv_id": f"{short}.{91000 + n}", "subset": "warning"} for n in range(3)),
        ],
        tables.METADATA: [{"arxiv_id": i, "status": "present"} for i in ids],
        tables.PAPERS: [paper(i, text) for i in ids],
        tables.PASSAGES: [
            {
                "passage_id": f"{i}-{number}",
                "arxiv_id": i,
                "anchor": f"S{number}.p1",
                "words": 15 + (number * 53) % 300,
                "text": text("words"),
            }
            for i in ids
            for number in range(12)
        ],
        tables.REFERENCES: [
            {"arxiv_id": i, "key": f"bib{number}", "cited_arxiv_id": cited}
            for i in ids
            for number, cited in enumerate([*ids, *[None] * 9][:9])
        ],
        tables.EMBEDDINGS: [{"passage_id": f"{i}-{n}"} for i in ids for n in range(12)],
        tables.INDEX_RECEIPTS: [
            {
                "collection": text("citeloom"),
                "engine": "edge",
                "model": text("minilm"),
                "ids_sha256": "0",
                **dict.fromkeys(("expected", "present"), 12 * papers),
                **dict.fromkeys(("missing", "stale"), 0),
            }
        ],
        tables.RELATED_WORK_TASKS: task_rows,
        tables.KEY_ELEMENTS: [e for row in task_rows for e in elements(row, text, model)],
        tables.SUMMARIES: [row | {"repeat": n} for row in written for n in range(repeats)],
        tables.G_SCORES: marked,
        tables.CITATION_SUPPORT: [row for each in sections for row in citations(each, text)],
    }
    if raters:
        rows[tables.HUMAN_RATINGS] = [
            rating(each, rater, systems.index(each["system"]))
            for each in sections
            for rater in range(raters)
        ]
    left_out = {
        tables.PAPERS: {"not_in_categories": 1, "withdrawn": 1},
        tables.RELATED_WORK_TASKS: {"no_related_work_section": papers - tasks},
    }
    for table, of_table in rows.items():
        write_table(root, table, month, of_table, left_out=left_out.get(table, {}))
    job = Job(make_workspace(root.path), month, SCORES)
    write_table(root, tables.SCORES, month, build_scores(job))
    off = {"off": "CITELOOM_QUESTIONS names no question set"}
    for table in (tables.QUESTIONS, tables.ANSWERS, tables.ANSWER_GRADES, tables.ANSWER_SCORES):
        write_table(root, table, month, [], notes=off)
    ledger = [
        (f"{short}.91000", "not_in_categories", text("math.AG")),
        ("2403.91001", "withdrawn", ""),
    ]
    without = [(i, "no_related_work_section", text("none")) for i in ids[tasks:]]
    unread = [(row["task_id"], "failed_unreadable", text("no JSON")) for row in task_rows]
    write_ledger(root, "papers", month, ledger)
    write_ledger(root, "related_work_tasks", month, without)
    write_ledger(root, "g_scores", month, [] if judged else unread)


def paper(arxiv_id, text=same):
    title = "Learned Weights for Sparse and Dense Retrieval over Long Scientific Documents"
    return {
        "arxiv_id": arxiv_id,
        "subset": "no_problem",
        "title": text(title),
        "primary_category": text("cs.IR"),
        "chars_seen": 31_200,
        "chars_kept": 30_914,
        "truncated": arxiv_id.endswith("2"),
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
    names = [each.name for each in fields(KeyElements)]
    for number, arxiv_id in enumerate(papers):
        yield {
            "task_id": row["task_id"],
            "arxiv_id": arxiv_id,
            "number": number,
            "model": model,
            **{name: text(f"The {name}: it weighs both.") for name in names},
            "content_cut": number == 2,
            **spent(1, 900, 200),
        }


def spent(calls, prompt_tokens, completion_tokens):
    return {
        "calls": calls,
        "prompt_tokens": prompt_tokens,
        "completion_tokens": completion_tokens,
    }


def section(text, numbers, system="zero_shot", task_id="2403.90001#S2", model="scripted", **trace):
    """A row of `summaries` as the system itself would make it of a model's text."""
    made = make_summary(text, set(numbers), trace, Spent())
    return {
        "task_id": task_id,
        "system": system,
        "model": model,
        "repeat": 0,
        "text": made.text,
        "sentences": [
            {"text": sentence.text, "references": list(sentence.references), "passages": []}
            for sentence in made.sentences
        ],
        "trace": json.dumps(made.trace),
    }


def summary(row, system, text=same, model="some-model"):
    """The section that a system wrote for a task, as its table has it."""
    searched = system in SEARCHING
    return {
        **section(text(DRAFT if searched else GOLD), (1, 2, 3), system, row["task_id"], model),
        "settings": "{}",
        "trace": trace(system, text),
        **spent(42 if searched else 1, 61_204, 9_120),
    }


def trace(system, text=same):
    """As the systems record it: rounds of the searching ones, one for each of three references;
    LitLLM's separate plan.
    """
    told = {"citations": {"respelt": 0, "bare": 0, "out_of_range": [7], "uncited": []}}
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
    return {
        "reference": reference,
        "drafts": [
            {
                "choice": choice,
                "parent": 0 if reference == 1 else 1 + choice % 2,
                "text": text(f"Draft {choice}. {DRAFT}"),
            }
            for choice in (1, 2, 3, 4)
        ],
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
        **spent(1, 2_000, 160),
        **changes,
    }


def judgements(task_id, systems, judge, repeats, model):
    """A judge's on each candidate set: in two orders, and on each repeat in the first of these; the
    first system of the set is voted the best.
    """
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


def citations(written, text):
    """A verdict of the writer's model on each citation of a section, all kinds in turn."""
    shown = [
        {
            "passage_id": "p-7",
            "anchor": "S3.p2",
            "text": text(f"Terms are counted. {QUOTE} Nothing else is kept."),
        },
        {"passage_id": "p-8", "anchor": "abstract", "text": text("An abstract of the cited work.")},
    ]
    for turn, cited in enumerate(citations_of(written["sentences"]), 1):
        row = {name: written[name] for name in ("task_id", "system", "model")}
        row |= {"sentence": cited.sentence, "number": cited.number}
        if cited.number > 3:
            yield row | {"unjudged": "out_of_range", **spent(0, 0, 0)}
            continue
        yield row | {
            "arxiv_id": f"2401.0000{cited.number}",
            "source": "full_text",
            "verdict": ("supported", "partly", "not")[turn % 3],
            "quote": QUOTE,
            "quote_found": turn % 2 == 0,
            "passages": shown,
            "quoted": 0,
            "judge": written["model"],
            **spent(1, 800, 60),
        }


def rating(written, rater, place):
    return {
        "study": "first",
        "rater": f"rater {rater}",
        **{name: written[name] for name in ("task_id", "system", "model")},
        "text_sha256": text_digest(written["text"]),
        "label": ascii_uppercase[place],
        **_marks(written["task_id"], rater // 2, written["system"]),
        "preferred": place == rater % 2,
    }
