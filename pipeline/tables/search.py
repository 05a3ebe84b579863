"""Tables of the index: vectors, audited loads, and how well a search finds."""

from __future__ import annotations

import pyarrow as pa

from pipeline.tables.table import COUNT, FLAG, TEXT, TEXTS, Table, schema

EMBEDDINGS = Table(
    "embeddings",
    "one passage's vectors",
    schema(
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
    schema(
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
    schema(
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
    schema(
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
