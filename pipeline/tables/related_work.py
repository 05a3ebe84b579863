"""Tables of ChatCite and its baselines: tasks, key elements, summaries, their judgements and scores."""

from __future__ import annotations

import pyarrow as pa

from pipeline.tables.table import COUNT, FLAG, TEXT, TEXTS, Table, llm_usage, schema

# source: full_text, abstract or item, whichever is available; text: that text, null where it is in `papers`
TASK_REFERENCE = pa.struct(
    {
        "number": pa.int32(),
        "arxiv_id": TEXT,
        "key": TEXT,
        "title": TEXT,
        "authors": TEXTS,
        "year": pa.int32(),
        "source": TEXT,
        "text": TEXT,
    }
)
# passages: ids of the sentence's sources, where its system names them; support: the verdict of the system's own judge
SUMMARY_SENTENCE = pa.struct({"text": TEXT, "references": pa.list_(pa.int32()), "passages": TEXTS, "support": TEXT})

CRITERIA = ("consistency", "coherence", "comparative", "integrity", "fluency", "citation_accuracy")
"""Criteria that the G-Score and the human study mark from 1 to 5 (ChatCite, section 4)."""

G_MARKS = pa.struct({"system": TEXT, "model": TEXT} | dict.fromkeys(CRITERIA, pa.int32()))
# passage_id: id in `passages`, null for a work outside the corpus; anchor: id of the element in the page
JUDGE_PASSAGE = pa.struct({"passage_id": TEXT, "anchor": TEXT, "text": TEXT})

RELATED_WORK_TASKS = Table(
    "related_work_tasks",
    "one target with its references and its gold section",
    schema(
        ("task_id", TEXT, "arXiv id of the target and anchor of the section taken out, or a file's own id"),
        ("arxiv_id", TEXT, "target; null for a task from a file whose target is not on arXiv"),
        ("title", TEXT, "title of the target"),
        ("description", TEXT, "text of the target without its related work"),
        ("section_title", TEXT, "title of the section taken out"),
        (
            "references",
            pa.list_(TASK_REFERENCE),
            "cited works in order of the bibliography, or as CITELOOM_REFERENCE_ORDER says, with what there is of them",
        ),
        ("outside", COUNT, "cited items of the section that are no reference of the task"),
        ("gold", TEXT, "the section taken out, citations as [Reference i]"),
    ),
    version=3,
)
KEY_ELEMENTS = Table(
    "key_elements",
    "seven answers for one paper of one task",
    schema(
        ("task_id", TEXT, "task"),
        ("arxiv_id", TEXT, "paper whose elements these are; null where it is not on arXiv"),
        ("number", pa.int32(), "0 for the target, i for Reference i"),
        ("model", TEXT, "model that answered"),
        ("research_questions", TEXT, "answer 1"),
        ("methodology", TEXT, "answer 2"),
        ("results", TEXT, "answer 3"),
        ("conclusions", TEXT, "answer 4"),
        ("contributions", TEXT, "answer 5"),
        ("innovations", TEXT, "answer 6"),
        ("limitations", TEXT, "answer 7"),
        ("content_cut", FLAG, "whether the paper was cut to fit the model's context"),
        *llm_usage("LLM calls that it took"),
    ),
)
RELATED_WORK_SYSTEMS = (
    "chatcite", "chatcite_grounded", "chatcite_no_elements", "chatcite_no_incremental", "chatcite_no_reflection",
    "few_shot", "litllm", "zero_shot", "extractive", "lead", "lexrank",
)  # fmt: skip
SUMMARIES = Table(
    "summaries",
    "one writer's related work for one task",
    schema(
        ("task_id", TEXT, "task"),
        ("system", TEXT, "system that wrote, as CITELOOM_SYSTEMS or the file of imported sections names it"),
        ("model", TEXT, "model that wrote; null for a system that calls none and for imported sections"),
        ("settings", TEXT, "settings of the system, JSON"),
        ("text", TEXT, "the section, citations as [Reference i]"),
        (
            "sentences",
            pa.list_(SUMMARY_SENTENCE),
            "sentences with the references they cite and the passages they rest on",
        ),
        ("trace", TEXT, "drafts, votes and what was kept, round by round, JSON"),
        *llm_usage("LLM calls that it took, key elements not counted"),
    ),
    rows_per_group=50,  # a trace of every draft and vote can be 1 MB
)

G_SCORES = Table(
    "g_scores",
    "one judgement of one task: a conversation with a judge",
    schema(
        ("task_id", TEXT, "task"),
        ("mode", TEXT, "together: all writers in one conversation, as the paper has it; alone: one writer by itself"),
        ("judge", TEXT, "judging model"),
        ("repeat", pa.int32(), "repeat, from 0, each with an order of its own"),
        ("order", TEXTS, "writers (system@model) in the order in which the judge saw them"),
        ("marks", pa.list_(G_MARKS), "six marks from 1 to 5 for each writer, in that order"),
        ("best", TEXT, "writer voted the best; null where one was judged alone"),
        ("cut", TEXTS, "texts of which the judge read the beginning alone"),
        *llm_usage("LLM calls that it took"),
    ),
    version=2,
)
CITATION_SUPPORT = Table(
    "citation_support",
    "one citation in one sentence of one section",
    schema(
        ("task_id", TEXT, "task"),
        ("system", TEXT, "system that wrote the sentence"),
        ("model", TEXT, "model that wrote; null for a system that calls none and for imported sections"),
        ("sentence", pa.int32(), "place of the sentence in the section, from 1"),
        ("number", pa.int32(), "number in [Reference i]"),
        ("arxiv_id", TEXT, "cited paper; null where it is not on arXiv"),
        ("source", TEXT, "what there is of the cited work: full_text, abstract or item; null where out of range"),
        ("verdict", TEXT, "supported, partly or not; null where nothing was judged"),
        ("unjudged", TEXT, "why nothing was judged: out_of_range, no_text, unreadable_answer or over_the_limit"),
        ("quote", TEXT, "words of the passage that the verdict rests on, as the judge gave them"),
        ("quote_found", FLAG, "whether these words are in a passage that the judge was shown"),
        ("passages", pa.list_(JUDGE_PASSAGE), "passages that the judge was shown, best first"),
        ("quoted", pa.int32(), "place among them, from 0, of the passage that holds the quote; null for none"),
        ("judge", TEXT, "judging model"),
        *llm_usage("LLM calls that it took"),
    ),
    version=2,
)
STABILITY = Table(
    "stability",
    "one repeat of one system on one task",
    schema(
        ("task_id", TEXT, "task"),
        ("system", TEXT, "system that wrote"),
        ("model", TEXT, "model that wrote"),
        ("varied", TEXT, "samples: other samples, references in their order; order: references in another order"),
        ("repeat", pa.int32(), "repeat, from 0"),
        ("order", pa.list_(pa.int32()), "numbers of the references in the order in which they were taken"),
        ("text", TEXT, "the section, citations as [Reference i]"),
        ("rouge1", pa.float64(), "ROUGE-1 F1 against the gold section, in percent"),
        ("rouge2", pa.float64(), "ROUGE-2 F1, in percent"),
        ("rougeL", pa.float64(), "ROUGE-L F1 with the text as one sequence, in percent"),
        ("rougeLsum", pa.float64(), "ROUGE-L F1 sentence by sentence, in percent"),
        ("coverage", pa.float64(), "share of the task's references that the section cites"),
        *(
            (f"g_{criterion}", pa.float64(), "its mark, judged alone, 1 to 5; null where it could not be judged")
            for criterion in CRITERIA
        ),
        ("g_score", pa.float64(), "G-Score, the mean of these marks"),
        ("judge", TEXT, "judging model"),
        *llm_usage("LLM calls that writing and judging took"),
    ),
    version=3,
)
SCORES = Table(
    "scores",
    "one metric of one writer on one task",
    schema(
        ("task_id", TEXT, "task"),
        ("system", TEXT, "system"),
        ("model", TEXT, "model that wrote; null for a system that calls none and for imported sections"),
        (
            "metric",
            TEXT,
            "rouge1, rouge2, rougeL, rougeLsum, g_consistency … g_score, g_vote, citation_precision …, words",
        ),
        ("value", pa.float64(), "ROUGE F1 in percent; G-Score criteria 1 to 5; vote 0 or 1; shares 0 to 1"),
        ("judge", TEXT, "judging model; null where none judged"),
        ("mode", TEXT, "together or alone, as the judge saw the writers; null where none judged"),
        ("order", TEXT, "writers in the order in which the judge saw them; null where none judged"),
        ("repeat", pa.int32(), "repeat of the judgement, from 0"),
    ),
    version=3,
)
HUMAN_RATINGS = Table(
    "human_ratings",
    "one rater's marks for one system on one task",
    schema(
        ("study", TEXT, "name of the study"),
        ("rater", TEXT, "name that the rater gave"),
        ("task_id", TEXT, "task"),
        ("system", TEXT, "system, which the rater was not told"),
        ("model", TEXT, "model that wrote; null for a system that calls none and for imported sections"),
        ("label", TEXT, "what the rater saw in its place, such as T01-B"),
        *((criterion, pa.int32(), "mark from 1 to 5; null where none was given") for criterion in CRITERIA),
        ("preferred", FLAG, "whether the rater liked it best of the task; null where no choice was made"),
        ("comment", TEXT, "the rater's words"),
        ("text_sha256", TEXT, "SHA-256 of the section that was rated"),
    ),
    version=2,
)
