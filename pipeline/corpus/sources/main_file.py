"""Choose the TeX file of a paper that is to be converted."""

from __future__ import annotations

import json
import re
from pathlib import Path

from pipeline.corpus.sources.archives import READMES, SourceError

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
    candidates = sorted(
        (file for file, text in wanted.items() if _is_document(text)),
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


def _is_document(text: bytes) -> bool:
    text = _COMMENT.sub(b"", text)
    return bool(_CLASS.search(text) and _BEGIN.search(text))


def _named_by_readme(folder: Path) -> list[str]:
    """The main files that arXiv's 00README names; a broken one names none."""
    structured, plain = (
        file.read_bytes() if file.exists() else b"" for file in map(folder.joinpath, READMES)
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
