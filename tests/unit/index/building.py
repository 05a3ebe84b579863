"""Builders that the tests of the index share: a month of papers and passages, points, and an
index's answers.

Imported by name (`tests.unit.index.building`), also from tests/server.
"""

import uuid
from contextlib import contextmanager

import numpy as np
import pytest

from pipeline import tables
from pipeline.embedding.embedder import SparseRows
from pipeline.embedding.stages import EMBEDDINGS
from pipeline.engine.run import run_stage
from pipeline.index.batch import PointBatch
from pipeline.index.fusion import Ranking, rank
from pipeline.index.opening import open_collections
from pipeline.index.passage_index import Layout, QueryVectors, month_number
from pipeline.index.search_options import SearchOptions
from pipeline.index.stages import INDEX_RECEIPTS
from pipeline.text import text_digest
from tests.cases import read_cases
from tests.month_tables import passage_row, write_table
from tests.processes import start_python
from tests.workspaces import make_workspace as make_workspace

MODEL = "a model"
LAYOUT = Layout(MODEL, dimensions=8, sparse=True, quantization="none")

TEXTS = (
    "Beam search keeps the best partial hypotheses while a sentence is translated word by word.",
    "Coverage penalties stop the decoder from leaving source words untranslated.",
    (
        "Sparse lexical retrieval with inverse document frequency finds rare terms that dense"
        " vectors blur."
    ),
    (
        "A dense retriever encodes question and passage into one space and compares them by inner"
        " product."
    ),
    "Reciprocal rank fusion merges two ranked lists without comparing their scores.",
    "Photosynthesis in ferns is limited by light on the forest floor.",
)


def passage_id(number):
    """The id of the n-th test passage."""
    return str(uuid.uuid5(uuid.NAMESPACE_URL, f"test passage {number}"))


def make_points(numbers, *, month="2024-03", content="first", sparse=True, dense=None, **payload):
    """Points whose vectors follow from their numbers: neighbours in number are neighbours in angle.

    No two points score alike on the searches of `answers`, since an engine is free in the order of
    a tie. dense: vectors in place of these.
    """
    numbers = list(numbers)
    if dense is None:
        angles = 0.1 * np.array(numbers)
        dense = np.zeros((len(numbers), 8), np.float32)
        dense[:, 0], dense[:, 1], dense[:, 7] = np.cos(angles), np.sin(angles), 0.5
        dense[:, 2] = angles / 10
    words = [
        {
            number % 5: 1.0 + 0.017 * number,
            5 + number % 7: 0.5 + 0.011 * number,
            100 + number: 0.25,
        }
        for number in numbers
    ]
    terms = [{number % 3: 1.0 + 0.013 * number} for number in numbers]
    return PointBatch(
        ids=list(map(passage_id, numbers)),
        dense=dense,
        lexical=SparseRows.of(words),
        sparse=SparseRows.of(terms) if sparse else None,
        payloads=[_payload_of(number, month, content) | payload for number in numbers],
    )


def _payload_of(number, month, content):
    return {
        "arxiv_id": f"{month[2:4]}{month[5:]}.{number // 4:05d}",
        "month": month,
        "month_number": month_number(month),
        "year": int(month[:4]),
        "category_keys": ["cs", "cs.CL", "stat", "stat.ML"] if number % 2 else ["cs", "cs.IR"],
        "subset": ("no_problem", "warning", "error")[number % 3],
        "kind": "abstract" if number % 4 == 0 else "paragraph",
        "section_path": ["Method", f"Part {number}"],
        "grade": "AB"[number % 2],
        "authors": ["ann lee", "lee"] if number % 3 else ["bob roe", "roe"],
        "venue": ["2024", "acl"] if number % 2 else [],
        "digest": text_digest(f"{number} {content}"),
    }


def query(number=17, *, terms=(3, 7, 117)):
    """The vectors of a question that lies near a point."""
    points = make_points([number])
    lexical = SparseRows.of([dict.fromkeys(terms, 1.0)]).row(0)
    return QueryVectors(points.dense[0], lexical, SparseRows.of([{number % 3: 1.0}]).row(0))


def answers(index):
    """What an index that holds forty points of three months says to a set of searches."""
    searches = read_cases("unit/index/answers.toml")
    rankings = [
        Ranking(limit, where=SearchOptions(**options).conditions())
        for options in searches["restricted"]
        for limit in (1, 5, 40)
    ]
    # Server 1.16 counts document frequencies of all months, and Edge those of the months that are
    # searched.
    rankings += [
        Ranking(limit, by="dense", where=SearchOptions(**options).conditions())
        for options in searches["of_months"]
        for limit in (1, 40)
    ]
    rankings += [Ranking(7, by=by) for by in ("dense", "lexical", "sparse")]
    rankings += [Ranking(5, exact=True)]
    return [rank(index, [query()], ranking)[0] for ranking in rankings]


def nearly(hits, margin=1e-5):
    """Hits that equal those whose scores differ by no more than a margin. The last digits of a
    score depend on the processor, the threads, and what else is computed with it.
    """

    def about(score):
        return None if score is None else pytest.approx(score, abs=margin)

    return [hit._replace(score=about(hit.score), cosine=about(hit.cosine)) for hit in hits]


def find(index, wanted, request):
    """What one search finds."""
    return index.search([(wanted, request)])[0]


def clustered(count, dimensions, seed=1):
    """Unit vectors around common centres in few directions, as those of texts are."""
    common, own = np.random.default_rng(7), np.random.default_rng(seed)
    basis, centres = common.standard_normal((24, dimensions)), common.standard_normal((100, 24))
    inner = centres[own.integers(0, 100, count)] + 0.6 * own.standard_normal((count, 24))
    rows = inner @ basis + 0.3 * own.standard_normal((count, dimensions))
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


def best_ten(index, queries, *, exact):
    """The ten nearest passages of each query by dense vectors: (number of the query, passage)."""
    rankings = rank(index, queries, Ranking(10, by="dense", exact=exact))
    return {(number, hit.passage_id) for number, hits in enumerate(rankings) for hit in hits}


def three_months():
    """Forty points, by turns in three months."""
    return [
        make_points(range(first, 40, 3), month=month)
        for first, month in enumerate(("2024-03", "2024-04", "2024-05"))
    ]


_HOLDER = """
import sys
from pathlib import Path
from pipeline.index.edge_folder import hold_folder, open_shard
held = hold_folder(Path(sys.argv[1]), 10.0)
shard, _ = open_shard(Path(sys.argv[1]))
print("open", flush=True)
sys.stdin.read()
"""


@contextmanager
def opened_by_another_process(folder):
    """A process that has the index in a folder open and does not let go, as during a long
    optimization; it is killed at the end of the block.
    """
    with start_python(_HOLDER, str(folder)) as holder:
        assert holder.stdout.readline()
        try:
            yield holder
        finally:
            holder.kill()


def write_month(workspace, month="2024-03", texts=TEXTS, categories=("cs.CL",)):
    """Papers and passages of a month: two passages a paper, one for every text."""
    about = {
        "subset": "no_problem",
        "authors": [{"name": "Noël Ada Lovelace", "affiliations": [], "emails": []}],
        "categories": list(categories),
        "primary_category": categories[0],
        "year": int(month[:4]),
        "grade": "C",
    }
    papers, passages = {}, []
    for number, text in enumerate(texts):
        paper = f"{month[2:4]}{month[5:]}.{number // 2:05d}"
        title = f"Paper {paper}"
        papers[paper] = {"arxiv_id": paper, "title": title, **about}
        passages.append(passage_row(paper, number, title, ["Method", "Decoding"], text))
    for table, rows in ((tables.PAPERS, papers.values()), (tables.PASSAGES, passages)):
        write_table(workspace.root, table, month, rows)
        write_ledger(workspace.root, table, month)


def write_ledger(root, table, month, **about):
    """An empty ledger of a month; `about` as for `write_table`."""
    write_table(root, tables.LEDGER, month, [], file=root.ledger_file(table.name, month), **about)


def embed(workspace, month="2024-03"):
    """Run the stage embeddings on a month."""
    run_stage(EMBEDDINGS, workspace, month)


def load(workspace, month="2024-03", *args, **kwargs):
    """A month from its papers to its receipt; arguments as for `write_month`."""
    write_month(workspace, month, *args, **kwargs)
    embed(workspace, month)
    run_stage(INDEX_RECEIPTS, workspace, month)


def make_live(workspace, layout):
    """Make an empty collection and let searches use it; its name."""
    collections = open_collections(workspace)
    name = layout.collection(collections.alias)
    collections.collection(name).create(layout)
    collections.make_live(name)
    return name


def in_another_form(workspace, month):
    """A month's vectors as an earlier version made them, of texts without headings."""
    root, table = workspace.root, tables.EMBEDDINGS
    rows, written = root.rows(table, month), root.provenance(table, month)
    made = {"fingerprint": "of an earlier version", "notes": {**written.notes, "form": "passage"}}
    write_table(root, table, month, rows, **made)
    write_ledger(root, table, month, **made)
