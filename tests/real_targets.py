"""Five real targets of related work with the works that they cite, from the data set rwsg-prv, as
tasks.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pipeline.related_work.importers.task import (
    ImportedTask,
    NameYearCitations,
    item_text,
    make_imported_task,
)
from pipeline.related_work.task import FileReference


def read_real_targets(shared_data: Path, month: str | None = None) -> list[ImportedTask]:
    return [_read(file, month) for file in sorted((shared_data / "related_work").glob("*.json"))]


def _read(file: Path, month: str | None) -> ImportedTask:
    content = json.loads(file.read_bytes())
    root, works = content["root"], [_reference(leaf) for leaf in content["leaves"]]
    citations = NameYearCitations(works)
    section = citations.mark(root["relatedwork"])
    text = f"# {root['title']}\n\n{_sections(root)}"
    identifier = f"real-{file.stem}"
    return make_imported_task(
        identifier, month, root["title"], text, section, works, unmatched=citations.unmatched
    )


def _sections(paper: Mapping[str, Any]) -> str:
    return (
        f"## Abstract\n\n{paper['abstract'].strip()}\n\n##"
        f" Introduction\n\n{paper['introduction'].strip()}"
    )


def _reference(leaf: Mapping[str, Any]) -> FileReference:
    title, authors, year = " ".join(leaf["title"].split()), tuple(leaf["author"]), leaf["year"]
    known: dict[str, Any] = {"title": title, "authors": authors, "year": year}
    if leaf["introduction"].strip():
        return FileReference(**known, source="full_text", text=_sections(leaf))
    if leaf["abstract"].strip():
        return FileReference(**known, source="abstract", text=leaf["abstract"].strip())
    return FileReference(**known, source="item", text=item_text(authors, year, title))
