"""The JSON API: its endpoints, the values that they return, and their description as OpenAPI."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from inspect import cleandoc
from typing import Any, Literal, get_type_hints

import orjson
from pydantic import TypeAdapter
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from pipeline import __version__
from pipeline.corpus.citation_formats import CITATION_FORMATS, entries_of
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
from pipeline.corpus.references.citation_index import read_citing_papers
from pipeline.doors.papers import papers_citing_the_same, similar_papers
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


Parameter = Mapping[str, Any]
"""A parameter of an address, as OpenAPI describes it."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """An address of the API. call: computes its value; its docstring and the type that it returns
    are part of the description. media_type: of a value that is a text.
    """

    path: str
    call: Callable[[Site, Request], Any]
    parameters: tuple[Parameter, ...] = ()
    media_type: str = "application/json"

    @property
    def returns(self) -> Any:
        """The type of its value."""
        return get_type_hints(self.call)["return"]


_OF_PAPER = "/api/papers/{id:path}"
ENDPOINTS: list[Endpoint] = []
"""In the order in which addresses are matched."""

Call = Callable[[Site, Request], Any]


def _endpoint(path: str, *parameters: Parameter, has_works: bool = False) -> Callable[[Call], Call]:
    """Add a function to the endpoints. has_works: its value has entries; an address below its own
    gives them in each format.
    """

    def add(call: Call) -> Call:
        for name, form in CITATION_FORMATS.items() if has_works else ():
            entries = _entries(call, name, form.title)
            ENDPOINTS.append(Endpoint(f"{path}/{name}", entries, parameters, form.media_type))
        ENDPOINTS.append(Endpoint(path, call, parameters))
        return call

    return add


def _entries(call: Call, name: str, title: str) -> Call:
    def entries(site: Site, request: Request) -> str:
        return entries_of(call(site, request), name)

    entries.__name__ = f"{call.__name__}_{name}"
    entries.__doc__ = f"{title}: {call.__doc__}"
    return entries


def _parameter(name: str, description: str, *, required: bool = False, **schema: Any) -> Parameter:
    """A parameter of the query. schema: of its values; by default a text."""
    return {
        "name": name,
        "in": "query",
        "required": required,
        "description": description,
        "schema": schema or {"type": "string"},
    }


_ID: Parameter = {
    **_parameter("id", "arXiv id, such as 2404.90003; slashes of old ids are not escaped"),
    "in": "path",
    "required": True,
}


def _parameters_of(form: type[AddressForm]) -> list[Parameter]:
    schemas = form.model_json_schema()["properties"]
    return [_parameter(name, required=name == "q", **schema) for name, schema in schemas.items()]


@_endpoint("/api/search", *_parameters_of(SearchForm), has_works=True)
def _search(site: Site, request: Request) -> Results:
    """Search for papers."""
    return run_search(site, SearchForm.of(request))


@_endpoint("/api/passages", *_parameters_of(SearchForm), has_works=True)
def _passages(site: Site, request: Request) -> Results:
    """Search for passages."""
    return run_search(site, SearchForm.of(request), "passages")


@_endpoint("/api/quotes", _parameter("q", "the quote, at least four words", required=True))
def _quotes(site: Site, request: Request) -> Results:
    """Find where a sentence or quote is from."""
    return find_quote(site.workspace, request.query_params.get("q", ""))


@_endpoint(
    "/api/ask",
    _parameter("q", "the question", required=True),
    _parameter("system", "arxivbot_fused, arxivbot, wikichat, direct or passages"),
)
def _ask(site: Site, request: Request) -> Answer:
    """Answer a question from the corpus."""
    values = request.query_params
    system = values.get("system") or None
    if request.method != "POST" and asks_model(site, system):
        raise HTTPException(405, "a model answers: send the question by POST, as a form")
    return ask(site, values.get("q", ""), system)


@_endpoint("/api/corpus")
def _corpus(site: Site, request: Request) -> CorpusView:
    """Months, counts and index audits."""
    return site.overview()


@_endpoint("/api/papers", *_parameters_of(ListingForm), has_works=True)
def _papers(site: Site, request: Request) -> Results:
    """List papers, or find them by title, author or year."""
    return run_paper_listing(site, ListingForm.of(request))


def _requested_paper(site: Site, request: Request) -> FullPaper:
    """The paper that an address names. Raises MissingInput if the corpus does not hold it."""
    return read_paper(site.workspace, request.path_params["id"])


@_endpoint(f"{_OF_PAPER}/outline")
def _paper_outline(site: Site, request: Request) -> tuple[Section, ...]:
    """Sections of a paper."""
    return _requested_paper(site, request).sections


@_endpoint(f"{_OF_PAPER}/references", has_works=True)
def _paper_references(site: Site, request: Request) -> tuple[Reference, ...]:
    """Bibliography of a paper."""
    return _requested_paper(site, request).references


@_endpoint(f"{_OF_PAPER}/cited-by", has_works=True)
def _paper_cited_by(site: Site, request: Request) -> list[CitingPaper]:
    """Papers of the corpus that cite a paper, which need not be in the corpus."""
    return read_citing_papers(site.workspace, request.path_params["id"])


@_endpoint(f"{_OF_PAPER}/citing-the-same")
def _paper_citing_the_same(site: Site, request: Request) -> list[Hit]:
    """Papers that cite the same works."""
    return papers_citing_the_same(site.workspace, _requested_paper(site, request))


@_endpoint(f"{_OF_PAPER}/similar")
def _paper_similar(site: Site, request: Request) -> list[Hit]:
    """Papers with similar passages."""
    return similar_papers(site.workspace, _requested_paper(site, request).arxiv_id)


# Last, since an id may hold a slash.
@_endpoint(_OF_PAPER, has_works=True)
def _paper(site: Site, request: Request) -> FullPaper:
    """A paper with its passages and references."""
    return _requested_paper(site, request)


def answer(endpoint: Endpoint, site: Site, request: Request) -> Response:
    """The response of an endpoint. Raises SettingError for a parameter that it does not have."""
    names = [parameter["name"] for parameter in endpoint.parameters]
    for name in request.query_params:
        if name not in names:
            raise SettingError(
                f"{name[:50]!r} is not a parameter here: there are {', '.join(names) or 'none'}"
            )
    value = endpoint.call(site, request)
    content = value if isinstance(value, str) else orjson.dumps(as_json(value))
    return Response(content, media_type=endpoint.media_type)


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
        content = {endpoint.media_type: {"schema": schemas[endpoint.path, mode]}}
        summary = cleandoc(endpoint.call.__doc__ or "").removesuffix(".")
        operation = {
            "summary": summary,
            # Clients that are generated from this have methods of these names.
            "operationId": endpoint.call.__name__.removeprefix("_"),
            "parameters": [*([_ID] if "{id" in endpoint.path else []), *endpoint.parameters],
            "responses": {
                "200": {"description": summary, "content": content},
                "default": failure,
            },
        }
        paths[endpoint.path.replace(":path", "")] = {"get": operation}
        if endpoint.path in FORMS:
            fields = {item["name"]: item["schema"] for item in endpoint.parameters}
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
