"""An OAI-PMH server on loopback that speaks arXiv's dialect, and what it may answer."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pytest_httpserver import HTTPServer
from werkzeug import Request, Response

TODAY = "2024-11-20"
Reply = Callable[[Request], Response]


def raw(arxiv_id: str, versions: int = 1, source: str = "", **told: str) -> str:
    """The metadata of a paper in the format arXivRaw."""
    content = {
        "title": f"On\n  {arxiv_id}",
        "authors": "A. One, B.C. Two",
        "categories": "cs.CL cs.LG",
        "abstract": " We say. ",
    } | told
    history = "".join(
        f'<version version="v{number}"><date>Mon, {number} Apr 2024 09:00:00'
        f" GMT</date>{source}</version>"
        for number in range(1, versions + 1)
    )
    fields = "".join(f"<{name}>{value}</{name}>" for name, value in content.items())
    return (
        "<arXivRaw"
        f' xmlns="http://arxiv.org/OAI/arXivRaw/"><id>{arxiv_id}</id>{history}{fields}</arXivRaw>'
    )


def record(arxiv_id: str, day: str = "2024-11-10", metadata: str | None = None) -> str:
    """A record as arXiv's server writes it."""
    header = f"<header><identifier>oai:arXiv.org:{arxiv_id}</identifier><datestamp>{day}</datestamp></header>"
    return f"<record>{header}<metadata>{metadata or raw(arxiv_id)}</metadata></record>"


def deleted(arxiv_id: str, day: str) -> str:
    header = f"<identifier>oai:arXiv.org:{arxiv_id}</identifier><datestamp>{day}</datestamp>"
    return f'<record><header status="deleted">{header}</header></record>'


def answer(content: str, day: str = TODAY) -> Response:
    body = (
        '<?xml version="1.0" encoding="UTF-8"?><OAI-PMH'
        ' xmlns="http://www.openarchives.org/OAI/2.0/">'
        f"<responseDate>{day}T01:02:03Z</responseDate><request>here</request>{content}</OAI-PMH>"
    )
    return Response(body, content_type="application/xml")


def page(
    records: Sequence[str], token: str = "", expires: str = "2099-01-01T00:00:00Z", day: str = TODAY
) -> Response:
    more = f"<resumptionToken expires='{expires}'>{token}</resumptionToken>" if token else ""
    return answer(f"<ListRecords>{''.join(records)}{more}</ListRecords>", day)


def error(code: str) -> Response:
    return answer(f'<error code="{code}">as it is</error>')


def status(code: int, **headers: str) -> Reply:
    return lambda request: Response(
        "", code, {name.replace("_", "-"): value for name, value in headers.items()}
    )


def text(body: str | bytes, kind: str = "application/xml") -> Reply:
    return lambda request: Response(body, content_type=kind)


class FakeOai:
    """Answers the pages of `list` one after another, or the next of `script`; keeps what it was
    asked.
    """

    def __init__(self, server: HTTPServer) -> None:
        self.list: list[list[str]] = []
        self.script: list[Reply | None] = []
        self.asked: list[dict[str, str]] = []
        self.agents: set[str] = set()
        self.url = server.url_for("/oai")
        server.expect_request("/oai").respond_with_handler(self._answer)

    def _answer(self, request: Request) -> Response:
        self.asked.append(request.args.to_dict())
        self.agents.add(request.headers["User-Agent"])
        reply = self.script.pop(0) if self.script else None
        return reply(request) if reply else self.usual(request)

    def usual(self, request: Request) -> Response:
        number = int(request.args.get("resumptionToken", "from=x&skip=0").rpartition("=")[2])
        if number >= len(self.list):
            return error("noRecordsMatch")
        return page(
            self.list[number],
            f"from=x&amp;skip={number + 1}" if number + 1 < len(self.list) else "",
        )
