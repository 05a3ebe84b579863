"""A paper's text as a language model reads it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from itertools import groupby
from typing import Any

from pipeline.corpus.policies import without_markers

Block = Mapping[str, Any]


def paper_text(paper: Mapping[str, Any], skip: Callable[[Block], bool] = lambda block: False) -> str:
    """Title, abstract and sections of a row of `papers` under Markdown headings, citation markers taken out.

    `skip` names blocks to leave out, such as those of the related-work section.
    """
    parts = [f"# {paper['title']}"]
    if paper["abstract"]:
        parts.append(f"## Abstract\n\n{paper['abstract']}")
    parts.extend(_sections(block for block in paper["blocks"] if not skip(block)))
    return without_markers("\n\n".join(parts))


def _sections(blocks: Iterable[Block]) -> Iterable[str]:
    for path, group in groupby(blocks, key=lambda block: tuple(block["section_path"])):
        heading = [f"## {' > '.join(path)}"] if path else []
        yield "\n\n".join([*heading, *(block["text"] for block in group)])
