"""Tables of the corpus: members of the dump, metadata, papers, passages and references."""

from __future__ import annotations

import pyarrow as pa

from pipeline.tables.table import COUNT, FLAG, TEXT, TEXTS, Table, schema

# Of a page's text, best first: what `papers.grade` may hold.
GRADES = ("A", "B", "C", "D")

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
