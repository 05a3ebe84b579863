"""The query parameters of searches and of the list of papers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from starlette.requests import Request

from pipeline.corpus.nouns import Results
from pipeline.doors.papers import list_papers
from pipeline.doors.search import Of
from pipeline.doors.web.site import Site
from pipeline.errors import SettingError
from pipeline.index.search_options import DEEPEST, LONGEST_QUERY, MOST, SearchOptions, parse_years

RESULTS_PER_PAGE = 10
# Of a parameter that takes several.
_MOST_VALUES = 50
PAPERS_PER_PAGE = 50


class AddressForm(BaseModel):
    """The query parameters of an address, which are also the fields of an HTML form.

    separators: field that takes several values → their separator in a text; None is white space.
    """

    model_config = ConfigDict(frozen=True, str_strip_whitespace=True, validate_by_name=True)

    separators: ClassVar[Mapping[str, str | None]] = {}

    @classmethod
    def read(cls, pairs: Sequence[tuple[str, str]]) -> Self:
        """Read the query parameters of an address. Empty values count as absent, since a browser
        sends empty fields too.

        Raises SettingError for an unknown name, a wrong number, or a text that is too long.
        """
        names = [field.alias or name for name, field in cls.model_fields.items()]
        values: dict[str, Any] = {}
        for name, text in pairs:
            if name not in names:
                raise SettingError(
                    f"{name[:50]!r} is not a parameter here: there are {', '.join(names)}"
                )
            if name in cls.separators:
                parts = [part.strip() for part in text.split(cls.separators[name])]
                parts = [part for part in parts if part]
                values[name] = (*values.get(name, ()), *parts)
                if len(values[name]) > _MOST_VALUES:
                    raise SettingError(f"{name} has more than {_MOST_VALUES} values: give fewer")
            elif text.strip():
                values[name] = text
        try:
            return cls.model_validate(values)
        except ValidationError as error:
            first = error.errors()[0]
            raise SettingError(
                f"{first['loc'][0]} is {str(first['input'])[:50]!r}: {first['msg']}"
            ) from error

    @classmethod
    def of(cls, request: Request) -> Self:
        """The parameters of a request. Raises as `read` does."""
        return cls.read(request.query_params.multi_items())

    def pairs(self) -> list[tuple[str, str]]:
        """Names and values of the fields that differ from their default, for an address."""
        pairs: list[tuple[str, str]] = []
        for name, value in self.model_dump(by_alias=True, exclude_defaults=True).items():
            if isinstance(value, tuple):
                pairs += [(name, text) for text in value]
            else:
                pairs.append((name, "1" if value is True else str(value)))
        return pairs


class SearchForm(AddressForm):
    """The query parameters of a search; empty texts count as absent."""

    # `from` is a keyword of Python, so that no field can have this name.
    model_config = ConfigDict(
        alias_generator=lambda name: {"first_month": "from", "last_month": "to"}.get(name, name)
    )

    separators: ClassVar[Mapping[str, str | None]] = {
        "author": ";",
        "category": None,
        "kind": ",",
        "severity": ",",
    }

    q: str = Field(
        default="",
        max_length=LONGEST_QUERY,
        description="words, a paragraph, or an arXiv id, DOI or address of a paper",
    )
    category: tuple[str, ...] = Field(default=(), description="category (cs.CL) or archive (cs)")
    kind: tuple[str, ...] = Field(default=(), description="kind of passage, such as table")
    severity: tuple[str, ...] = Field(
        default=(), description="conversion severity of the page, such as no_problem"
    )
    grade: str = Field(default="", description="worst page quality, A to D")
    first_month: str = Field(default="", description="first month, YYYY-MM")
    last_month: str = Field(default="", description="last month, YYYY-MM")
    author: tuple[str, ...] = Field(default=(), description="whole name or family name")
    venue: str = Field(default="", description="words of the journal reference or comment")
    year: str = Field(default="", description="2023, 2020..2023, 2020.. or ..2023")
    page: int = Field(default=1, ge=1, le=DEEPEST, description="page of results")
    limit: int = Field(default=RESULTS_PER_PAGE, ge=1, le=MOST, description="results of a page")
    as_typed: bool = Field(default=False, description="read no names and correct no misspelt words")

    @property
    def filters(self) -> list[tuple[str, str]]:
        """The filters that are set, by the names of the address."""
        return [
            (name, value)
            for name, value in self.pairs()
            if name not in ("q", "page", "limit", "as_typed")
        ]

    def options(self, start: int | None = None) -> SearchOptions:
        """The options of the search. start: number of the first result, from 0, in place of the
        page's. Raises SettingError for a wrong value.
        """
        first_year, last_year = parse_years(self.year or None)
        return SearchOptions(
            limit=self.limit,
            offset=(self.page - 1) * self.limit if start is None else start,
            categories=self.category,
            first_month=self.first_month or None,
            last_month=self.last_month or None,
            kinds=self.kind,
            severities=self.severity,
            worst_quality=self.grade or None,
            authors=self.author,
            venue=self.venue,
            first_year=first_year,
            last_year=last_year,
            as_typed=self.as_typed,
        ).checked()


def run_search(
    site: Site, form: SearchForm, of: Of = "papers", start: int | None = None
) -> Results:
    """A page of results. start: number of its first one, from 0, in place of the form's.

    Raises SettingError for a wrong parameter, IndexInUse if another process has the index, and as
    `search` does.
    """
    options = form.options(start)
    return site.searches.search(form.q, options, of)


class ListingForm(AddressForm):
    """A request for a list of papers."""

    title: str = Field(default="", max_length=LONGEST_QUERY, description="words of the title")
    author: str = Field(
        default="", max_length=LONGEST_QUERY, description="words of an author's name"
    )
    year: int | None = Field(default=None, ge=1000, le=9999, description="year")
    page: int = Field(default=1, ge=1, le=999_999, description="page of 50 papers")


def run_paper_listing(site: Site, form: ListingForm) -> Results:
    """A page of the list. Raises as `list_papers` does."""
    offset = (form.page - 1) * PAPERS_PER_PAGE
    return list_papers(site.workspace, form.title, form.author, form.year, PAPERS_PER_PAGE, offset)
