"""Every table, once: its schema, what a row is, and the version of that contract.

In the order of the pipeline: the corpus and its index, related work, answers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa

# 2,000 passages of 1.5 KB are 3 MB: small enough for memory, large enough that Parquet's cost per
# group vanishes.
ROWS_PER_GROUP = 2_000

TEXT, COUNT, FLAG = pa.string(), pa.int64(), pa.bool_()
TEXTS = pa.list_(TEXT)

Column = tuple[str, pa.DataType, str]
"""Name, type and description."""


@dataclass(frozen=True, slots=True)
class Table:
    """A table.

    row: what one row of it is. version: raised when the columns or their meaning change.
    rows_per_group: how many rows are held in memory and written at once. rows_per_read: how many of
    them a row group of the file has, where single rows are read; None for all.
    """

    name: str
    row: str
    schema: pa.Schema
    version: int = 1
    rows_per_group: int = ROWS_PER_GROUP
    rows_per_read: int | None = None

    def describe_columns(self) -> list[tuple[str, str, str]]:
        """(name, Arrow type, description) of every column, in order."""
        columns = []
        for column in self.schema:
            text = (column.metadata or {}).get(b"description", b"").decode()
            columns.append((column.name, str(column.type), text))
        return columns


def schema(*columns: Column) -> pa.Schema:
    return pa.schema(
        [pa.field(name, kind, metadata={"description": text}) for name, kind, text in columns]
    )


def llm_usage(calls: str) -> tuple[Column, ...]:
    """The columns of what a row cost; calls: description of the number of calls."""
    return (
        ("calls", COUNT, calls),
        ("prompt_tokens", COUNT, "tokens read"),
        ("completion_tokens", COUNT, "tokens written"),
    )


# Columns of several tables.
WRITING_MODEL: Column = (
    "model",
    TEXT,
    "model that wrote; null for a system that calls none and for imported sections",
)
ANSWERING_MODEL: Column = (
    "model",
    TEXT,
    "model that answered; null for a system that calls none and for imported answers",
)

# The corpus: dump, metadata, papers, passages, references, their index, and what runs record of
# them.

# Values of `papers.grade`, best first.
GRADES = ("A", "B", "C", "D")

AUTHOR = pa.struct({"name": TEXT, "affiliations": TEXTS, "emails": TEXTS})
SECTION = pa.struct(
    {"anchor": TEXT, "number": TEXT, "title": TEXT, "depth": pa.int32(), "path": TEXTS}
)
BLOCK = pa.struct(
    {"kind": TEXT, "anchor": TEXT, "section_path": TEXTS, "text": TEXT, "cited_keys": TEXTS}
)
BIBLIOGRAPHY_ITEM = pa.struct(
    {
        "key": TEXT,
        "raw": TEXT,
        "title": TEXT,
        "authors": TEXTS,
        "year": pa.int32(),
        "venue": TEXT,
        "doi": TEXT,
        "arxiv_id": TEXT,
    }
)

PAGES = Table(
    "pages",
    "one page that was converted from a paper's source",
    schema(
        ("arxiv_id", TEXT, "identifier without version"),
        ("severity", TEXT, "no_problem, warning or error, as the converter's log says"),
        ("main_file", TEXT, "TeX file that was converted"),
        ("source", TEXT, "file of the source; of a tar, its member"),
        ("made_of", TEXT, "SHA-256 of the source, and the converter"),
        ("last_error", TEXT, "last error in the converter's log, or null"),
    ),
)
DUMP_MEMBERS = Table(
    "dump_members",
    "one HTML member of a zip",
    schema(
        ("arxiv_id", TEXT, "identifier without version, old ids with their slash"),
        (
            "subset",
            TEXT,
            "conversion severity: no_problem, warning or error; unrated where nothing tells it",
        ),
        ("zip", TEXT, "file name of the zip in the dump folder; empty for a page that lies loose"),
        (
            "member",
            TEXT,
            "name of the member in the zip, or the loose page's path below the dump folder",
        ),
        (
            "offset",
            COUNT,
            "position of the member's local header in the zip, in bytes; 0 for a loose page",
        ),
        ("bytes", COUNT, "size of the page, in bytes"),
        ("compressed_bytes", COUNT, "size in the zip, in bytes"),
        (
            "crc32",
            pa.uint32(),
            "checksum (CRC-32) of the page; in a zip, as its directory states it",
        ),
    ),
)
METADATA = Table(
    "metadata",
    "one paper as arXiv describes it",
    schema(
        ("arxiv_id", TEXT, "identifier without version"),
        ("version", pa.int32(), "newest version that the source knows; null where it says none"),
        ("title", TEXT, "title, white space folded"),
        ("authors", TEXTS, "names in order, given name first"),
        ("abstract", TEXT, "abstract, white space folded"),
        ("categories", TEXTS, "all categories, primary first"),
        ("primary_category", TEXT, "primary category"),
        ("published", TEXT, "date of the first version, YYYY-MM-DD"),
        ("updated", TEXT, "date of the newest version, YYYY-MM-DD"),
        ("doi", TEXT, "DOI of the published paper"),
        ("journal_ref", TEXT, "journal reference"),
        ("comment", TEXT, "the authors' comment"),
        ("source", TEXT, "snapshot, oai or api"),
        ("fetched_at", TEXT, "when the API or OAI-PMH answered, ISO 8601 UTC; null for a snapshot"),
        ("status", TEXT, "present, withdrawn, or absent (nobody knows the id)"),
    ),
)
PAPERS = Table(
    "papers",
    "one parsed paper and its loss ledger",
    schema(
        ("arxiv_id", TEXT, "identifier without version"),
        ("subset", TEXT, "conversion severity of the page"),
        ("title", TEXT, "title, from metadata or else from the page"),
        ("title_source", TEXT, "heading where the page's has the words of metadata, else metadata"),
        (
            "authors",
            pa.list_(AUTHOR),
            "authors of metadata, or else of the page, with the page's affiliations and e-mails",
        ),
        ("authors_source", TEXT, "page where it has a byline, else metadata or none"),
        (
            "authors_differ",
            COUNT,
            "names that only the page's byline has or only metadata.authors; 0 without a byline",
        ),
        ("abstract", TEXT, "abstract"),
        ("abstract_source", TEXT, "page, metadata or none"),
        ("categories", TEXTS, "all categories, primary first"),
        ("primary_category", TEXT, "primary category"),
        ("year", pa.int32(), "year of the identifier's month"),
        ("sections", pa.list_(SECTION), "sections in document order"),
        ("blocks", pa.list_(BLOCK), "text blocks in document order"),
        ("bibliography", pa.list_(BIBLIOGRAPHY_ITEM), "bibliography items in order"),
        ("paragraphs", COUNT, "paragraphs of running text"),
        ("tables", COUNT, "tables"),
        ("figures", COUNT, "figures"),
        ("formulas", COUNT, "formulas, inline and display"),
        (
            "chars_seen",
            COUNT,
            "characters of visible text on the page, a formula counted as its TeX",
        ),
        ("chars_kept", COUNT, "characters kept in front matter, headings, blocks and bibliography"),
        ("kept", pa.map_(TEXT, COUNT), "characters kept, by kind of element"),
        ("losses", pa.map_(TEXT, COUNT), "characters seen and not kept, by kind of element"),
        ("ltx_errors", COUNT, "LaTeXML error marks on the page"),
        ("missing_citations", COUNT, "citations whose item LaTeXML did not find"),
        ("unconverted_macros", COUNT, "TeX macros left as words in the text, outside of formulas"),
        ("math_without_tex", COUNT, "formulas whose TeX the page does not hold"),
        ("truncated", FLAG, "whether the page breaks off before its end"),
        ("grade", TEXT, "page quality: A (clean) to D (broken)"),
        ("grade_reasons", TEXTS, "what lowers the page quality"),
        ("html_bytes", COUNT, "size of the page, in bytes"),
        ("html_sha256", TEXT, "SHA-256 of the page"),
    ),
    version=3,
    rows_per_group=100,  # a paper is some 100 KB of blocks: 2,000 of them would be held at once
)
PASSAGES = Table(
    "passages",
    "one passage",
    schema(
        ("passage_id", TEXT, "UUIDv5 of arXiv id, anchor and part"),
        ("arxiv_id", TEXT, "paper"),
        ("ordinal", pa.int32(), "place in the paper, from 0"),
        ("anchor", TEXT, "id of the passage's first element in the page"),
        (
            "kind",
            TEXT,
            "front_matter, abstract, paragraph, list, table, caption, theorem or algorithm",
        ),
        ("title", TEXT, "title of the paper"),
        ("section_path", TEXTS, "titles of the sections around it, outermost first"),
        ("text", TEXT, "text; math as $TeX$, citations as [@key]"),
        ("words", pa.int32(), "words of the text"),
        ("cited_keys", TEXTS, "keys of the bibliography items it cites"),
        ("text_sha256", TEXT, "SHA-256 of the text that is embedded"),
    ),
    # A search reads a row group for almost every hit once there are many months: the texts of 50
    # hits of 60 months took 80 ms of processor time in groups of 2,000 and 49 in groups of 500.
    rows_per_read=500,
)
REFERENCES = Table(
    "references",
    "one bibliography item",
    schema(
        ("arxiv_id", TEXT, "citing paper"),
        ("key", TEXT, "id of the item in the page"),
        ("ordinal", pa.int32(), "place in the bibliography, from 0"),
        ("raw", TEXT, "the item as printed"),
        ("title", TEXT, "title of the cited work"),
        ("authors", TEXTS, "authors of the cited work"),
        ("year", pa.int32(), "year"),
        ("venue", TEXT, "venue"),
        ("doi", TEXT, "DOI, lower case"),
        ("cited_arxiv_id", TEXT, "the cited paper where it is on arXiv and known"),
        ("resolved_by", TEXT, "identifier, doi, title, or null"),
    ),
)
CITATIONS = Table(
    "citations",
    "one paper that a paper of the month cites, known to arXiv",
    schema(
        ("citing", TEXT, "citing paper, of the month"),
        ("cited", TEXT, "cited paper, of any month; rows are sorted by it"),
        ("keys", TEXTS, "the citing paper's bibliography items that are the cited paper"),
        (
            "passage_ids",
            TEXTS,
            "passages of the citing paper that cite it, in order; empty if no passage does",
        ),
    ),
)
EMBEDDINGS = Table(
    "embeddings",
    "one passage's vectors",
    schema(
        ("passage_id", TEXT, "passage"),
        ("arxiv_id", TEXT, "paper"),
        ("text_sha256", TEXT, "SHA-256 of the text that was embedded"),
        ("model", TEXT, "model that made the vectors"),
        ("dense", pa.list_(pa.float16()), "dense vector, unit length"),
        (
            "sparse_ids",
            pa.list_(pa.uint32()),
            "token ids of the model's sparse vector, ascending; empty if it has none",
        ),
        ("sparse_weights", pa.list_(pa.float32()), "weights of these tokens"),
        (
            "colbert",
            pa.list_(pa.list_(pa.float16())),
            "one vector per token, of earlier versions; else null",
        ),
        ("truncated", FLAG, "whether the text was longer than the model reads"),
    ),
    rows_per_group=500,  # 4 KB a row
)
INDEX_RECEIPTS = Table(
    "index_receipts",
    "one audited load of a month into the collection",
    schema(
        ("collection", TEXT, "collection"),
        ("engine", TEXT, "server or edge"),
        ("model", TEXT, "model of the vectors"),
        ("expected", COUNT, "points that the embeddings table asks for"),
        ("present", COUNT, "of these, points found after the load"),
        ("missing", COUNT, "of these, points not found"),
        (
            "stale",
            COUNT,
            "points of the month still there after the load that the table does not ask for",
        ),
        ("ids_sha256", TEXT, "SHA-256 over the sorted ids and text hashes of the month"),
    ),
)
REPORT = Table(
    "report",
    "one file of the month's report",
    schema(
        ("path", TEXT, "path below the data root"),
        ("bytes", COUNT, "size"),
        ("sha256", TEXT, "SHA-256 of the file"),
    ),
)
LEDGER = Table(
    "ledger",
    "one thing left out",
    schema(
        ("subject", TEXT, "arXiv id, passage id or file"),
        ("stage", TEXT, "stage that left it out"),
        ("reason", TEXT, "reason, one of a few per stage"),
        ("detail", TEXT, "what exactly"),
    ),
)

# ChatCite and its baselines: tasks, key elements, summaries, their judgements and scores.

# source: full_text, abstract or item, whichever is available; text: that text, null where it is in
# `papers`
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
# passages: ids of the sentence's sources, where its system names them; support: null, the verdict
# of a system that judged its own sentences
SUMMARY_SENTENCE = pa.struct(
    {"text": TEXT, "references": pa.list_(pa.int32()), "passages": TEXTS, "support": TEXT}
)

CRITERIA = ("consistency", "coherence", "comparative", "integrity", "fluency", "citation_accuracy")
"""Criteria that the G-Score and the human study mark from 1 to 5 (ChatCite, section 4)."""

G_MARKS = pa.struct({"system": TEXT, "model": TEXT} | dict.fromkeys(CRITERIA, pa.int32()))
# passage_id: id in `passages`, null for a work outside the corpus; anchor: id of the element in the
# page
JUDGE_PASSAGE = pa.struct({"passage_id": TEXT, "anchor": TEXT, "text": TEXT})

RELATED_WORK_TASKS = Table(
    "related_work_tasks",
    "one target with its references and its gold section",
    schema(
        (
            "task_id",
            TEXT,
            "arXiv id of the target and anchor of the section taken out, or a file's own id",
        ),
        ("arxiv_id", TEXT, "target; null for a task from a file whose target is not on arXiv"),
        ("title", TEXT, "title of the target"),
        ("description", TEXT, "text of the target without its related work"),
        ("section_title", TEXT, "title of the section taken out"),
        (
            "references",
            pa.list_(TASK_REFERENCE),
            "cited works in order of the bibliography, with what there is of them",
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
SUMMARIES = Table(
    "summaries",
    "one writer's related work for one task, once or several times",
    schema(
        ("task_id", TEXT, "task"),
        (
            "system",
            TEXT,
            "system that wrote, as CITELOOM_SYSTEMS or the file of imported sections names it",
        ),
        WRITING_MODEL,
        (
            "repeat",
            pa.int32(),
            "0 for the section that is compared with others; from 1, other samples of it",
        ),
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
    version=2,
    rows_per_group=50,  # a trace of every draft and vote can be 1 MB
)

G_SCORES = Table(
    "g_scores",
    "one judgement of one task: a conversation with a judge",
    schema(
        ("task_id", TEXT, "task"),
        ("candidate_set", TEXT, "name of the set of writers that the conversation is about"),
        ("section_repeat", pa.int32(), "repeat of the sections, 0 for those that are compared"),
        ("judge", TEXT, "judging model"),
        ("repeat", pa.int32(), "of the conversation, from 0, each with an order of its own"),
        ("order", TEXTS, "writers (system@model) in the order in which the judge saw them"),
        ("marks", pa.list_(G_MARKS), "six marks from 1 to 5 for each writer, in that order"),
        ("best", TEXT, "writer voted the best; null where there was one alone"),
        ("cut", TEXTS, "texts of which the judge read the beginning alone"),
        *llm_usage("LLM calls that it took"),
    ),
    version=3,
)
CITATION_SUPPORT = Table(
    "citation_support",
    "one citation in one sentence of one section",
    schema(
        ("task_id", TEXT, "task"),
        ("system", TEXT, "system that wrote the sentence"),
        WRITING_MODEL,
        ("sentence", pa.int32(), "place of the sentence in the section, from 1"),
        ("number", pa.int32(), "number in [Reference i]"),
        ("arxiv_id", TEXT, "cited paper; null where it is not on arXiv"),
        (
            "source",
            TEXT,
            "what there is of the cited work: full_text, abstract or item; null where out of range",
        ),
        ("verdict", TEXT, "supported, partly or not; null where nothing was judged"),
        (
            "unjudged",
            TEXT,
            "why nothing was judged: out_of_range, no_text, over_the_limit, unreadable_answer, or"
            " another failure of the judge, such as failed_refused",
        ),
        ("quote", TEXT, "words of the passage that the verdict rests on, as the judge gave them"),
        ("quote_found", FLAG, "whether these words are in a passage that the judge was shown"),
        ("passages", pa.list_(JUDGE_PASSAGE), "passages that the judge was shown, best first"),
        (
            "quoted",
            pa.int32(),
            "place among them, from 0, of the passage that holds the quote; null for none",
        ),
        ("judge", TEXT, "judging model"),
        *llm_usage("LLM calls that it took"),
    ),
    version=2,
)
SCORES = Table(
    "scores",
    "one metric of one writer on one task",
    schema(
        ("task_id", TEXT, "task"),
        ("system", TEXT, "system"),
        WRITING_MODEL,
        (
            "metric",
            TEXT,
            (
                "rouge1, rouge2, rougeL, rougeLsum, g_consistency … g_score, g_vote,"
                " citation_precision …, words"
            ),
        ),
        (
            "value",
            pa.float64(),
            "ROUGE F1 in percent; G-Score criteria 1 to 5; vote 0 or 1; shares 0 to 1",
        ),
        ("judge", TEXT, "judging model; null where none judged"),
        ("candidate_set", TEXT, "set of writers that the judge saw; null where none judged"),
        ("order", TEXT, "writers in the order in which the judge saw them; null where none judged"),
        ("repeat", pa.int32(), "of the section, 0 for the one that is compared"),
    ),
    version=4,
)
HUMAN_RATINGS = Table(
    "human_ratings",
    "one rater's marks for one system on one task",
    schema(
        ("study", TEXT, "name of the study"),
        ("rater", TEXT, "name that the rater gave"),
        ("task_id", TEXT, "task"),
        ("system", TEXT, "system, which the rater was not told"),
        WRITING_MODEL,
        ("label", TEXT, "what the rater saw in its place, such as T01-B"),
        *(
            (criterion, pa.int32(), "mark from 1 to 5; null where none was given")
            for criterion in CRITERIA
        ),
        (
            "preferred",
            FLAG,
            "true for the section that the rater liked best of the task",
        ),
        ("comment", TEXT, "the rater's words"),
        ("text_sha256", TEXT, "SHA-256 of the section that was rated"),
    ),
    version=2,
)

# arXivBot and its baselines: questions, answers, their grades and scores.

GOLD_CLAIM = pa.struct({"claim": TEXT, "arxiv_id": TEXT, "evidence": TEXTS, "passages": TEXTS})
RETRIEVED_PASSAGE = pa.struct(
    {
        "hop": pa.int32(),
        "passage_id": TEXT,
        "arxiv_id": TEXT,
        "title": TEXT,
        "section_path": TEXTS,
        "anchor": TEXT,
        "kind": TEXT,
        "text": TEXT,
        "month": TEXT,
    }
)
ANSWER_CLAIM = pa.struct(
    {
        "number": pa.int32(),
        "text": TEXT,
        "passage_id": TEXT,
        "arxiv_id": TEXT,
        "anchor": TEXT,
        "hop": pa.int32(),
        "source": TEXT,
    }
)
ANSWER_SENTENCE = pa.struct({"text": TEXT, "claims": pa.list_(pa.int32())})
GRADED_CLAIM = pa.struct(
    {
        "claim": TEXT,
        "verdict": TEXT,
        "quote": TEXT,
        "quoted": TEXT,
        "passage_id": TEXT,
        "passages": pa.list_(JUDGE_PASSAGE),
        "cut": FLAG,
        "failure": TEXT,
    }
)
GRADED_GOLD = pa.struct(
    {
        "claim": TEXT,
        "verdict": TEXT,
        "quote": TEXT,
        "quoted": FLAG,
        "cut": FLAG,
        "failure": TEXT,
        "shown_in_hop": pa.int32(),
        "has_passage": FLAG,
    }
)


QUESTIONS = Table(
    "questions",
    "one question of a question set, with its gold claims",
    schema(
        ("question_id", TEXT, "id in the set"),
        ("question", TEXT, "what is asked"),
        ("kind", TEXT, "author, dataset, summary, limitation or comparison"),
        ("papers", TEXTS, "arXiv ids of the papers that the answer needs"),
        ("date", TEXT, "when the newest of them first appeared, YYYY-MM-DD or YYYY-MM"),
        ("reviewed", FLAG, "always true: a question marked as not reviewed is refused"),
        (
            "claims",
            pa.list_(GOLD_CLAIM),
            (
                "what a full answer holds: each fact, its paper, phrases that say so, and the"
                " passages that hold one"
            ),
        ),
    ),
)
ANSWERS = Table(
    "answers",
    "one writer's answer to one question",
    schema(
        ("question_id", TEXT, "question"),
        (
            "system",
            TEXT,
            (
                "system that answered, as CITELOOM_ANSWER_SYSTEMS or the file of imported answers"
                " names it"
            ),
        ),
        ANSWERING_MODEL,
        ("settings", TEXT, "settings of the system, JSON"),
        ("text", TEXT, "the answer"),
        (
            "sentences",
            pa.list_(ANSWER_SENTENCE),
            "its sentences with the numbers of the claims that they rest on",
        ),
        (
            "claims",
            pa.list_(ANSWER_CLAIM),
            "claims with the passage that each rests on and the hop that brought it",
        ),
        ("queries", TEXTS, "the query of each hop"),
        ("shown", pa.list_(RETRIEVED_PASSAGE), "passages that the model read, hop by hop"),
        ("hops", pa.int32(), "searches made"),
        ("abstained", FLAG, "whether it says that the corpus does not hold the answer"),
        ("trace", TEXT, "every step in order, JSON"),
        *llm_usage("LLM calls that it took"),
    ),
    rows_per_group=50,  # a trace with all retrieved passages is some 50 KB
)
ANSWER_GRADES = Table(
    "answer_grades",
    "one answer as one judge graded it",
    schema(
        ("question_id", TEXT, "question"),
        ("system", TEXT, "system that answered"),
        ANSWERING_MODEL,
        ("judge", TEXT, "judging model"),
        ("kind", TEXT, "kind of the question"),
        ("date", TEXT, "date of the question's newest paper"),
        ("outcome", TEXT, "answered, abstained, claims_nothing or unreadable"),
        (
            "claims",
            pa.list_(GRADED_CLAIM),
            "claims of the answer with verdict, quote and the passages shown",
        ),
        (
            "gold",
            pa.list_(GRADED_GOLD),
            "gold claims: whether the answer holds them, and the hop that first showed one",
        ),
        (
            "hops_shown",
            pa.list_(pa.float64()),
            "share of gold claims shown after each hop; null where none searched",
        ),
        ("parts", COUNT, "parts in which the answer was split"),
        ("parts_full", COUNT, "parts that named as many claims as may be"),
        ("parts_cut", COUNT, "parts of which the end was not read"),
        ("split_failures", TEXTS, "why parts could not be read"),
        *llm_usage("LLM calls that grading took"),
    ),
    version=2,
    rows_per_group=100,
)
ANSWER_SCORES = Table(
    "answer_scores",
    "one measure of one answer",
    schema(
        ("question_id", TEXT, "question"),
        ("system", TEXT, "system that answered"),
        ANSWERING_MODEL,
        ("judge", TEXT, "judging model; null where none is needed"),
        ("kind", TEXT, "kind of the question"),
        ("date", TEXT, "date of the question's newest paper"),
        ("metric", TEXT, "factual, coverage, gold_shown and their like; claims is a count"),
        ("value", pa.float64(), "share from 0 to 1, or a count"),
    ),
    version=2,
)
HUMAN_GRADES = Table(
    "human_grades",
    "one grader's verdict on one claim of an answer, or on one gold claim beside it",
    schema(
        ("study", TEXT, "name of the study"),
        ("grader", TEXT, "name of the grader"),
        ("question_id", TEXT, "question"),
        ("system", TEXT, "system that answered, which the grader was not told"),
        ANSWERING_MODEL,
        ("label", TEXT, "what the grader saw in its place, such as Q03-B"),
        ("part", TEXT, "claim: what the answer claims; gold: what a full answer holds"),
        ("number", pa.int32(), "place among the claims, or gold claims, from 1"),
        ("text", TEXT, "the claim that was graded"),
        (
            "verdict",
            TEXT,
            "as in answer_grades; null where the grader only commented; several in rows of earlier"
            " sheets",
        ),
        ("comment", TEXT, "the grader's words"),
        ("text_sha256", TEXT, "SHA-256 of the question and the answer as they were graded"),
    ),
    version=2,
)

TABLES: Mapping[str, Table] = {
    table.name: table
    for table in (
        PAGES,
        DUMP_MEMBERS,
        METADATA,
        PAPERS,
        PASSAGES,
        REFERENCES,
        CITATIONS,
        EMBEDDINGS,
        INDEX_RECEIPTS,
        QUESTIONS,
        RELATED_WORK_TASKS,
        KEY_ELEMENTS,
        SUMMARIES,
        G_SCORES,
        CITATION_SUPPORT,
        ANSWERS,
        ANSWER_GRADES,
        SCORES,
        ANSWER_SCORES,
        HUMAN_RATINGS,
        HUMAN_GRADES,
        REPORT,
        LEDGER,
    )
}
"""All tables by name. `pipeline.stages` derives the stages from it: they run in this order."""
