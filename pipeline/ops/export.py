"""An export: the columns of tables that may be published, copied as Parquet files into a folder.

The files are named as in the data root: `<table>/<YYYY-MM>.parquet`, and for ledgers
`ledger/<stage>/<YYYY-MM>.parquet`.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import cache
from itertools import groupby
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from pipeline import __version__
from pipeline.arxiv.snapshot import Snapshot
from pipeline.engine.stage import Workspace
from pipeline.errors import MissingInput, PermanentFailure, SettingError
from pipeline.identity.months import describe_months, is_month, select_months
from pipeline.storage.data_root import DataRoot
from pipeline.storage.store import DataPath
from pipeline.storage.writing import write_whole
from pipeline.tables import LEDGER, METADATA, TABLES, Table

_LISTS = Path(__file__).parents[1] / "tables" / "publication.toml"
Progress = Callable[[str], None]
# The licences at arXiv that allow redistributing changed text, as passages are, and Apache-2.0,
# the licence of the sample corpus. Licences with NC or ND do not allow it.
_OPEN_LICENCES = (
    "creativecommons.org/licenses/by/",
    "creativecommons.org/licenses/by-sa/",
    "creativecommons.org/publicdomain/zero/",
    "creativecommons.org/licenses/publicdomain",
    "www.apache.org/licenses/license-2.0",
)


@dataclass(frozen=True, slots=True)
class Publication:
    """The columns of a table. published: anyone may have them. texts: words of the row's paper,
    which its licence may allow to redistribute. withheld: neither.
    """

    published: tuple[str, ...] = ()
    texts: tuple[str, ...] = ()
    withheld: tuple[str, ...] = ()


@cache
def publications() -> dict[str, Publication]:
    """Name of a table → its columns."""
    lists = tomllib.loads(_LISTS.read_text(encoding="utf-8"))
    return {
        table: Publication(**{name: tuple(columns) for name, columns in by_list.items()})
        for table, by_list in lists.items()
    }


@dataclass(frozen=True, slots=True)
class ExportRequest:
    """The options of an export. open_texts: also words of papers under an open licence."""

    to: str
    months: str
    tables: str
    open_texts: bool = False


@dataclass(frozen=True, slots=True)
class ExportedFile:
    """A file of an export. path: below its folder."""

    table: str
    month: str
    path: str
    rows: int
    bytes: int


@dataclass(frozen=True, slots=True)
class Export:
    """An export that was written."""

    request: ExportRequest
    folder: Path
    files: Sequence[ExportedFile]

    @property
    def tables(self) -> list[Table]:
        names = {file.table for file in self.files}
        return [table for name, table in TABLES.items() if name in names]

    def columns_left_out(self, table: Table) -> list[str]:
        exported = _columns(table, self.request.open_texts)
        return [name for name in table.schema.names if name not in exported]

    def as_json(self) -> dict[str, Any]:
        """The export as a JSON document."""
        return {
            "to": str(self.folder),
            "texts": "open" if self.request.open_texts else "none",
            "files": [asdict(file) for file in self.files],
            "columns_left_out": {table.name: self.columns_left_out(table) for table in self.tables},
        }


@dataclass(frozen=True, slots=True)
class _Source:
    """A file of the data root. stage: whose ledger it is; None for a month of a table."""

    table: Table
    month: str
    stage: str | None = None

    @property
    def path(self) -> str:
        stage = f"{self.stage}/" if self.stage else ""
        return f"{self.table.name}/{stage}{self.month}.parquet"

    def batches(self, root: DataRoot, columns: list[str]) -> Iterator[pa.RecordBatch]:
        """The rows, at most a row group at a time. Raises as `DataRoot.batches` does."""
        if self.stage is None:
            yield from root.batches(self.table, self.month, columns)
            return
        ledger = root.ledger(self.stage, self.month, columns)
        yield from ledger.to_batches(LEDGER.rows_per_group)


def export(
    workspace: Workspace, request: ExportRequest, progress: Progress = lambda path: None
) -> Export:
    """Copy the requested tables into a new folder, which is whole or absent.

    progress: called with the path of each file. Raises SettingError where nothing can be exported
    there, MissingInput where there is nothing to export, and what reading tables raises.
    """
    folder = _target(request.to, workspace)
    sources = _sources(workspace.root, choose_tables(request.tables), request.months)
    with _new_folder(folder) as staged:
        files = []
        # By month, so that the licences of one month are held at a time.
        for month, of_month in groupby(sources, key=lambda source: source.month):
            licences = open_licences(workspace, month) if request.open_texts else None
            for source in of_month:
                progress(source.path)
                files.append(_copy(workspace.root, source, staged, licences))
        write_whole(staged / "README.md", _readme(files, open_texts=request.open_texts).encode())
    return Export(request, folder, files)


def choose_tables(names: str) -> list[Table]:
    """The tables named in a comma-separated list, or all of them, in pipeline order. Raises
    SettingError for others.
    """
    selection = {name.strip() for name in names.split(",") if name.strip()}
    unknown = sorted(selection - TABLES.keys() - {"all"})
    if unknown or not selection:
        what = f"{', '.join(unknown)}, which is not a table" if unknown else "no table"
        raise SettingError(
            f"--tables names {what}: give some of {', '.join(TABLES)}, separated by commas, or all"
        )
    return [table for name, table in TABLES.items() if name in selection or "all" in selection]


def _columns(table: Table, open_texts: bool) -> list[str]:
    """The columns that are exported, in the table's order."""
    columns = publications()[table.name]
    exported = columns.published + (columns.texts if open_texts else ())
    return [name for name in table.schema.names if name in exported]


def _sources(root: DataRoot, tables: Sequence[Table], months: str) -> list[_Source]:
    """The files of these tables in the selected months, by month. Raises SettingError for a
    selection that names no month, MissingInput where there is no file.
    """
    available = [
        _Source(table, month) for table in tables if table != LEDGER for month in root.months(table)
    ]
    if LEDGER in tables:
        files: Sequence[DataPath] = list(root.folder(LEDGER.name).glob("*/*.parquet"))
        available += [
            _Source(LEDGER, file.stem, file.parent.name)
            for file in files
            if file.parent.name in TABLES  # not of stages that earlier versions had
        ]
    available = [source for source in available if is_month(source.month)]
    if not available:
        names = ", ".join(table.name for table in tables)
        raise MissingInput(f"{root.path} has no {names} to export: run citeloom run first")
    selected = select_months(months, {source.month for source in available})
    order = list(TABLES)
    return sorted(
        (source for source in available if source.month in selected),
        key=lambda source: (source.month, order.index(source.table.name), source.path),
    )


def _copy(
    root: DataRoot, source: _Source, folder: Path, licences: Mapping[str, str] | None
) -> ExportedFile:
    """Copy a file, with one row group in memory. licences: of papers whose words are copied too."""
    file = folder / source.path
    file.parent.mkdir(parents=True, exist_ok=True)
    columns = _columns(source.table, licences is not None)
    texts = publications()[source.table.name].texts if licences is not None else ()
    schema = pa.schema([source.table.schema.field(name) for name in columns])
    if texts:
        schema = schema.append(pa.field("license", pa.string()))
    rows = 0
    with pq.ParquetWriter(file, schema, compression="zstd") as writer:
        for batch in source.batches(root, columns):
            if licences is not None and texts:
                batch = mask_texts(batch, texts, licences)
            writer.write_batch(batch)
            rows += batch.num_rows
    return ExportedFile(source.table.name, source.month, source.path, rows, file.stat().st_size)


def _readme(files: Sequence[ExportedFile], *, open_texts: bool) -> str:
    tables = dict.fromkeys(file.table for file in files)
    months = describe_months(sorted({file.month for file in files}))
    words = "are not here"
    if open_texts:
        words = (
            "are here where the column `license` names the paper's licence, which lets anyone"
            " redistribute them, and null elsewhere"
        )
    return f"""# Tables of papers, made by citeloom {__version__}

Parquet files of {", ".join(tables)}, one for each arXiv month ({months}).
DuckDB and Polars read them as `TABLE/*.parquet`; their schemas describe each column.

- `metadata` is arXiv's descriptive metadata, which arXiv puts under CC0 1.0.
- Words of papers {words}.
- Vectors, texts of language models, names of raters and addresses of authors are not here.
- SIGMathLing's terms forbid republishing pages of its ar5iv data set, whatever a paper's licence
  says: ask SIGMathLing before you publish words of them. This is our reading, not legal advice.
"""


def _target(to: str, workspace: Workspace) -> Path:
    """The folder. Raises SettingError where it cannot be one, or holds anything."""
    if "://" in to:
        raise SettingError(f"--to {to} is not a folder: name one on this machine")
    folder = Path(to).expanduser().resolve()
    if not {workspace.root.path, workspace.local}.isdisjoint((folder, *folder.parents)):
        raise SettingError(f"--to {folder} is in the data root: name a folder elsewhere")
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise SettingError(f"--to {folder} exists: delete it, or name a new or an empty folder")
    return folder


@contextmanager
def _new_folder(folder: Path) -> Iterator[Path]:
    """A temporary folder that becomes `folder` when the block ends. Raises PermanentFailure where
    it cannot be written.
    """
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(prefix=".citeloom-export-", dir=folder.parent) as temporary:
            staged = Path(temporary) / folder.name
            staged.mkdir()
            yield staged
            staged.rename(folder)  # fails where another export has filled it
    except OSError as error:
        raise PermanentFailure(
            f"--to {folder} cannot be written ({error}): make room there, or name another folder"
        ) from error


def open_licences(workspace: Workspace, month: str) -> Mapping[str, str]:
    """arXiv id → address of the licence, for the month's papers under an open licence. None is
    known of papers that OAI-PMH or the API has described since the snapshot, and of withdrawn ones.
    """
    snapshot = Snapshot.of(workspace)
    if snapshot is None:
        return {}
    known = [
        row["arxiv_id"]
        for row in workspace.root.iterate(METADATA, month, ["arxiv_id", "source", "status"])
        if row["source"] == "snapshot" and row["status"] == "present"
    ]
    licences = snapshot.licences(known)
    return {arxiv_id: licence for arxiv_id, licence in licences.items() if is_open(licence)}


def is_open(licence: str) -> bool:
    """Whether a licence, by its address, lets anyone redistribute the text, changed or not."""
    return (
        licence.lower().removeprefix("https://").removeprefix("http://").startswith(_OPEN_LICENCES)
    )


def mask_texts(
    batch: pa.RecordBatch, columns: Sequence[str], licences: Mapping[str, str]
) -> pa.RecordBatch:
    """The batch with a column `license`, and with null in `columns` where it is null."""
    names = batch.schema.names
    licence_of_row = [
        # Front matter holds e-mail addresses.
        None if row.get("kind") == "front_matter" else licences.get(row["arxiv_id"])
        for row in batch.select(sorted({"arxiv_id", "kind"} & {*names})).to_pylist()
    ]
    # `take` gives null for a null index, whatever the column's type.
    rows = pa.array([row if text else None for row, text in enumerate(licence_of_row)], pa.int32())
    for name in columns:
        batch = batch.set_column(names.index(name), name, batch[name].take(rows))
    return batch.append_column("license", pa.array(licence_of_row, pa.string()))
