"""The Croissant description of an export: files, columns, responsible-AI fields.

The format is Croissant 1.0 with RAI 1.0 (https://docs.mlcommons.org/croissant). What only a
publisher knows (creators, address, date, citation) is not in it, and neither are nested columns,
which readers of Croissant do not read from Parquet.
"""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from pipeline import __version__
from pipeline.errors import SettingError
from pipeline.ops.export.card import Contents
from pipeline.ops.export.rights import Texts, is_open
from pipeline.tables import METADATA

if TYPE_CHECKING:
    import mlcroissant as mlc

    from pipeline.ops.export.data_files import ExportedTable

CROISSANT = "croissant.json"
_CONFORMS_TO = ["http://mlcommons.org/croissant/1.0", "http://mlcommons.org/croissant/RAI/1.0"]
_APACHE = "https://www.apache.org/licenses/LICENSE-2.0"
_CC0 = "https://creativecommons.org/publicdomain/zero/1.0/"

_COLLECTION = (
    "Papers of computer science on arXiv. Their pages were converted from LaTeX to HTML by LaTeXML"
    " before (ar5iv; for later months arXiv's own HTML); citeloom parsed them into papers, passages"
    " and references. Metadata is arXiv's, from its public snapshot, OAI-PMH or API. Nothing was"
    " collected from people."
)
_COLLECTION_OF_SAMPLE = (
    "Papers written for tests of citeloom and converted to HTML by LaTeXML; people, systems and"
    " numbers in them are invented. citeloom parsed them into papers, passages and references."
)
_PREPROCESSING = [
    "Papers of other categories are left out before their HTML is read.",
    (
        "HTML becomes sections and blocks of text, formulas their TeX; what is lost is counted by"
        " paper and kind."
    ),
    "Blocks are packed into passages of 20 to 300 words within a section.",
    "References are resolved to arXiv papers by identifier, by DOI, then by title and year.",
]
_LIMITATIONS = [
    "Papers without LaTeX source, and papers that LaTeXML could not convert, are missing.",
    (
        "Converted pages may lack or garble text; the page quality (the column papers.grade) goes"
        " from A (clean) to D (broken)."
    ),
    (
        "A page may be of an earlier version than the metadata, and than the licence in the column"
        " license."
    ),
    "References to works outside arXiv are not resolved, and resolution by title may err.",
]
_BIASES = [
    (
        "Only computer science, only what is on arXiv: other fields, venues and authors who do not"
        " post there are absent."
    ),
    "Nearly all papers are in English.",
    (
        "Pages with many LaTeX errors lose more text, so authors who use unusual packages are"
        " covered less."
    ),
    "Recent years have more papers than earlier ones.",
]
_USE_CASES = [
    (
        "Retrieval over scientific papers, analysis of citations, and research on writing related"
        " work and answering questions with citations."
    ),
    "Not suited to judging or ranking authors, institutions or countries, nor to profiling people.",
]
_SOCIAL_IMPACT = (
    "It lets others repeat measurements of retrieval and of cited writing. Systems made with it may"
    " state what papers do not say, or give credit to the wrong paper: check what they cite. Text"
    " of a paper may be published only as its licence allows."
)
_MAINTENANCE = (
    "An export is a snapshot without scheduled updates; a later one replaces it whole. Withdrawn"
    " papers leave it with the next export. citeloom-export.json has the digest of each file and of"
    " the rows that it was made from."
)
_NAMES = "Names of authors, as arXiv publishes them (metadata.authors)."
_ADDRESSES = (
    "E-mail addresses and affiliations of authors (papers.authors), people named in texts, and"
    " names or pseudonyms of people who rated or graded."
)
_PEOPLE_IN_TEXTS = "Texts of papers may name people."


def check_mlcroissant() -> None:
    """Raise SettingError where mlcroissant is not installed."""
    if importlib.util.find_spec("mlcroissant") is None:
        raise SettingError(
            "an export is described in Croissant, and the package mlcroissant is not installed: "
            "pip install --constraint constraints.txt --editable '.[export]'"
        )


def render_croissant(contents: Contents) -> bytes:
    """The description as JSON-LD, validated by mlcroissant."""
    import mlcroissant as mlc

    sample = contents.sample
    metadata = mlc.Metadata(
        name="citeloom-sample" if sample else "citeloom-arxiv-cs",
        description="\n\n".join(
            ["Tables that citeloom made of HTML pages of papers.", *contents.terms]
        ),
        version=__version__,
        license=_licences(contents),
        keywords=["arXiv", "scientific papers", "citations", "passage retrieval"],
        in_language=["en"],
        conforms_to=_CONFORMS_TO,
        distribution=[
            mlc.FileSet(
                id=_files_of(exported),
                name=_files_of(exported),
                description=f"A file for each month of {exported.table.name}.",
                encoding_formats=["application/x-parquet"],
                includes=[f"{exported.table.name}/*.parquet"],
            )
            for exported in contents.tables
        ],
        record_sets=[_record_set(exported) for exported in contents.tables],
        data_collection=_COLLECTION_OF_SAMPLE if sample else _COLLECTION,
        data_collection_type=["Secondary Data Analysis", "Document Analysis"],
        data_collection_missing_data=_missing(contents),
        data_preprocessing_protocol=_PREPROCESSING,
        data_limitations=_LIMITATIONS,
        data_biases=_BIASES,
        personal_sensitive_information=_personal(contents),
        data_use_cases=_USE_CASES,
        data_social_impact=_SOCIAL_IMPACT,
        data_release_maintenance_plan=_MAINTENANCE,
    )
    described = metadata.to_json()
    # Raises ValidationError.
    mlc.Metadata.from_json(mlc.Context(), json.loads(json.dumps(described)))
    return (json.dumps(described, indent=1, ensure_ascii=False) + "\n").encode()


def _record_set(exported: ExportedTable) -> mlc.RecordSet:
    import mlcroissant as mlc

    name = exported.table.name
    nested = [column.name for column in exported.schema if _element(column.type) is None]
    note = f" Nested columns that are not described here: {', '.join(nested)}." if nested else ""
    return mlc.RecordSet(
        id=name,
        name=name,
        description=f"A row is {exported.table.row}.{note}",
        fields=list(_fields(exported)),
    )


def _fields(exported: ExportedTable) -> Iterator[mlc.Field]:
    import mlcroissant as mlc

    for column in exported.schema:
        element = _element(column.type)
        if element is not None:
            yield mlc.Field(
                id=f"{exported.table.name}/{column.name}",
                name=column.name,
                description=(column.metadata or {}).get(b"description", b"").decode(),
                data_types=[_data_type(element)],
                repeated=element != column.type,
                source=mlc.Source(
                    file_set=_files_of(exported), extract=mlc.Extract(column=column.name)
                ),
            )


def _element(kind: pa.DataType) -> pa.DataType | None:
    """The type itself, or that of a list's elements; None for nested types."""
    element = kind.value_type if pa.types.is_list(kind) else kind
    return None if pa.types.is_nested(element) else element


def _data_type(kind: pa.DataType) -> Any:
    import mlcroissant as mlc

    if pa.types.is_boolean(kind):
        return mlc.DataType.BOOL
    if pa.types.is_integer(kind):
        return mlc.DataType.INTEGER
    return mlc.DataType.FLOAT if pa.types.is_floating(kind) else mlc.DataType.TEXT


def _files_of(exported: ExportedTable) -> str:
    return f"{exported.table.name}-files"


def _licences(contents: Contents) -> list[str]:
    """Addresses of the licences in the export; the card says what each covers."""
    if contents.sample:
        return [_APACHE]
    of_metadata = [_CC0] if any(exported.table == METADATA for exported in contents.tables) else []
    of_texts = [
        licence
        for licence in contents.licences
        if licence and (contents.texts is Texts.ALL or is_open(licence))
    ]
    return [*of_metadata, *of_texts, "see README.md"]


def _missing(contents: Contents) -> str:
    counts = [
        f"{stage}, {reason}: {count:,}" for (stage, reason), count in contents.left_out.items()
    ]
    if not counts:
        return "Nothing was left out of these months."
    return f"Left out, by stage and reason: {'; '.join(counts)}."


def _personal(contents: Contents) -> list[str]:
    if contents.sample:
        return ["None: the people are invented."]
    with_text = any(exported.paper_columns for exported in contents.tables)
    return [
        _NAMES,
        *([_PEOPLE_IN_TEXTS] if with_text else []),
        *([_ADDRESSES] if contents.texts is Texts.ALL else []),
    ]
