"""A secret is found however it was written or packed: the tests that say "nowhere" rest on it."""

from __future__ import annotations

import base64
import gzip
import html
import json
import sqlite3
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote, quote_plus

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.sentinels import Search, sentinel

NAME = "CITELOOM_LLM_API_KEY"
SECRET = sentinel(NAME)
WRITTEN: dict[str, Callable[[str], str]] = {
    "as it is": str,
    "in a URL": lambda text: quote(text, safe=""),
    "in a form": quote_plus,
    "in JSON": json.dumps,
    "in HTML": html.escape,
    "cut short": lambda text: text[:18],
    "as hexadecimal": lambda text: text.encode().hex(),
    **{
        f"as base64 after {before!r}": lambda text, before=before: base64.b64encode((before + text).encode()).decode()
        for before in ("", "u", "us", "user:")
    },
}


@pytest.mark.parametrize("way", WRITTEN)
def test_a_secret_is_found_however_it_is_written(way: str) -> None:
    assert Search([NAME]).in_text(f"before {WRITTEN[way](SECRET)} after")
    assert not Search([NAME]).in_text(f"before {WRITTEN[way]('sk-0123456789abcdef0123')} after")


def in_database(folder: Path) -> None:
    with sqlite3.connect(folder / "history.db") as database:
        database.execute("CREATE TABLE snapshots (body BLOB)")
        database.execute("INSERT INTO snapshots VALUES (?)", (zlib.compress(f'{{"key": "{SECRET}"}}'.encode()),))


def in_table(folder: Path) -> None:
    pq.write_table(pa.table({"text": ["a" * 99, SECRET]}), folder / "month.parquet", compression="zstd")


def in_zip(folder: Path) -> None:
    with zipfile.ZipFile(folder / "files.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("page", gzip.compress(SECRET.encode()))


def in_stream(folder: Path) -> None:
    with pa.OSFile(str(folder / "log.zst"), "wb") as file, pa.CompressedOutputStream(file, "zstd") as packed:
        packed.write(SECRET.encode())


def in_name(folder: Path) -> None:
    (folder / quote(SECRET, safe="")).touch()


@pytest.mark.parametrize("pack", [in_database, in_table, in_zip, in_stream, in_name])
def test_a_secret_is_found_however_it_is_packed(tmp_path: Path, pack: Callable[[Path], None]) -> None:
    pack(tmp_path)
    found = Search([NAME]).in_folder(tmp_path)
    assert found
    assert all(f"{NAME} (plain)" in each for each in found)
