"""Question sets on articles: read, asked in batch and graded, and refused where the corpus is another.

Real: the tables, the embedder MiniLM, Qdrant Edge. Scripted: the language model.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pipeline import tables
from pipeline.answering.questions import read_question_set
from pipeline.answering.stages import ANSWERS, QUESTIONS, questions_disabled_reason
from pipeline.corpus.passages.stages import PASSAGES
from pipeline.embedding.stages import EMBEDDINGS
from pipeline.engine.run import run_stage
from pipeline.engine.stage import Workspace
from pipeline.engine.status import month_status
from pipeline.errors import SettingError
from pipeline.evaluation.annotation.grades import question_texts
from pipeline.evaluation.stages import ANSWER_GRADES, ANSWER_SCORES
from pipeline.index.opening import close_indexes
from pipeline.index.stages import INDEX_RECEIPTS
from pipeline.ops.run_months import stages_of as stages_of_root
from pipeline.settings import load_settings
from pipeline.wikipedia.dump import open_dump
from pipeline.wikipedia.root import claim
from pipeline.wikipedia.stages import stages_of
from tests.scripted_llm import Asked, ScriptedLlm
from tests.unit.answering.asking import form_of
from tests.unit.answering.staging import entry, write_set
from tests.unit.evaluation.answers.graded import fence
from tests.unit.wikipedia.pages import LANTERN, MONTH, lantern, orchard, write_dump

FUEL = entry("fuel", "What do moth lanterns burn?", [LANTERN], {"They burn colza oil.": "Most lanterns burn colza oil"})


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workspace]:
    """A data root with two articles, indexed; one test asks and grades in it, which disturbs no other."""
    folder = tmp_path_factory.mktemp("articles")
    dump = open_dump([write_dump(folder, [orchard(), lantern()])])
    workspace = Workspace(load_settings(_env_file=None, data=folder / "data", workers=1))
    claim(workspace, dump.month)
    for stage in (*stages_of(dump), PASSAGES, EMBEDDINGS, INDEX_RECEIPTS):
        run_stage(stage, workspace, MONTH)
    yield workspace
    close_indexes()


def model(asked: Asked) -> str | None:
    """A model that reads, answers and judges by the letter."""
    marks = dict.fromkeys(("relevant", "natural", "non_repetitive", "temporally_correct"), 100)
    given: dict[str, Any] = {
        "Search": {"search": "yes", "question": "", "query": "what fuel do moth lanterns burn"},
        "Query": {"query": "what fuel do moth lanterns burn"},
        "Bullets": {"bullets": ["They burn colza oil."] if "colza oil" in asked.prompt else []},
        "SplitClaims": {"claims": ["Moth lanterns burn colza oil."]},
        "Check": {"reasoning": "So it says.", "verdict": "SUPPORTS", "passage": 1},
        "GroundedAnswer": {"answered": "yes", "sentences": [{"text": "They burn colza oil.", "claims": [1]}]},
        "RefinedAnswer": marks | {"sentences": []},
        "AnswerClaims": {"claims": [fence(asked, "answer")]},
        "ClaimFinding": {"quote": "colza oil", "verdict": "correct" if "colza oil" in asked.prompt else "wrong"},
        "GoldFinding": {"quote": "They burn colza oil.", "verdict": "held"},
    }
    name = form_of(asked)
    return json.dumps(given[name]) if name in given else None


def test_wikichat_is_asked_in_batch_on_articles_and_graded(place: Workspace, tmp_path: Path) -> None:
    with ScriptedLlm(model, models=("wikichat-in-batch",)) as llm:
        given = {"questions": write_set(tmp_path, FUEL), "answer_systems": "wikichat", "judge_repeats": 1}
        told = {"data": place.root.path, "llm_url": llm.url, "llm_model": llm.model, "_env_file": None}
        asking = Workspace(load_settings(**told, **given))
        for stage in (QUESTIONS, ANSWERS, ANSWER_GRADES, ANSWER_SCORES):
            run_stage(stage, asking, MONTH)
    (question,) = asking.root.rows(tables.QUESTIONS, MONTH)
    assert (question["papers"], len(question["claims"][0]["passages"])) == ([LANTERN], 1)
    (answer,) = asking.root.rows(tables.ANSWERS, MONTH)
    assert answer["text"] == "They burn colza oil."
    (grade,) = asking.root.rows(tables.ANSWER_GRADES, MONTH)
    assert grade["claims"][0]["verdict"] == "correct"
    assert grade["claims"][0]["passages"]
    assert asking.root.rows(tables.ANSWER_SCORES, MONTH)
    about = question_texts(asking.root, MONTH)["fuel"].papers
    assert about == ("Moth lantern, https://en.wikipedia.org/?curid=202",)
    shown = {row["stage"]: row["state"] for row in month_status(stages_of_root(asking), asking, MONTH)}
    assert (shown["answers"], shown["passages"]) == ("done", "done")


def test_the_sample_s_questions_are_of_no_root_that_holds_wikipedia(place: Workspace) -> None:
    assert (read_question_set(place.settings), questions_disabled_reason(place.settings)) == (
        (),
        "CITELOOM_QUESTIONS names no question set",
    )
    assert not any(row["stage"] == "questions" for row in month_status(stages_of_root(place), place, MONTH))


def test_a_set_of_the_other_corpus_is_refused(place: Workspace, tmp_path: Path) -> None:
    paper = entry("p", "What is it?", ["2403.00001"], {"It is lost.": ""})
    with pytest.raises(SettingError, match=rf"'2403.00001' is not the id of an article.*Wikipedia as of {MONTH}"):
        read_question_set(place.settings.model_copy(update={"questions": write_set(tmp_path, paper)}))
    on_arxiv = load_settings(_env_file=None, data=tmp_path / "other", questions=write_set(tmp_path, FUEL))
    with pytest.raises(SettingError, match=f"'{LANTERN}' is not an arXiv id"):
        read_question_set(on_arxiv)
