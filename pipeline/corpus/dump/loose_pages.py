"""Write loose pages into the dump folder, and record what became of each paper."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from pipeline.errors import PermanentFailure, SettingError
from pipeline.identity.identifiers import month_of
from pipeline.settings import SAMPLE_DUMP, Settings
from pipeline.storage.writing import write_whole

_END_BYTES = 2048  # where LaTeXML's pages have their </html>, with nothing or a comment after it


class PageRecord(NamedTuple):
    """Outcome of the last attempt at a paper's page.

    reason: `fetched` or `converted`, or why there is no page. detail: the page's address, or the
    fault. requested_at: ISO 8601, UTC. Of a conversion also made_of: digest of the source and the
    converter's name; severity: of the page; main_file: the TeX file; others: that may be the main
    one too.
    """

    arxiv_id: str
    reason: str
    detail: str
    requested_at: str
    made_of: str = ""
    severity: str = ""
    main_file: str = ""
    others: str = ""


class PageLedger:
    """The outcomes of all attempts, a line of JSON each, so that none is repeated needlessly.

    Raises PermanentFailure where the file cannot be read or written.
    """

    def __init__(self, file: Path) -> None:
        self._file = file

    def read(self) -> dict[str, PageRecord]:
        """The last record of each paper, by identifier; a line that a kill cut off is ignored."""
        records: dict[str, PageRecord] = {}
        if not self._file.exists():
            return records
        try:
            content = self._file.read_text("utf-8", "replace")
        except OSError as error:
            raise self._failure(error) from error
        for line in content.splitlines():
            try:
                record = PageRecord(**json.loads(line))
            except (ValueError, TypeError):
                continue
            records[record.arxiv_id] = record
        return records

    def save(self, arxiv_id: str, reason: str, detail: str, **more: str) -> PageRecord:
        """Save the outcome of an attempt with the present time, durably. more: of a conversion."""
        now = datetime.now(UTC).isoformat(timespec="seconds")
        record = PageRecord(arxiv_id, reason, detail, now, **more)
        try:
            with self._file.open("a", encoding="utf-8") as file:
                # The line break goes first: the line before may be cut off.
                file.write("\n" + json.dumps(record._asdict()))
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise self._failure(error) from error
        return record

    def _failure(self, error: OSError) -> PermanentFailure:
        return PermanentFailure(
            f"the ledger of pages, {self._file}, cannot be read or written ({error.strerror}): make"
            " room there, or move the file away and run again"
        )


def dump_folder_to_write(settings: Settings) -> Path:
    """The dump folder. Raises SettingError where pages cannot be written to it."""
    place = settings.dump_dir
    if not isinstance(place, Path):
        raise SettingError(
            f"CITELOOM_DUMP_DIR is the address {place}: pages are written into a folder on a disk;"
            " set it to one, and copy what comes to the store"
        )
    if place.resolve() == SAMPLE_DUMP.resolve():
        raise SettingError(
            "CITELOOM_DUMP_DIR is the sample corpus: set it to the folder of your own dump"
        )
    if not place.is_dir():
        raise SettingError(
            f"CITELOOM_DUMP_DIR: there is no folder {place}: make it, or set another"
        )
    return place


def page_file(dump: Path, arxiv_id: str) -> Path:
    """The file of a paper's page: `<yymm>/<id>.html`, an old identifier without its slash."""
    month = month_of(arxiv_id) or ""
    return dump / f"{month[2:4]}{month[5:]}" / f"{arxiv_id.replace('/', '')}.html"


def fault_of_page(page: bytes) -> tuple[str, str] | None:
    """Why an HTML page is not a whole paper, as a ledger's reason and detail; None where it is."""
    if b"</html>" not in page[-_END_BYTES:].lower():
        return "cut", f"it breaks off after {len(page):,} bytes, without </html>"
    if b"ltx_document" not in page:
        return "not_latexml", "it is HTML, and not a paper that LaTeXML converted"
    return None


def write_page(file: Path, content: bytes) -> None:
    """Write a page, whole or not at all. Raises PermanentFailure where it cannot be written."""
    try:
        write_whole(file, content)
    except OSError as error:
        raise PermanentFailure(
            f"{file} cannot be written ({error.strerror}): make room there, or set another"
            " CITELOOM_DUMP_DIR; the pages before it are in place"
        ) from error
