"""Read a draft and its bibliography in a worker process, which bounds time and memory."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

from citeloom import SettingError
from drafts.bibliography import merge_keys_by_case, read_bibliographies
from drafts.draft import Draft
from drafts.latex import read_latex
from drafts.markdown import read_markdown
from pipeline.engine.process_pool import call_in_worker

LATEX_SUFFIXES = (".tex", ".ltx")
DRAFT_SUFFIXES = (*LATEX_SUFFIXES, ".md", ".markdown", ".qmd", ".rmd")
# Processor time. A book takes 5 s, 5,000 entries of BibTeX 2 s.
READING_SECONDS = 300.0


def read_draft(
    file: Path,
    bibliography: Path | None = None,
    *,
    every_entry: bool = False,
    seconds: float = READING_SECONDS,
) -> Draft:
    """The draft in a LaTeX or Markdown file, with its bibliography.

    bibliography: a file in place of those that the draft names. every_entry: read all entries, also
    of a file with more than a draft cites. A worker process reads it, within `seconds` of processor
    time and its limit of memory. Raises SettingError for a file that is missing, too large, of
    another kind, that includes itself or that the worker cannot read.
    """
    # The worker may have been started in another working folder, or in one that is gone.
    path = file.absolute()
    listed = bibliography.absolute() if bibliography else None
    read = partial(_read_draft, path, listed, _working_folder(), every_entry=every_entry)
    return _read_in_worker(path, read, seconds)


def read_bibliography(file: Path) -> Draft:
    """A draft of nothing but a bibliography. Raises SettingError as `read_draft` does."""
    path = file.absolute()
    return _read_in_worker(path, partial(_read_bibliography, path), READING_SECONDS)


def _read_in_worker(file: Path, read: Callable[[], Draft], seconds: float) -> Draft:
    try:
        draft = call_in_worker(read, seconds)
    except MemoryError:
        raise SettingError(f"{file} takes more memory to read than a draft may") from None
    if isinstance(draft, Draft):
        return draft
    raise SettingError(f"{file} cannot be read: {draft.describe(seconds)}")


def _working_folder() -> Path | None:
    """None where somebody removed it."""
    try:
        return Path.cwd()
    except FileNotFoundError:
        return None


def _read_draft(
    file: Path, bibliography: Path | None, working_folder: Path | None, *, every_entry: bool
) -> Draft:
    suffix = file.suffix.lower()
    if suffix not in DRAFT_SUFFIXES:
        raise SettingError(f"{file}: a draft is a .tex, .ltx, .md, .markdown, .qmd or .Rmd file")
    read = read_latex if suffix in LATEX_SUFFIXES else read_markdown
    draft = read(file, working_folder)
    files = [bibliography] if bibliography else list(draft.bibliography_files)
    if bibliography is None:
        bbl = file.with_suffix(".bbl")
        needs_bbl = draft.missing_bibliographies or not (files or draft.embedded or draft.entries)
        if needs_bbl and suffix in LATEX_SUFFIXES and bbl.is_file():
            files.append(bbl)
        else:
            draft.problems += draft.missing_bibliographies
    read_bibliographies(draft, files, every_entry=every_entry)
    if draft.ignores_case:
        merge_keys_by_case(draft)
    draft.problems += [
        problem
        for keys, problem in draft.unknown_commands
        if draft.entries and any(key not in draft.entries for key in keys)
    ]
    if draft.sentences and not draft.entries:
        draft.add_problem(f"{file.name} cites, and no bibliography was found: give it with --bib")
    return draft


def _read_bibliography(file: Path) -> Draft:
    draft = Draft(file)
    read_bibliographies(draft, [file], every_entry=True)
    return draft
