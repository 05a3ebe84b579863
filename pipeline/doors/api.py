"""The JSON API: its endpoints, the values that they return, and their description as OpenAPI."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Any, Literal, get_type_hints

import orjson
from pydantic import TypeAdapter
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from pipeline import __version__
from pipeline.corpus.citation_formats import bibtex_of
from pipeline.corpus.nouns import (
    Answer,
    CitingPaper,
    Claim,
    FullPaper,
    Hit,
    Paper,
    Passage,
    Reference,
    Results,
    Section,
)
from pipeline.doors.papers import (
    PaperListing,
    citing_papers,
    papers_citing_the_same,
    similar_papers,
)
from pipeline.doors.present import HIDDEN, as_json, derived
from pipeline.doors.web.forms import (
    AddressForm,
    ListingForm,
    SearchForm,
    run_paper_listing,
    run_search,
)
from pipeline.doors.web.guard import FORMS, PROBLEM_TYPE, Problem
from pipeline.doors.web.site import CorpusView, Site, ask, asks_model
from pipeline.errors import SettingError
from pipeline.index.papers import read_paper
from pipeline.index.quotes import find_quote

_NOUNS = (Passage, Paper, FullPaper, Section, Hit, Claim, Answer)
_REFERENCE = "#/components/schemas/{model}"


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


_TEXT = {"type": "string"}
_OF_PAPER = "/api/papers/{id:path}"
ENDPOINTS: list[Endpoint] = []
"""In the order in which addresses are matched."""

Call = Callable[[Site, Request], Any]


def _endpoint(
    path: str, summary: str, returns: Any, *parameters: Parameter
) -> Callable[[Call], Call]:
    """Add a function to the endpoints. returns: the type of its value."""

    def add(call: Call) -> Call:
        ENDPOINTS.append(Endpoint(path, summary, call, returns, parameters))
        return call

    return add


def _parameters_of(form: type[AddressForm]) -> list[Parameter]:
    schemas = form.model_json_schema()["properties"]
    return [
        Parameter(name, schema.pop("description"), schema, required=name == "q")
        for name, schema in schemas.items()
    ]


@_endpoint("/api/search", "Search for papers", Results, *_parameters_of(SearchForm))
def _search(site: Site, request: Request) -> Results:
    return run_search(site, SearchForm.read(request.query_params.multi_items()))


@_endpoint("/api/passages", "Search for passages", Results, *_parameters_of(SearchForm))
def _passages(site: Site, request: Request) -> Results:
    return run_search(site, SearchForm.read(request.query_params.multi_items()), "passages")


@_endpoint(
    "/api/quotes",
    "Find where a sentence or quote is from",
    Results,
    Parameter("q", "the quote, at least four words", _TEXT, required=True),
)
def _quotes(site: Site, request: Request) -> Results:
    return find_quote(site.workspace, request.query_params.get("q", ""))


@_endpoint(
    "/api/ask",
    "Answer a question from the corpus",
    Answer,
    Parameter("q", "the question", _TEXT, required=True),
    Parameter("system", "arxivbot_fused, arxivbot, wikichat, direct or passages", _TEXT),
)
def _ask(site: Site, request: Request) -> Answer:
    values = request.query_params
    system = values.get("system") or None
    if request.method != "POST" and asks_model(site, system):
        raise HTTPException(405, "a model answers: send the question by POST, as a form")
    return ask(site, values.get("q", ""), system)


@_endpoint("/api/corpus", "Months, counts and index audits", CorpusView)
def _corpus(site: Site, request: Request) -> CorpusView:
    return site.overview()


@_endpoint(
    "/api/papers",
    "List papers, or find them by title, author or year",
    PaperListing,
    *_parameters_of(ListingForm),
)
def _papers(site: Site, request: Request) -> PaperListing:
    return run_paper_listing(site, ListingForm.read(request.query_params.multi_items()))


def _requested_paper(site: Site, request: Request) -> FullPaper:
    """The paper that an address names. Raises MissingInput if the corpus does not hold it."""
    return read_paper(site.workspace, request.path_params["id"])


@_endpoint(f"{_OF_PAPER}/outline", "Sections of a paper", tuple[Section, ...])
def _paper_outline(site: Site, request: Request) -> tuple[Section, ...]:
    return _requested_paper(site, request).sections


@_endpoint(f"{_OF_PAPER}/references", "Bibliography of a paper", tuple[Reference, ...])
def _paper_references(site: Site, request: Request) -> tuple[Reference, ...]:
    return _requested_paper(site, request).references


@_endpoint(f"{_OF_PAPER}/cited-by", "Papers of the corpus that cite a paper", list[CitingPaper])
def _paper_cited_by(site: Site, request: Request) -> list[CitingPaper]:
    return citing_papers(site.workspace, request.path_params["id"])


@_endpoint(f"{_OF_PAPER}/citing-the-same", "Papers that cite the same works", list[Hit])
def _paper_citing_the_same(site: Site, request: Request) -> list[Hit]:
    return papers_citing_the_same(site.workspace, _requested_paper(site, request))


@_endpoint(f"{_OF_PAPER}/similar", "Papers with similar passages", list[Hit])
def _paper_similar(site: Site, request: Request) -> list[Hit]:
    return similar_papers(site.workspace, _requested_paper(site, request).arxiv_id)


@_endpoint(f"{_OF_PAPER}/bibtex", "BibTeX entry of a paper", str)
def _paper_bibtex(site: Site, request: Request) -> str:
    return bibtex_of([_requested_paper(site, request)])


# Last, since an id may hold a slash.
@_endpoint(_OF_PAPER, "A paper with its passages and references", FullPaper)
def _paper(site: Site, request: Request) -> FullPaper:
    return _requested_paper(site, request)


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
    return Response(orjson.dumps(as_json(value)), media_type="application/json")


def openapi() -> dict[str, Any]:
    """The description of the API, OpenAPI 3.1."""
    returned: dict[str, Any] = {endpoint.path: endpoint.returns for endpoint in ENDPOINTS}
    returned["problem"] = Problem
    mode: Literal["serialization"] = "serialization"
    adapters = [(name, mode, TypeAdapter(kind)) for name, kind in returned.items()]
    schemas, components = TypeAdapter.json_schemas(adapters, ref_template=_REFERENCE)
    components = components.get("$defs", {})
    for noun in _NOUNS:
        _describe_noun(components[noun.__name__], noun)
    failure = {
        "description": "A problem document (RFC 9457)",
        "content": {PROBLEM_TYPE: {"schema": schemas["problem", mode]}},
    }
    paths = {}
    for endpoint in ENDPOINTS:
        content_type = "text/plain" if endpoint.returns is str else "application/json"
        content = {content_type: {"schema": schemas[endpoint.path, mode]}}
        operation = {
            "summary": endpoint.summary,
            # Clients that are generated from this have methods of these names.
            "operationId": endpoint.call.__name__.removeprefix("_"),
            "parameters": _describe_parameters(endpoint),
            "responses": {
                "200": {"description": endpoint.summary, "content": content},
                "default": failure,
            },
        }
        paths[endpoint.path.replace(":path", "")] = {"get": operation}
        if endpoint.path in FORMS:
            fields = {item.name: item.schema for item in endpoint.parameters}
            form = {"schema": {"type": "object", "properties": fields}}
            paths[endpoint.path]["post"] = {
                **operation,
                "parameters": [],
                "operationId": f"post_{operation['operationId']}",
                "requestBody": {"content": {"application/x-www-form-urlencoded": form}},
            }
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "citeloom",
            "version": __version__,
            "description": "Read-only access to a corpus of papers.",
        },
        "paths": paths,
        "components": {"schemas": components},
    }


def _describe_noun(schema: dict[str, Any], noun: type) -> None:
    """Correct the schema of a noun's fields to what `as_json` gives."""
    optional = {part.name for part in fields(noun) if "part" in part.metadata}
    for name in HIDDEN:
        schema["properties"].pop(name, None)
    for name in derived(noun):
        returned = get_type_hints(getattr(noun, name).fget)["return"]
        described = TypeAdapter(returned).json_schema(ref_template=_REFERENCE)
        schema["properties"][name] = {key: described[key] for key in described if key != "$defs"}
    schema["required"] = [name for name in schema["properties"] if name not in optional]


def _describe_parameters(endpoint: Endpoint) -> list[Mapping[str, Any]]:
    described: list[Mapping[str, Any]] = []
    if "{id" in endpoint.path:
        described.append(
            {
                "name": "id",
                "in": "path",
                "required": True,
                "description": "arXiv id, such as 2404.90003; slashes of old ids are not escaped",
                "schema": _TEXT,
            }
        )
    for parameter in endpoint.parameters:
        described.append(
            {
                "name": parameter.name,
                "in": "query",
                "required": parameter.required,
                "description": parameter.description,
                "schema": parameter.schema,
            }
        )
    return described
