"""Citing sentences as queries: without its markers a sentence asks for the papers it cites."""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from pipeline import tables
from pipeline.arxiv.identifiers import month_of
from pipeline.corpus.parse.policies import cited_keys, without_markers
from pipeline.corpus.passages.sentences import split_sentences
from pipeline.corpus.passages.text import count_words
from pipeline.corpus.references.cited_months import months_cited_by_references, note_cited_months
from pipeline.engine.stage import Job, Workspace
from pipeline.evaluation.retrieval.pool import earlier_digests
from pipeline.index.papers import count_passages
from pipeline.storage.writing import Row
from pipeline.text import one_line, text_digest

# Running text alone: the rows of a table and the lines of an algorithm are no sentences, and front
# matter cites nobody.
KINDS = ("abstract", "paragraph", "list", "caption", "theorem")

# "See also [@b1] for details" has four words, "As in [@b1], we set" five; no search could tell what
# was meant.
FEWEST_WORDS = 5
# Words that say what is asked, of a longer sentence such as "We refer the reader to [@b1] for more
# details".
FEWEST_TELLING = 3


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_NAMESPACE = uuid.uuid5(uuid.NAMESPACE_URL, "citeloom/retrieval_queries")
_EMPTY_BRACKETS = re.compile(
    r"(?:(?<!\s)\s++)?(?:\((?:e\.g\.|i\.e\.|see|cf\.|also|[,;\s])*+\)|\[\s*+\])"
)
_SPACED_SIGN = re.compile(r"(?<!\s)\s++(?=[.,;:)\]])")
_WORD = re.compile(r"[^\W\d_]{3,}")
_EMPTY_WORDS = _words(
    """
    the and for with from that this these those our their its has have had was were are been being
    can may will
    not but also both each other such than then thus more most many some any all one two which who
    whose what when
    where how they them into over under between among per via see refer referred reader readers
    details detail
    discussion survey overview recent recently prior previous work works paper papers study studies
    author authors
    approach approaches method methods follow follows following followed described proposed
    introduced presented
    shown given found used use using based similar example examples literature references therein
    reference
    further information interested elsewhere instance well known et al
    """
)


@dataclass(slots=True)
class CitingSentence:
    """One sentence that asks for what it cites."""

    arxiv_id: str
    passage_id: str
    text: str
    cited: set[str] = field(default_factory=set)

    @property
    def query_id(self) -> str:
        """UUIDv5 of the citing paper and the text, which no other query of the month has."""
        return str(uuid.uuid5(_NAMESPACE, f"{self.arxiv_id}\x1f{self.text}"))

    def row(self) -> dict[str, Any]:
        """The row of `retrieval_queries`."""
        return {
            "query_id": self.query_id,
            "arxiv_id": self.arxiv_id,
            "passage_id": self.passage_id,
            "text": self.text,
            "cited": sorted(self.cited),
        }


def masked(sentence: str) -> str:
    """The sentence without its markers, and without what stands for nothing without them: "(see
    [@b1])" goes whole, and so does the comma after a marker that begins the sentence.
    """
    bare = _EMPTY_BRACKETS.sub("", without_markers(sentence))
    return one_line(_SPACED_SIGN.sub("", bare).lstrip(".,;: "))


def why_not(text: str) -> str | None:
    """The reason why a masked sentence is no query; None where it is one."""
    if count_words(text) < FEWEST_WORDS:
        return "too_few_words"
    telling = {word for word in map(str.lower, _WORD.findall(text)) if word not in _EMPTY_WORDS}
    return "formulaic" if len(telling) < FEWEST_TELLING else None


def build_queries(job: Job) -> Iterator[Row]:
    """At most `retrieval_queries` queries, drawn by hashes of ids, in the passages' order."""
    most = job.settings.retrieval_queries
    queries = list(_distinct(job)) if most else []
    drawn = {
        query.query_id
        for query in sorted(queries, key=lambda query: text_digest(query.query_id))[:most]
    }
    for query in queries:
        if query.query_id in drawn:
            yield query.row()
        else:
            job.leave_out(
                query.passage_id, "over_retrieval_queries", f"CITELOOM_RETRIEVAL_QUERIES is {most}"
            )
    asked = (query for query in queries if query.query_id in drawn)
    note_cited_months(job, {paper for query in asked for paper in query.cited})


def _distinct(job: Job) -> list[CitingSentence]:
    """One query for each text, of its first passage, with what all its passages cite."""
    first: dict[str, CitingSentence] = {}
    for query in _candidates(job):
        reason = why_not(query.text)
        if reason is not None:
            job.leave_out(query.passage_id, reason, query.text)
        elif query.text in first:
            job.leave_out(query.passage_id, "same_text", query.text)
            first[query.text].cited |= query.cited - {first[query.text].arxiv_id}
        else:
            first[query.text] = query
    return list(first.values())


def _candidates(job: Job) -> Iterator[CitingSentence]:
    """Sentences that cite a paper of the corpus other than their own."""
    known = _resolved(job)
    citing = to_corpus = 0
    columns = ["arxiv_id", "passage_id", "kind", "text", "cited_keys"]
    for passage in job.iterate(tables.PASSAGES, columns):
        if passage["kind"] not in KINDS or not passage["cited_keys"]:
            continue
        for sentence in split_sentences(passage["text"]):
            keys = cited_keys(sentence)
            cited = {
                known[passage["arxiv_id"], key]
                for key in keys
                if (passage["arxiv_id"], key) in known
            }
            citing += bool(keys)
            to_corpus += bool(cited)
            if cited:
                yield CitingSentence(
                    passage["arxiv_id"], passage["passage_id"], masked(sentence), cited
                )
    job.notes.update(citing_sentences=citing, that_cite_the_corpus=to_corpus)


def _resolved(job: Job) -> Mapping[tuple[str, str], str]:
    """(citing paper, key) → the paper of the corpus that it cites, of this month or one before."""
    rows = job.rows(tables.REFERENCES, ["arxiv_id", "key", "cited_arxiv_id"])
    cited = {row["cited_arxiv_id"] for row in rows if row["cited_arxiv_id"]}
    not_later = {paper for paper in cited if (month_of(paper) or "") <= job.month}
    readable = count_passages(job.workspace.root, not_later)
    return {
        (row["arxiv_id"], row["key"]): row["cited_arxiv_id"]
        for row in rows
        if row["cited_arxiv_id"] in readable and row["cited_arxiv_id"] != row["arxiv_id"]
    }


def query_inputs(workspace: Workspace, month: str) -> Mapping[str, str]:
    """The digest of the earlier months that hold cited papers."""
    cited = months_cited_by_references(workspace, month)
    return earlier_digests(workspace, month, cited, tables.PASSAGES)
