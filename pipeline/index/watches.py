"""Watches: saved queries whose new papers are listed month by month.

The folder `watches` of the data root has a JSON file for each month of the index: the papers that
fit each watch well, with the day on which they were first listed. It is made again where the
month's points or the watches changed; papers that are listed already keep their day and are not
reported again.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from pipeline import tables
from pipeline.engine.digests import json_digest
from pipeline.engine.progress import Notice, publish
from pipeline.engine.stage import Workspace
from pipeline.engine.webhook import notify
from pipeline.errors import MissingInput, SettingError
from pipeline.index.paper_results import search_papers
from pipeline.index.search_options import SearchOptions
from pipeline.settings import Settings
from pipeline.settings.models_file import read_toml
from pipeline.storage.data_root import DataRoot
from pipeline.storage.store import DataPath
from pipeline.storage.writing import write_whole
from pipeline.text import number_of, one_line

_Names = Annotated[tuple[str, ...], Field(max_length=100)]


class Watch(BaseModel):
    """One table of the file. limit: papers of one month at most; filters as those of a search."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str = Field(min_length=1, max_length=100)
    query: str = Field(min_length=1, max_length=10_000)
    categories: _Names = ()
    authors: _Names = ()
    venue: str = ""
    limit: int = Field(20, ge=1, le=200)

    def options(self, month: str | None = None) -> SearchOptions:
        """The options of its search in a month. Raises SettingError for a wrong filter."""
        options = SearchOptions(
            limit=self.limit,
            categories=self.categories,
            authors=self.authors,
            venue=self.venue,
            first_month=month,
            last_month=month,
        )
        return options.checked()


@dataclass(frozen=True, slots=True)
class WatchedPaper:
    """A paper that fits a watch. found: the day (UTC) on which it was first listed."""

    watch: str
    month: str
    arxiv_id: str
    title: str
    found: str


def read_watches(file: Path | None) -> list[Watch]:
    """The watches of a file; none without a file. Raises SettingError with a line for each fault,
    naming file, line and key.
    """
    if file is None:
        return []
    text, document = read_toml(file, "CITELOOM_WATCHES")
    entries = document.pop("watch", None)
    if document or not isinstance(entries, list):
        other = f", not {', '.join(document)}" if document else ""
        raise SettingError(f"CITELOOM_WATCHES: {file} must hold tables [[watch]]{other}")
    watches: dict[str, Watch] = {}
    messages = []
    for number, entry in enumerate(entries):
        faults = list(_faults_of(entry, watches))
        for key, message in faults:
            line = _line_of(text, number, key)
            messages.append(f"CITELOOM_WATCHES: {file}, line {line}: {message}")
        if not faults:
            watch = Watch.model_validate(entry)
            watches[watch.name] = watch
    if messages:
        raise SettingError("\n".join(messages))
    return list(watches.values())


def _faults_of(entry: object, others: Mapping[str, Watch]) -> Iterator[tuple[str, str]]:
    """(key, message) of each fault of a table. others: the watches before it."""
    try:
        watch = Watch.model_validate(entry)
    except ValidationError as error:
        for detail in error.errors():
            message = detail["msg"]
            if detail["type"] == "extra_forbidden":
                message = f"is not a key; the keys are {', '.join(Watch.model_fields)}"
            if detail["loc"]:
                key = str(detail["loc"][0])
                yield key, f"{key}: {message}"
            else:
                yield "", message
        return
    if watch.name in others:
        yield "name", f"name: there are two watches {watch.name!r}"
    try:
        watch.options()
    except SettingError as error:  # only categories have a spelling
        yield "categories", f"categories: {error}"


def _line_of(text: str, number: int, key: str) -> int:
    """The line of a key in the table of this number, or of the table's header; from 1."""
    header, tables_seen = 1, -1
    for place, line in enumerate(text.splitlines(), 1):
        if re.match(r"\s*\[\[\s*watch\s*\]\]", line):
            tables_seen += 1
            if tables_seen == number:
                header = place
        elif tables_seen == number and re.match(rf"""\s*["']?{re.escape(key)}["']?\s*=""", line):
            return place
    return header


def update_watches(workspace: Workspace) -> list[WatchedPaper]:
    """Bring the lists of all months up to date; returns the papers that are new in them, after a
    notice and a message to CITELOOM_WEBHOOK_URL for each watch that has some.

    Raises SettingError for a wrong file, and as a search does.
    """
    watches = read_watches(workspace.settings.watches)
    if not watches:
        return []
    new_papers: list[WatchedPaper] = []
    with workspace.read_cache():
        for month in workspace.root.months(tables.INDEX_RECEIPTS):
            new_papers += _update_month(workspace, watches, month)
    for watch in watches:
        of_watch = [paper for paper in new_papers if paper.watch == watch.name]
        if of_watch:
            _notify(workspace.settings, watch, of_watch)
    return new_papers


def _update_month(
    workspace: Workspace, watches: Sequence[Watch], month: str
) -> Iterator[WatchedPaper]:
    """List the papers of a month that fit; yields those that were not listed before.

    Without an index, the list stays as it is.
    """
    root = workspace.root
    receipt = root.provenance(tables.INDEX_RECEIPTS, month)
    basis = [[watch.model_dump() for watch in watches], receipt.rows_sha256 if receipt else ""]
    made_from = json_digest(basis)
    before = _read_month(root, month)
    if before.get("made_from") == made_from:
        return
    days = {(paper["watch"], paper["arxiv_id"]): paper["found"] for paper in before["papers"]}
    today = datetime.now(UTC).date().isoformat()
    papers = []
    try:
        for watch in watches:
            for arxiv_id, title in _papers_of(workspace, watch, month):
                day = days.get((watch.name, arxiv_id), today)
                papers.append(WatchedPaper(watch.name, month, arxiv_id, title, day))
    except MissingInput:
        return
    document = {"made_from": made_from, "papers": [asdict(paper) for paper in papers]}
    write_whole(_file(root, month), json.dumps(document, indent=1).encode())
    yield from (paper for paper in papers if (paper.watch, paper.arxiv_id) not in days)


def _papers_of(workspace: Workspace, watch: Watch, month: str) -> list[tuple[str, str]]:
    """Id and title of the month's papers that fit well. Raises MissingInput without an index."""
    try:
        results = search_papers(workspace, [watch.query], watch.options(month))[0]
    except SettingError:  # the corpus has no paper with a filter's value
        return []
    return [
        (paper.arxiv_id, one_line(paper.title))
        for paper in results
        if paper.relevance in ("strong", None)  # many weak matches are of the subject at large
    ]


def _notify(settings: Settings, watch: Watch, papers: Sequence[WatchedPaper]) -> None:
    heading = f"watch {watch.name}: {number_of(len(papers), 'new paper')}"
    publish(Notice(f"{heading}: {', '.join(paper.arxiv_id for paper in papers[:10])}"))
    lines = (f"• {paper.title} (arXiv:{paper.arxiv_id})" for paper in papers)
    notify(settings, "\n".join([f"citeloom: {heading}", *lines]))


def watched_papers(root: DataRoot, watches: Iterable[Watch] | None = None) -> list[WatchedPaper]:
    """The listed papers, of these watches alone if they are given. The newest found are first,
    then the newest months.
    """
    names = {watch.name for watch in watches or ()}
    papers = []
    for month in root.months(tables.INDEX_RECEIPTS):
        listed = (WatchedPaper(**paper) for paper in _read_month(root, month)["papers"])
        papers += [paper for paper in listed if watches is None or paper.watch in names]
    return sorted(papers, key=lambda paper: (paper.found, paper.month), reverse=True)


def _read_month(root: DataRoot, month: str) -> Mapping[str, Any]:
    """The file of a month; one without papers where it is absent or damaged."""
    try:
        document = json.loads(_file(root, month).read_text())
        return {"made_from": str(document["made_from"]), "papers": list(document["papers"])}
    except (OSError, ValueError, KeyError, TypeError):
        return {"papers": []}


def _file(root: DataRoot, month: str) -> DataPath:
    return root.path / "watches" / f"{month}.json"
