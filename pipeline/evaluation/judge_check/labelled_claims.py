"""Claims that other people labelled with what a cited document says of them: Citation-Integrity and SciFact.

Both are read from gzipped JSON lines, in the layout that docs/methods/judges.md describes. Citation-Integrity (Sarol et
al. 2024): citing sentences, the passages of the cited article that come nearest, and whether the citation is accurate
(SUPPORT), not accurate (REFUTE), or the passages are irrelevant (no evidence). SciFact (Wadden et al. 2020): claims,
the abstracts that they were written from, and whether an abstract supports or contradicts a claim, or says too little.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, get_args

from pipeline.errors import MissingInput, SettingError
from pipeline.evaluation.annotation.study import shuffled
from pipeline.evaluation.citation_support.measures import OTHER, THIS

Label = Literal["SUPPORT", "REFUTE", "NEI"]
LABELS: tuple[Label, ...] = get_args(Label)
"""NEI: not enough information."""
SetName = Literal["Citation-Integrity", "SciFact"]
Part = Literal["train", "dev"]
FOLDERS: dict[SetName, str] = {"Citation-Integrity": "citation_integrity", "SciFact": "scifact"}
_SAMPLE_SEED = 20_241_123
# `[<|cit|>]`, `(<|multi_cit|>,18)`, `<|other_cit|>`: the citation in question, alone or among others, and other ones.
_MARKER = re.compile(
    r"[\[(]\s*<\|(?P<inside>other_|multi_)?cit\|>(?:\s*[,;]\s*[0-9]+)*\s*[\])]|<\|(?P<bare>other_|multi_)?cit\|>"
)


@dataclass(frozen=True, slots=True)
class LabelledClaim:
    """One claim about one document.

    claim: without citation markers; marked: as a sentence that cites, `[this work]` in place of the document.
    """

    id: str
    document: str
    title: str
    claim: str
    marked: str
    passages: tuple[str, ...]
    label: Label


@dataclass(frozen=True, slots=True)
class LabelledSet:
    """One part of a set. available: claims that it has; `claims` may be a sample of these. sha256: of its files."""

    name: SetName
    part: Part
    claims: tuple[LabelledClaim, ...]
    available: int
    sha256: str


def read_sets(folder: Path, part: Part, limit: int | None = None) -> list[LabelledSet]:
    """The sets that a folder has, in the subfolders of `FOLDERS`. limit: most claims of each, sampled by a fixed seed.

    Raises MissingInput where the folder has neither set, SettingError where a file cannot be read.
    """
    sets = [_read_set(name, folder / subfolder, part) for name, subfolder in FOLDERS.items()
            if (folder / subfolder / f"claims_{part}.jsonl.gz").is_file()]  # fmt: skip
    if not sets:
        wanted = " or ".join(f"{subfolder}/claims_{part}.jsonl.gz" for subfolder in FOLDERS.values())
        raise MissingInput(f"--data {folder} has no {wanted}: docs/methods/judges.md says what is read")
    return [_sample(each, limit) for each in sets]


def _sample(labelled: LabelledSet, limit: int | None) -> LabelledSet:
    by_id = {claim.id: claim for claim in labelled.claims}
    taken = set(shuffled(_SAMPLE_SEED, labelled.name, by_id)[:limit])
    return replace(labelled, claims=tuple(claim for claim in labelled.claims if claim.id in taken))


def _read_set(name: SetName, folder: Path, part: Part) -> LabelledSet:
    files = (folder / f"claims_{part}.jsonl.gz", folder / "corpus.jsonl.gz")
    try:
        claims, corpus = (_read_rows(file) for file in files)
        read = _citation_integrity if name == "Citation-Integrity" else _scifact
        items = tuple(read(claims, corpus))
        digest = hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()
    except (OSError, EOFError, ValueError, KeyError, TypeError) as error:
        raise SettingError(f"{folder}: {name} cannot be read ({error!r}): give its files as published") from error
    return LabelledSet(name, part, items, len(items), digest)


def _read_rows(file: Path) -> list[dict[str, Any]]:
    with gzip.open(file, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def _citation_integrity(claims: Sequence[dict[str, Any]], corpus: Sequence[dict[str, Any]]) -> Iterator[LabelledClaim]:
    documents = {row["doc_id"]: row for row in corpus}
    for row in claims:
        (document,) = row["cited_doc_ids"]
        labels = {evidence["label"] for of_document in row["evidence"].values() for evidence in of_document}
        yield LabelledClaim(
            id=str(row["id"]),
            document=str(document),
            title=documents[document]["title"],
            claim=" ".join(_MARKER.sub(" ", row["claim"]).split()),
            marked=mark_citation(row["claim"]),
            passages=tuple(documents[document]["abstract"]),
            label=_label(labels),
        )


def mark_citation(sentence: str) -> str:
    """A citing sentence of Citation-Integrity as a judge reads it; `[this work]` at its end where it has no marker."""

    def marker(found: re.Match[str]) -> str:
        return OTHER if "other_" in (found["inside"] or "", found["bare"] or "") else THIS

    marked = _MARKER.sub(marker, sentence)
    return marked if THIS in marked else f"{marked} {THIS}"


def _scifact(claims: Sequence[dict[str, Any]], corpus: Sequence[dict[str, Any]]) -> Iterator[LabelledClaim]:
    """Every claim with each abstract that was cited where it was written, and each that has evidence."""
    documents = {row["id"]: row for row in corpus}
    for row in claims:
        evidence = {document: [e for e in row["evidence"] if e["doc"] == document]
                    for document in sorted({*row["cited"], *(e["doc"] for e in row["evidence"])})}  # fmt: skip
        for document, of_document in evidence.items():
            sentences = documents[document]["sentences"]
            yield LabelledClaim(
                id=f"{row['id']} {document}",
                document=document,
                title=documents[document]["title"],
                claim=row["claim"],
                marked=f"{row['claim'].rstrip()} {THIS}",
                passages=(" ".join(sentence.strip() for sentence in sentences),),
                label=_label({each["label"] for each in of_document}),
            )


def _label(labels: set[str]) -> Label:
    if not labels:
        return "NEI"
    (label,) = labels
    return "SUPPORT" if label == "SUPPORT" else "REFUTE"
