"""The JSON API: its endpoints, the values that they return, and their description as OpenAPI."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import orjson
from pydantic import BaseModel, ConfigDict, TypeAdapter
from starlette.requests import Request
from starlette.responses import Response

from pipeline import __version__
from pipeline.arxiv.identifiers import normalize_arxiv_id
from pipeline.corpus.paper import FullPaper, PaperReference
from pipeline.errors import MissingInput, SettingError
from pipeline.index.output import PaperJson
from pipeline.index.papers import CitingPaper, read_citing_papers, read_paper
from pipeline.index.quotes import QuoteSource, find_quote
from pipeline.serve.corpus_view import CorpusView
from pipeline.serve.guard import PROBLEM_TYPE, Problem
from pipeline.serve.paper_view import (
    Heading,
    RelatedPaper,
    bibtex_of,
    find_papers,
    outline_of,
    papers_citing_the_same,
    similar_papers,
)
from pipeline.serve.search_results import SearchForm, SearchResults, parse_form, run_search
from pipeline.serve.site import LONGEST_QUERY, Site, ask

_MOST_PAPERS = 100


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of an address. schema: as OpenAPI has it."""

    name: str
    description: str
    schema: Mapping[str, Any]
    required: bool = False


@dataclass(frozen=True, slots=True)
class Endpoint:
    """An address of the API. call: computes its value; returns: the type of that value."""

    path: str
    summary: str
    call: Callable[[Site, Request], Any]
    returns: Any
    parameters: tuple[Parameter, ...] = ()


class FoundPaper(BaseModel):
    """A paper of the corpus as a look-up by title, author or year returns it."""

    model_config = ConfigDict(from_attributes=True)

    arxiv_id: str
    title: str
    authors: tuple[str, ...]
    year: int | None
    categories: tuple[str, ...]
    url: str


_TEXT = {"type": "string"}


def _search_parameters() -> tuple[Parameter, ...]:
    schemas = SearchForm.model_json_schema()["properties"]
    return tuple(
        Parameter(name, schema.pop("description"), schema, required=name == "q")
        for name, schema in schemas.items()
    )


def _search(site: Site, request: Request) -> SearchResults:
    return run_search(site, parse_form(request.query_params.multi_items()))


def _find_papers(site: Site, request: Request) -> list[FoundPaper]:
    values = request.query_params
    year = values.get("year", "")
    if year and not (year.isascii() and year.isdecimal() and len(year) == 4):
        raise SettingError(f"year: {year[:50]!r} is no year: write 2024")
    papers = find_papers(
        site.root,
        values.get("title", ""),
        values.get("author", ""),
        int(year) if year else None,
        _MOST_PAPERS,
    )
    return [FoundPaper.model_validate(paper) for paper in papers]


def requested_paper(site: Site, request: Request) -> FullPaper:
    """The paper that an address names. Raises MissingInput if the corpus does not hold it."""
    return read_paper(site.root, request.path_params["id"])


def _paper(site: Site, request: Request) -> PaperJson:
    return PaperJson.model_validate(requested_paper(site, request))


def _outline(site: Site, request: Request) -> list[Heading]:
    return list(outline_of(requested_paper(site, request)))


def _references(site: Site, request: Request) -> list[PaperReference]:
    return list(requested_paper(site, request).references)


def _cited_by(site: Site, request: Request) -> list[CitingPaper]:
    return read_citing_papers(site.root, _arxiv_id(request))


def _citing_the_same(site: Site, request: Request) -> list[RelatedPaper]:
    return papers_citing_the_same(site.root, requested_paper(site, request))


def _similar(site: Site, request: Request) -> list[RelatedPaper]:
    return similar_papers(site.workspace, requested_paper(site, request).arxiv_id)


def _bibtex(site: Site, request: Request) -> str:
    return bibtex_of([requested_paper(site, request)])


def _arxiv_id(request: Request) -> str:
    """The id of a paper that need not be in the corpus."""
    arxiv_id = normalize_arxiv_id(request.path_params["id"])
    if arxiv_id is None:
        raise MissingInput(
            f"{request.path_params['id'][:80]!r} is not an arXiv id: give one such as 2404.90003"
        )
    return arxiv_id


def _quotes(site: Site, request: Request) -> list[QuoteSource]:
    quote = request.query_params.get("q", "")
    if len(quote) > LONGEST_QUERY:
        raise SettingError(f"q has {len(quote):,} characters: give at most {LONGEST_QUERY:,}")
    return find_quote(site.workspace, quote)


def _ask(site: Site, request: Request) -> dict[str, Any]:
    from pipeline.answering.rendering import reply_json

    return reply_json(
        ask(site, request.query_params.get("q", ""), request.query_params.get("system") or None)
    )


def _corpus(site: Site, request: Request) -> CorpusView:
    return site.overview()


_OF_PAPER = "/api/papers/{id:path}"
ENDPOINTS = (
    Endpoint("/api/search", "Search for passages", _search, SearchResults, _search_parameters()),
    Endpoint(
        "/api/quotes",
        "Find where a sentence or quote is from",
        _quotes,
        list[QuoteSource],
        (Parameter("q", "the quote, at least four words", _TEXT, required=True),),
    ),
    Endpoint(
        "/api/ask",
        "Answer a question from the corpus",
        _ask,
        dict[str, Any],
        (
            Parameter("q", "the question", _TEXT, required=True),
            Parameter("system", "arxivbot, wikichat, direct or extractive", _TEXT),
        ),
    ),
    Endpoint("/api/corpus", "Months, counts and index audits", _corpus, CorpusView),
    Endpoint(
        "/api/papers",
        "Find papers by title, author or year",
        _find_papers,
        list[FoundPaper],
        (
            Parameter("title", "words of the title", _TEXT),
            Parameter("author", "words of an author's name", _TEXT),
            Parameter("year", "year", _TEXT),
        ),
    ),
    Endpoint(f"{_OF_PAPER}/outline", "Sections of a paper", _outline, list[Heading]),
    Endpoint(
        f"{_OF_PAPER}/references", "Bibliography of a paper", _references, list[PaperReference]
    ),
    Endpoint(
        f"{_OF_PAPER}/cited-by",
        "Papers of the corpus that cite a paper",
        _cited_by,
        list[CitingPaper],
    ),
    Endpoint(
        f"{_OF_PAPER}/citing-the-same",
        "Papers that cite the same works",
        _citing_the_same,
        list[RelatedPaper],
    ),
    Endpoint(f"{_OF_PAPER}/similar", "Papers with similar passages", _similar, list[RelatedPaper]),
    Endpoint(f"{_OF_PAPER}/bibtex", "BibTeX entry of a paper", _bibtex, str),
    # Last, since an id may hold a slash.
    Endpoint(_OF_PAPER, "A paper with its passages and references", _paper, PaperJson),
)


def answer(endpoint: Endpoint, site: Site, request: Request) -> Response:
    """The response of an endpoint. Raises SettingError for a parameter that it does not have."""
    names = [parameter.name for parameter in endpoint.parameters]
    for name in request.query_params:
        if name not in names:
            raise SettingError(
                f"{name[:50]!r} is not a parameter here: there are {', '.join(names) or 'none'}"
            )
    value = endpoint.call(site, request)
    if isinstance(value, str):
        return Response(value, media_type="text/plain")
    return Response(orjson.dumps(value, default=_model_values), media_type="application/json")


def _model_values(model: BaseModel) -> dict[str, Any]:
    """The fields of a model, which orjson cannot write by itself."""
    return model.model_dump()


def openapi() -> dict[str, Any]:
    """The description of the API, OpenAPI 3.1."""
    returned: dict[str, Any] = {endpoint.path: endpoint.returns for endpoint in ENDPOINTS}
    returned["problem"] = Problem
    mode: Literal["serialization"] = "serialization"
    adapters = [(name, mode, TypeAdapter(kind)) for name, kind in returned.items()]
    schemas, components = TypeAdapter.json_schemas(
        adapters, ref_template="#/components/schemas/{model}"
    )
    failure = {
        "description": "A problem document (RFC 9457)",
        "content": {PROBLEM_TYPE: {"schema": schemas["problem", mode]}},
    }
    paths = {
        endpoint.path.replace(":path", ""): {
            "get": {
                "summary": endpoint.summary,
                "operationId": _operation_id(endpoint.path),
                "parameters": [
                    *_path_parameters(endpoint.path),
                    *map(_describe, endpoint.parameters),
                ],
                "responses": {
                    "200": {
                        "description": endpoint.summary,
                        "content": {
                            "text/plain" if endpoint.returns is str else "application/json": {
                                "schema": schemas[endpoint.path, mode]
                            }
                        },
                    },
                    "default": failure,
                },
            }
        }
        for endpoint in ENDPOINTS
    }
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "citeloom",
            "version": __version__,
            "description": "Read-only access to a corpus of papers.",
        },
        "paths": paths,
        "components": {"schemas": components.get("$defs", {})},
    }


def _operation_id(path: str) -> str:
    words = path.removeprefix("/api/").replace("{id:path}", "paper").replace("-", "_").split("/")
    return "_".join(words[1:] if words[0] == "papers" and len(words) > 1 else words)


def _path_parameters(path: str) -> Sequence[Mapping[str, Any]]:
    if "{id" not in path:
        return []
    description = "arXiv id, such as 2404.90003; slashes of old ids are not escaped"
    return [
        {"name": "id", "in": "path", "required": True, "description": description, "schema": _TEXT}
    ]


def _describe(parameter: Parameter) -> Mapping[str, Any]:
    return {
        "name": parameter.name,
        "in": "query",
        "required": parameter.required,
        "description": parameter.description,
        "schema": parameter.schema,
    }
