"""Search: what it finds on Edge with MiniLM, what it restricts, how it pages, and what it says
where it cannot.
"""

import json
from dataclasses import replace
from functools import partial

import pytest

from pipeline import tables
from pipeline.corpus.nouns import Passage
from pipeline.embedding.minilm import NAME as MINILM
from pipeline.errors import MissingInput, PermanentFailure, SettingError
from pipeline.index.opening import close_indexes
from pipeline.index.papers import read_like
from pipeline.index.passage_index import Layout, ScoredPoint
from pipeline.index.search import PaperRankings, search, search_many
from pipeline.index.search_options import SearchOptions
from tests.cases import cases_beside
from tests.command import invoke
from tests.folders import copy_folder
from tests.month_tables import passage_id, write_table
from tests.unit.index.building import TEXTS, load, make_live, make_workspace

pytestmark = pytest.mark.slow

LAYOUT = Layout(MINILM, 384)


def _load(workspace):
    """Six passages of three papers, in two months."""
    load(workspace, "2024-03", TEXTS[:3], ["cs.CL"])
    load(workspace, "2024-05", TEXTS[3:], ["cs.IR", "stat.ML"])
    return workspace


@pytest.fixture(scope="module")
def loaded(tmp_path_factory):
    """A workspace that tests only read."""
    yield _load(make_workspace(tmp_path_factory.mktemp("searched") / "data"))
    close_indexes()


@pytest.fixture
def own(loaded, tmp_path):
    """The same for a test that breaks something in it."""
    close_indexes()
    copy_folder(loaded.root.path, tmp_path / "own")
    yield make_workspace(tmp_path / "own")
    close_indexes()


def _nearly(hits):
    """Hits that equal those whose scores differ in their last digits, as `nearly` does."""
    return [replace(hit, score=pytest.approx(hit.score, abs=1e-5)) for hit in hits]


def _texts(workspace, query, **options):
    return [hit.item.text for hit in search(workspace, query, **options)]


def test_the_passage_that_answers_comes_first_with_its_text(loaded):
    first, *others = (hit.item for hit in search(loaded, "how do plants get energy from light?"))
    assert first == Passage(
        passage_id("2405.00001", 2),
        "2405.00001",
        "S1.p2",
        "paragraph",
        "Paper 2405.00001",
        ("Method", "Decoding"),
        TEXTS[5],
    )
    assert {passage.text for passage in others} == {*TEXTS[:5]}


def test_lexical_vectors_alone_find_what_shares_a_word(loaded):
    assert _texts(loaded, "untranslated", by="lexical") == [TEXTS[1]]
    dense = search(loaded, "untranslated", by="dense")
    assert len(dense) == len(TEXTS)
    assert [hit.score for hit in dense] == sorted((hit.score for hit in dense), reverse=True)


@pytest.mark.parametrize("per_paper", [False, True])
def test_pages_are_parts_of_one_ranking(loaded, per_paper):
    whole = search(loaded, "decoding words", limit=50, per_paper=per_paper)
    pages = [
        search(loaded, "decoding words", limit=2, offset=at, per_paper=per_paper)
        for at in range(0, 8, 2)
    ]
    assert [hit for page in pages for hit in page] == _nearly(whole)


def test_of_each_paper_the_best_passage_alone(loaded):
    every = search(loaded, "decoding words")
    best = {}
    for hit in every:
        best.setdefault(hit.item.arxiv_id, hit)
    assert search(loaded, "decoding words", per_paper=True) == _nearly(best.values())
    assert 1 < len(best) < len(every)


def test_many_queries_have_the_answers_of_each(loaded):
    queries = ["light for plants", "untranslated", "rank fusion"]
    with pytest.raises(SettingError, match="query 2 is empty"):
        search_many(loaded, ["words", " "])
    together = search_many(loaded, queries, SearchOptions(limit=3, categories=["cs"]))
    single = [search(loaded, query, limit=3, categories=["cs"]) for query in queries]
    assert together == [_nearly(hits) for hits in single]
    assert search_many(loaded, []) == []


@cases_beside("options", "march", "may")
def test_a_search_is_restricted(loaded, options, march, may):
    months = [hit.item.month for hit in search(loaded, "decoding words", **options)]
    assert (months.count("2024-03"), months.count("2024-05")) == (march, may)


def test_what_is_like_a_paper_or_a_passage_is_found_without_it(loaded):
    text, paper = read_like(loaded, "2403.00000v1")
    assert (text, paper) == ("Paper 2403.00000", "2403.00000")
    (hit,) = search(loaded, "untranslated", limit=1)
    passage = hit.item
    assert read_like(loaded, passage.passage_id) == (passage.prompt_text(), passage.arxiv_id)
    done = _invoke(loaded, "--like", passage.passage_id, "--passages", "--json")
    hits = json.loads(done.stdout)["hits"]
    assert hits
    assert passage.arxiv_id not in {hit["paper"]["arxiv_id"] for hit in hits}


@cases_beside("identifier")
def test_what_is_not_there_has_nothing_like_it(loaded, identifier):
    with pytest.raises(SettingError, match=f"--like: .*{identifier}"):
        read_like(loaded, identifier)


def test_nothing_fits_letters_without_a_meaning(loaded):
    shown = _invoke(loaded, "asdfgh qwerty", "--json")
    assert "nothing in this corpus" in shown.stderr
    assert len(json.loads(shown.stdout)["hits"]) == 4


@cases_beside("query", "options", "message")
def test_a_wrong_argument_is_named(workspace, query, options, message):
    with pytest.raises(SettingError, match=message):
        search(workspace, query, **options)


def test_a_query_that_is_no_utf_8_is_named(workspace):
    with pytest.raises(SettingError, match="not valid UTF-8"):
        search(workspace, "caf\udce9")


@cases_beside("options", "message")
def test_what_no_passage_has_is_named(loaded, options, message):
    with pytest.raises(SettingError, match=message):
        search(loaded, "decoding words", **options)


def test_a_passages_table_with_broken_pages_is_named(own):
    file = own.root.file(tables.PASSAGES, "2024-03")
    content = bytearray(file.read_bytes())
    footer = 8 + int.from_bytes(content[-8:-4], "little")
    content[4:-footer] = bytes(len(content) - footer - 4)
    file.write_bytes(content)
    with pytest.raises(PermanentFailure, match=r"2024-03\.parquet is damaged"):
        search(own, TEXTS[0])


def test_a_passage_that_left_its_table_is_left_out_with_a_warning(own, caplog):
    rows = own.root.rows(tables.PASSAGES, "2024-03")
    write_table(own.root, tables.PASSAGES, "2024-03", rows[1:])
    assert TEXTS[0] not in _texts(own, TEXTS[0])
    assert "1 hits are not in the passages table of 2024-03" in caplog.text
    own.root.file(tables.PASSAGES, "2024-03").unlink()
    assert sorted(_texts(own, TEXTS[0])) == sorted(TEXTS[3:])


def test_searching_before_anything_is_indexed_makes_no_collection(workspace):
    with pytest.raises(MissingInput, match="there is no index citeloom"):
        search(workspace, "anything")
    assert not (workspace.root.path / "qdrant-edge").exists()


def test_an_empty_collection_is_named(workspace):
    make_live(workspace, LAYOUT)
    with pytest.raises(MissingInput, match="citeloom-all-minilm-l6-v2-"):
        search(workspace, "anything")


def test_a_collection_of_a_model_that_the_settings_do_not_name_is_named(workspace):
    make_live(workspace, Layout("BAAI/bge-m3", 1024, sparse=True))
    with pytest.raises(PermanentFailure, match="vectors of BAAI/bge-m3"):
        search(workspace, "anything")


def test_the_collection_decides_which_model_reads_the_question(loaded):
    other = make_workspace(loaded.root.path, embedder="bge-m3", embedder_path="/nowhere/at/all")
    assert search(other, "untranslated") == _nearly(search(loaded, "untranslated"))


def test_a_collection_name_that_cannot_be_is_refused(tmp_path):
    with pytest.raises(SettingError, match="CITELOOM_QDRANT_COLLECTION"):
        search(make_workspace(tmp_path, qdrant_collection="a/b"), "anything")


class Batch:
    """Two queries with the same ranking: the n-th passage is of the paper papers[n]."""

    def __init__(self, papers):
        self.papers, self.asked = papers, []

    def __len__(self):
        return 2

    def rank(self, numbers, depth):
        self.asked.append((len(numbers), depth))
        ranking = [
            ScoredPoint(f"{number}", 1 / (1 + number), {"arxiv_id": paper})
            for number, paper in enumerate(self.papers)
        ]
        return [ranking[:depth]] * len(numbers)


@pytest.mark.parametrize(
    ("papers", "count", "found", "depths"),
    [
        ([0] * 180 + list(range(1, 300)), 10, 21, [50, 100, 200]),
        ([0] * 40 + [1] * 40, 10, 2, [50, 100]),
    ],
)
def test_a_list_is_searched_as_deep_as_its_papers_need(papers, count, found, depths):
    batch = Batch(papers)
    rankings = PaperRankings(batch, passages=1).up_to(range(2), count)
    of_papers = [[point.payload["arxiv_id"] for [point] in ranking] for ranking in rankings]
    assert of_papers == [list(range(found))] * 2
    assert batch.asked == [(2, depth) for depth in depths]


# The command.


def _invoke(workspace, *arguments, stdin=None):
    return invoke("search", *arguments, env=environment_of(workspace), input=stdin)


def environment_of(workspace):
    """The environment of a command that searches a workspace's data root."""
    return {"CITELOOM_DATA": str(workspace.root.path), "NO_COLOR": "1", "COLUMNS": "160"}


def test_the_command_takes_every_option(loaded):
    options = (
        "--passages --json --limit 2 --offset 1 --category cs.CL --category stat --kind paragraph"
        " --severity no_problem --grade C --from 2024-03 --to 2024-05 --by dense --exact"
    )
    done = _invoke(loaded, "decoding words", *options.split())
    hits = json.loads(done.stdout)["hits"]
    expected = search(loaded, "decoding words", limit=2, offset=1, by="dense", exact=True)
    assert [hit["passages"][0]["passage_id"] for hit in hits] == [
        hit.item.passage_id for hit in expected
    ]
    assert (hits[0]["paper"]["grade"], hits[0]["paper"]["subset"]) == ("C", "no_problem")


def test_the_command_lists_the_papers(loaded):
    papers = partial(invoke, "papers", env=environment_of(loaded))
    listing = json.loads(papers("--author", "lovelace", "--json").stdout)["hits"]
    assert [hit["paper"]["year"] for hit in listing] == [2024] * 4
    assert papers("--year", "2024", "--bibtex").stdout.count("@misc{") == 4
    assert "near: Noël Ada Lovelace" in papers("--author", "Lovelase").output
    assert "near" not in papers("--author", "Hovel").output
    assert papers("--limit", "1").output.endswith("shows more of them\n")


def test_the_command_asks_the_queries_of_a_file(loaded, tmp_path):
    file = tmp_path / "queries.txt"
    file.write_bytes("\ufeffuntranslated\r\n\n  plants in little light \n".encode())

    def printed(*arguments, queries=file):
        options = ("--queries", str(queries), "--limit", "1", *arguments)
        return _invoke(loaded, *options, stdin=file.read_text()).stdout

    expected = {"untranslated": TEXTS[1], "plants in little light": TEXTS[5]}
    for answers in (printed("--json"), printed("--passages", "--json", queries="-")):
        assert expected == {
            answer["query"]: answer["hits"][0]["passages"][0]["text"]
            for answer in json.loads(answers)
        }
    for form in ((), ("--markdown",), ("--passages",)):
        assert printed(*form).startswith("## untranslated\n\n1. **[Paper 2403.00000](")
    assert printed("--bibtex").count("@misc{") == 2


@cases_beside("arguments", "content", "message")
def test_a_command_that_cannot_be_says_why(workspace, tmp_path, arguments, content, message):
    file = tmp_path / "queries.txt"
    file.write_bytes(content.encode("latin-1"))
    done = _invoke(workspace, *(argument.replace("FILE", str(file)) for argument in arguments))
    assert done.exit_code == 2
    assert message.replace("FILE", str(file)) in " ".join(done.output.split())
