"""The same search, paper and answer through command line, JSON API, page, MCP and Python: equal keys
and values.
"""

import json
import re

import anyio
import pytest
from mcp import Client
from selectolax.lexbor import LexborHTMLParser

import citeloom
from pipeline.corpus.citation_formats import CITATION_FORMATS
from pipeline.corpus.nouns import FullPaper, Passage
from pipeline.doors.mcp import make_server
from pipeline.doors.papers import read_section
from pipeline.doors.present import as_markdown
from pipeline.doors.web.site import Site
from pipeline.errors import MissingInput
from pipeline.index.opening import close_indexes
from tests.command import invoke
from tests.unit.doors.corpus import FUSION, RETRIEVAL

pytestmark = pytest.mark.slow

QUERY = "reciprocal rank fusion of lists"
QUESTION = "What does reciprocal rank fusion merge?"
QUOTE = "rare terms that dense vectors blur"


def by_command(corpus, *arguments):
    done = invoke(*arguments, "--json", env={"CITELOOM_DATA": str(corpus.root.path)})
    return json.loads(done.stdout)


def by_assistant(corpus, tool, **arguments):
    """The result of a tool, without the tags around its texts."""

    async def call():
        async with Client(make_server(Site(corpus))) as client:
            called = await client.call_tool(tool, arguments)
            return called.structured_content["result"]

    text = json.dumps(anyio.run(call))
    return json.loads(
        re.sub(r"</?passage-\w{8}>", "", text.replace("\\n</passage", "</passage")).replace(
            '"\\n', '"'
        )
    )


def by_python(corpus, method, *arguments, **options):
    opened = citeloom.open_corpus(str(corpus.root.path))
    return json.loads(json.dumps(citeloom.as_json(getattr(opened, method)(*arguments, **options))))


def page_of(client, path, **parameters):
    answer = client.get(path, params=parameters, headers={"Accept": "text/html"})
    return LexborHTMLParser(answer.text)


@pytest.mark.parametrize("of", ["papers", "passages"])
def test_a_search_is_the_same_through_every_door(corpus, client, of):
    flag, path, method = {
        "papers": ((), "/api/search", "search"),
        "passages": (("--passages",), "/api/passages", "search_passages"),
    }[of]
    results = client.get(path, params={"q": QUERY, "limit": "3"}).json()
    assert [hit["paper"]["arxiv_id"] for hit in results["hits"]][:1] == [FUSION]
    assert by_python(corpus, method, QUERY, limit=3) == results
    assert by_assistant(corpus, "search", query=QUERY, kind=of, limit=3) == results
    close_indexes()
    assert by_command(corpus, "search", QUERY, "--limit", "3", *flag) == results
    page = page_of(client, path.removeprefix("/api"), q=QUERY, limit="3")
    shown = [link.attributes["href"] for link in page.css("a.result-link")]
    assert shown == [f"/paper/{hit['paper']['arxiv_id']}" for hit in results["hits"]]
    passages = [passage for hit in results["hits"] for passage in hit["passages"]]
    hits = [hit.attributes["id"] for hit in page.css(".hit")]
    assert hits == [f"hit-{passage['passage_id']}" for passage in passages]


def test_a_paper_is_the_same_through_every_door(corpus, client):
    paper = client.get(f"/api/papers/{FUSION}").json()
    assert {"abstract", "cited_by", "sections", "passages", "references"} <= paper.keys()
    assert by_python(corpus, "paper", FUSION) == paper
    assert by_command(corpus, "paper", FUSION) == paper
    outline = by_assistant(corpus, "paper", arxiv_id=FUSION)
    assert outline == {name: paper[name] for name in outline}
    assert paper.keys() - outline.keys() == {"passages", "references"}
    assert by_assistant(corpus, "references", arxiv_id=FUSION) == paper["references"]
    citing = client.get("/api/papers/1706.03762/cited-by").json()
    assert by_assistant(corpus, "citations", arxiv_id="1706.03762") == citing
    assert by_python(corpus, "cited_by", "1706.03762") == citing
    assert by_command(corpus, "paper", "1706.03762", "--cited-by") == citing
    page = page_of(client, f"/paper/{FUSION}")
    assert page.css_first("p.authors").text() == ", ".join(paper["authors"])
    places = [link.attributes["href"] for link in page.css(".outline a")]
    assert places[: len(paper["sections"])] == [
        f"#p-{section['passage_id']}" for section in paper["sections"]
    ]
    section = by_assistant(corpus, "section", arxiv_id=FUSION, section="method > formula")
    assert by_command(corpus, "paper", FUSION, "--section", "Formula") == section
    assert "--section and --ris" in invoke("paper", FUSION, "--section", "1", "--ris").stderr
    hit = client.get("/api/search", params={"q": FUSION}).json()["hits"][0]
    assert hit["paper"] == {name: paper[name] for name in hit["paper"]}


@pytest.mark.parametrize(
    ("path", "page", "arguments"),
    [
        ("passages", "passages", ("search", QUOTE, "--passages")),
        (f"papers/{FUSION}", f"paper/{FUSION}", ("paper", FUSION)),
        (f"papers/{FUSION}/references", f"paper/{FUSION}", ("paper", FUSION, "--references")),
        (f"papers/{RETRIEVAL}/cited-by", f"paper/{RETRIEVAL}", ("paper", RETRIEVAL, "--cited-by")),
    ],
)
def test_entries_are_the_same_in_the_shell_and_behind_links(corpus, client, path, page, arguments):
    links = page_of(client, f"/{page}", **({"q": QUOTE} if page == "passages" else {}))
    for form in CITATION_FORMATS:
        (link,) = links.css(f'a[download][href^="/api/{path}/{form}"]')
        entries = client.get(link.attributes["href"]).text
        close_indexes()
        done = invoke(*arguments, f"--{form}", env={"CITELOOM_DATA": str(corpus.root.path)})
        assert done.stdout.strip() == entries.strip() != ""


def test_a_section_is_read_by_its_printed_number():
    paths = {
        "S1.p1": ("Why",), "S2.p1": ("How",), "S2.T1": ("How", "Data"), "S2.SS1.p1": ("How", "Data"),
        "S12.p1": ("End",),
    }  # fmt: skip
    passages = (Passage(at, FUSION, at, "paragraph", "", path, "") for at, path in paths.items())
    paper = FullPaper(FUSION, passages=tuple(passages), references=())
    lengths = [len(read_section(paper, name).passages) for name in ("1", "2", "2.1", "12")]
    assert lengths == [1, 3, 2, 1]
    assert "- 2 How\n  - 2.1 Data\n" in as_markdown(paper)
    printed = as_markdown(read_section(paper, "2"))
    assert re.findall("#.*", printed) == ["# 2 How", "## 2.1 Data"]
    with pytest.raises(MissingInput, match=r"1 Why, 2 How, 2\.1 Data"):
        read_section(paper, "3")


def test_an_answer_and_the_source_of_a_quote_are_the_same_through_every_door(corpus, client):
    def timeless(answer):
        return {**answer, "cost": answer["cost"].keys()}

    answer = client.get("/api/ask", params={"q": QUESTION}).json()
    assert answer["shown"][0][0]["best_sentences"]
    quote = client.get("/api/quotes", params={"q": QUOTE}).json()
    assert [hit["reason"] for hit in quote["hits"]] == ["exact"]
    for name, tool, arguments, expected in (
        ("ask", "ask", {"question": QUESTION}, answer),
        ("find-quote", "find_quote", {"quote": QUOTE}, quote),
    ):
        text = next(iter(arguments.values()))
        others = [by_python(corpus, tool, text), by_assistant(corpus, tool, **arguments)]
        close_indexes()
        others.append(by_command(corpus, name, text))
        if name == "ask":
            others, expected = [timeless(other) for other in others], timeless(expected)
        assert others == [expected] * 3
    page = page_of(client, "/ask", q=QUESTION)
    places = [link.attributes["href"] for link in page.css("ol.claims .passage > a")]
    ids = [f"#p-{passage['passage_id']}" for hop in answer["shown"] for passage in hop]
    assert [f"#{place.partition('#')[2]}" for place in places if "#p-" in place] == ids
