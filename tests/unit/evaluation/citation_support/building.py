"""A made-up month of tasks, sections, passages and vectors for citation support."""

import json
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from pipeline import tables
from pipeline.embedding.embedder import EngineFacts, Vectors
from pipeline.embedding.minilm import NAME
from pipeline.engine.run import run_stage
from pipeline.evaluation.citation_support.judge import build
from pipeline.evaluation.stages import CITATION_SUPPORT
from pipeline.llm.messages import Spent
from pipeline.related_work.summary import make_summary
from tests.month_tables import write_table
from tests.unit.evaluation.made_up import workspace

MONTH, CITED = "2024-03", "2401"
CITED_MONTH = "2024-01"
TASK = "2403.90001#S2"
WORDS = ("quartz", "lantern", "harbor", "candle")

# Paper 2401.00001 is about quartz in its second passage, and about a harbor in its third.
TEXTS = (
    "We study stones.",
    "The method weighs quartz by its colour.",
    "Our harbor holds forty ships.",
    "We thank all.",
)


@dataclass
class WordEmbedder:
    """Counts of WORDS as the dense vector."""

    name: str = "words"
    dimensions: int = len(WORDS)
    max_tokens: int = 512
    has_sparse: bool = False
    last_facts: EngineFacts | None = None

    def encode(self, texts):
        """Each text's vectors, float32."""
        return [self._vectors(text) for text in texts]

    encode_queries = encode

    def encode_stream(self, texts):
        """Not called: the vectors of passages are in the table."""
        raise NotImplementedError

    def _vectors(self, text):
        counts = np.array([text.lower().split().count(word) for word in WORDS], np.float32)
        dense = counts / max(float(np.linalg.norm(counts)), 1.0)
        return Vectors(dense, np.empty(0, np.uint32), np.empty(0, np.float32), None, False)


def reference(number, source="full_text", text=None):
    """A reference of a task; those of the corpus are papers 2401.00001 and so on."""
    arxiv_id = f"{CITED}.{number:05}" if source == "full_text" else None
    title = f"Cited work {number}"
    return {
        "number": number, "arxiv_id": arxiv_id, "title": title, "source": source, "text": text
    }  # fmt: skip


def task(references, task_id=TASK):
    return {
        "task_id": task_id,
        "arxiv_id": task_id.split("#")[0],
        "description": "# A target",
        "references": list(references),
        "gold": "Gold.",
    }


def section(text, numbers, system="zero_shot", task_id=TASK, **trace):
    """A row of a system's table as the system itself would make it of a model's text."""
    made = make_summary(text, set(numbers), trace, Spent(1, 10, 10))
    sentences = [
        {"text": sentence.text, "references": list(sentence.references)}
        for sentence in made.sentences
    ]
    return {
        "task_id": task_id,
        "system": system,
        "model": "scripted",
        "repeat": 0,
        "text": made.text,
        "sentences": sentences,
        "trace": json.dumps(made.trace),
    }


def passage_rows(arxiv_id, texts=TEXTS):
    """A paper's passages: its front matter, which names quartz to tempt a search, and one for each
    text.
    """
    rows = [
        ("front_matter", "Quartz quartz quartz, by Ada Lovelace"),
        *(("paragraph", text) for text in texts),
    ]
    return [
        {
            "passage_id": f"{arxiv_id}/{place}",
            "arxiv_id": arxiv_id,
            "ordinal": place,
            "anchor": f"S1.p{place}",
            "kind": kind,
            "text": text,
            "text_sha256": str(place),
        }
        for place, (kind, text) in enumerate(rows)
    ]


def embedding_rows(rows, model=NAME):
    """The vectors of passages by the embedder that counts words."""
    kept = list(rows)
    vectors = WordEmbedder().encode([row["text"] for row in kept])
    identity = ("passage_id", "arxiv_id", "text_sha256")
    return [
        {name: row[name] for name in identity}
        | {"model": model, "dense": each.dense.astype(np.float16)}
        for row, each in zip(kept, vectors, strict=True)
    ]


def place_with(
    folder,
    sections,
    references,
    llm=None,
    **settings,
):
    """A workspace whose month has one task, these sections of it, and the passages of two papers,
    without vectors.

    Without `llm` the bundled model would judge, which is never called here.
    """
    asked = {"llm_url": llm.url, "llm_model": llm.model} if llm else {"systems": "zero_shot"}
    work = workspace(folder, **(asked | {"support_passages": 2} | settings))
    tasks = sorted({row["task_id"] for row in sections} | {TASK})
    write_table(
        work.root, tables.RELATED_WORK_TASKS, MONTH, [task(references, each) for each in tasks]
    )
    write_table(work.root, tables.SUMMARIES, MONTH, sections)
    write_table(
        work.root,
        tables.PASSAGES,
        CITED_MONTH,
        [*passage_rows("2401.00001"), *passage_rows("2401.00002")],
    )
    return work


def judged(work, embedder=None, most_citations=None):
    """The month of citation_support, made now; without an embedder, one that must not be asked
    for.
    """

    outcome = run_stage(stage_with(embedder, most_citations), work, MONTH, force=True)
    return outcome, work.root.rows(tables.CITATION_SUPPORT, MONTH)


def stage_with(embedder, most_citations=None):
    """The stage with this embedder in place of a model."""

    def make(settings):
        assert embedder is not None, "nothing is to be compared, and a model is loaded"
        return embedder

    return replace(CITATION_SUPPORT, build=partial(build, make=make, most_citations=most_citations))


def verdict_on(words, verdict, quote):
    """A rule of a scripted judge: this verdict and quote where the sentence has these words."""

    def rule(asked):
        sentence = asked.prompt.split("<sentence>")[-1].split("</sentence>")[0]
        return json.dumps({"quote": quote, "verdict": verdict}) if words in sentence else None

    return rule
