"""Find papers' sources by month, unpack them, and choose the main file: from arXiv's bulk tars,
e-prints or folders.

Layout of the tars: https://info.arxiv.org/help/bulk_data_s3.html. A `.gz` in them is a tar or a
single file, told by trying. Nothing of an archive is trusted: only regular files of known kinds are
unpacked, below their folder, up to a number and a size.
"""

from __future__ import annotations

import io
import json
import re
import tarfile
import zlib
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from pipeline.corpus.dump.member import MemberError
from pipeline.errors import SettingError
from pipeline.identity.identifiers import folder_month, id_of_file_name, month_of, split_version
from pipeline.text import text_digest

_READMES = ("00README.json", "00README.XXX")
# What TeX reads. Never .ltxml or .latexml, which LaTeXML executes as Perl.
_KNOWN = re.compile(
    r"(?i).+\.(?:tex|bib|bbl|sty|cls|bst|clo|def|cfg|ist|eps|ps|pdf|png|jpg)|00README\.(?:XXX|json)"
)
# arXiv's own limit for a submission is 50 MB, above which authors have to ask.
_MOST_BYTES = 512 * 1024 * 1024
_MOST_FILES = 5_000
_LONGEST_NAME = 200

_BULK_TAR = re.compile(r"arXiv_src_(\d{4})_\d+\.tar")
_FILE_NAME = re.compile(r"(.+?)(?:\.tar)?(?:\.t?gz|\.tar|\.tex|\.pdf)?")
_GZIP = zlib.MAX_WBITS | 16


class SourceError(MemberError):
    """A source that gives no page."""


class Source(NamedTuple):
    """The source of one version of a paper: a file, `size` bytes of a tar from `offset`, or a
    folder. place: for messages and tables.
    """

    version: int
    arxiv_id: str
    place: str
    path: Path
    offset: int
    size: int

    def read(self) -> bytes:
        """Its bytes; of a folder, a tar of it. Raises SourceError where they are too many."""
        if self.path.is_dir():
            packed = io.BytesIO()
            with tarfile.open(fileobj=packed, mode="w") as tar:
                tar.add(self.path, ".", filter=lambda member: member.replace(mtime=0))
            return packed.getvalue()
        _check_size(self.size)
        with self.path.open("rb") as file:
            file.seek(self.offset)
            return file.read(self.size)


def months_of_sources(folder: Path | None) -> list[str]:
    """The months `YYYY-MM` that a folder has sources of, by the names in it; oldest first.

    Raises SettingError where it cannot be listed.
    """
    return sorted({month for month, _ in _entries(folder)})


def month_digest(folder: Path | None, month: str) -> str:
    """A digest of the names, sizes and times of the files that hold a month's sources; empty where
    there are none. Their content, of which a month has some 50 GB, is not read.

    Raises as `months_of_sources`.
    """
    facts = []
    for path in (path for of, path in _entries(folder) if of == month):
        for file in (path, *sorted(path.rglob("*"))):
            state = file.lstat()
            facts.append(f"{file.relative_to(path.parent)} {state.st_size} {state.st_mtime_ns}")
    return text_digest("\n".join(facts)) if facts else ""


def sources_of_month(folder: Path | None, month: str) -> tuple[list[Source], dict[str, str]]:
    """The newest source of each paper of a month, by identifier; and damaged tars, with the damage.

    Of one version twice the one in the last file by name is taken.
    """
    newest: dict[str, Source] = {}
    damaged = {}
    for path in (path for of, path in _entries(folder) if of == month):
        try:
            for source in _sources_in(path):
                if month_of(source.arxiv_id) == month:
                    newest[source.arxiv_id] = max(source, newest.get(source.arxiv_id, source))
        except tarfile.TarError as error:
            damaged[path.name] = f"it is cut off or damaged ({error}): download it again"
    return [newest[name] for name in sorted(newest)], damaged


def _entries(folder: Path | None) -> Iterator[tuple[str, Path]]:
    """(month, path) of each bulk tar, e-print and folder of a paper, sorted."""
    try:
        for path in sorted(folder.iterdir()) if folder else ():
            bulk = _BULK_TAR.fullmatch(path.name)
            month = folder_month(bulk[1]) if bulk else month_of(_read_name(path.name)[1])
            if month:
                yield month, path
    except OSError as error:
        raise SettingError(
            f"CITELOOM_SOURCES: {folder} cannot be listed ({error.strerror}): set it to the folder"
            " of arXiv's source tars"
        ) from error


def _read_name(name: str) -> tuple[int, str]:
    """The version and identifier of a file's name; 0 and "" where it has none."""
    match = _FILE_NAME.fullmatch(name)
    stem, version = split_version(match[1] if match else "")
    return version or 0, id_of_file_name(stem) or ""


def _sources_in(path: Path) -> Iterator[Source]:
    if not _BULK_TAR.fullmatch(path.name):
        yield Source(*_read_name(path.name), path.name, path, 0, path.stat().st_size)
        return
    with tarfile.open(path, "r:") as tar:
        for member in tar:
            version, arxiv_id = _read_name(PurePosixPath(member.name).name)
            if arxiv_id and member.isreg():
                place = f"{path.name}:{member.name}"
                yield Source(version, arxiv_id, place, path, member.offset_data, member.size)


def _check_size(size: int) -> None:
    if size > _MOST_BYTES:
        raise SourceError("too_large", f"it has more than {_MOST_BYTES:,} bytes")


def unpack(content: bytes, folder: Path) -> None:
    """Unpack the files of known kinds of a source into an empty folder; a single file as
    `paper.<kind>`.

    Raises SourceError where it is damaged, or has too many files or bytes.
    """
    try:
        if content.startswith(b"\x1f\x8b"):
            inflate = zlib.decompressobj(_GZIP)
            content = inflate.decompress(content, _MOST_BYTES + 1)
            _check_size(len(content))
            if not inflate.eof:
                raise SourceError("corrupt_source", "its end is missing")
        try:
            tarfile.TarInfo.frombuf(content[:512], "utf-8", "surrogateescape")
        except tarfile.HeaderError:
            kinds = {b"%PDF": "pdf", b"%!PS": "ps"}
            (folder / f"paper.{kinds.get(content[:4], 'tex')}").write_bytes(content)
            return
        with tarfile.open(fileobj=io.BytesIO(content), mode="r:") as tar:
            for number, member in enumerate(tar):
                if number >= _MOST_FILES:
                    raise SourceError("too_large", f"it has more than {_MOST_FILES:,} files")
                # A sparse file could become of any size.
                if member.isreg() and not member.issparse() and _may_be_unpacked(member.name):
                    inside = tar.extractfile(member)
                    _write(folder / member.name, inside.read() if inside else b"")
    except (tarfile.TarError, zlib.error) as error:
        raise SourceError("corrupt_source", f"it is damaged ({error})") from error


def _may_be_unpacked(name: str) -> bool:
    path = PurePosixPath(name)
    inside = not path.is_absolute() and ".." not in path.parts and len(name) <= _LONGEST_NAME
    return inside and _KNOWN.fullmatch(str(path)) is not None


def _write(file: Path, content: bytes) -> None:
    """Write a file, unless its name is that of a folder, or a file's where it needs a folder."""
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
    except (FileExistsError, NotADirectoryError, IsADirectoryError):
        return


# The main file.

_COMMENT = re.compile(rb"(?<!\\)%.*")
# Pictures and chapters have classes of their own, and can also be typeset alone.
_CLASS = re.compile(
    rb"\\document(?:class|style)\s*(?:\[[^\]\\]{0,2000}\]\s*)?\{(?!standalone|subfiles)"
)
_BEGIN = re.compile(rb"\\begin\s*\{document\}")
_USUAL_NAMES = ("main", "paper", "ms", "article", "manuscript", "arxiv")
# arXiv itself looks for this mark in the first ten lines.
_IGNORED = re.compile(rb"(?:.*\n){0,9}%auto-ignore")


def choose_main_file(folder: Path) -> tuple[str, list[str]]:
    """The main TeX file of an unpacked paper, and other candidates, as paths below its folder.

    The file that 00README names; else files with \\documentclass and \\begin{document}, preferring
    one with a .bbl of its name, then near the top, then of a usual name, then large. Raises
    SourceError where there is none.
    """
    files = sorted(file.relative_to(folder) for file in folder.rglob("*") if file.is_file())
    texts = {file: (folder / file).read_bytes() for file in files if file.suffix.lower() == ".tex"}
    for named in map(Path, _named_by_readme(folder)):
        if named in texts:
            return str(named), []
    wanted = {file: text for file, text in texts.items() if not _IGNORED.match(text)}
    if texts and not wanted:
        raise SourceError("withdrawn", "it holds %auto-ignore alone")
    bare = {file: _COMMENT.sub(b"", text) for file, text in wanted.items()}
    candidates = sorted(
        (file for file, text in bare.items() if _CLASS.search(text) and _BEGIN.search(text)),
        key=lambda file: (
            file.with_suffix(".bbl") not in files,
            len(file.parts),
            file.stem.lower() not in _USUAL_NAMES,
            -len(wanted[file]),
        ),
    )
    if candidates:
        return str(candidates[0]), list(map(str, candidates[1:]))
    kinds = {file.suffix for file in files} & {".pdf", ".ps"}
    reason = "no_main_file" if texts or not kinds else f"{max(kinds)[1:]}_only"
    raise SourceError(reason, f"none of {', '.join(map(str, files))} is a document"[:300])


def _named_by_readme(folder: Path) -> list[str]:
    """The main files that arXiv's 00README names; a broken one names none."""
    structured, plain = (
        file.read_bytes() if file.exists() else b"" for file in map(folder.joinpath, _READMES)
    )
    lines = map(str.split, plain.decode("utf-8", "replace").splitlines())
    names = [words[0] for words in lines if words[1:] == ["toplevelfile"]]
    try:
        for source in json.loads(structured)["sources"]:
            if source["usage"] == "toplevel":
                names.insert(0, str(source["filename"]))
    except (ValueError, LookupError, TypeError, RecursionError):
        pass
    return names
