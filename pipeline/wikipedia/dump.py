"""The files of an HTML dump (Wikimedia Enterprise): tar.gz archives of JSON lines, read once from front to back.

A line is a page; the validated part of its model is that which is used here. The model:
https://enterprise.wikimedia.com/docs/data-dictionary/.
"""

from __future__ import annotations

import gzip
import hashlib
import re
import tarfile
import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Annotated, NamedTuple

import orjson
from pydantic import AliasPath, BaseModel, Field, ValidationError

from pipeline.arxiv.months import is_month, parse_month
from pipeline.corpus.parse.paper import PageError
from pipeline.errors import MissingInput, PermanentFailure, SettingError
from pipeline.wikipedia.ids import category_of, is_wikipedia, page_id

# The longest page of the English Wikipedia has some 10 MB of HTML; a line beyond this is broken, and is passed over.
LONGEST_LINE = 64_000_000
# 4 MB of lines are some 40 articles, which parse in a second: handing them to a worker is nothing beside it.
CHUNK_BYTES = 4_000_000
_DATE = re.compile(r"(?<!\d)(20\d\d)(0[1-9]|1[0-2])(?:0[1-9]|[12]\d|3[01])(?!\d)")
_DAMAGE = (EOFError, OSError, gzip.BadGzipFile, zlib.error, tarfile.TarError)
# Characters of a fault's description.
_MOST_DETAIL = 300

_Number = Annotated[int, Field(gt=0, le=2**53)]


class Line(NamedTuple):
    """One line of a dump. number: within its file, from 1. content: None where the line is too long to be one."""

    file: str
    number: int
    content: bytes | None

    @property
    def place(self) -> str:
        """Where it is, for the ledger."""
        return f"{self.file} line {self.number}"


@dataclass(frozen=True)
class Dump:
    """The files of one snapshot, of one wiki or several. month: YYYY-MM, that of the snapshot."""

    files: tuple[Path, ...]
    month: str
    _digests: dict[str, str] = field(default_factory=dict, repr=False, compare=False)

    def lines(self) -> Iterator[Line]:
        """All lines in order, file by file. Raises PermanentFailure for a file that breaks off or is no such dump."""
        for file in self.files:
            yield from _lines_of(file)

    def chunks(self) -> Iterator[list[Line]]:
        """The lines, as many at a time as make CHUNK_BYTES. Raises as `lines` does."""
        chunk: list[Line] = []
        held = 0
        for line in self.lines():
            chunk.append(line)
            held += len(line.content or b"")
            if held >= CHUNK_BYTES:
                yield chunk
                chunk, held = [], 0
        if chunk:
            yield chunk

    def digests(self) -> Mapping[str, str]:
        """SHA-256 of each file by its name, computed once: a file of 100 GB takes a minute or two."""
        for file in self.files:
            if file.name not in self._digests:
                with _naming_damage(file, "cannot be read"), file.open("rb") as stream:
                    self._digests[file.name] = hashlib.file_digest(stream, "sha256").hexdigest()
        return dict(self._digests)


def open_dump(files: Iterable[Path], month: str | None = None) -> Dump:
    """A dump of some files, in order of their names.

    month: of the snapshot, where the names of the files (enwiki-NS0-20240901-ENTERPRISE-HTML.json.tar.gz) lack it.
    Raises SettingError for no month or several, or two files of one name; MissingInput for a file that does not exist.
    """
    ordered = tuple(sorted(files, key=lambda file: file.name))
    for file in ordered:
        if not file.is_file():
            raise MissingInput(f"{file} is not a file: give the dump's own files (…-ENTERPRISE-HTML.json.tar.gz)")
    names = [file.name for file in ordered]
    if not names or len(set(names)) < len(names):
        raise SettingError("give one or more files of a dump, each with a name of its own")
    return Dump(ordered, parse_month(month) if month else _month_of(names))


def _month_of(names: Iterable[str]) -> str:
    """The month in the names of a dump's files."""
    named = {f"{match[1]}-{match[2]}" for name in names for match in _DATE.finditer(name)}
    months = sorted(filter(is_month, named))
    if len(months) != 1:
        problem = f"tell several months ({', '.join(months)})" if months else "do not tell of which month they are"
        raise SettingError(f"the names of the dump's files {problem}: name the snapshot's month by --month 2024-09")
    return months[0]


def _lines_of(file: Path) -> Iterator[Line]:
    from isal import igzip  # a third of gzip's time

    number = 0
    with (
        _naming_damage(file, "breaks off, or is no tar.gz of JSON lines,") as last,
        igzip.open(file, "rb") as stream,  # type: ignore[no-untyped-call]
        tarfile.open(fileobj=stream, mode="r|") as archive,
    ):
        for member in archive:
            part = archive.extractfile(member) if member.isfile() else None
            for content in _split(part) if part else ():
                number += 1
                last["line"] = number
                yield Line(file.name, number, content)
        _read_to_the_end(stream)
    if not number:
        raise PermanentFailure(f"{file} holds no line: give the dump's own file (…-ENTERPRISE-HTML.json.tar.gz)")


def _split(part: IO[bytes]) -> Iterator[bytes | None]:
    """The lines of a member that hold anything; None for one that is longer than LONGEST_LINE."""
    while line := part.readline(LONGEST_LINE):
        if len(line) == LONGEST_LINE and not line.endswith(b"\n"):
            while (rest := part.readline(LONGEST_LINE)) and not rest.endswith(b"\n"):
                pass
            yield None
        elif line.strip():
            yield line


def _read_to_the_end(stream: IO[bytes]) -> None:
    """Read what is behind the archive's last member: only then is the checksum of the whole compared."""
    while stream.read(1 << 20):
        pass


@contextmanager
def _naming_damage(file: Path, what: str) -> Iterator[dict[str, int]]:
    """Raise PermanentFailure with the file that cannot be read and the last `line` that could."""
    last: dict[str, int] = {}
    try:
        yield last
    except _DAMAGE as error:
        after = f" after line {last['line']}" if last else ""
        reason = " ".join(str(error).split()) or type(error).__name__
        raise PermanentFailure(
            f"{file} {what}{after} ({reason}): fetch it again; the tables stay as they were"
        ) from error


class Page(BaseModel):
    """A page. html: the whole article as Parsoid writes it; dates: ISO 8601."""

    number: Annotated[_Number, Field(validation_alias="identifier")]
    name: Annotated[str, Field(min_length=1)]
    wiki: str = Field(validation_alias=AliasPath("is_part_of", "identifier"))
    revision: Annotated[_Number, Field(validation_alias=AliasPath("version", "identifier"))]
    namespace: int = Field(0, validation_alias=AliasPath("namespace", "identifier"))
    html: str = Field("", validation_alias=AliasPath("article_body", "html"))
    date_created: str | None = None
    date_modified: str | None = None

    @property
    def page_id(self) -> str:
        """`enwiki:12345`."""
        return page_id(self.wiki, self.number)

    @property
    def category(self) -> str:
        """`wikipedia.EN`."""
        return category_of(self.wiki)

    @property
    def title(self) -> str:
        """The article's title on one line."""
        return " ".join(self.name.split())


def read_page(line: Line) -> Page:
    """The page of a line.

    Raises PageError: broken_line for what is no JSON or no page, not_wikipedia for another project's page,
    not_an_article for one outside of the article namespace.
    """
    if line.content is None:
        raise PageError("broken_line", "longer than any page is")
    try:
        page = Page.model_validate(orjson.loads(line.content))
    except ValidationError as error:
        raise PageError("broken_line", _faults(error)) from None
    except (ValueError, RecursionError) as error:
        raise PageError("broken_line", f"no JSON ({' '.join(str(error).split())})"[:_MOST_DETAIL]) from None
    if not is_wikipedia(page.wiki):
        raise PageError("not_wikipedia", f"{page.wiki} is no Wikipedia"[:_MOST_DETAIL])
    if page.namespace != 0:
        raise PageError("not_an_article", f"{page.page_id} is of namespace {page.namespace}")
    return page


def _faults(error: ValidationError) -> str:
    """The wrong fields with their faults, without their values, which may be the whole page."""
    faults = [
        f"{'.'.join(map(str, fault['loc'])) or 'the line'}: {fault['msg']}"
        for fault in error.errors(include_input=False)
    ]
    return "; ".join(faults)[:_MOST_DETAIL]
