"""The stage `pages`: convert the sources of a month's papers into loose pages of the dump.

Pages and their records are written paper by paper, so that a month that was interrupted continues;
the table says what the pages are made of.
"""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from pipeline.arxiv.metadata_stage import metadata_version, objections_of_month
from pipeline.corpus.dump.catalogue import papers_in_dump
from pipeline.corpus.dump.loose_pages import (
    PageLedger,
    PageRecord,
    dump_folder_to_write,
    page_file,
    write_page,
)
from pipeline.corpus.sources.archives import (
    Source,
    SourceError,
    choose_main_file,
    month_digest,
    sources_of_month,
    unpack,
)
from pipeline.corpus.sources.converter import LatexmlConverter, find_converter
from pipeline.engine import shutdown
from pipeline.engine.process_pool import count_workers
from pipeline.engine.stage import Job, Stage, Workspace
from pipeline.settings import SUBSETS, Settings
from pipeline.storage.read_cache import remember
from pipeline.storage.writing import Row
from pipeline.tables import PAGES as PAGES_TABLE
from pipeline.text import text_digest

CONVERTED = "converted"


@dataclass(frozen=True, slots=True)
class SourceConversion:
    """Converts the sources of a month. folder: for files that are removed after each paper."""

    dump: Path
    ledger: PageLedger
    records: Mapping[str, PageRecord]
    converter: LatexmlConverter
    folder: Path

    def convert(self, source: Source) -> PageRecord:
        """The outcome of a source, whose page is in place then; from its record where nothing has
        changed since.
        """
        arxiv_id, folder = source.arxiv_id, self.folder / source.arxiv_id.replace("/", "")
        paper, out = folder / "paper", folder / "out"
        made_of, main_file, others, page, severity = "", "", list[str](), b"", ""
        try:
            content = source.read()
            made_of = f"{hashlib.sha256(content).hexdigest()} {self.converter.name}"
            record = self.records.get(arxiv_id)
            if record and record.made_of == made_of:
                in_place = page_file(self.dump / record.severity, arxiv_id).exists()
                if in_place or record.reason != CONVERTED:
                    return record
            paper.mkdir(parents=True)
            out.mkdir()
            unpack(content, paper)
            main_file, others = choose_main_file(paper)
            page, severity, detail = self.converter.convert(paper, main_file, out)
            reason = CONVERTED
        except SourceError as error:
            reason, detail = error.reason, error.detail
        finally:
            shutil.rmtree(folder, ignore_errors=True)
        # In this order, so that a kill leaves no page that its record does not describe.
        for subset in SUBSETS:
            page_file(self.dump / subset, arxiv_id).unlink(missing_ok=True)
        more = {"made_of": made_of, "severity": severity, "main_file": main_file}
        record = self.ledger.save(arxiv_id, reason, detail, others=", ".join(others), **more)
        if page:
            write_page(page_file(self.dump / severity, arxiv_id), page)
        return record


class Pages(Stage):
    """Pages of new months, converted by LaTeXML or latexml-oxide from the sources of the papers
    that metadata lists.
    """

    table = PAGES_TABLE
    settings = ("categories", "category_match")
    kinds = ("parquet", "html")

    def disabled_reason(self, settings: Settings) -> str:
        return "" if settings.sources else "CITELOOM_SOURCES names no folder of sources"

    def inputs(self, workspace: Workspace, month: str) -> Mapping[str, str]:
        settings = workspace.settings
        digest = month_digest(settings.sources, month)
        if not digest:
            return {}
        version = f"{metadata_version(workspace)} {settings.categories} {settings.category_match}"

        def read() -> str:
            return text_digest(repr(sorted(objections_of_month(workspace, month).items())))

        return {
            "sources": digest,
            "converter": find_converter(settings).name,
            "metadata": remember(f"papers of {workspace.root.path} {month}", version, read),
        }

    def build(self, job: Job) -> Iterator[Row]:
        """Convert the sources of a month that metadata lists in the chosen categories, as many at
        once as there are workers; a row for each page.

        With force, also those that are unchanged. Papers that have another page in the dump are
        left out. Raises SettingError where there is no converter, sandbox, folder to write to or
        metadata.
        """
        settings, month, workspace = job.settings, job.month, job.workspace
        sources, damaged = sources_of_month(settings.sources, month)
        for tar, fault in damaged.items():
            job.leave_out(tar, "corrupt_source", fault)
        if not sources:
            return
        dump = dump_folder_to_write(settings)
        ledger = PageLedger(workspace.cache("converted_pages") / f"{month}.jsonl")
        records = ledger.read()
        objections = objections_of_month(workspace, month)
        ours = {name for name, record in records.items() if record.reason == CONVERTED}
        objections |= dict.fromkeys(papers_in_dump(settings, {month}) - ours, "in_dump")
        folder = workspace.cache("conversions") / month
        shutil.rmtree(folder, ignore_errors=True)  # of a run that was killed
        conversion = SourceConversion(
            dump, ledger, {} if job.force else records, find_converter(settings), folder
        )
        threads = ThreadPoolExecutor(count_workers(settings.workers))
        outcomes = []
        for source in sources:
            reason = objections.get(source.arxiv_id, "no_metadata")
            if reason:
                job.leave_out(source.arxiv_id, reason, source.place)
            else:
                outcomes.append((source, threads.submit(conversion.convert, source)))
        job.expect(len(outcomes))
        try:
            for done, (source, outcome) in enumerate(outcomes, start=1):
                record = outcome.result()
                shutdown.end_if_asked()
                job.advance(done)
                if record.others:
                    detail = f"{record.main_file} is converted, and not {record.others}"
                    job.leave_out(source.arxiv_id, "other_main_file", detail)
                if record.reason == CONVERTED:
                    row = {
                        name: getattr(record, name) for name in ("severity", "main_file", "made_of")
                    }
                    yield {
                        "arxiv_id": source.arxiv_id,
                        "source": source.place,
                        "last_error": record.detail or None,
                        **row,
                    }
                else:
                    job.leave_out(source.arxiv_id, record.reason, record.detail)
        finally:
            threads.shutdown(cancel_futures=True)


PAGES = Pages()
