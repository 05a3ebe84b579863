"""The stage `citations`: who cites whom, and in which passages."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from pipeline import tables
from pipeline.engine.stage import Job, Stage
from pipeline.storage.writing import Row


def build_citations(job: Job) -> Iterator[Row]:
    """One row for each pair of a paper of the month and a paper that it cites, sorted by the cited paper.

    The order lets a reader skip the row groups without a cited paper. Memory grows with the resolved references of the
    month: 200 bytes each.
    """
    keys: dict[tuple[str, str], list[str]] = defaultdict(list)
    cited_by_key: dict[tuple[str, str], str] = {}
    for reference in job.rows(tables.REFERENCES, ["arxiv_id", "key", "cited_arxiv_id"]):
        citing, key, cited = reference["arxiv_id"], reference["key"], reference["cited_arxiv_id"]
        if cited is not None:
            keys[cited, citing].append(key)
            cited_by_key[citing, key] = cited
    places: dict[tuple[str, str], list[str]] = defaultdict(list)
    for batch in job.batches(tables.PASSAGES, ["arxiv_id", "passage_id", "cited_keys"]):
        for passage in batch.to_pylist():
            citing = passage["arxiv_id"]
            cited_here = {cited_by_key.get((citing, key)) for key in passage["cited_keys"]} - {None}
            for cited in cited_here:
                places[str(cited), citing].append(passage["passage_id"])
    for cited, citing in sorted(keys):
        yield {
            "citing": citing,
            "cited": cited,
            "keys": keys[cited, citing],
            "passage_ids": places.get((cited, citing), []),
        }


CITATIONS = Stage(table=tables.CITATIONS, build=build_citations, upstream=(tables.REFERENCES, tables.PASSAGES))
