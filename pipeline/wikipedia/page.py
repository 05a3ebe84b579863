"""A page in a line of a dump: the validated part of Wikimedia Enterprise's article model that is used here.

The model: https://enterprise.wikimedia.com/docs/data-dictionary/.
"""

from __future__ import annotations

from typing import Annotated

import orjson
from pydantic import BaseModel, Field, ValidationError

from pipeline.corpus.parse.paper import PageError
from pipeline.wikipedia.dump import Line
from pipeline.wikipedia.ids import category_of, is_wikipedia, page_id

# Characters of a fault's description.
_MOST_DETAIL = 300

Number = Annotated[int, Field(gt=0, le=2**53)]


class _Project(BaseModel):
    identifier: str


class _Version(BaseModel):
    identifier: Number


class _Namespace(BaseModel):
    identifier: int = 0


class _Body(BaseModel):
    html: str = ""


class Page(BaseModel):
    """A page. html: the whole article as Parsoid writes it; dates: ISO 8601; version: the revision."""

    identifier: Number
    name: Annotated[str, Field(min_length=1)]
    is_part_of: _Project
    version: _Version
    namespace: _Namespace = _Namespace()
    article_body: _Body = _Body()
    date_created: str | None = None
    date_modified: str | None = None

    @property
    def page_id(self) -> str:
        """`enwiki:12345`."""
        return page_id(self.is_part_of.identifier, self.identifier)

    @property
    def category(self) -> str:
        """`wikipedia.EN`."""
        return category_of(self.is_part_of.identifier)

    @property
    def title(self) -> str:
        """The article's title on one line."""
        return " ".join(self.name.split())

    @property
    def html(self) -> str:
        """The article's HTML."""
        return self.article_body.html


def read_page(line: Line) -> Page:
    """The page of a line.

    Raises PageError: broken_line for what is no JSON or no page, not_wikipedia for another project's page,
    not_an_article for one outside of the article namespace.
    """
    if line.content is None:
        raise PageError("broken_line", "longer than any page is")
    try:
        page = Page.model_validate(orjson.loads(line.content))
    except ValidationError as error:
        raise PageError("broken_line", _faults(error)) from None
    except (ValueError, RecursionError) as error:
        raise PageError("broken_line", f"no JSON ({' '.join(str(error).split())})"[:_MOST_DETAIL]) from None
    if not is_wikipedia(page.is_part_of.identifier):
        raise PageError("not_wikipedia", f"{page.is_part_of.identifier} is no Wikipedia"[:_MOST_DETAIL])
    if page.namespace.identifier != 0:
        raise PageError("not_an_article", f"{page.page_id} is of namespace {page.namespace.identifier}")
    return page


def _faults(error: ValidationError) -> str:
    """The wrong fields with their faults, without their values, which may be the whole page."""
    faults = [
        f"{'.'.join(map(str, fault['loc'])) or 'the line'}: {fault['msg']}"
        for fault in error.errors(include_input=False)
    ]
    return "; ".join(faults)[:_MOST_DETAIL]
