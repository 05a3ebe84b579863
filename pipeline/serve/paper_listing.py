"""The form and the pages of the list of papers."""

from __future__ import annotations

from pydantic import Field

from pipeline.index.corpus_papers import PaperListing, list_papers
from pipeline.index.search_options import LONGEST_QUERY
from pipeline.serve.address_form import AddressForm
from pipeline.serve.site import Site

PAPERS_PER_PAGE = 50


class ListingForm(AddressForm):
    """A request for a list of papers."""

    title: str = Field(default="", max_length=LONGEST_QUERY, description="words of the title")
    author: str = Field(
        default="", max_length=LONGEST_QUERY, description="words of an author's name"
    )
    year: int | None = Field(default=None, ge=1000, le=9999, description="year")
    page: int = Field(default=1, ge=1, le=999_999, description="page of 50 papers")


def run_paper_listing(site: Site, form: ListingForm) -> PaperListing:
    """A page of the list. Raises as `list_papers` does."""
    offset = (form.page - 1) * PAPERS_PER_PAGE
    return list_papers(site.workspace, form.title, form.author, form.year, PAPERS_PER_PAGE, offset)
