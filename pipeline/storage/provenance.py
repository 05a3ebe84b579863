"""What made a month of a table, kept in its file's metadata."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from pipeline.errors import PermanentFailure
from pipeline.storage.reading import read_note
from pipeline.storage.store import Place

METADATA_KEY = b"citeloom"


@dataclass(frozen=True, slots=True)
class Provenance:
    """What made a file, kept in its metadata."""

    table: str
    month: str
    schema_version: int
    stage_version: int
    code_version: str
    fingerprint: str
    settings: Mapping[str, Any]
    inputs: Mapping[str, str]
    rows: int = 0
    rows_sha256: str = ""
    left_out: Mapping[str, int] = field(default_factory=dict)
    notes: Mapping[str, Any] = field(default_factory=dict)


def read_provenance(file: Place) -> Provenance | None:
    """What made a file; None where it does not exist. Raises PermanentFailure where it is no table of citeloom."""
    try:
        note = read_note(file, METADATA_KEY)
        return None if note is None else Provenance(**json.loads(note))
    except (OSError, pa.ArrowInvalid, KeyError, TypeError, ValueError) as error:
        raise PermanentFailure(
            f"{file} is not a table that citeloom wrote ({error}): move it away and run again"
        ) from error
