"""Questions put to a data root one after another: grounded on its index, cached, each with the
turns before it.
"""

from dataclasses import replace

import pytest

from pipeline.answering.session import open_conversation
from pipeline.errors import MissingInput, SettingError
from pipeline.index.search import search
from tests.scripted_llm import ScriptedLlm
from tests.unit.answering.corpus import FERNS, MARCH, asking
from tests.unit.answering.scripted_answers import faithful, say
from tests.unit.index.building import make_workspace

pytestmark = pytest.mark.slow

PLANTS = "How do plants get energy from light?"


# A model that has the question searched for, and says what the first two passages say.
RULES = (
    say("Query", {"query": ""}),
    say("Ranking", "[1]"),  # the order of the search
    say(
        "Claims",
        {
            "relevant": [1, 2],
            "claims": [
                {"passage": place, "claim": f"Passage {place} says so."} for place in (1, 2)
            ],
        },
    ),
    say(
        "GroundedAnswer",
        {"answered": "yes", "sentences": [{"text": "Both say so.", "claims": [1, 2]}]},
    ),
    faithful,
)


@pytest.fixture
def llm(request):
    """An endpoint whose answers no other test finds in the cache: its model has the test's name."""
    with ScriptedLlm(*RULES, models=(request.node.name,)) as served:
        yield served


@pytest.mark.parametrize(("system", "by"), [("arxivbot_fused", "fused"), ("arxivbot", "dense")])
def test_a_system_searches_by_the_vectors_that_it_declares_and_the_reports_reads_no_records(
    corpus, llm, system, by
):
    question = "untranslated QuillNet"  # dense vectors rank other passages first
    ranking = {
        vectors: [hit.item.passage_id for hit in search(corpus, question, by=vectors)]
        for vectors in ("fused", "dense")
    }
    answer = open_conversation(asking(corpus, llm), system).ask(question)
    steps = {step["stage"]: step for step in answer.trace["steps"]}
    assert ranking["fused"] != ranking["dense"]
    assert ("records" in steps) == (by == "fused")
    records = [passage.passage_id for passage in answer.shown[0] if by == "fused"][:2]
    assert steps["search"]["found"] == [name for name in ranking[by] if name not in records]


def paid(answer):
    return tuple(
        answer.cost[f"llm_{name}"] for name in ("calls", "requests", "cached", "prompt_tokens")
    )


def test_an_answer_rests_on_what_the_index_holds_and_costs_nothing_the_second_time(corpus, llm):
    first = open_conversation(asking(corpus, llm), "arxivbot").ask(PLANTS)
    assert first.claims[0].arxiv_id == FERNS
    assert first.text == "Both say so."
    assert (first.question, first.system, first.model) == (PLANTS, "arxivbot", llm.model)
    assert paid(first) == (5, 5, 0, first.cost["llm_prompt_tokens"])
    again = open_conversation(asking(corpus, llm), "arxivbot").ask(PLANTS)
    assert (replace(again, cost=first.cost), llm.generations) == (first, 5)
    assert paid(again) == (5, 0, 5, 0)


def test_without_an_index_the_model_alone_is_asked_which_knows_no_months(tmp_path, llm):
    bare = asking(make_workspace(tmp_path / "data"), llm)
    with pytest.raises(MissingInput, match="--until index,"):
        open_conversation(bare, "arxivbot")
    with pytest.raises(SettingError, match="direct reads no paper"):
        open_conversation(bare, "direct", MARCH)
    assert llm.requests == []
    llm.rules.insert(0, lambda asked: "From memory.")
    assert open_conversation(bare, "direct").ask(PLANTS).text == "From memory."
