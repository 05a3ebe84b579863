"""The dump as a whole: its months, and for each month the pages, the strays and a digest of both.

Of a zip only the directory is read, once; its listing is cached (`listing.py`). Beside the zips lie
loose pages, of months that are in no zip yet: `<yymm>/<id>.html` and `<subset>/<yymm>/<id>.html`.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
from deflate import crc32

from pipeline.corpus.dump.central_directory import read_directory
from pipeline.corpus.dump.folder import DumpFolder, open_folder
from pipeline.corpus.dump.listing import (
    Fault,
    Listing,
    ListingPart,
    build_listing,
    cached_listing,
    list_zip,
)
from pipeline.corpus.dump.member import LARGEST_PAGE, as_text, is_subset_folder, place_of, subset_of
from pipeline.corpus.sources.archives import months_of_sources
from pipeline.errors import MissingInput, SettingError
from pipeline.identity.identifiers import MemberName, folder_month, read_member_name
from pipeline.settings import SUBSETS, Settings
from pipeline.storage.read_cache import once
from pipeline.storage.writing import write_whole
from pipeline.tables import DUMP_MEMBERS
from pipeline.text import number_of, text_digest

Stray = tuple[str, str, str]
"""A name in the dump that is not a readable page: its place, and the ledger's reason and detail."""
FileFacts = Mapping[str, tuple[int, str, int]]
"""Size, mark and checksum of each page by its name."""


@dataclass(frozen=True)
class Dump:
    """The contents of the dump folder. Pages and strays are those of the chosen `subsets` only.

    broken: for each zip that cannot be used, a sentence that says why and what to do.
    """

    subsets: tuple[str, ...]
    folder: DumpFolder
    cache: Path
    zips: tuple[tuple[str, Listing], ...]
    loose: tuple[LooseFolder, ...]
    broken: Mapping[str, str]

    @cached_property
    def months(self) -> list[str]:
        """Months `YYYY-MM` that have pages, oldest first."""
        months = {folder.month for folder in self.loose if folder.subset in self.subsets}
        for _, listing in self.zips:
            for part in listing.parts:
                if part.subset in self.subsets and not part.strays:
                    months.add(part.month)
        return sorted(months)

    def count_pages(self, month: str) -> int:
        """How many pages the month has, duplicates included; no row is read."""
        return sum(part.rows for _, _, part in self._parts(month) if not part.strays)

    def count_bytes(self, month: str) -> int:
        """The bytes of the month's pages, uncompressed and with duplicates."""
        return sum(
            pc.sum(listing.rows_of(part)["bytes"]).as_py() or 0
            for _, listing, part in self._parts(month)
            if not part.strays
        )

    def pages(self, month: str) -> pa.Table:
        """The month's pages, columns as in the table dump_members, sorted by identifier.

        Duplicates of one identifier are sorted by preference: a loose page before those in zips,
        because it is newer; then the better conversion; of one name twice in a zip the last, as by
        zip tools.
        """
        tables = [DUMP_MEMBERS.schema.empty_table()]
        for zip_name, listing, part in self._parts(month):
            if not part.strays:
                rows = listing.rows_of(part)
                for name, value in (("subset", part.subset), ("zip", zip_name)):
                    rows = rows.append_column(name, pa.repeat(pa.scalar(value), rows.num_rows))
                tables.append(rows.select(DUMP_MEMBERS.schema.names).cast(DUMP_MEMBERS.schema))
        pages = pa.concat_tables(tables)
        zipped = pc.not_equal(pages["zip"], "")
        rank = pc.index_in(pages["subset"], pa.array(SUBSETS))
        keys = ("arxiv_id", "zipped", "rank", "zip", "member")
        order = pc.sort_indices(
            pages.append_column("zipped", zipped).append_column("rank", rank),
            [*((key, "ascending") for key in keys), ("offset", "descending")],
        )
        return pages.take(order)

    def strays(self, month: str) -> Iterator[Stray]:
        """The month's strays; the first month has those of none."""
        for zip_name, listing, part in self._parts(month):
            if part.strays:
                for row in listing.rows_of(part).select(["member", "reason", "detail"]).to_pylist():
                    yield place_of(zip_name, row["member"]), row["reason"], row["detail"]

    def digest(self, month: str) -> str:
        """A digest of the month's pages and strays, the same for a copied or touched zip."""
        digest = hashlib.sha256()
        for zip_name, _, part in self._parts(month):
            # "Part" is in the fingerprints of every data root, so the class's own name is not used.
            values = repr(part).removeprefix(type(part).__name__)
            digest.update(f"({zip_name!r}, Part{values})".encode())
        if month in self.months[:1]:
            digest.update(b"()")  # as in the fingerprints of data roots from before 2026-11-30
        return digest.hexdigest()

    def _parts(self, month: str) -> Iterator[tuple[str, Listing, ListingPart]]:
        """(zip or "", listing, part) of a month; the first month has the strays of none."""
        yield from self._zip_parts.get(month, ())
        for loose_folder in self.loose:
            if loose_folder.month == month and loose_folder.subset in self.subsets:
                with _listing_errors(self.folder):
                    listing = loose_folder.list_pages(self.folder, self.cache)
                for part in listing.parts:
                    if self._month_of(part) == month:
                        yield "", listing, part

    @cached_property
    def _zip_parts(self) -> Mapping[str | None, list[tuple[str, Listing, ListingPart]]]:
        """What `_parts` gives of zips, by month; None stands for subsets that are not chosen."""
        parts: dict[str | None, list[tuple[str, Listing, ListingPart]]] = defaultdict(list)
        for name, listing in self.zips:
            for part in listing.parts:
                parts[self._month_of(part)].append((name, listing, part))
        return parts

    def _month_of(self, part: ListingPart) -> str | None:
        """The month that a part counts for; None where its subset is not chosen."""
        if part.subset not in self.subsets:
            return None
        return part.month if part.month in self.months else next(iter(self.months), "")


def months_in_dump(settings: Settings) -> list[str]:
    """Months `YYYY-MM` that have pages in the chosen subsets, or sources to convert, oldest first.

    Raises as `read_dump` does, and SettingError where there is neither.
    """
    dump = read_dump(settings)
    months = {*dump.months, *months_of_sources(settings.sources)}
    if not months:
        raise SettingError(_describe_dump_without_pages(dump))
    return sorted(months)


def papers_in_dump(settings: Settings, months: set[str]) -> set[str]:
    """The papers of some months that have a page in the dump, in any subset."""
    dump = read_dump(settings, may_be_empty=True, subsets=SUBSETS)
    return {name for month in months for name in dump.pages(month)["arxiv_id"].to_pylist()}


def broken_zips(settings: Settings) -> list[str]:
    """A sentence for each zip that cannot be used. Raises as `read_dump` does."""
    return list(read_dump(settings).broken.values())


def read_dump(
    settings: Settings, *, may_be_empty: bool = False, subsets: tuple[str, ...] = ()
) -> Dump:
    """The present contents of the dump folder, read once within `read_cache`. subsets: others than
    those of the settings.

    Raises SettingError where there is no such folder, it cannot be listed, or it holds neither a
    zip nor a loose page (unless it `may_be_empty`, or sources are converted into it); MissingInput
    where it holds nothing but zips that cannot be used.
    """
    may_be_empty = may_be_empty or settings.sources is not None
    place, cache = settings.dump_dir, settings.local_root / "cache" / "zips"
    subsets = subsets or settings.subsets
    key = ("dump", place, cache, subsets, may_be_empty)
    return once(key, lambda: _read_folder(place, cache, subsets, may_be_empty))


def _read_folder(
    place: Path | str, cache: Path, subsets: tuple[str, ...], may_be_empty: bool
) -> Dump:
    folder = open_folder(place) if isinstance(place, Path) else _remote_folder(place)
    with _listing_errors(folder):
        top = sorted(
            (name, is_folder) for name, is_folder in folder.names() if not name.startswith(".")
        )
        loose = find_loose_folders(folder, top)
    names = [name for name, is_folder in top if name.lower().endswith(".zip") and not is_folder]
    if not names and not loose and not may_be_empty:
        raise SettingError(
            f"CITELOOM_DUMP_DIR: no .zip file is in {folder.address}, nor any page in a folder"
            " <yymm>: set it to the folder of the ar5iv zips"
        )
    zips: list[tuple[str, Listing]] = []
    broken: dict[str, str] = {}
    for name in names:
        try:
            zips.append((name, _list_zip(folder, name, cache)))
        except MissingInput as error:
            broken[as_text(name)] = str(error)
    if broken and not zips and not loose:
        more = f" ({len(broken) - 1} more zips cannot be used either)" if len(broken) > 1 else ""
        raise MissingInput(next(iter(broken.values())) + more)
    return Dump(subsets, folder, cache, tuple(zips), tuple(loose), broken)


@lru_cache(maxsize=16)
def _remote_folder(address: str) -> DumpFolder:
    """One object for each address, so that several calls share its listing."""
    return open_folder(address)


@contextlib.contextmanager
def _listing_errors(folder: DumpFolder) -> Iterator[None]:
    try:
        yield
    except NotADirectoryError as error:
        raise SettingError(
            f"CITELOOM_DUMP_DIR: {folder.address} is a file: set it to the folder of the ar5iv zips"
        ) from error
    except FileNotFoundError as error:
        raise SettingError(
            f"CITELOOM_DUMP_DIR: there is no folder {folder.address}: set it to the folder of the"
            " ar5iv zips"
        ) from error
    except OSError as error:
        raise SettingError(
            f"CITELOOM_DUMP_DIR: {folder.address} cannot be listed ({error.strerror or error}):"
            " make it readable, or set another folder"
        ) from error


def _list_zip(folder: DumpFolder, name: str, cache: Path) -> Listing:
    """The listing of a zip. Raises MissingInput where it cannot be used."""
    address = f"{folder.address}/{name}"
    if name != as_text(name):
        raise MissingInput(f"{as_text(address)}: its name is not UTF-8: rename it")

    def read() -> Listing:
        with contextlib.closing(folder.open(name)) as file:
            return list_zip(read_directory(address, folder.state(name).bytes, file.read), name)

    try:
        return cached_listing(cache, address, folder.state(name), read)
    except OSError as error:
        raise MissingInput(
            f"{address} cannot be read ({error.strerror or error}): put it in place and make it"
            " readable, or move it out of CITELOOM_DUMP_DIR"
        ) from error


def _describe_dump_without_pages(dump: Dump) -> str:
    parts = [part for _, listing in dump.zips for part in listing.parts if not part.strays]
    others = sum(part.rows for part in parts if part.subset not in dump.subsets)
    strays = list(dump.strays(""))
    example = f", for example {strays[0][0]} ({strays[0][2]})" if strays else ""
    return (
        f"CITELOOM_DUMP_DIR: no arXiv page is in {dump.folder.address}: its zips hold"
        f" {number_of(others, 'page')} of severities that are not chosen, and"
        f" {number_of(len(strays), 'name')} of no page{example};"
        " a page is <severity>/<yymm>/<id>.html, or <yymm>/<id>.html in a zip"
        f" named after its severity; CITELOOM_SUBSETS is {','.join(dump.subsets)}"
    )


@dataclass(frozen=True, slots=True)
class LooseFolder:
    """One folder of a month's loose pages. `path` is below the dump folder."""

    path: str
    month: str
    subset: str

    def list_pages(self, folder: DumpFolder, cache: Path) -> Listing:
        """Its present contents. Checksums are cached: only new and changed pages are read.

        Raises OSError where the folder cannot be listed.
        """
        address = f"{folder.address}/{self.path}"
        cache_file = cache / f"{text_digest(address)[:32]}.json"
        cached = _read_facts(cache_file)
        facts: dict[str, tuple[int, str, int]] = {}
        faults: dict[int, Fault] = {}
        names = sorted(name for name, _ in folder.names(self.path) if not name.startswith("."))
        for place, name in enumerate(names):
            try:
                facts[name] = self._examine(folder, name, cached)
            except OSError as error:
                faults[place] = ("unreadable", f"it cannot be read ({error.strerror or error})")
        if facts != cached:
            # If it cannot be written, checksums are computed again next time.
            with contextlib.suppress(OSError):
                write_whole(cache_file, json.dumps(facts).encode())
        facts_by_name = [facts.get(name, (0, "", 0)) for name in names]
        sizes = [size for size, _, _ in facts_by_name]
        numbers = {
            "offset": [0] * len(names),
            "bytes": sizes,
            "compressed_bytes": sizes,
            "crc32": [checksum for _, _, checksum in facts_by_name],
        }
        paths = [f"{self.path}/{as_text(name)}" for name in names]
        return build_listing("", [(paths, numbers, faults)])

    def _examine(self, folder: DumpFolder, name: str, cached: FileFacts) -> tuple[int, str, int]:
        path = f"{self.path}/{name}"
        state = folder.state(path)
        if name in cached and cached[name][:2] == (state.bytes, state.mark):
            return cached[name]
        if state.bytes > LARGEST_PAGE or not _is_page(path):
            return state.bytes, state.mark, 0  # never read as a page
        with contextlib.closing(folder.open(path)) as file:
            return state.bytes, state.mark, crc32(file.read(0, state.bytes))


def find_loose_folders(folder: DumpFolder, top: list[tuple[str, bool]]) -> list[LooseFolder]:
    """The folders of a dump folder that hold loose pages. top: the names directly in it, sorted.

    Raises OSError where one cannot be listed.
    """
    paths = [name for name, is_folder in top if is_folder and folder_month(name)]
    for subset, is_folder in top:
        if is_folder and is_subset_folder(subset):
            for name, is_folder_below in sorted(folder.names(subset)):
                if is_folder_below and folder_month(name):
                    paths.append(f"{subset}/{name}")
    folders = []
    for path in paths:
        if any(_is_page(f"{path}/{name}") for name, _ in folder.names(path)):
            parent, _, yymm = path.rpartition("/")
            folders.append(LooseFolder(path, folder_month(yymm) or "", subset_of(parent, "")))
    return folders


def _is_page(path: str) -> bool:
    return isinstance(read_member_name(path), MemberName)


def _read_facts(file: Path) -> FileFacts:
    try:
        facts = json.loads(file.read_bytes())
        return {
            name: (int(size), str(mark), int(checksum))
            for name, (size, mark, checksum) in facts.items()
        }
    except (OSError, ValueError, TypeError, AttributeError):
        return {}
