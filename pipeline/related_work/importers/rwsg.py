"""Files of rwsg-prv, one JSON object for each target.

Such a file has the target under `root` (title, abstract, introduction, relatedwork) and the works it cites under
`leaves` (title, author, year; abstract and introduction where they could be had), in order of first citation.
Citations are in the text as names and years, and are matched here.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError

from pipeline.errors import SettingError
from pipeline.related_work.importers.task import (
    ImportedTask,
    NameYearCitations,
    item_text,
    make_imported_task,
    sections_text,
)
from pipeline.related_work.task import FileReference


class _Root(BaseModel):
    title: str
    abstract: str = ""
    introduction: str = ""
    relatedwork: str


class _Leaf(BaseModel):
    title: str
    author: tuple[str, ...] = ()
    year: int | None = None
    abstract: str = ""
    introduction: str = ""


class _File(BaseModel):
    root: _Root
    leaves: tuple[_Leaf, ...]


def import_rwsg(file: Path, month: str | None = None) -> ImportedTask:
    """The task of a file of rwsg-prv. Raises SettingError where it is none."""
    try:
        content = _File.model_validate_json(file.read_bytes())
    except OSError as error:
        raise SettingError(f"{file} cannot be read ({error.strerror}): give a file of rwsg-prv") from error
    except ValidationError as error:
        raise SettingError(f"{file} is no file of rwsg-prv: {error.errors()[0]['msg']}") from None
    works = [_reference(leaf) for leaf in content.leaves]
    citations = NameYearCitations(works)
    section = citations.mark(content.root.relatedwork)
    title = " ".join(content.root.title.split())
    text = sections_text(title, _sections(content.root))
    return make_imported_task(f"rwsg-{file.stem}", month, title, text, section, works, unmatched=citations.unmatched)


def _sections(paper: _Root | _Leaf) -> list[tuple[str, str]]:
    return [("Abstract", paper.abstract), ("Introduction", paper.introduction)]


def _reference(leaf: _Leaf) -> FileReference:
    title = " ".join(leaf.title.split())
    known: Mapping[str, Any] = {"title": title, "authors": leaf.author, "year": leaf.year}
    if leaf.introduction.strip():
        return FileReference(**known, source="full_text", text=sections_text("", _sections(leaf)))
    if leaf.abstract.strip():
        return FileReference(**known, source="abstract", text=leaf.abstract.strip())
    return FileReference(**known, source="item", text=item_text(leaf.author, leaf.year, title))
