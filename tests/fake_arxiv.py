"""arXiv on loopback: its OAI-PMH server, its API and its site, and what they may answer."""

import re
import time
from collections.abc import Callable

from werkzeug import Request, Response

from tests.unit.corpus.arxiv_site import site_page

TODAY = "2024-11-20"
Reply = Callable[[Request], Response]


def reply(body="", code=200, kind="application/xml", **headers):
    """An answer to any request; `_` in the name of a header stands for `-`."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return lambda request: Response(body, code, named, content_type=kind)


def status(code, **headers):
    return reply("", code, **headers)


class FakeServer:
    """Gives its usual answers, or the next of `script` (a response, a function of the request, or
    None for the usual one), and keeps the requests.

    times: when each came, on the clock `now`.
    """

    def __init__(self, server, path):
        self.url = server.url_for(path)
        self.script = []
        self.requests = []
        self.times = []
        self.now = time.time
        server.expect_request(re.compile(f"{path}(/|$)")).respond_with_handler(self._answer)

    def _answer(self, request):
        self.note(request)
        scripted = self.script.pop(0) if self.script else None
        if isinstance(scripted, Response):
            return scripted
        return scripted(request) if scripted else self.usual(request)

    def note(self, request):
        self.requests.append(request)
        self.times.append(self.now())

    def usual(self, request):
        raise NotImplementedError

    @property
    def agents(self):
        return {request.headers["User-Agent"] for request in self.requests}


# Its OAI-PMH server


def raw(arxiv_id, versions=1, source="", **told):
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


def record(arxiv_id, day="2024-11-10", metadata=None):
    """A record as arXiv's server writes it."""
    header = f"<header><identifier>oai:arXiv.org:{arxiv_id}</identifier><datestamp>{day}</datestamp></header>"
    return f"<record>{header}<metadata>{metadata or raw(arxiv_id)}</metadata></record>"


def deleted(arxiv_id, day):
    header = f"<identifier>oai:arXiv.org:{arxiv_id}</identifier><datestamp>{day}</datestamp>"
    return f'<record><header status="deleted">{header}</header></record>'


def answer(content, day=TODAY):
    body = (
        '<?xml version="1.0" encoding="UTF-8"?><OAI-PMH'
        ' xmlns="http://www.openarchives.org/OAI/2.0/">'
        f"<responseDate>{day}T01:02:03Z</responseDate><request>here</request>{content}</OAI-PMH>"
    )
    return Response(body, content_type="application/xml")


def page(records, token="", expires="2099-01-01T00:00:00Z", day=TODAY):
    """A page of records, or of the papers with these identifiers as they are at first."""
    records = [one if one.startswith("<") else record(one) for one in records]
    more = f"<resumptionToken expires='{expires}'>{token}</resumptionToken>" if token else ""
    return answer(f"<ListRecords>{''.join(records)}{more}</ListRecords>", day)


def error(code):
    return answer(f'<error code="{code}">as it is</error>')


class FakeOai(FakeServer):
    """Answers the pages of `list` one after another."""

    def __init__(self, server):
        super().__init__(server, "/oai")
        self.list = []

    @property
    def asked(self):
        return [request.args.to_dict() for request in self.requests]

    def usual(self, request):
        number = int(request.args.get("resumptionToken", "from=x&skip=0").rpartition("=")[2])
        if number >= len(self.list):
            return error("noRecordsMatch")
        return page(
            self.list[number],
            f"from=x&amp;skip={number + 1}" if number + 1 < len(self.list) else "",
        )


# Its API

FEED = (
    '<feed xmlns="http://www.w3.org/2005/Atom" xmlns:arxiv="http://arxiv.org/schemas/atom" '
    'xmlns:opensearch="http://a9.com/-/spec/opensearch/1.1/">'
    "<opensearch:totalResults>{}</opensearch:totalResults>{}</feed>"
)


def entry(arxiv_id, version=1):
    """An entry as arXiv writes it."""
    return (
        f"<entry><id>http://arxiv.org/abs/{arxiv_id}v{version}</id><title>On\n "
        f" {arxiv_id}</title><updated>2024-03-05T09:00:00Z</updated><summary> We say."
        ' </summary><category term="cs.LG"/><category'
        ' term="cs.CL"/><published>2024-03-04T09:00:00Z</published><arxiv:primary_category'
        ' term="cs.CL"/><author><name>A. One</name></author></entry>'
    )


def feed(entries):
    """A whole answer."""
    content = list(entries)
    return Response(
        FEED.format(len(content), "".join(content)), content_type="application/atom+xml"
    )


class FakeApi(FakeServer):
    """Answers from `papers`: identifier → entry."""

    def __init__(self, server):
        super().__init__(server, "/api/query")
        self.papers = {}

    @property
    def asked(self):
        return [request.args["id_list"].split(",") for request in self.requests]

    def usual(self, request):
        """Those papers that it has, the last first: arXiv promises no order."""
        ids = reversed(request.args["id_list"].split(","))
        return feed(self.papers[name] for name in ids if name in self.papers)


# Its site


class FakeSite(FakeServer):
    """Has a page of every paper but those `without`, all with the same body."""

    def __init__(self, server, body):
        super().__init__(server, "/html")
        self.body = body
        self.without = set()
        self.robots = "User-agent: *\nDisallow: /user"
        server.expect_request("/robots.txt").respond_with_handler(self._answer_robots)

    @property
    def asked(self):
        """The papers whose pages were requested, and "robots"."""
        names = {"/robots.txt": "robots"}
        return [
            names.get(request.path, request.path.removeprefix("/html/"))
            for request in self.requests
        ]

    def _answer_robots(self, request):
        self.note(request)
        return Response(self.robots, content_type="text/plain")

    def usual(self, request):
        name = request.path.removeprefix("/html/")
        if name in self.without:
            return Response("none", 404)
        return Response(site_page(self.body, name.removesuffix("v2")), content_type="text/html")
