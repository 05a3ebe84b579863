"""Every table's schema, once, and the reading and writing of one month of it.

One table, one month, one file: `<data root>/<table>/<YYYY-MM>.parquet`, zstd. A month is written under a temporary
name beside its own and moved into place, so it is whole or absent. The file's metadata tells what made it
(`Provenance`). Not here: what any column is computed from.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from types import TracebackType
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from pipeline.errors import MissingInput, PermanentFailure

Row = Mapping[str, Any]

# 2,000 passages of 1.5 KB are 3 MB: small enough to hold, large enough that Parquet's per-group cost vanishes.
ROWS_PER_GROUP = 2_000
_METADATA_KEY = b"citeloom"
# Of a page's text, best first: what `papers.grade` may hold.
GRADES = ("A", "B", "C", "D")


@dataclass(frozen=True, slots=True)
class Table:
    """A table's name, what one row of it is, its columns, and the version of that contract.

    rows_per_group: how many rows are held and written at once.
    """

    name: str
    row: str
    schema: pa.Schema
    version: int = 1
    rows_per_group: int = ROWS_PER_GROUP

    def describe_columns(self) -> list[tuple[str, str, str]]:
        """(column, Arrow type, description) of every column, in order."""
        return [(column.name, str(column.type), _description(column)) for column in self.schema]


@dataclass(frozen=True, slots=True)
class Provenance:
    """What made a file, kept in its metadata."""

    table: str
    month: str
    schema_version: int
    stage_version: int
    code_version: str
    fingerprint: str
    settings: Mapping[str, Any]
    inputs: Mapping[str, str]
    rows: int = 0
    rows_sha256: str = ""
    left_out: Mapping[str, int] = field(default_factory=dict)
    notes: Mapping[str, Any] = field(default_factory=dict)


def _description(column: pa.Field) -> str:
    return str((column.metadata or {}).get(b"description", b"").decode())


def _column(name: str, kind: pa.DataType, description: str) -> pa.Field:
    return pa.field(name, kind, metadata={"description": description})


def _schema(*columns: tuple[str, pa.DataType, str]) -> pa.Schema:
    return pa.schema([_column(*column) for column in columns])


TEXT, COUNT, FLAG = pa.string(), pa.int64(), pa.bool_()
TEXTS = pa.list_(TEXT)

AUTHOR = pa.struct([("name", TEXT), ("affiliations", TEXTS), ("emails", TEXTS)])
SECTION = pa.struct([("anchor", TEXT), ("number", TEXT), ("title", TEXT), ("depth", pa.int32()), ("path", TEXTS)])
BLOCK = pa.struct([("kind", TEXT), ("anchor", TEXT), ("section_path", TEXTS), ("text", TEXT), ("cited_keys", TEXTS)])
BIBLIOGRAPHY_ITEM = pa.struct(
    [
        ("key", TEXT),
        ("raw", TEXT),
        ("title", TEXT),
        ("authors", TEXTS),
        ("year", pa.int32()),
        ("venue", TEXT),
        ("doi", TEXT),
        ("arxiv_id", TEXT),
    ]
)
# source: full_text, abstract or item, as what there is of the work; text: that itself, null where it is in papers
TASK_REFERENCE = pa.struct(
    [
        ("number", pa.int32()),
        ("arxiv_id", TEXT),
        ("key", TEXT),
        ("title", TEXT),
        ("year", pa.int32()),
        ("source", TEXT),
        ("text", TEXT),
    ]
)
# passages: ids of those that the sentence rests on, where its system ties them; support: what its own judge found
SUMMARY_SENTENCE = pa.struct(
    [("text", TEXT), ("references", pa.list_(pa.int32())), ("passages", TEXTS), ("support", TEXT)]
)

CRITERIA = ("consistency", "coherence", "comparative", "integrity", "fluency", "citation_accuracy")
"""What the G-Score and the human study mark from 1 to 5 (ChatCite, section 4)."""

G_MARKS = pa.struct([("system", TEXT), *((criterion, pa.int32()) for criterion in CRITERIA)])
# passage_id: that of `passages`, or null for a work outside the corpus; anchor: the passage's place in the page
SHOWN_PASSAGE = pa.struct([("passage_id", TEXT), ("anchor", TEXT), ("text", TEXT)])
GOLD_CLAIM = pa.struct([("claim", TEXT), ("arxiv_id", TEXT), ("evidence", TEXTS), ("passages", TEXTS)])
FOUND_PASSAGE = pa.struct(
    [
        ("hop", pa.int32()),
        ("passage_id", TEXT),
        ("arxiv_id", TEXT),
        ("title", TEXT),
        ("section_path", TEXTS),
        ("anchor", TEXT),
        ("kind", TEXT),
        ("text", TEXT),
        ("month", TEXT),
    ]
)
ANSWER_CLAIM = pa.struct(
    [
        ("number", pa.int32()),
        ("text", TEXT),
        ("passage_id", TEXT),
        ("arxiv_id", TEXT),
        ("anchor", TEXT),
        ("hop", pa.int32()),
        ("source", TEXT),
    ]
)
ANSWER_SENTENCE = pa.struct([("text", TEXT), ("claims", pa.list_(pa.int32()))])
GRADED_CLAIM = pa.struct(
    [
        ("claim", TEXT),
        ("verdict", TEXT),
        ("quote", TEXT),
        ("quoted", TEXT),
        ("passage_id", TEXT),
        ("passages", pa.list_(SHOWN_PASSAGE)),
        ("cut", FLAG),
        ("failure", TEXT),
    ]
)
GRADED_GOLD = pa.struct(
    [
        ("claim", TEXT),
        ("verdict", TEXT),
        ("quote", TEXT),
        ("quoted", FLAG),
        ("cut", FLAG),
        ("failure", TEXT),
        ("shown_in_hop", pa.int32()),
        ("has_passage", FLAG),
    ]
)

DUMP_MEMBERS = Table(
    "dump_members",
    "one HTML member of a zip",
    _schema(
        ("arxiv_id", TEXT, "identifier without version, old ids with their slash"),
        ("subset", TEXT, "severity: no_problem, warning or error; unrated where nothing tells it"),
        ("zip", TEXT, "file name of the zip in the dump folder; empty for a page that lies loose"),
        ("member", TEXT, "name of the member in the zip, or the loose page's path below the dump folder"),
        ("offset", COUNT, "position of the member's local header in the zip, in bytes; 0 for a loose page"),
        ("bytes", COUNT, "size of the page, in bytes"),
        ("compressed_bytes", COUNT, "size in the zip, in bytes"),
        ("crc32", pa.uint32(), "checksum (CRC-32) of the page; in a zip, as its directory states it"),
    ),
)
METADATA = Table(
    "metadata",
    "one paper as arXiv describes it",
    _schema(
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
    _schema(
        ("arxiv_id", TEXT, "identifier without version"),
        ("subset", TEXT, "severity of the page's conversion"),
        ("title", TEXT, "title, from the page or else from metadata"),
        ("title_source", TEXT, "heading or metadata"),
        ("authors", pa.list_(AUTHOR), "authors with affiliations and e-mails"),
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
        ("chars_seen", COUNT, "characters of visible text on the page, a formula counted as its TeX"),
        ("chars_kept", COUNT, "characters kept in front matter, headings, blocks and bibliography"),
        ("kept", pa.map_(TEXT, COUNT), "characters kept, by kind of element"),
        ("losses", pa.map_(TEXT, COUNT), "characters seen and not kept, by kind of element"),
        ("ltx_errors", COUNT, "LaTeXML error marks on the page"),
        ("missing_citations", COUNT, "citations whose item LaTeXML did not find"),
        ("unconverted_macros", COUNT, "TeX macros left as words in the text, outside of formulas"),
        ("math_without_tex", COUNT, "formulas whose TeX the page does not hold"),
        ("truncated", FLAG, "whether the page breaks off before its end"),
        ("grade", TEXT, "quality of the page's text: A (clean) to D (broken)"),
        ("grade_reasons", TEXTS, "what the grade was lowered for"),
        ("html_bytes", COUNT, "size of the page, in bytes"),
        ("html_sha256", TEXT, "SHA-256 of the page"),
    ),
    version=2,
    rows_per_group=100,  # a paper is some 100 KB of blocks: 2,000 of them would be held at once
)
PASSAGES = Table(
    "passages",
    "one passage",
    _schema(
        ("passage_id", TEXT, "UUIDv5 of arXiv id, anchor and part"),
        ("arxiv_id", TEXT, "paper"),
        ("ordinal", pa.int32(), "place in the paper, from 0"),
        ("anchor", TEXT, "id of the passage's first element in the page"),
        ("kind", TEXT, "front_matter, abstract, paragraph, list, table, caption, theorem or algorithm"),
        ("title", TEXT, "title of the paper"),
        ("section_path", TEXTS, "titles of the sections around it, outermost first"),
        ("text", TEXT, "text; math as $TeX$, citations as [@key]"),
        ("words", pa.int32(), "words of the text"),
        ("cited_keys", TEXTS, "keys of the bibliography items it cites"),
        ("text_sha256", TEXT, "SHA-256 of the text that is embedded"),
    ),
)
REFERENCES = Table(
    "references",
    "one bibliography item",
    _schema(
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
EMBEDDINGS = Table(
    "embeddings",
    "one passage's vectors",
    _schema(
        ("passage_id", TEXT, "passage"),
        ("arxiv_id", TEXT, "paper"),
        ("text_sha256", TEXT, "SHA-256 of the text that was embedded"),
        ("model", TEXT, "model that made the vectors"),
        ("dense", pa.list_(pa.float16()), "dense vector, unit length"),
        ("sparse_ids", pa.list_(pa.uint32()), "token ids of the sparse vector, ascending"),
        ("sparse_weights", pa.list_(pa.float32()), "weights of these tokens"),
        ("colbert", pa.list_(pa.list_(pa.float16())), "one vector per token; null unless asked for"),
        ("truncated", FLAG, "whether the text was longer than the model reads"),
    ),
    rows_per_group=500,  # with ColBERT vectors a passage of 300 tokens is 600 KB
)
INDEX_RECEIPTS = Table(
    "index_receipts",
    "one audited load of a month into the collection",
    _schema(
        ("collection", TEXT, "collection"),
        ("engine", TEXT, "server or edge"),
        ("model", TEXT, "model of the vectors"),
        ("expected", COUNT, "points that the embeddings table asks for"),
        ("present", COUNT, "of these, points found after the load"),
        ("missing", COUNT, "of these, points not found"),
        ("stale", COUNT, "points of the month still there after the load that the table does not ask for"),
        ("ids_sha256", TEXT, "SHA-256 over the sorted ids and text hashes of the month"),
    ),
)
RETRIEVAL_QUERIES = Table(
    "retrieval_queries",
    "one citing sentence with the papers that a search for it should find",
    _schema(
        ("query_id", TEXT, "UUIDv5 of the citing paper and the text"),
        ("arxiv_id", TEXT, "citing paper, whose own passages never count"),
        ("passage_id", TEXT, "passage that the sentence is in"),
        ("text", TEXT, "sentence without its citation markers"),
        ("cited", TEXTS, "papers of the corpus that it cites, sorted"),
    ),
)
RETRIEVAL_SCORES = Table(
    "retrieval_scores",
    "one metric of one way to search, over the month's queries",
    _schema(
        ("method", TEXT, "dense, sparse, fused, colbert, cross_encoder, bm25, or fused_minus_bm25"),
        ("form", TEXT, "text that was searched: passage, title or sections, as CITELOOM_EMBEDDED_FORM names them"),
        ("metric", TEXT, "R@1, R@5, R@10, R@50, RR@50 or nDCG@10, of papers"),
        ("value", pa.float64(), "mean over the queries, 0 to 1; for fused_minus_bm25 the mean difference"),
        ("low", pa.float64(), "lower end of the 95 % interval; null where one paper asks every query"),
        ("high", pa.float64(), "upper end of the 95 % interval; null where one paper asks every query"),
        ("queries", COUNT, "queries asked"),
        ("papers", COUNT, "papers searched"),
        ("passages", COUNT, "passages searched"),
        ("model", TEXT, "what ranked: the embedding model, the cross-encoder, or BM25's settings"),
    ),
)
RELATED_WORK_TASKS = Table(
    "related_work_tasks",
    "one target with its references and its gold section",
    _schema(
        ("task_id", TEXT, "arXiv id of the target and anchor of the section taken out, or a file's own id"),
        ("arxiv_id", TEXT, "target; null for a task from a file whose target is not on arXiv"),
        ("title", TEXT, "title of the target"),
        ("description", TEXT, "text of the target without its related work"),
        ("section_title", TEXT, "title of the section taken out"),
        ("references", pa.list_(TASK_REFERENCE), "cited works in order of first citation, with what there is of them"),
        ("outside", COUNT, "cited items of the section that are no reference of the task"),
        ("gold", TEXT, "the section taken out, citations as [Reference i]"),
    ),
    version=2,
)
KEY_ELEMENTS = Table(
    "key_elements",
    "seven answers for one paper of one task",
    _schema(
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
        ("calls", COUNT, "LLM calls that it took"),
        ("prompt_tokens", COUNT, "tokens read"),
        ("completion_tokens", COUNT, "tokens written"),
    ),
)
RELATED_WORK_SYSTEMS = (
    "chatcite", "chatcite_grounded", "chatcite_no_elements", "chatcite_no_incremental", "chatcite_no_reflection",
    "few_shot", "litllm", "zero_shot",
)  # fmt: skip
_SUMMARY_COLUMNS = _schema(
    ("task_id", TEXT, "task"),
    ("system", TEXT, "system that wrote, as CITELOOM_SYSTEMS names it"),
    ("model", TEXT, "model that wrote"),
    ("settings", TEXT, "settings of the system, JSON"),
    ("text", TEXT, "the section, citations as [Reference i]"),
    (
        "sentences",
        pa.list_(SUMMARY_SENTENCE),
        "sentences with the references they cite and the passages they rest on",
    ),
    ("trace", TEXT, "drafts, votes and what was kept, round by round, JSON"),
    ("calls", COUNT, "LLM calls that it took, key elements not counted"),
    ("prompt_tokens", COUNT, "tokens read"),
    ("completion_tokens", COUNT, "tokens written"),
)
SUMMARIES: Mapping[str, Table] = {
    system: Table(
        f"summaries_{system}",
        f"the related work of {system} for one task",
        _SUMMARY_COLUMNS,
        version=2,
        rows_per_group=50,  # a trace of every draft and vote can be 1 MB
    )
    for system in RELATED_WORK_SYSTEMS
}
"""System → the table of its sections: one for each, so that each is made, kept and made again for itself."""

G_SCORES = Table(
    "g_scores",
    "one judgement of one task: a conversation with a judge",
    _schema(
        ("task_id", TEXT, "task"),
        ("mode", TEXT, "together: all systems in one conversation, as the paper has it; alone: one system by itself"),
        ("judge", TEXT, "judging model"),
        ("repeat", pa.int32(), "repeat, from 0, each with an order of its own"),
        ("order", TEXTS, "systems in the order in which the judge saw them"),
        ("marks", pa.list_(G_MARKS), "six marks from 1 to 5 for each system, in that order"),
        ("best", TEXT, "system voted the best; null where one was judged alone"),
        ("cut", TEXTS, "texts of which the judge read the beginning alone"),
        ("calls", COUNT, "LLM calls that it took"),
        ("prompt_tokens", COUNT, "tokens read"),
        ("completion_tokens", COUNT, "tokens written"),
    ),
)
CITATION_SUPPORT = Table(
    "citation_support",
    "one citation in one sentence of one section",
    _schema(
        ("task_id", TEXT, "task"),
        ("system", TEXT, "system that wrote the sentence"),
        ("sentence", pa.int32(), "place of the sentence in the section, from 1"),
        ("number", pa.int32(), "number in [Reference i]"),
        ("arxiv_id", TEXT, "cited paper; null where it is not on arXiv"),
        ("source", TEXT, "what there is of the cited work: full_text, abstract or item; null where out of range"),
        ("verdict", TEXT, "supported, partly or not; null where nothing was judged"),
        ("unjudged", TEXT, "why nothing was judged: out_of_range, no_text, unreadable_answer or over_the_limit"),
        ("quote", TEXT, "words of the passage that the verdict rests on, as the judge gave them"),
        ("quote_found", FLAG, "whether these words stand in a passage that the judge was shown"),
        ("passages", pa.list_(SHOWN_PASSAGE), "passages that the judge was shown, best first"),
        ("quoted", pa.int32(), "place among them, from 0, of the passage that holds the quote; null for none"),
        ("judge", TEXT, "judging model"),
        ("calls", COUNT, "LLM calls that it took"),
        ("prompt_tokens", COUNT, "tokens read"),
        ("completion_tokens", COUNT, "tokens written"),
    ),
)
STABILITY = Table(
    "stability",
    "one repeat of one system on one task",
    _schema(
        ("task_id", TEXT, "task"),
        ("system", TEXT, "chatcite or chatcite_no_reflection"),
        ("model", TEXT, "model that wrote"),
        ("varied", TEXT, "samples: other samples, references in their order; order: references in another order"),
        ("repeat", pa.int32(), "repeat, from 0"),
        ("order", pa.list_(pa.int32()), "numbers of the references in the order in which they were taken"),
        ("text", TEXT, "the section, citations as [Reference i]"),
        ("rouge1", pa.float64(), "ROUGE-1 F1 against the gold section, in percent"),
        ("rouge2", pa.float64(), "ROUGE-2 F1, in percent"),
        ("rougeL", pa.float64(), "ROUGE-L F1, in percent"),
        ("coverage", pa.float64(), "share of the task's references that the section cites"),
        ("g_score", pa.float64(), "G-Score, judged alone, 1 to 5; null where it could not be judged"),
        ("judge", TEXT, "judging model"),
        ("calls", COUNT, "LLM calls that writing and judging took"),
        ("prompt_tokens", COUNT, "tokens read"),
        ("completion_tokens", COUNT, "tokens written"),
    ),
)
SCORES = Table(
    "scores",
    "one metric of one system on one task",
    _schema(
        ("task_id", TEXT, "task"),
        ("system", TEXT, "system"),
        ("metric", TEXT, "rouge1, rouge2, rougeL, g_consistency … g_score, g_vote, citation_precision …, words"),
        ("value", pa.float64(), "ROUGE F1 in percent; G-Score criteria 1 to 5; vote 0 or 1; shares 0 to 1"),
        ("judge", TEXT, "judging model; null where none judged"),
        ("mode", TEXT, "together or alone, as the judge saw the systems; null where none judged"),
        ("order", TEXT, "order in which the judge saw the systems; null where none judged"),
        ("repeat", pa.int32(), "repeat of the judgement, from 0"),
    ),
    version=2,
)
QUESTIONS = Table(
    "questions",
    "one question of a question set, with its gold claims",
    _schema(
        ("question_id", TEXT, "id in the set"),
        ("question", TEXT, "what is asked"),
        ("kind", TEXT, "author, dataset, summary, limitation or comparison"),
        ("papers", TEXTS, "arXiv ids of the papers that the answer needs"),
        ("date", TEXT, "when the newest of them first appeared, YYYY-MM-DD or YYYY-MM"),
        ("reviewed", FLAG, "whether a person has accepted the question and its claims"),
        (
            "claims",
            pa.list_(GOLD_CLAIM),
            "what a full answer holds: each fact, its paper, phrases that say so, and the passages that hold one",
        ),
    ),
)
QUESTION_DRAFTS = Table(
    "question_drafts",
    "one question that was proposed for a question set, with its gold claims",
    pa.schema(
        [
            *QUESTIONS.schema,
            _column("model", TEXT, "model that proposed it; null where it was made of tables"),
            _column("calls", COUNT, "LLM calls that it took"),
            _column("prompt_tokens", COUNT, "tokens read"),
            _column("completion_tokens", COUNT, "tokens written"),
        ]
    ),
)
ANSWERING_SYSTEMS = ("arxivbot", "direct", "wikichat")
IMPORTED = "imported"
_ANSWER_COLUMNS = _schema(
    ("question_id", TEXT, "question"),
    ("system", TEXT, "system that answered, as CITELOOM_ANSWER_SYSTEMS or the imported file names it"),
    ("model", TEXT, "model that answered; null where the answer was made elsewhere"),
    ("settings", TEXT, "settings of the system, JSON"),
    ("text", TEXT, "the answer"),
    ("sentences", pa.list_(ANSWER_SENTENCE), "its sentences with the numbers of the claims that they rest on"),
    ("claims", pa.list_(ANSWER_CLAIM), "claims with the passage that each rests on and the hop that brought it"),
    ("queries", TEXTS, "the query of each hop"),
    ("shown", pa.list_(FOUND_PASSAGE), "passages that the model read, hop by hop"),
    ("hops", pa.int32(), "searches made"),
    ("abstained", FLAG, "whether it says that the corpus does not hold the answer"),
    ("trace", TEXT, "every step in order, JSON"),
    ("calls", COUNT, "LLM calls that it took"),
    ("prompt_tokens", COUNT, "tokens read"),
    ("completion_tokens", COUNT, "tokens written"),
)
ANSWERS: Mapping[str, Table] = {
    system: Table(
        f"answers_{system}",
        f"the answer of {'a system elsewhere' if system == IMPORTED else system} to one question",
        _ANSWER_COLUMNS,
        rows_per_group=50,  # a trace with what was found and shown is some 50 KB
    )
    for system in (*ANSWERING_SYSTEMS, IMPORTED)
}
"""System → the table of its answers: one for each, so that each is made, kept and made again for itself."""

ANSWER_GRADES = Table(
    "answer_grades",
    "one answer as one judge graded it",
    _schema(
        ("question_id", TEXT, "question"),
        ("system", TEXT, "system that answered, or a control whose grade is known beforehand"),
        ("judge", TEXT, "judging model"),
        ("kind", TEXT, "kind of the question"),
        ("date", TEXT, "date of the question's newest paper"),
        ("outcome", TEXT, "answered, abstained, claims_nothing or unreadable"),
        ("claims", pa.list_(GRADED_CLAIM), "claims of the answer with verdict, quote and the passages shown"),
        (
            "gold",
            pa.list_(GRADED_GOLD),
            "gold claims: whether the answer holds them, and the hop that first showed one",
        ),
        ("hops_shown", pa.list_(pa.float64()), "share of gold claims shown after each hop; null where none searched"),
        ("parts", COUNT, "parts in which the answer was split"),
        ("parts_full", COUNT, "parts that named as many claims as may be"),
        ("parts_cut", COUNT, "parts of which the end was not read"),
        ("split_failures", TEXTS, "why parts could not be read"),
        ("calls", COUNT, "LLM calls that grading took"),
        ("prompt_tokens", COUNT, "tokens read"),
        ("completion_tokens", COUNT, "tokens written"),
    ),
    rows_per_group=100,
)
ANSWER_SCORES = Table(
    "answer_scores",
    "one measure of one answer",
    _schema(
        ("question_id", TEXT, "question"),
        ("system", TEXT, "system that answered"),
        ("judge", TEXT, "judging model"),
        ("kind", TEXT, "kind of the question"),
        ("date", TEXT, "date of the question's newest paper"),
        ("metric", TEXT, "factual, coverage, gold_shown and their like; claims is a count"),
        ("value", pa.float64(), "share from 0 to 1, or a count"),
    ),
)
HUMAN_RATINGS = Table(
    "human_ratings",
    "one rater's marks for one system on one task",
    _schema(
        ("study", TEXT, "name of the study"),
        ("rater", TEXT, "name that the rater gave"),
        ("task_id", TEXT, "task"),
        ("system", TEXT, "system, which the rater was not told"),
        ("label", TEXT, "letter that the rater saw in its place"),
        *((criterion, pa.int32(), "mark from 1 to 5; null where none was given") for criterion in CRITERIA),
        ("preferred", FLAG, "whether the rater liked it best of the task; null where no choice was made"),
        ("comment", TEXT, "the rater's words"),
        ("text_sha256", TEXT, "SHA-256 of the section that was rated"),
    ),
)
HUMAN_GRADES = Table(
    "human_grades",
    "one grader's verdict on one claim of an answer, or on one gold claim beside it",
    _schema(
        ("study", TEXT, "name of the grading"),
        ("grader", TEXT, "name of the grader"),
        ("question_id", TEXT, "question"),
        ("system", TEXT, "system that answered, which the grader was not told"),
        ("label", TEXT, "what the grader saw in its place"),
        ("part", TEXT, "claim: what the answer claims; gold: what a full answer holds"),
        ("number", pa.int32(), "place among the claims, or gold claims, from 1"),
        ("text", TEXT, "the claim that was graded"),
        ("verdict", TEXT, "as in answer_grades; null where the grader only commented"),
        ("comment", TEXT, "the grader's words"),
        ("text_sha256", TEXT, "SHA-256 of the question and the answer as they were graded"),
    ),
)
REPORT = Table(
    "report",
    "one file of the month's report",
    _schema(
        ("path", TEXT, "path below the data root"),
        ("bytes", COUNT, "size"),
        ("sha256", TEXT, "SHA-256 of the file"),
    ),
)
CHANGES = Table(
    "changes",
    "one paper as the last refresh left it, with what had changed since the one before",
    _schema(
        ("arxiv_id", TEXT, "paper"),
        ("change", TEXT, "new, changed, withdrawn, removed (its page or its category went) or kept"),
        ("what", TEXTS, "of a changed paper: version, page, metadata, text (its passages)"),
        ("version_before", pa.int32(), "newest version known before; null where none was"),
        ("version", pa.int32(), "newest version known now; null where none is"),
        ("passages_added", COUNT, "passages, by id and text, that were not there before"),
        ("passages_removed", COUNT, "passages, by id and text, that are no more"),
        ("passages_kept", COUNT, "passages, by id and text, that were there before"),
        ("vectors_reused", COUNT, "of its passages, those of whose text the month had a vector of the same model"),
        ("html_sha256", TEXT, "SHA-256 of the page; null for a paper that is gone"),
        ("metadata_sha256", TEXT, "SHA-256 of what its metadata says, version and dates left aside"),
        ("passages_sha256", pa.binary(), "of each passage 12 bytes of the SHA-256 of id and text"),
        ("texts_sha256", pa.binary(), "of each passage the first 12 bytes of text_sha256, in the same order"),
    ),
)
LEDGER = Table(
    "ledger",
    "one thing left out",
    _schema(
        ("subject", TEXT, "arXiv id, passage id or file"),
        ("stage", TEXT, "stage that left it out"),
        ("reason", TEXT, "reason, one of a few per stage"),
        ("detail", TEXT, "what exactly"),
    ),
)

TABLES: Mapping[str, Table] = {
    table.name: table
    for table in (
        DUMP_MEMBERS, METADATA, PAPERS, PASSAGES, REFERENCES, EMBEDDINGS, INDEX_RECEIPTS, RETRIEVAL_QUERIES,
        RETRIEVAL_SCORES, RELATED_WORK_TASKS, KEY_ELEMENTS, *SUMMARIES.values(), G_SCORES, CITATION_SUPPORT,
        STABILITY, SCORES, HUMAN_RATINGS, HUMAN_GRADES, QUESTIONS, QUESTION_DRAFTS, *ANSWERS.values(),
        ANSWER_GRADES, ANSWER_SCORES, REPORT, CHANGES, LEDGER,
    )
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class DataRoot:
    """The folder that holds every table."""

    path: Path

    def file(self, table: Table, month: str) -> Path:
        """Where a month of a table lies."""
        return self.path / table.name / f"{month}.parquet"

    def ledger_file(self, stage: str, month: str) -> Path:
        """Where a stage's ledger of a month lies; each stage owns its own, so no two writers meet."""
        return self.path / LEDGER.name / stage / f"{month}.parquet"

    def months(self, table: Table) -> list[str]:
        """Months of a table that are there, oldest first."""
        return sorted(file.stem for file in (self.path / table.name).glob("*.parquet"))

    def read(self, table: Table, month: str, columns: list[str] | None = None) -> pa.Table:
        """A month of a table, or some columns of it.

        Raises MissingInput where the month is absent, PermanentFailure where the file is of another schema version,
        has other columns, or cannot be read.
        """
        file = self.file(table, month)
        provenance = read_provenance(file)
        if provenance is None:
            raise MissingInput(
                f"{table.name} of {month} is not there ({file}): run citeloom run --months {month} --until {table.name}"
            )
        if provenance.schema_version != table.version:
            raise PermanentFailure(
                f"{file} has schema version {provenance.schema_version}, this citeloom writes {table.version}: "
                f"run citeloom run --months {month} --select {table.name} --force"
            )
        with _damage_named(file, table, month):
            _refuse_drift(file, table, month)
            return pq.read_table(file, columns=columns)

    def rows(self, table: Table, month: str, columns: list[str] | None = None) -> list[dict[str, Any]]:
        """A month of a table as dictionaries. Raises as `read` does."""
        return list(self.read(table, month, columns).to_pylist(maps_as_pydicts="strict"))

    def iterate(self, table: Table, month: str, columns: list[str] | None = None) -> Iterator[dict[str, Any]]:
        """The rows of a month one by one, holding one row group at a time. Raises as `read` does."""
        for batch in self.batches(table, month, columns):
            yield from batch.to_pylist(maps_as_pydicts="strict")

    def batches(self, table: Table, month: str, columns: list[str] | None = None) -> Iterator[pa.RecordBatch]:
        """The rows of a month as Arrow batches, one row group or less at a time. Raises as `read` does."""
        self.read(table, month, columns=[])
        file = self.file(table, month)
        # Reading ahead keeps all row groups until the last: 500 MB for a file of 400 MB, 120 MB without.
        with _damage_named(file, table, month), pq.ParquetFile(file, pre_buffer=False) as parquet:
            yield from parquet.iter_batches(batch_size=table.rows_per_group, columns=columns)

    def count_groups(self, table: Table, month: str) -> int:
        """How many row groups a month has. Raises as `read` does."""
        self.read(table, month, columns=[])
        return int(pq.read_metadata(self.file(table, month)).num_row_groups)

    def group(self, table: Table, month: str, number: int, columns: list[str] | None = None) -> pa.RecordBatch:
        """One row group of a month, counted from 0, for a worker that was told which. Raises PermanentFailure where
        it cannot be read."""
        file = self.file(table, month)
        with _damage_named(file, table, month), pq.ParquetFile(file) as parquet:
            return parquet.read_row_group(number, columns=columns).combine_chunks().to_batches()[0]


def _refuse_drift(file: Path, table: Table, month: str) -> None:
    """Raise PermanentFailure where a file says that it is of the table's version, and its columns are others."""
    found = pq.read_schema(file)
    if found.equals(table.schema):
        return
    told = [f"{field.name} {field.type}{'' if field.nullable else ' not null'}" for field in found]
    wanted = [f"{field.name} {field.type}{'' if field.nullable else ' not null'}" for field in table.schema]
    other = [each for each in told if each not in wanted] + [each for each in wanted if each not in told]
    raise PermanentFailure(
        f"{file} does not have the columns of {table.name} ({', '.join(other) or 'in another order'}): "
        f"run citeloom run --months {month} --select {table.name} --force"
    )


@contextlib.contextmanager
def _damage_named(file: Path, table: Table, month: str) -> Iterator[None]:
    """Name the file whose pages cannot be read; its footer may well be whole."""
    try:
        yield
    except (OSError, pa.ArrowInvalid) as error:
        reason = " ".join(str(error).split())
        raise PermanentFailure(
            f"{file} is damaged ({reason}): run citeloom run --months {month} --select {table.name} --force"
        ) from error


def read_provenance(file: Path) -> Provenance | None:
    """What made a file; None where it does not exist. Raises PermanentFailure where it is no table of citeloom."""
    if not file.exists():
        return None
    try:
        return Provenance(**json.loads((pq.read_metadata(file).metadata or {})[_METADATA_KEY]))
    except (OSError, pa.ArrowInvalid, KeyError, TypeError, ValueError) as error:
        raise PermanentFailure(
            f"{file} is not a table that citeloom wrote ({error}): move it away and run again"
        ) from error


class MonthWriter:
    """Writes one month of one table, whole or not at all.

    A context manager: rows go in by `add` or `add_batch`; `commit` moves the file into place; leaving without it
    removes what was begun. Holds less than a row group and one batch.
    """

    def __init__(self, table: Table, file: Path) -> None:
        self._table, self._file = table, file
        self._staged = file.with_name(f".{file.name}.{os.getpid()}.tmp")
        self._rows: list[Row] = []
        self._held = table.schema.empty_table()
        self._digest = hashlib.sha256()
        self.added = 0

    def __enter__(self) -> MonthWriter:
        self._file.parent.mkdir(parents=True, exist_ok=True)
        for orphan in self._file.parent.glob(f".{self._file.name}.*.tmp"):
            orphan.unlink(missing_ok=True)  # of a run that was killed; the caller holds the month, so nobody writes it
        # A dictionary of floats finds no two alike: with one, vectors took three times as long to read.
        named = [path for column in self._table.schema for path, texts in _leaves(column.name, column.type) if texts]
        self._parquet = pq.ParquetWriter(self._staged, self._table.schema, compression="zstd", use_dictionary=named)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with contextlib.suppress(OSError):
            self._parquet.close()
        self._staged.unlink(missing_ok=True)

    def add(self, row: Row) -> None:
        """Take one row; raises KeyError for a column that the table does not have."""
        unknown = row.keys() - set(self._table.schema.names)
        if unknown:
            raise KeyError(f"{self._table.name} has no column {', '.join(sorted(unknown))}")
        self._rows.append(row)
        self.added += 1
        if len(self._rows) >= self._table.rows_per_group:
            self._take_rows()

    def add_batch(self, batch: pa.RecordBatch) -> None:
        """Take rows that are Arrow's already; raises ValueError where their columns are not the table's."""
        if not batch.schema.equals(self._table.schema):
            raise ValueError(f"a batch for {self._table.name} has other columns: {batch.schema}")
        self._take_rows()
        self.added += batch.num_rows
        self._hold(batch)

    def commit(self, provenance: Provenance) -> Provenance:
        """Put the month in place with its provenance, rows and their digest filled in."""
        self._take_rows()
        self._write(self._held)
        complete = replace(provenance, rows=self.added, rows_sha256=self._digest.hexdigest())
        self._parquet.add_key_value_metadata({_METADATA_KEY: json.dumps(asdict(complete), sort_keys=True).encode()})
        self._parquet.close()
        move_into_place(self._staged, self._file)
        return complete

    def _take_rows(self) -> None:
        rows, self._rows = self._rows, []
        if rows:
            self._hold(pa.RecordBatch.from_pylist(rows, schema=self._table.schema))

    def _hold(self, batch: pa.RecordBatch) -> None:
        held = pa.concat_tables([self._held, pa.Table.from_batches([batch], self._table.schema)])
        size = self._table.rows_per_group
        whole = held.num_rows - held.num_rows % size
        for start in range(0, whole, size):
            self._write(held.slice(start, size))
        self._held = held.slice(whole)

    def _write(self, rows: pa.Table) -> None:
        """One row group. Groups depend on the rows alone, not on how they came, and so does their digest.

        The digest is over the rows and nothing else, so that what is downstream stays valid where only a setting
        changed.
        """
        # `take` lays the rows out afresh: slices of other batches would serialise with their neighbours' bits.
        for batch in rows.take(pa.array(range(rows.num_rows), pa.int32())).combine_chunks().to_batches():
            self._digest.update(batch.serialize())
            self._parquet.write_batch(batch)


def _leaves(path: str, kind: pa.DataType) -> Iterator[tuple[str, bool]]:
    """Every column of numbers or texts that Parquet makes of one of ours, and whether it holds anything but floats."""
    if pa.types.is_list(kind):
        yield from _leaves(f"{path}.list.element", kind.value_type)
    elif pa.types.is_struct(kind):
        for part in kind:
            yield from _leaves(f"{path}.{part.name}", part.type)
    elif pa.types.is_map(kind):
        yield from _leaves(f"{path}.key_value.key", kind.key_type)
        yield from _leaves(f"{path}.key_value.value", kind.item_type)
    else:
        yield path, not pa.types.is_floating(kind)


def write_whole(file: Path, content: bytes) -> None:
    """Write a small file, whole or not at all."""
    file.parent.mkdir(parents=True, exist_ok=True)
    staged = file.with_name(f".{file.name}.{os.getpid()}.tmp")
    staged.write_bytes(content)
    move_into_place(staged, file)


def move_into_place(staged: Path, file: Path) -> None:
    """Flush a finished file to disk and give it its name: a torn file cannot bear it."""
    _sync(staged)
    os.replace(staged, file)
    _sync(file.parent)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
