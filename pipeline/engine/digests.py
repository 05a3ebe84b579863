"""Digests of months of tables, for a stage's `inputs` and for indexes over all months."""

from __future__ import annotations

import hashlib
import json
from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from typing import Any

from pipeline.engine.stage import Workspace
from pipeline.storage.data_root import DataRoot
from pipeline.storage.provenance import read_rows_sha256
from pipeline.storage.read_cache import once
from pipeline.tables import Table
from pipeline.text import text_digest


def json_digest(value: Any) -> str:
    """SHA-256 of a value as JSON, in hexadecimal."""
    return text_digest(json.dumps(value, sort_keys=True))


def month_digests(workspace: Workspace, table: Table) -> dict[str, str]:
    """The digest of the rows of every month of a table, oldest first."""

    def read() -> dict[str, str]:
        with workspace.read_cache():
            months = workspace.root.months(table)
            digests = {month: _digest(workspace.root, table, month) for month in months}
        return {month: digest for month, digest in digests.items() if digest}

    return once("digests", read, workspace.root.folder(table.name))


def digest_before(workspace: Workspace, table: Table, month: str) -> str:
    """One digest over the rows of all months of a table before this one."""
    months, digests = _digests_of_beginnings(workspace, table)
    return digests[bisect_left(months, month)]


def digest_until(workspace: Workspace, table: Table, month: str) -> str:
    """One digest over the rows of all months of a table up to this one."""
    months, digests = _digests_of_beginnings(workspace, table)
    return digests[bisect_right(months, month)]


def _digests_of_beginnings(workspace: Workspace, table: Table) -> tuple[list[str], list[str]]:
    """The months of a table, and one digest over none of them, the first, the first two, and so on;
    each as `digest_of` gives it for these months.
    """

    def read() -> tuple[list[str], list[str]]:
        digests = month_digests(workspace, table)
        beginning = hashlib.sha256()
        beginnings = [beginning.hexdigest()]
        for month, digest in digests.items():
            separator = "" if len(beginnings) == 1 else "\n"
            beginning.update(f"{separator}{month} {digest}".encode())
            beginnings.append(beginning.hexdigest())
        return list(digests), beginnings

    return once("digests of beginnings", read, workspace.root.folder(table.name))


def digest_of(workspace: Workspace, table: Table, months: Iterable[str]) -> str:
    """One digest over the rows of some months of a table; a missing month counts as such."""
    lines = (f"{month} {_digest(workspace.root, table, month) or 'absent'}" for month in months)
    return text_digest("\n".join(lines))


def digests_by_month(workspace: Workspace, table: Table, months: Iterable[str]) -> dict[str, str]:
    """The digest of the rows of each of these months of a table that exists, by `table month`."""
    digests = {month: _digest(workspace.root, table, month) for month in sorted(months)}
    return {f"{table.name} {month}": digest for month, digest in digests.items() if digest}


def _digest(root: DataRoot, table: Table, month: str) -> str | None:
    return read_rows_sha256(root.file(table, month))
