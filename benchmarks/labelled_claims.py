"""Claims that other people labelled with what a cited document says of them: Citation-Integrity and
SciFact.

Both are read from gzipped JSON lines, in the layout that docs/methods/judges.md describes.
Citation-Integrity (Sarol et al. 2024): citing sentences, the passages of the cited article that
come nearest, and whether the citation is accurate (SUPPORT), not accurate (REFUTE), or the passages
are irrelevant (no evidence). SciFact (Wadden et al. 2020): claims, the abstracts that they were
written from, and whether an abstract supports or contradicts a claim, or says too little.
"""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

from pipeline.evaluation.citation_support.sample import OTHER, THIS

Label = Literal["SUPPORT", "REFUTE", "NEI"]
LABELS: tuple[Label, ...] = get_args(Label)
"""NEI: not enough information."""
Part = Literal["train", "dev"]
LABELLED = Path(__file__).resolve().parents[2] / "shared" / "data" / "labelled"
"""The folder of labelled sets beside a checkout."""
# `[<|cit|>]`, `(<|multi_cit|>,18)`, `<|other_cit|>`: the citation in question, alone or among
# others, and other ones.
_MARKER = re.compile(
    r"[\[(]\s*<\|(?P<inside>other_|multi_)?cit\|>(?:\s*[,;]\s*[0-9]+)*\s*[\])]|<\|(?P<bare>other_|multi_)?cit\|>"
)


@dataclass(frozen=True, slots=True)
class LabelledClaim:
    """One claim about one document.

    claim: without citation markers; marked: as a sentence that cites, `[this work]` in place of the
    document.
    """

    id: str
    document: str
    title: str
    claim: str
    marked: str
    passages: tuple[str, ...]
    label: Label


def read_sets(folder: Path, part: Part) -> dict[str, list[LabelledClaim]]:
    """Name → claims of a part of the sets in `citation_integrity` and `scifact`."""
    return {
        "Citation-Integrity": list(
            _citation_integrity(*_read_files(folder / "citation_integrity", part))
        ),
        "SciFact": list(_scifact(*_read_files(folder / "scifact", part))),
    }


def _read_files(folder: Path, part: Part) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """The claims of a part, and the documents."""
    return _read_rows(folder / f"claims_{part}.jsonl.gz"), _read_rows(folder / "corpus.jsonl.gz")


def _read_rows(file: Path) -> list[dict[str, Any]]:
    with gzip.open(file, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def _citation_integrity(
    claims: Sequence[Mapping[str, Any]], corpus: Sequence[Mapping[str, Any]]
) -> Iterator[LabelledClaim]:
    documents = {row["doc_id"]: row for row in corpus}
    for row in claims:
        (document,) = row["cited_doc_ids"]
        yield LabelledClaim(
            id=str(row["id"]),
            document=str(document),
            title=documents[document]["title"],
            claim=" ".join(_MARKER.sub(" ", row["claim"]).split()),
            marked=mark_citation(row["claim"]),
            passages=tuple(documents[document]["abstract"]),
            label=_label(
                evidence["label"]
                for of_document in row["evidence"].values()
                for evidence in of_document
            ),
        )


def mark_citation(sentence: str) -> str:
    """A citing sentence of Citation-Integrity as a judge reads it; `[this work]` at its end where
    it has no marker.
    """

    def marker(match: re.Match[str]) -> str:
        return OTHER if "other_" in (match["inside"] or "", match["bare"] or "") else THIS

    marked = _MARKER.sub(marker, sentence)
    return marked if THIS in marked else f"{marked} {THIS}"


def _scifact(
    claims: Sequence[Mapping[str, Any]], corpus: Sequence[Mapping[str, Any]]
) -> Iterator[LabelledClaim]:
    """Every claim with each abstract that its source cites or that has evidence."""
    documents = {row["id"]: row for row in corpus}
    for row in claims:
        for document in sorted({*row["cited"], *(evidence["doc"] for evidence in row["evidence"])}):
            yield LabelledClaim(
                id=f"{row['id']} {document}",
                document=document,
                title=documents[document]["title"],
                claim=row["claim"],
                marked=f"{row['claim'].rstrip()} {THIS}",
                passages=(
                    " ".join(sentence.strip() for sentence in documents[document]["sentences"]),
                ),
                label=_label(
                    evidence["label"] for evidence in row["evidence"] if evidence["doc"] == document
                ),
            )


def _label(labels: Iterator[str]) -> Label:
    """The label that all evidence has; NEI without evidence, contradiction for REFUTE."""
    distinct = set(labels)
    if not distinct:
        return "NEI"
    (label,) = distinct
    return "SUPPORT" if label == "SUPPORT" else "REFUTE"
