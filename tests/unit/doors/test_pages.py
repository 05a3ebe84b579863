"""Pages and API: what they show, their links, hostile texts and queries, errors, tokens and
policies.
"""

import json
import threading
from pathlib import Path

import pytest
from selectolax.lexbor import LexborHTMLParser
from starlette.testclient import TestClient

from pipeline.doors.api import ENDPOINTS, openapi
from pipeline.doors.search import search
from pipeline.doors.web.app import make_app
from pipeline.doors.web.site import LiveAnswer, SearchQueue, Site, WaitingSearch
from pipeline.errors import SettingError
from pipeline.index.opening import edge_folder, live_index
from pipeline.index.search_options import SearchOptions
from pipeline.report import rendering
from tests.cases import cases, cases_beside, read_cases
from tests.scripted_llm import ScriptedLlm
from tests.unit.answering.corpus import asking
from tests.unit.answering.scripted_answers import faithful, form_of
from tests.unit.doors.conftest import client_of
from tests.unit.doors.corpus import BEAM, FUSION, HOSTILE_TEXTS, passage_id
from tests.unit.index.building import opened_by_another_process

pytestmark = pytest.mark.slow

HTML = {"Accept": "text/html,application/xhtml+xml"}
FORBIDDEN = (
    "script:not([src='/script.js']), img, iframe, object, embed, base, meta[http-equiv], [style],"
    " svg, video, form[action^='http']"
)

FOREIGN_LINK = {
    "Sec-Fetch-Site": "cross-site",
    "Sec-Fetch-Mode": "navigate",
    "Sec-Fetch-Dest": "document",
}


def parsed(client, path, status=200):
    answer = client.get(path, headers=HTML)
    assert answer.status_code == status, answer.text
    return LexborHTMLParser(answer.text)


def hrefs(page, selector):
    return [link.attributes["href"] for link in page.css(selector)]


@cases("unit/doors/pages.toml")
def test_a_page_shows_what_its_case_lists(client, case):
    page = parsed(client, case["path"], case.get("status", 200))
    ids = [passage_id(number) for number in range(7)]

    def shown(selector):
        elements = page.css(selector.format(*ids))
        texts = [{"value": each.text(), **each.attributes} for each in elements]
        return [text.get("href", text["value"]) for text in texts]

    for selector, expected in case.get("all", {}).items():
        assert shown(selector) == [text.format(*ids) for text in expected]
    for selector, text in case.get("first", {}).items():
        assert text.format(*ids) in shown(selector)[0]


def test_the_empty_fields_of_the_form_leave_the_address(client):
    answer = client.get("/search?q=ferns&category=&from=2024-03&author=", headers=HTML)
    assert (answer.status_code, answer.headers["location"]) == (303, "/search?q=ferns&from=2024-03")


@pytest.fixture
def with_llm(corpus):
    """The corpus with a language model to ask, which reads the first passage only."""
    answers = read_cases("unit/doors/cases.toml")["a_model_says"]

    def read(asked):
        name = form_of(asked)
        if name == "Ranking":
            return "[1]"  # the order of the search
        return json.dumps(answers[name]) if name in answers else faithful(asked)

    with ScriptedLlm(read) as llm:
        yield asking(corpus, llm), llm


def test_a_language_model_s_answer_has_its_steps_claims_and_cost(with_llm):
    workspace, llm = with_llm
    client = client_of(workspace)
    question = {"q": "What does reciprocal rank fusion merge?"}
    linked = parsed(client, "/ask?q=What+does+fusion+merge%3F")
    assert linked.css(".answer, .steps") == []
    assert client.get("/api/ask", params=question).status_code == 405
    assert llm.generations == 0
    page = LexborHTMLParser(client.post("/ask", data=question, headers=HTML).text)
    asked = llm.generations
    assert client.post("/api/ask", data=question).status_code == 200
    assert llm.generations == asked  # answers of the cache
    assert "It merges <b>lists</b>." in page.css_first(".answer").text()
    assert page.css(".answer b") == []
    assert [item.attributes["id"] for item in page.css(".claim")] == ["claim-1"]
    assert len(page.css(".steps li")) >= 4
    assert f"{llm.generations} calls" in page.css_first("section[aria-labelledby=answer]").text()


def test_a_step_is_shown_before_the_answer_is_written(with_llm):
    workspace, llm = with_llm
    is_shown = threading.Event()

    def wait(asked):
        if form_of(asked) == "GroundedAnswer":
            is_shown.wait()

    llm.rules.insert(0, wait)
    live = LiveAnswer(Site(workspace), "What does fusion merge?")
    progress = live.progress()
    assert next(progress)
    assert live.answer is None
    is_shown.set()
    assert list(progress)
    assert live.error is None
    assert live.answer.text == "It merges <b>lists</b>."


def test_waiting_searches_are_one_batch_and_one_that_fails_fails_alone(corpus, monkeypatch):
    batches = []

    def recorded_search(workspace, queries, *options):
        batches.append(queries)
        return search(workspace, queries, *options)

    monkeypatch.setattr("pipeline.doors.web.site.search", recorded_search)
    queries, options = ["beam", "fusion", "x" * 20_000], SearchOptions()
    waiting = [WaitingSearch(query, options, "papers") for query in queries]
    SearchQueue(corpus, waiting).search_next()
    assert batches[0] == queries
    assert [each.page.result().query for each in waiting[:2]] == queries[:2]
    with pytest.raises(SettingError):
        waiting[2].page.result()


def test_a_link_on_another_site_runs_no_question_and_a_failure_is_shown(client):
    answer = client.get("/ask?q=What+is+fusion%3F", headers={**HTML, **FOREIGN_LINK})
    page = LexborHTMLParser(answer.text)
    assert page.css(".answer, .steps") == []
    assert page.css_first("#q").attributes["value"] == "What is fusion?"
    assert client.get("/api/ask?q=What+is+fusion%3F", headers=FOREIGN_LINK).status_code == 403
    failed = parsed(client, "/ask?q=%01" + "x" * 10_001)
    assert "10,00" in failed.css_first("[role=alert]").text()


def test_more_questions_than_may_be_answered_at_once_are_sent_away(corpus, monkeypatch):
    monkeypatch.setattr("pipeline.doors.web.site.MOST_QUESTIONS", 0)
    client = client_of(corpus)
    answer = client.get("/api/ask", params={"q": "What is fusion?"})
    assert (answer.status_code, answer.json()["type"]) == (503, "urn:citeloom:temporary")


def test_the_corpus_page_counts_and_the_api_agrees(client):
    page = parsed(client, "/corpus")
    months = {month["month"]: month for month in client.get("/api/corpus").json()["months"]}
    march = months["2024-03"]
    counts = (march["counts"]["papers"], march["points_present"], march["stages"]["stale"])
    assert counts == (3, 7, 6)
    assert f"{3 + len(HOSTILE_TEXTS)}" in page.css_first(".headline").text()
    assert len(page.css("table.stack td[data-label]")) == 6 * len(months)


@pytest.mark.parametrize("path", ["/corpus", "/api/corpus"])
def test_a_server_lets_the_index_go_after_it_counted_the_corpus(corpus, path):
    client = client_of(corpus)
    for answer in (client.get("/api/search", params={"q": "fusion"}), client.get(path)):
        assert answer.status_code == 200
    with opened_by_another_process(edge_folder(corpus) / live_index(corpus).name):
        pass


def test_reports_are_served_with_their_own_policy_and_nothing_else_is(corpus, client):
    folder = Path(str(corpus.root.path)) / "reports" / "2024-03"
    assert "/reports/" not in hrefs(parsed(client, "/"), "nav a")
    folder.mkdir(parents=True, exist_ok=True)
    page = rendering.environment_with_filters(rendering.TEMPLATES).from_string(
        '{% extends "base.html.j2" %}{% import "parts.html.j2" as parts %}'
        "{% block main %}{{ parts.arxiv(paper) }}{{ parts.arxiv(sample) }}{% endblock %}"
    )
    text = page.render(paper=FUSION, sample="2403.90001", policy="", style="")
    (folder / "index.html").write_text(text)
    (folder.parent / "index.html").write_text(text)
    (folder / "notes.exe").write_text("no")
    answer = client.get("/reports/2024-03/")
    report = LexborHTMLParser(answer.text)
    of_site = hrefs(parsed(client, "/"), ".skip, header a")
    assert hrefs(report, "a") == [*of_site, f"/paper/{FUSION}", "/paper/2403.90001"]
    assert report.css_first(of_site[0]).tag == "main"
    assert "/reports/" in hrefs(parsed(client, "/"), "nav a")
    assert "script-src 'sha256-" in answer.headers["content-security-policy"]
    unserved = read_cases("unit/doors/cases.toml")["no_report"]
    for path in (*unserved, "x" * 300 + ".html", "漢" * 199, "x/" * 3_000):
        assert client.get(f"/reports/{path}").status_code == 404, path


@pytest.mark.parametrize("text", HOSTILE_TEXTS)
def test_a_hostile_query_changes_nothing_of_the_page(client, text):
    apis = ("/api/search", "/api/papers", "/api/quotes")
    for path in ("/search", "/passages", "/papers", "/ask", *apis):
        name = "title" if path.endswith("/papers") else "q"
        answer = client.get(path, params={name: text}, headers=HTML)
        assert answer.status_code < 500, path
        page = LexborHTMLParser(answer.text if not path.startswith("/api") else "<p></p>")
        assert page.css(FORBIDDEN) == []
    for name in ("author", "category", "venue", "year", "from", "page", text):
        answer = client.get("/search", params={"q": "fusion", name: text}, headers=HTML)
        assert answer.status_code in (200, 303, 400), name
        assert LexborHTMLParser(answer.text).css(FORBIDDEN) == []


@pytest.mark.parametrize("number", range(len(HOSTILE_TEXTS)))
def test_a_hostile_paper_is_shown_and_not_obeyed(client, number):
    page = parsed(client, f"/paper/2404.{number:05d}")
    assert page.css(FORBIDDEN) == []
    links = hrefs(page, "a[href]") + hrefs(page, "link")
    assert all(
        link.startswith(("/", "#", "https://arxiv.org/", "https://doi.org/")) for link in links
    ), links
    assert not [
        name
        for node in page.root.traverse(include_text=False)
        for name in node.attributes
        if name.startswith("on")
    ]


@cases("unit/doors/cases.toml", "what_is_not_there", "path")
def test_what_is_not_there_is_a_page_for_a_browser_and_a_problem_document_for_a_program(
    client, path
):
    assert parsed(client, path, 404).css_first("h1").text() == "Not Found"
    answer = client.get(path)
    assert (answer.status_code, answer.headers["content-type"]) == (404, "application/problem+json")
    assert set(answer.json()) == {"type", "title", "status", "detail"}


@cases_beside("path", "repeated")
def test_a_wrong_parameter_is_refused(client, path, repeated):
    answer = client.get(path + (repeated or "") * 3_000)
    assert (answer.status_code, answer.json()["type"]) == (400, "urn:citeloom:wrong-parameter")
    assert len(answer.json()["detail"]) < 300, "a long value is cut"


def test_another_method_is_refused(client):
    assert client.delete(f"/paper/{FUSION}").status_code == 405


@pytest.mark.parametrize(
    ("content", "question"), [("q=café+%C3%A9".encode(), "café é"), (b"q=\xff", "\ufffd")]
)
def test_a_forms_bytes_are_read_as_utf8(client, content, question):
    page = LexborHTMLParser(client.post("/ask", content=content, headers=HTML).text)
    assert page.css_first("main [name=q]").attributes["value"] == question


def test_every_response_has_a_strict_policy(client):
    for path in ("/", f"/paper/{BEAM}", "/style.css", "/api/corpus", "/nothing"):
        headers = client.get(path).headers
        policy = headers["content-security-policy"]
        assert policy.startswith("default-src 'none'; style-src 'self'; script-src 'self'")
        assert "unsafe" not in policy
        assert headers["x-content-type-options"] == "nosniff"


@cases_beside("host", "status")
def test_on_loopback_only_its_own_names_are_answered(corpus, host, status):
    client = TestClient(make_app(corpus))
    assert client.get("/style.css", headers={"Host": host}).status_code == status
    two_hosts = [("Host", "127.0.0.1"), ("Host", "evil.example")]
    assert client.get("/style.css", headers=two_hosts).status_code == 421


@cases_beside("headers", "status")
@pytest.mark.parametrize("token", [None, "s3cret"])
def test_pages_of_other_sites_may_only_link_to_it(corpus, token, headers, status):
    """A browser adds the password of a page it was given to what other sites embed, too."""
    client = client_of(corpus, token)
    client.headers["Authorization"] = f"Bearer {token}"
    assert client.get("/style.css", headers=headers).status_code == status


@cases_beside("token", "value", "status")
def test_with_a_token_every_request_needs_it(corpus, token, value, status):
    client = TestClient(make_app(corpus, token))
    assert client.get("/").status_code == 401
    assert "Basic" in client.get("/", headers=HTML).headers["www-authenticate"]
    answer = client.get("/style.css", headers={"Authorization": value})
    assert answer.status_code == status


def test_papers_are_found_by_title_author_and_year(client):
    def found(**params):
        listing = client.get("/api/papers", params=params).json()
        return [hit["paper"]["arxiv_id"] for hit in listing["hits"]]

    assert found(title="fusion", author="lovelace noel", year="2024") == [FUSION]
    first, second = (found(page=page) for page in ("1", "2"))
    assert (len(first), len(second)) == (50, 3 + len(HOSTILE_TEXTS) - 50)
    assert set(first).isdisjoint(second)
    (hit,) = client.get("/api/papers", params={"title": "sparse"}).json()["hits"]
    assert (hit["paper"]["year"], hit["paper"]["cited_by"], hit["reason"]) == (2024, 1, "listed")
    page = parsed(client, "/papers?author=lovelace")
    assert hrefs(page, "ul.papers li > a:first-child") == [f"/paper/{paper}" for paper in first]
    assert hrefs(page, "a[rel=next]") == ["/papers?author=lovelace&page=2"]


def test_the_description_of_the_api_names_every_endpoint_and_its_schema(client):
    document = client.get("/openapi.json").json()
    assert document == openapi()
    assert len(document["paths"]) == len(ENDPOINTS)
    assert {"Results", "FullPaper", "Problem"} <= document["components"]["schemas"].keys()
    operations = [path["get"]["operationId"] for path in document["paths"].values()]
    assert len(set(operations)) == len(operations)
