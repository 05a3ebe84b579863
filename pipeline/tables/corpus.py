"""Tables of the corpus: dump, metadata, papers, passages, references, their index, and what runs record of them."""

from __future__ import annotations

import pyarrow as pa

from pipeline.tables.table import COUNT, FLAG, TEXT, TEXTS, Table, schema

# Values of `papers.grade`, best first.
GRADES = ("A", "B", "C", "D")

AUTHOR = pa.struct({"name": TEXT, "affiliations": TEXTS, "emails": TEXTS})
SECTION = pa.struct({"anchor": TEXT, "number": TEXT, "title": TEXT, "depth": pa.int32(), "path": TEXTS})
BLOCK = pa.struct({"kind": TEXT, "anchor": TEXT, "section_path": TEXTS, "text": TEXT, "cited_keys": TEXTS})
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

DUMP_MEMBERS = Table(
    "dump_members",
    "one HTML member of a zip",
    schema(
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
        ("subset", TEXT, "severity of the page's conversion"),
        ("title", TEXT, "title, from the page or else from metadata"),
        ("title_source", TEXT, "heading or metadata"),
        ("authors", pa.list_(AUTHOR), "authors with affiliations and e-mails, from the page or else from metadata"),
        ("authors_source", TEXT, "page, metadata or none"),
        ("authors_differ", COUNT, "names that only the page has or only metadata.authors; 0 where one has none"),
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
        ("passage_ids", TEXTS, "passages of the citing paper that cite it, in order; empty if no passage does"),
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
        ("method", TEXT, "dense, lexical, sparse, fused, colbert, cross_encoder, or fused_minus_lexical"),
        ("form", TEXT, "text that was searched: passage, title or sections, as CITELOOM_EMBEDDED_FORM names them"),
        ("metric", TEXT, "R@1, R@5, R@10, R@50, RR@50 or nDCG@10, of papers"),
        ("value", pa.float64(), "mean over the queries, 0 to 1; for fused_minus_lexical the mean difference"),
        ("low", pa.float64(), "lower end of the 95 % interval; null where one paper asks every query"),
        ("high", pa.float64(), "upper end of the 95 % interval; null where one paper asks every query"),
        ("queries", COUNT, "queries asked"),
        ("papers", COUNT, "papers searched"),
        ("passages", COUNT, "passages searched"),
        ("model", TEXT, "what ranked: the embedding model, the cross-encoder, or the settings of BM25"),
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
CHANGES = Table(
    "changes",
    "one paper as the last refresh left it, with what had changed since the one before",
    schema(
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
    schema(
        ("subject", TEXT, "arXiv id, passage id or file"),
        ("stage", TEXT, "stage that left it out"),
        ("reason", TEXT, "reason, one of a few per stage"),
        ("detail", TEXT, "what exactly"),
    ),
)
