"""The form and the pages of the list of papers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pipeline.errors import SettingError
from pipeline.index.corpus_papers import PaperListing, list_papers
from pipeline.serve.site import LONGEST_QUERY, Site

PAPERS_PER_PAGE = 50
_MOST_DIGITS = 6
_NAMES = ("title", "author", "year", "page")


@dataclass(frozen=True, slots=True)
class ListingForm:
    """A request for a list of papers. title, author: words. page: from 1."""

    title: str = ""
    author: str = ""
    year: int | None = None
    page: int = 1

    def pairs(self, page: int) -> list[tuple[str, str]]:
        """Names and values of the fields for the address of a page."""
        values = {"title": self.title, "author": self.author, "year": str(self.year or "")}
        if page > 1:
            values["page"] = str(page)
        return [(name, value) for name, value in values.items() if value]


def parse_listing(pairs: Sequence[tuple[str, str]]) -> ListingForm:
    """The form of an address. Raises SettingError for an unknown name or a wrong number."""
    values = {name: text.strip() for name, text in pairs}
    for name, text in values.items():
        if name not in _NAMES:
            raise SettingError(
                f"{name[:50]!r} is not a parameter here: there are {', '.join(_NAMES)}"
            )
        if len(text) > LONGEST_QUERY:
            raise SettingError(f"{name} is too long: give at most {LONGEST_QUERY:,} characters")
    year, page = values.get("year", ""), values.get("page", "") or "1"
    if year and not (_is_number(year) and len(year) == 4):
        raise SettingError(f"year: {year[:50]!r} is no year: write 2024")
    if not _is_number(page) or int(page) < 1:
        raise SettingError(f"page: {page[:50]!r} is no page: write a number from 1 on")
    return ListingForm(
        values.get("title", ""), values.get("author", ""), int(year) if year else None, int(page)
    )


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) <= _MOST_DIGITS


def run_paper_listing(site: Site, form: ListingForm) -> PaperListing:
    """A page of the list. Raises as `list_papers` does."""
    offset = (form.page - 1) * PAPERS_PER_PAGE
    return list_papers(site.workspace, form.title, form.author, form.year, PAPERS_PER_PAGE, offset)
