"""The stage citation_support: a row for every citation, what is not judged and why, and what makes
it out of date.
"""

import json

import pytest

from pipeline import tables
from pipeline.engine.run import fingerprint
from pipeline.engine.stage import Job
from pipeline.evaluation.citation_support.judge import inputs
from pipeline.evaluation.citation_support.sample import MOST_REHEARSED
from pipeline.evaluation.judged import FINDING_TOKENS
from pipeline.evaluation.stages import CITATION_SUPPORT
from pipeline.llm.client import ClientWorkspace
from pipeline.llm.loop import without_waiting
from pipeline.llm.rehearsal import Rehearsal
from tests.models_file import write_models
from tests.month_tables import write_table
from tests.scripted_llm import ScriptedLlm
from tests.unit.evaluation.citation_support.building import (
    CITED_MONTH,
    MONTH,
    WordEmbedder,
    embedding_rows,
    judged,
    passage_rows,
    place_with,
    reference,
    section,
    stage_with,
    verdict_on,
)

pytestmark = pytest.mark.slow

REFERENCES = [
    reference(1),
    reference(2),
    reference(3, "abstract", "We count ships in ports. It takes a year."),
    reference(4, "item", "A. Lovelace. Stones. 1843."),
]
NUMBERS = (1, 2, 3, 4)
TEXT = (
    "Stones are old. Quartz is weighed by [Reference 1] and [Reference 9]. Ships were counted in"
    " ports [Reference 3]. More is in [Reference 4]."
)


def told(row):
    return row["sentence"], row["number"], row["verdict"], row["unjudged"]


def test_every_citation_has_a_row_with_its_verdict_or_why_there_is_none(
    tmp_path,
):
    quartz = verdict_on(
        "weighed by [this work] and [another work]", "supported", "weighs quartz by its colour"
    )
    ships = verdict_on("Ships were counted", "partly", "We count boats")
    with ScriptedLlm(quartz, ships) as llm:
        work = place_with(tmp_path, [section(TEXT, NUMBERS)], REFERENCES, llm)
        outcome, rows = judged(work)
    assert [told(row) for row in rows] == [
        (2, 1, "supported", None),
        (2, 9, None, "out_of_range"),
        (3, 3, "partly", None),
        (4, 4, None, "no_text"),
    ]
    first, outside, ships_row, item = rows
    assert (first["quote_found"], first["quoted"], first["judge"], first["calls"]) == (
        True,
        0,
        "scripted",
        1,
    )
    assert [each["anchor"] for each in first["passages"]] == ["S1.p2", "S1.p1"]
    assert first["passages"][0]["passage_id"] == "2401.00001/2"
    assert (ships_row["quote_found"], ships_row["quoted"]) == (False, None)
    assert ships_row["passages"] == [
        {"passage_id": None, "anchor": None, "text": REFERENCES[2]["text"]}
    ]
    assert (outside["source"], outside["arxiv_id"], outside["passages"]) == (None, None, [])
    assert (item["source"], item["judge"], item["quote"], item["quote_found"], item["calls"]) == (
        "item",
        None,
        None,
        None,
        0,
    )
    assert outcome.notes["judged"] == 2
    assert outcome.notes["unjudged"] == {"no_text": 1, "out_of_range": 1}
    assert outcome.notes["works_ranked"] == {"by_vectors_and_words": 0, "by_words_alone": 1}


def test_the_limit_takes_citations_from_the_whole_section_and_tells_of_the_rest(
    tmp_path,
):
    text = (
        " ".join(f"It weighs {place} stones [Reference 1]." for place in range(6))
        + " So it is [Reference 9]."
    )
    with ScriptedLlm() as llm:
        work = place_with(tmp_path, [section(text, NUMBERS)], REFERENCES, llm)
        _, rows = judged(work, most_citations=2)
    assert [row["sentence"] for row in rows if row["verdict"]] == [2, 5]
    assert [row["unjudged"] for row in rows].count("over_the_limit") == 4
    assert rows[-1]["unjudged"] == "out_of_range"
    assert llm.generations == 2


def test_the_bundled_model_judges_a_few_citations_of_a_section(tmp_path):
    text = " ".join(f"It weighs {place} stones [Reference 1]." for place in range(6))
    work = place_with(tmp_path, [section(text, NUMBERS)], REFERENCES)
    rehearsal = Rehearsal(lambda prompt, tokens, own: own)
    job = Job(
        ClientWorkspace(work.settings, rehearsal.make_client),
        MONTH,
        stage_with(None),
        rehearsal=True,
    )
    with without_waiting():
        rows = list(job.stage.build(job))
    assert len(rows) == 6
    assert rehearsal.count("calls") == 4


def test_without_passages_or_an_endpoint_and_a_system_that_calls_a_model_it_is_off(tmp_path):
    work = place_with(tmp_path, [section(TEXT, NUMBERS)], REFERENCES, systems="lexrank")
    outcome, rows = judged(work)
    assert rows == []
    assert outcome.notes["off"].startswith("no endpoint is set")
    assert fingerprint(CITATION_SUPPORT, work, MONTH).inputs == outcome.notes
    with ScriptedLlm() as llm:
        sections = [section(TEXT, NUMBERS)]
        work = place_with(tmp_path / "none", sections, REFERENCES, llm, support_passages=0)
        outcome, rows = judged(work)
    assert (rows, llm.requests) == ([], [])
    assert outcome.notes["off"].startswith("CITELOOM_SUPPORT_PASSAGES is 0")


def test_a_paper_of_the_corpus_without_passages_is_told_and_has_no_text_to_judge_by(
    tmp_path,
):
    sections = [section("It is [Reference 5]. So is [Reference 5]. It is [Reference 1].", (1, 5))]
    work = place_with(tmp_path, sections, [reference(1), reference(5)])
    write_table(
        work.root, tables.PASSAGES, CITED_MONTH, passage_rows("2401.00001", [])
    )  # front matter alone
    outcome, rows = judged(work)
    assert [(row["number"], row["unjudged"]) for row in rows] == [
        (5, "no_text"),
        (5, "no_text"),
        (1, "no_text"),
    ]
    assert outcome.left_out == {"cited_paper_without_passages": 2}


def test_a_file_of_tasks_may_bring_a_whole_text(tmp_path):
    """Its headings are no passages."""
    whole = {
        **reference(1),
        "arxiv_id": None,
        "text": "# A work\n\n## Method\n\nIt weighs\nquartz.\n\nIt ends.",
    }
    with ScriptedLlm() as llm:
        _, rows = judged(
            place_with(tmp_path, [section("It is [Reference 1].", (1,))], [whole], llm)
        )
    assert sorted(each["text"] for each in rows[0]["passages"]) == ["It ends.", "It weighs quartz."]


def test_a_section_without_citations_has_no_rows_and_one_whose_task_is_gone_is_told(
    tmp_path,
):
    outcome, rows = judged(
        place_with(tmp_path / "one", [section("Stones are old.", NUMBERS)], REFERENCES)
    )
    assert (rows, outcome.left_out) == ([], {})
    work = place_with(tmp_path / "other", [section("It is [Reference 1].", NUMBERS)], REFERENCES)
    write_table(work.root, tables.RELATED_WORK_TASKS, MONTH, [])
    outcome, rows = judged(work)
    assert (rows, outcome.left_out) == ([], {"section_without_task": 1})


def test_the_first_judge_is_asked_and_named_and_a_work_without_a_title_by_its_identifier(
    tmp_path,
):
    with ScriptedLlm(models=("judging",)) as llm:
        models = write_models(tmp_path / "settings", llm.url, "judging")
        work = place_with(
            tmp_path,
            [section("It is [Reference 1].", NUMBERS)],
            [{**reference(1), "title": None}],
            llm_url=llm.url,
            llm_model="writing",
            models=models,
            judges="judging",
        )
        _, rows = judged(work)
    (asked,) = llm.requests
    assert (rows[0]["judge"], asked["max_tokens"]) == ("judging", FINDING_TOKENS)
    assert "<work>\n2401.00001\n</work>" in asked["messages"][1]["content"]


def test_sentences_on_one_work_are_asked_one_after_another(tmp_path):
    """So that a server that keeps the beginning of a prompt finds it again."""
    text = (
        "It weighs quartz [Reference 1]. They weigh quartz [Reference 2]. It weighed quartz"
        " [Reference 1]."
    )
    with ScriptedLlm() as llm:
        judged(place_with(tmp_path, [section(text, NUMBERS)], REFERENCES, llm, llm_concurrency=1))
    titles = [json.dumps(body["messages"]).split("Cited work ")[1][0] for body in llm.requests]
    assert titles == ["1", "1", "2"]


@pytest.mark.parametrize("changed", [tables.PASSAGES, tables.EMBEDDINGS])
def test_other_passages_or_vectors_of_what_is_cited_are_other_inputs(tmp_path, changed):
    work = place_with(tmp_path, [section(TEXT, NUMBERS)], REFERENCES)
    before = inputs(work, MONTH)
    rows = passage_rows("2401.00001", ["Other words."])
    write_table(
        work.root,
        changed,
        CITED_MONTH,
        rows if changed is tables.PASSAGES else embedding_rows(rows),
    )
    after = inputs(work, MONTH)
    assert {name for name in before if before[name] != after[name]} == {
        f"{changed.name} of cited papers"
    }


@pytest.mark.parametrize("claims", [1, MOST_REHEARSED + 1])
def test_an_estimate_of_many_claims_waits_for_no_vectors(tmp_path, claims):
    text = " ".join(f"It weighs {place} stones [Reference 1]." for place in range(claims))
    work = place_with(
        tmp_path,
        [section(text, NUMBERS)],
        REFERENCES,
        llm_url="http://127.0.0.1:1/v1",
        llm_model="m",
    )
    write_table(
        work.root, tables.EMBEDDINGS, CITED_MONTH, embedding_rows(passage_rows("2401.00001"))
    )
    rehearsal = Rehearsal(lambda prompt, tokens, own: own)
    stage = stage_with(WordEmbedder() if claims == 1 else None)
    job = Job(ClientWorkspace(work.settings, rehearsal.make_client), MONTH, stage, rehearsal=True)
    with without_waiting():
        assert len(list(stage.build(job))) == claims
    assert rehearsal.count("calls") == claims
    assert job.notes["works_ranked"]["by_words_alone"] == (claims > 1)
