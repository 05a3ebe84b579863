"""Quality of a search on labels that nobody here made, beside bm25s: nDCG@10 with 95 % intervals.

    python -m benchmarks.retrieval [--labelled FOLDER] [--beir FOLDER]... [--model-of-settings]

labelled: the folder of public labelled sets, with SciFact (300 claims of its test over 5,183
abstracts) and DeepScholar-Bench (541 citing sentences over 889 abstracts). beir: a folder in BEIR's
layout (corpus.jsonl, queries.jsonl, qrels/test.tsv), as often as there are sets. Vectors are
MiniLM's, or with --model-of-settings those of the embedder that CITELOOM_EMBEDDER names, so that
BGE-M3 on a GPU can be compared with the literature.

Methods: dense, lexical, sparse (where the model has such a head), bm25s, default (dense and lexical
by scores), ranks (the same two by reciprocal ranks), all exact; and the default through a real
index: `server` with int8 vectors, and `edge` with each kind of compressed vectors, in segments so
small that nearly all points have them, with its recall@10 of exact dense search. Beside them how
often a search says that nothing fits, for queries whose best hit is relevant and for those that
have no answer: random letters, everyday questions, and the queries of the other set.
"""

from __future__ import annotations

import argparse
import gzip
import json
import logging
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args
from uuid import NAMESPACE_URL, uuid5

import numpy as np
from numpy.typing import NDArray

from benchmarks.harness import Claim, report
from benchmarks.qdrant_server import INSTALLED, running
from benchmarks.search import recall_of_codes
from pipeline.embedding.choice import make_embedder
from pipeline.embedding.lexical import abbreviations_of, lexical_rows, long_forms_in
from pipeline.evaluation.statistics import mean_ends
from pipeline.index.batch import PointBatch
from pipeline.index.edge import EdgeIndex
from pipeline.index.exact import SparseScores, fused_scores
from pipeline.index.fusion import Ranking, rank
from pipeline.index.passage_index import Layout, Quantization
from pipeline.index.search import encode_queries, fits
from pipeline.index.server import ServerCollections
from pipeline.settings import Settings, load_settings

if TYPE_CHECKING:
    from pipeline.embedding.embedder import Embedder
    from pipeline.index.passage_index import PassageIndex

DEPTH = 10
# Reciprocal rank fusion's constant (Cormack, Clarke and Büttcher 2009).
RRF_K = 60
LABELLED = Path(__file__).resolve().parents[2] / "shared" / "data" / "labelled"
ALIAS = "benchmark"
QUANTIZATIONS: tuple[Quantization, ...] = get_args(Quantization)
# SciFact's 5,183 texts fill six segments, DeepScholar-Bench's 889 one.
SEGMENT_POINTS = 800
# Questions on nothing that computer science or biomedicine writes of.
EVERYDAY = (
    "how to bake sourdough bread at home", "who won the world cup in 1998",
    "how to repair a leaking kitchen faucet", "cheap flights from Berlin to Lisbon in May",
    "when to prune apple trees", "mortgage rates for first-time buyers",
    "history of the Ottoman Empire in the 16th century", "how to train a puppy to sit",
    "guitar chords for beginners", "best hiking trails in the Dolomites",
    "how to remove red wine stains from a carpet", "how long to boil an egg",
    "the causes of the French Revolution", "opening hours of the city library",
    "how to knit a scarf for winter", "vegetarian lasagna with spinach and ricotta",
    "divorce law and custody of children", "wine regions of Portugal",
    "painting techniques of the Dutch masters", "growing tomatoes on a balcony",
    "the plot of Hamlet in a few words", "interior design of small bathrooms",
    "cleaning a cast iron pan", "volcano eruptions in Iceland", "how to fold a paper crane",
)  # fmt: skip


@dataclass(frozen=True)
class LabelledSet:
    """Texts by id, queries by id, and for each query the grades of what is relevant."""

    name: str
    texts: Mapping[str, str]
    queries: Mapping[str, str]
    relevant: Mapping[str, Mapping[str, int]]


def read_scifact(folder: Path) -> LabelledSet:
    """SciFact's abstracts and the claims of its test, as BEIR has them."""
    rows = read_rows(folder / "scifact" / "corpus.jsonl.gz")
    texts = {str(row["id"]): f"{row['title']}\n{' '.join(row['sentences'])}" for row in rows}
    asked = list(read_rows(folder / "scifact" / "beir_test.jsonl.gz"))
    queries = {str(row["id"]): row["query"] for row in asked}
    return LabelledSet(
        "scifact", texts, queries, {str(row["id"]): row["relevant"] for row in asked}
    )


def read_deepscholar(folder: Path) -> LabelledSet:
    """DeepScholar-Bench's cited works that have an abstract, and the sentences that cite them."""
    works = [
        row for row in read_rows(folder / "deepscholar" / "cited.jsonl.gz") if row.get("abstract")
    ]
    texts = {str(row["id"]): f"{row['title']}\n{row['abstract']}" for row in works}
    asked = list(read_rows(folder / "deepscholar" / "citing_sentences.jsonl.gz"))
    queries = {str(row["id"]): row["query"] for row in asked}
    relevant = {str(row["id"]): dict.fromkeys(map(str, row["relevant"]), 1) for row in asked}
    return LabelledSet("deepscholar", texts, queries, relevant)


def read_beir(folder: Path) -> LabelledSet:
    """A data set in BEIR's layout; queries without a relevant text are left out, as BEIR does."""
    corpus = (json.loads(line) for line in (folder / "corpus.jsonl").open(encoding="utf-8"))
    texts = {str(row["_id"]): f"{row.get('title') or ''}\n{row['text']}".strip() for row in corpus}
    relevant: dict[str, dict[str, int]] = {}
    for line in (folder / "qrels" / "test.tsv").read_text(encoding="utf-8").splitlines()[1:]:
        query, text, grade = line.split("\t")
        if int(grade) > 0:
            relevant.setdefault(query, {})[text] = int(grade)
    rows = (json.loads(line) for line in (folder / "queries.jsonl").open(encoding="utf-8"))
    queries = {str(row["_id"]): row["text"] for row in rows if str(row["_id"]) in relevant}
    return LabelledSet(folder.name, texts, queries, relevant)


def read_rows(file: Path) -> Iterator[dict[str, Any]]:
    """The rows of a gzipped file of JSON lines."""
    with gzip.open(file, "rt", encoding="utf-8") as lines:
        yield from map(json.loads, lines)


class Measurement:
    """One set, embedded once, and the rankings of its queries by each method."""

    def __init__(self, labelled: LabelledSet, embedder: Embedder) -> None:
        self.set, self.embedder = labelled, embedder
        self.ids, self.texts = list(labelled.texts), list(labelled.texts.values())
        batches = list(embedder.encode_stream(self.texts))
        self.dense = np.concatenate([batch.dense for batch in batches]).astype(np.float32)
        self.lexical = lexical_rows(self.texts, additions=map(_own_long_forms, self.texts))
        self._names = {str(uuid5(NAMESPACE_URL, identifier)): identifier for identifier in self.ids}
        self.queries = encode_queries(embedder, list(labelled.queries.values()))
        self.by_dense = np.stack([query.dense for query in self.queries]) @ self.dense.T
        self.words = SparseScores(self.lexical, idf=True)
        self.by_words = self.words.of([query.lexical for query in self.queries])

    def exact(self) -> dict[str, list[list[str]]]:
        """The best texts of each query by each exact method."""
        pairs = list(zip(self.by_dense, self.by_words, strict=True))
        return {
            "dense": [self._best(scores) for scores in self.by_dense],
            "lexical": [self._best(scores, least=0.0) for scores in self.by_words],
            "bm25s": [
                self._best(scores, least=0.0) for scores in bm25s_scores(self.texts, self._asked)
            ],
            "default": [self._best(fused_scores(*pair)) for pair in pairs],
            "ranks": [self._best(rank_scores(*pair)) for pair in pairs],
        }

    @property
    def _asked(self) -> list[str]:
        return list(self.set.queries.values())

    def _best(self, scores: NDArray[Any], least: float = -np.inf) -> list[str]:
        places = np.argsort(-scores, kind="stable")[:DEPTH]
        return [self.ids[place] for place in places if scores[place] > least]

    def through(self, index: PassageIndex, layout: Layout) -> list[list[str]]:
        """The best texts of each query by a real index that holds the set."""
        payloads = [{"month": "2024-01", "kind": "abstract"} for _ in self.ids]
        index.create(layout)
        index.upsert(PointBatch(list(self._names), self.dense, self.lexical, payloads))
        index.build_graph(wait=True)
        found = rank(index, self.queries, Ranking(DEPTH))
        return [[self._names[point.passage_id] for point in points] for points in found]

    def recall(self, index: PassageIndex) -> dict[int, float]:
        """`recall_of_codes` of exact dense search."""
        truth = [
            [str(uuid5(NAMESPACE_URL, identifier)) for identifier in self._best(scores)]
            for scores in self.by_dense
        ]
        return recall_of_codes(index, self.queries, truth)

    def share_without_fit(self, queries: Sequence[str]) -> float:
        """The share of queries of which none of the ten best texts is said to fit."""
        return float(np.mean([not self._fits(query) for query in queries]))

    def share_of_best_lost(self, rankings: Sequence[Sequence[str]]) -> float:
        """That share among the queries whose first text, of these rankings, is relevant."""
        good = [
            query
            for (name, query), ranking in zip(self.set.queries.items(), rankings, strict=True)
            if self.set.relevant[name].get(ranking[0], 0) > 0
        ]
        return self.share_without_fit(good)

    def search(self, query: str, count: int) -> tuple[list[int], NDArray[np.float32]]:
        """The places of the best texts by the default ranking, and the cosine of every text."""
        (encoded,) = encode_queries(self.embedder, [query])
        dense = self.dense @ encoded.dense
        scores = fused_scores(dense, self.words.of([encoded.lexical])[0])
        return [int(place) for place in np.argsort(-scores, kind="stable")[:count]], dense

    def _fits(self, query: str) -> bool:
        places, dense = self.search(query, DEPTH)
        model, texts = self.embedder.name, self.texts
        return any(fits(model, query, [texts[place]], float(dense[place])) for place in places)


def _own_long_forms(text: str) -> str:
    """What the abbreviations of a text stand for, as the index adds it to a paper's passages."""
    return "\n".join(long_forms_in(text, dict(abbreviations_of(text))))


def rank_scores(dense: NDArray[np.float32], words: NDArray[np.float32]) -> NDArray[np.float64]:
    """Reciprocal ranks of the 100 best of each list, added."""
    scores = np.zeros(len(dense))
    for each, least in ((dense, -np.inf), (words, 0.0)):
        places = np.argsort(-each, kind="stable")[:100]
        places = places[each[places] > least]
        scores[places] += 1 / (RRF_K + np.arange(len(places)))
    return scores


def bm25s_scores(texts: Sequence[str], queries: Sequence[str]) -> NDArray[np.float32]:
    """The scores of bm25s with its own constants and tokenizer, English stems and stop words."""
    import bm25s
    import Stemmer

    logging.getLogger("bm25s").setLevel(logging.WARNING)
    stemmer = Stemmer.Stemmer("english")

    def words(some: Sequence[str]) -> Any:
        return bm25s.tokenize(
            list(some), stopwords="en", stemmer=stemmer, return_ids=False, show_progress=False
        )

    index = bm25s.BM25(method="lucene")
    index.index(words(texts), show_progress=False)
    nothing = np.zeros(len(texts), np.float32)
    return np.stack([index.get_scores(word) if word else nothing for word in words(queries)])


def ndcg(
    relevant: Sequence[Mapping[str, int]], rankings: Sequence[Sequence[str]]
) -> NDArray[np.float64]:
    """nDCG@10 of each query (Järvelin and Kekäläinen 2002), with gains as trec_eval's."""
    discounts = 1 / np.log2(np.arange(2, DEPTH + 2))
    values = []
    for grades, ranking in zip(relevant, rankings, strict=True):
        gains = np.array([grades.get(text, 0) for text in ranking] + [0] * (DEPTH - len(ranking)))
        best = np.array(sorted(grades.values(), reverse=True)[:DEPTH])
        values.append(float(gains @ discounts) / float(best @ discounts[: len(best)]))
    return np.array(values)


def measure(labelled: LabelledSet, embedder: Embedder, foreign: Sequence[str]) -> dict[str, Any]:
    """nDCG@10 of each method with its interval, and how often the best hit is said not to fit."""
    measurement = Measurement(labelled, embedder)
    relevant = [labelled.relevant[query] for query in labelled.queries]
    layout = Layout(embedder.name, embedder.dimensions)
    rankings = measurement.exact()
    recalls: dict[str, dict[int, float]] = {}
    with tempfile.TemporaryDirectory() as folder:
        for kind in QUANTIZATIONS:
            with closing(EdgeIndex(Path(folder) / kind, segment_points=SEGMENT_POINTS)) as index:
                rankings[f"edge, {kind}"] = measurement.through(
                    index, replace(layout, quantization=kind)
                )
                recalls[f"edge, {kind}"] = measurement.recall(index)
        if INSTALLED.is_file():
            with (
                running(Path(folder) / "server") as server,
                closing(
                    ServerCollections(server.url, ALIAS, grpc_port=server.grpc_port)
                ) as on_server,
            ):
                rankings["server"] = measurement.through(
                    on_server.collection(layout.collection(ALIAS)), layout
                )
    figures: dict[str, Any] = {}
    for method, ranking in rankings.items():
        values = ndcg(relevant, ranking)
        low, high = mean_ends(values, list(labelled.queries))
        figures[method] = {
            "ndcg@10": round(float(values.mean()), 4),
            "low": _rounded(low),
            "high": _rounded(high),
            **{
                f"recall@10, dense, {count} candidates": value
                for count, value in recalls.get(method, {}).items()
            },
        }
    letters = random_letters(100)
    figures["without fit"] = {
        "best hits lost": round(measurement.share_of_best_lost(rankings["default"]), 3),
        "random letters": round(measurement.share_without_fit([*letters, "asdfgh qwerty"]), 3),
        "everyday questions": round(measurement.share_without_fit(EVERYDAY), 3),
        **(
            {"queries of the other set": round(measurement.share_without_fit(foreign), 3)}
            if foreign
            else {}
        ),
    }
    return figures


def random_letters(count: int) -> list[str]:
    """Queries that mean nothing, the same ones in each run."""
    random = np.random.default_rng(1)
    return [
        "".join(random.choice(list("abcdefghijklmnopqrstuvwxyz    "), 24)) for _ in range(count)
    ]


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 4)


def claims_of(figures: Mapping[str, Mapping[str, Any]]) -> list[Claim]:
    """Claims of the two labelled sets; of others, that an index finds what exact search finds."""
    targets = {"scifact": 0.735, "deepscholar": 0.62}
    claims = []
    for name, methods in figures.items():
        value = {
            method: numbers["ndcg@10"]
            for method, numbers in methods.items()
            if "ndcg@10" in numbers
        }
        if name in targets:
            claims.append(Claim(f"{name}: nDCG@10 of the default", value["default"], targets[name]))
            # The lexical vectors also have terms that bm25s does not know, such as k-NN.
            below = round(value["bm25s"] - value["lexical"], 4)
            claims.append(
                Claim(
                    f"{name}: nDCG@10 of bm25s less our lexical vectors'",
                    below,
                    0.003,
                    at_most=True,
                )
            )
        for engine in value:
            if engine.startswith(("edge", "server")):
                lost = round(value["default"] - value[engine], 4)
                claim = f"{name}: nDCG@10 lost by the index in {engine}"
                claims.append(Claim(claim, lost, 0.003, at_most=True))
            recall = methods[engine].get("recall@10, dense, 100 candidates")
            if recall is not None:
                claims.append(Claim(f"{name}: recall@10, {engine}", recall, 0.98))
        fit = methods["without fit"]
        claims.append(
            Claim(
                f"{name}: relevant first hits said not to fit, share",
                fit["best hits lost"],
                0.03,
                at_most=True,
            )
        )
        foreign = min(share for kind, share in fit.items() if kind != "best hits lost")
        claims.append(
            Claim(f"{name}: unanswerable queries told that nothing fits, share", foreign, 0.9)
        )
    return claims


def main() -> None:
    """Measure the labelled sets that are there, and those that are named."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--labelled", type=Path, default=LABELLED)
    parser.add_argument("--beir", type=Path, action="append", default=[])
    parser.add_argument("--model-of-settings", action="store_true")
    options = parser.parse_args()
    settings = load_settings() if options.model_of_settings else Settings(_env_file=None)
    embedder = make_embedder(settings)
    sets = [read_beir(folder) for folder in options.beir]
    if (options.labelled / "scifact").is_dir():
        sets = [read_scifact(options.labelled), read_deepscholar(options.labelled), *sets]
    if not sets:
        raise SystemExit(
            f"there are no labelled sets in {options.labelled}: name a folder with --labelled or"
            " --beir"
        )
    figures = {}
    for number, labelled in enumerate(sets):
        others = list(sets[number - 1].queries.values()) if len(sets) > 1 else []
        figures[labelled.name] = measure(labelled, embedder, others)
    report("retrieval", {"model": embedder.name, **figures}, claims_of(figures))


if __name__ == "__main__":
    main()
