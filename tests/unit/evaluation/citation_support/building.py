"""A made-up month of tasks, sections, passages and vectors for citation support."""

import json
from functools import partial
from types import SimpleNamespace

import numpy as np

from pipeline import tables
from pipeline.embedding.minilm import NAME
from pipeline.engine.run import run_stage
from pipeline.evaluation.citation_support.judge import build
from pipeline.evaluation.stages import CITATION_SUPPORT
from tests.month_tables import write_table
from tests.unit.evaluation import made_up
from tests.workspaces import altered, make_workspace

MONTH, CITED_MONTH = "2024-03", "2024-01"
WORDS = ("quartz", "lantern", "harbor", "candle")

# Paper 2401.00001 is about quartz in its second passage, and about a harbor in its third.
TEXTS = (
    "We study stones.",
    "The method weighs quartz by its colour.",
    "Our harbor holds forty ships.",
    "We thank all.",
)


class WordEmbedder:
    """Counts of WORDS as the dense vector."""

    def encode_queries(self, texts):
        return [SimpleNamespace(dense=self._counts(text)) for text in texts]

    def _counts(self, text):
        counts = np.array([text.lower().split().count(word) for word in WORDS], np.float32)
        return counts / max(float(np.linalg.norm(counts)), 1.0)


def reference(number, source="full_text", text=None):
    """A reference of a task; those of the corpus are papers 2401.00001 and so on."""
    return {
        "number": number,
        "arxiv_id": f"2401.{number:05}" if source == "full_text" else None,
        "title": f"Cited work {number}",
        "source": source,
        "text": text,
    }


def task(references):
    return made_up.task("2403.90001") | {"references": list(references), "gold": "Gold."}


def passage_rows(arxiv_id, texts=TEXTS):
    """A paper's passages: its front matter, which names quartz to tempt a search, and one for each
    text.
    """
    return [
        {
            "passage_id": f"{arxiv_id}/{place}",
            "arxiv_id": arxiv_id,
            "ordinal": place,
            "anchor": f"S1.p{place}",
            "kind": "paragraph" if place else "front_matter",
            "text": text,
            "text_sha256": str(place),
        }
        for place, text in enumerate(["Quartz quartz quartz, by Ada Lovelace", *texts])
    ]


def embedding_rows(rows, model=NAME):
    """The vectors of passages by the embedder that counts words."""
    kept = list(rows)
    vectors = WordEmbedder().encode_queries([row["text"] for row in kept])
    return [
        {name: row[name] for name in ("passage_id", "arxiv_id", "text_sha256")}
        | {"model": model, "dense": each.dense.astype(np.float16)}
        for row, each in zip(kept, vectors, strict=True)
    ]


def place_with(folder, sections, references, llm=None, **settings):
    """A workspace whose month has one task, these sections of it, and the passages of two papers,
    without vectors.

    Without `llm` the bundled model would judge, which is never called here.
    """
    asked = {"llm_url": llm.url, "llm_model": llm.model} if llm else {"systems": "zero_shot"}
    work = make_workspace(folder, **(asked | {"support_passages": 2} | settings))
    write_table(work.root, tables.RELATED_WORK_TASKS, MONTH, [task(references)])
    write_table(work.root, tables.SUMMARIES, MONTH, sections)
    passages = [*passage_rows("2401.00001"), *passage_rows("2401.00002")]
    write_table(work.root, tables.PASSAGES, CITED_MONTH, passages)
    return work


def judged(work, most_citations=None):
    """The month of citation_support, made now, without a model to embed."""
    outcome = run_stage(stage_with(None, most_citations), work, MONTH, force=True)
    return outcome, work.root.rows(tables.CITATION_SUPPORT, MONTH)


def stage_with(embedder, most_citations=None):
    """The stage with this embedder in place of a model."""

    def make(settings):
        assert embedder is not None, "nothing is to be compared, and a model is loaded"
        return embedder

    return altered(CITATION_SUPPORT, build=partial(build, make=make, most_citations=most_citations))


def verdict_on(words, verdict, quote):
    """A rule of a scripted judge: this verdict and quote where the sentence has these words."""

    def rule(asked):
        sentence = asked.prompt.split("<sentence>")[-1].split("</sentence>")[0]
        return json.dumps({"quote": quote, "verdict": verdict}) if words in sentence else None

    return rule
