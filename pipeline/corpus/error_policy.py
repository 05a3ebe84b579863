"""What becomes of text that LaTeXML marked as broken: kept, or dropped by block or page. Never how it is found."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from pipeline.corpus.measures import kept_characters
from pipeline.corpus.paper import PageError, Paper

DROPPED = "dropped_for_errors"


def apply_policy(policy: str, paper: Paper) -> Paper:
    """A paper as CITELOOM_PAGE_ERRORS wants it: keep, drop_paragraphs or drop_page.

    Raises PageError (page_has_errors) where the page is dropped, (no_text) where no block and no abstract is left.
    """
    if policy == "keep" or not paper.ltx_errors:
        return paper
    if policy == "drop_page":
        raise PageError("page_has_errors", f"LaTeXML marked {paper.ltx_errors} errors on it")
    return _without_broken_blocks(paper)


def _without_broken_blocks(paper: Paper) -> Paper:
    sound = tuple(block for block in paper.blocks if not block.errors)
    if len(sound) == len(paper.blocks):
        return paper
    if not sound and not paper.abstract:
        raise PageError("no_text", "every block of it holds errors")
    broken = [block for block in paper.blocks if block.errors]
    kept = Counter(paper.kept) - Counter(kept_characters(None, 0, None, (), broken, ()))
    chars = kept.total()
    return replace(
        paper,
        blocks=sound,
        paragraphs=sum(block.kind == "paragraph" for block in sound),
        chars_kept=chars,
        kept={kind: kept[kind] for kind in paper.kept if kept[kind]},
        losses={**paper.losses, DROPPED: paper.chars_kept - chars},
    )
