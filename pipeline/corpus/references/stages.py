"""The stages `references`, and `citations`: who cites whom, and in which passages."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc

from pipeline import tables
from pipeline.corpus.references.citation_index import note_cited_months
from pipeline.corpus.references.lookups import lookups_hold, recorded_titles
from pipeline.corpus.references.resolution import Resolution, resolve_references
from pipeline.corpus.references.title_index import TitleIndex
from pipeline.engine.stage import Job, Stage
from pipeline.identity.identifiers import split_dois
from pipeline.storage.writing import Row

_COPIED = ("key", "raw", "title", "authors", "year", "venue")


def _item_counts(papers: pa.RecordBatch) -> list[int]:
    """How many items the bibliography of each paper has."""
    counts = pc.list_value_length(papers.column("bibliography")).to_pylist()
    return [count or 0 for count in counts]


def _references(
    papers: pa.RecordBatch, titles: TitleIndex
) -> tuple[pa.RecordBatch, list[Resolution]]:
    """The rows of some papers, and what their items were resolved to."""
    items = [
        (paper["arxiv_id"], ordinal, item)
        for paper in papers.to_pylist()
        for ordinal, item in enumerate(paper["bibliography"] or ())
    ]
    resolutions = resolve_references(titles, [(item, arxiv_id) for arxiv_id, _, item in items])
    rows = [
        {name: item[name] for name in _COPIED}
        | {
            "arxiv_id": citing,
            "ordinal": ordinal,
            "doi": next(iter(split_dois(item["doi"])), None),
            "cited_arxiv_id": resolution.arxiv_id,
            "resolved_by": resolution.by,
        }
        for (citing, ordinal, item), resolution in zip(items, resolutions, strict=True)
    ]
    return pa.RecordBatch.from_pylist(rows, schema=tables.REFERENCES.schema), resolutions


class References(Stage):
    """Bibliography items, resolved to arXiv papers by identifier, by DOI, then by title and
    year.
    """

    table = tables.REFERENCES
    upstream = (tables.PAPERS, tables.METADATA)
    earlier = (tables.METADATA,)
    version = 3
    lookups_hold = staticmethod(lookups_hold)

    def build(self, job: Job) -> Iterator[pa.RecordBatch]:
        """One row for each bibliography item, in the order of the papers and their items."""
        keys = job.batches(tables.PAPERS, ["bibliography.list.element.key"])
        job.expect(sum(sum(_item_counts(papers)) for papers in keys))
        resolved: Counter[str] = Counter()
        cited: set[str] = set()
        with recorded_titles(job) as titles:
            for papers in job.batches(tables.PAPERS, ["arxiv_id", "bibliography"]):
                ids = papers.column("arxiv_id").to_pylist()
                for arxiv_id, count in zip(ids, _item_counts(papers), strict=True):
                    if not count:
                        job.leave_out(arxiv_id, "no_bibliography", "this page has no bibliography")
                batch, resolutions = _references(papers, titles)
                resolved.update(resolution.by or "not_resolved" for resolution in resolutions)
                cited.update(
                    resolution.arxiv_id for resolution in resolutions if resolution.arxiv_id
                )
                yield batch
        job.notes["resolved_by"] = dict(sorted(resolved.items()))
        note_cited_months(job, cited)


class Citations(Stage):
    """Which paper cites which, and in which passages."""

    table = tables.CITATIONS
    upstream = (tables.REFERENCES, tables.PASSAGES)

    def build(self, job: Job) -> Iterator[Row]:
        """One row for each pair of a paper of the month and a paper that it cites, sorted by the
        cited paper.

        The order lets a reader skip the row groups without a cited paper. Memory grows with the
        resolved references of the month: 200 bytes each.
        """
        keys: dict[tuple[str, str], list[str]] = defaultdict(list)
        cited_by_key: dict[tuple[str, str], str] = {}
        for reference in job.rows(tables.REFERENCES, ["arxiv_id", "key", "cited_arxiv_id"]):
            citing, key, cited = (
                reference["arxiv_id"],
                reference["key"],
                reference["cited_arxiv_id"],
            )
            if cited is not None:
                keys[cited, citing].append(key)
                cited_by_key[citing, key] = cited
        places: dict[tuple[str, str], list[str]] = defaultdict(list)
        for batch in job.batches(tables.PASSAGES, ["arxiv_id", "passage_id", "cited_keys"]):
            for passage in batch.to_pylist():
                citing = passage["arxiv_id"]
                cited_here = {cited_by_key.get((citing, key)) for key in passage["cited_keys"]} - {
                    None
                }
                for cited in cited_here:
                    places[str(cited), citing].append(passage["passage_id"])
        for cited, citing in sorted(keys):
            yield {
                "citing": citing,
                "cited": cited,
                "keys": keys[cited, citing],
                "passage_ids": places.get((cited, citing), []),
            }


REFERENCES = References()
CITATIONS = Citations()
