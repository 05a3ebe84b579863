"""The dump as a whole: its months, and of a month the pages, what is no page, and a digest of it all.

Each zip's directory is read once and kept (`cache.py`); of the rest of a zip nothing is read.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property, lru_cache, partial
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
from upath import UPath

from pipeline.corpus.dump.cache import KeptListing, ListingCache
from pipeline.corpus.dump.central_directory import read_directory
from pipeline.corpus.dump.folder import DumpFolder, FileState, open_folder
from pipeline.corpus.dump.listing import Listing, Part, list_zip
from pipeline.corpus.dump.loose import LooseFolder, find_loose_folders
from pipeline.corpus.dump.member import as_text, place_of
from pipeline.errors import MissingInput, SettingError
from pipeline.settings import SUBSETS, Settings
from pipeline.tables import DUMP_MEMBERS


@dataclass(frozen=True, slots=True)
class BrokenZip:
    """A zip that cannot be used, and a sentence that says why and what to do."""

    zip: str
    message: str


@dataclass(frozen=True, slots=True)
class Stray:
    """A name in the dump that is no readable page: where it is, and the ledger's reason and detail."""

    place: str
    reason: str
    detail: str


@dataclass(frozen=True)
class Dump:
    """What lies in the dump folder."""

    subsets: tuple[str, ...]
    """Those that are chosen; no other page or stray is told of."""
    folder: DumpFolder
    cache: ListingCache
    zips: tuple[tuple[str, KeptListing], ...]
    loose: tuple[LooseFolder, ...]
    broken: tuple[BrokenZip, ...]

    @cached_property
    def months(self) -> list[str]:
        """Months `YYYY-MM` that have pages, oldest first."""
        zipped = {part.month for _, listing in self.zips for part in listing.parts if self._is_chosen(part)}
        return sorted(zipped.union(one.month for one in self.loose if one.subset in self.subsets))

    def count_pages(self, month: str) -> int:
        """How many pages the month has, duplicates among them; known without reading one row."""
        listed = (part for _, listing in self._listings(month) for part in listing.parts)
        return sum(part.rows for part in listed if part.month == month and self._is_chosen(part))

    def pages(self, month: str) -> pa.Table:
        """The month's pages, columns as in the table dump_members, by identifier.

        Of one identifier the page to be kept comes first: a loose one before those in zips, for it came later; then
        the better conversion; of one name twice in a zip the last, as zip tools have it.
        """
        found = [_as_members(zip_name, part, rows) for zip_name, part, rows in self._rows(month, strays=False)]
        pages = pa.concat_tables([DUMP_MEMBERS.schema.empty_table(), *found])
        zipped = pc.not_equal(pages["zip"], "")
        rank = pc.index_in(pages["subset"], pa.array(SUBSETS))
        keys = ("arxiv_id", "zipped", "rank", "zip", "member")
        order = pc.sort_indices(
            pages.append_column("zipped", zipped).append_column("rank", rank),
            [*((key, "ascending") for key in keys), ("offset", "descending")],
        )
        return pages.take(order)

    def strays(self, month: str) -> Iterator[Stray]:
        """Names that are no readable pages: under the month they claim, or under the dump's first.

        Under the first month too the zips that cannot be used at all.
        """
        if month in self.months[:1]:
            yield from (Stray(one.zip, "unreadable_zip", one.message) for one in self.broken)
        for zip_name, _, rows in self._rows(month, strays=True):
            for row in rows.select(["member", "reason", "detail"]).to_pylist():
                yield Stray(place_of(zip_name, row["member"]), row["reason"], row["detail"])

    def digest(self, month: str) -> str:
        """Another one whenever what the dump says of a month has changed; copying or touching a zip changes nothing."""
        digest = hashlib.sha256()
        for zip_name, listing in self._listings(month):
            for part in listing.parts:
                if self._is_told(part, month):
                    digest.update(repr((zip_name, part)).encode())
        if month in self.months[:1]:
            digest.update(repr(self.broken).encode())
        return digest.hexdigest()

    def _rows(self, month: str, *, strays: bool) -> Iterator[tuple[str, Part, pa.Table]]:
        for zip_name, listing in self._listings(month):
            for part in listing.parts:
                if part.strays == strays and self._is_told(part, month):
                    yield zip_name, part, listing.of_part(part)

    def _listings(self, month: str) -> Iterator[tuple[str, Listing | KeptListing]]:
        yield from self.zips
        for one in self.loose:
            if one.month == month and one.subset in self.subsets:
                with _listing_errors(self.folder):
                    yield "", one.list_pages(self.folder, self.cache)

    def _is_chosen(self, part: Part) -> bool:
        return not part.strays and part.subset in self.subsets

    def _is_told(self, part: Part, month: str) -> bool:
        told_under = part.month if part.month in self.months else next(iter(self.months), "")
        return part.subset in self.subsets and told_under == month


def _as_members(zip_name: str, part: Part, rows: pa.Table) -> pa.Table:
    constant = {"subset": part.subset, "zip": zip_name}
    columns = [
        pa.repeat(pa.scalar(constant[column.name], column.type), rows.num_rows)
        if column.name in constant
        else rows[column.name]
        for column in DUMP_MEMBERS.schema
    ]
    return pa.table(columns, schema=DUMP_MEMBERS.schema)


def months_in_dump(settings: Settings) -> list[str]:
    """Months `YYYY-MM` that have pages in the chosen subsets, oldest first.

    Raises as `read_dump` does, and SettingError where there is not one page.
    """
    dump = read_dump(settings)
    if not dump.months:
        raise SettingError(_describe_no_page(dump))
    return dump.months


def broken_zips(settings: Settings) -> list[str]:
    """What is wrong with each zip that cannot be used, a sentence each. Raises as `read_dump` does."""
    return [one.message for one in read_dump(settings).broken]


def read_dump(settings: Settings, *, may_be_empty: bool = False) -> Dump:
    """What lies in the dump folder now.

    Raises SettingError where there is no such folder, it cannot be listed, or neither a zip nor a loose page is in it
    (unless it `may_be_empty`); MissingInput where all there is are zips that cannot be used.
    """
    folder, cache = _folder_at(settings.dump_dir), ListingCache(settings.local_root / "cache" / "zips")
    with _listing_errors(folder):
        top = [(name, is_folder) for name, is_folder in folder.names() if not name.startswith(".")]
        loose = find_loose_folders(folder, top)
    names = [name for name, is_folder in top if name.lower().endswith(".zip") and not is_folder]
    if not names and not loose and not may_be_empty:
        raise SettingError(
            f"CITELOOM_DUMP_DIR: no .zip file is in {folder.address}, nor any page in a folder <yymm>: set it to the "
            "folder of the ar5iv zips"
        )
    found = [(name, _list_zip(settings, folder, name, cache)) for name in names]
    broken = tuple(one for _, one in found if isinstance(one, BrokenZip))
    if broken and len(broken) == len(names) and not loose:
        more = f" ({len(broken) - 1} more zips cannot be used either)" if len(broken) > 1 else ""
        raise MissingInput(broken[0].message + more)
    zips = tuple((name, one) for name, one in found if not isinstance(one, BrokenZip))
    return Dump(settings.subsets, folder, cache, zips, tuple(loose), broken)


def _folder_at(place: Path | UPath) -> DumpFolder:
    return open_folder(place) if isinstance(place, Path) else _store_at(place)


@lru_cache(maxsize=16)
def _store_at(address: UPath) -> DumpFolder:
    """One object for each address, so that its listing serves for more than one question."""
    return open_folder(address)


@contextmanager
def _listing_errors(folder: DumpFolder) -> Iterator[None]:
    try:
        yield
    except (FileNotFoundError, NotADirectoryError) as error:
        raise SettingError(
            f"CITELOOM_DUMP_DIR: there is no folder {folder.address}: set it to the folder of the ar5iv zips"
        ) from error
    except OSError as error:
        raise SettingError(
            f"CITELOOM_DUMP_DIR: {folder.address} cannot be listed ({error.strerror or error}): let it be read, or set "
            "another folder"
        ) from error


_known: dict[tuple[str, Path], tuple[FileState, KeptListing | BrokenZip]] = {}


def _list_zip(settings: Settings, folder: DumpFolder, name: str, cache: ListingCache) -> KeptListing | BrokenZip:
    """What a zip holds; remembered while its size and time are the same."""
    address = f"{folder.address}/{name}"
    if name != as_text(name):
        return BrokenZip(as_text(name), f"{as_text(address)}: its name is no UTF-8: give it another")
    key = (address, cache.file(address))
    try:
        state = folder.state(name)
        known = _known.get(key)
        if known is None or known[0] != state:
            known = _known[key] = (state, _read_listing(settings.dump_dir, name, state, cache))
    except OSError as error:
        told = f"{address} cannot be read ({error.strerror or error})"
        return BrokenZip(name, f"{told}: put it in place and let it be read, or move it out of CITELOOM_DUMP_DIR")
    return known[1]


def _read_listing(dump_dir: Path | UPath, name: str, state: FileState, cache: ListingCache) -> KeptListing | BrokenZip:
    address = f"{_folder_at(dump_dir).address}/{name}"

    def make() -> Listing:
        folder = open_folder(dump_dir)  # one of its own: what it opens is the zip of now
        try:
            return list_zip(read_directory(address, state.bytes, partial(folder.read, name)), name)
        finally:
            folder.close()

    try:
        return cache.listing(address, state, make)
    except MissingInput as error:
        return BrokenZip(name, str(error))


def _describe_no_page(dump: Dump) -> str:
    parts = [part for _, listing in dump.zips for part in listing.parts if not part.strays]
    others = sum(part.rows for part in parts if part.subset not in dump.subsets)
    strays = list(dump.strays(""))
    example = next((f", for example {one.place} ({one.detail})" for one in strays), "")
    return (
        f"CITELOOM_DUMP_DIR: no arXiv page is in {dump.folder.address}: its zips hold {others:,} pages of subsets that "
        f"are not chosen, and {len(strays):,} names that are no page{example}; a page is <subset>/<yymm>/<id>.html, or "
        f"<yymm>/<id>.html in a zip named after its subset; CITELOOM_SUBSETS is {','.join(dump.subsets)}"
    )
