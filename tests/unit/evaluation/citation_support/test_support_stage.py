"""The stage citation_support: a row for every citation, what is not judged and why, and what makes it
out of date.
"""

import pytest

from pipeline import tables
from pipeline.engine.run import fingerprint
from pipeline.engine.stage import Job
from pipeline.evaluation.citation_support.judge import MOST_REHEARSED, inputs
from pipeline.evaluation.judged import FINDING_TOKENS
from pipeline.evaluation.stages import CITATION_SUPPORT
from pipeline.llm.client import ClientWorkspace
from pipeline.llm.rehearsal import Rehearsal
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
    stage_with,
    verdict_on,
)
from tests.unit.evaluation.made_up import section

pytestmark = pytest.mark.slow

SHIPS = "We count ships in ports. It takes a year."
REFERENCES = [
    reference(1),
    reference(2),
    reference(3, "abstract", SHIPS),
    reference(4, "item", "A. Lovelace. Stones. 1843."),
]
TEXT = (
    "Stones are old. Quartz is weighed by [Reference 1] and [Reference 9]. Ships were counted in"
    " ports [Reference 3]. More is in [Reference 4]."
)


def place(folder, text=TEXT, llm=None, references=REFERENCES, **settings):
    """A month of one section, and a repeat of it."""
    written = section(text, (1, 2, 3, 4))
    return place_with(folder, [written, written | {"repeat": 1}], references, llm, **settings)


def repeated(count):
    """A section with so many sentences on one work."""
    return " ".join(f"It weighs {number} stones [Reference 1]." for number in range(count))


def test_every_citation_has_a_row_with_its_verdict_or_why_there_is_none(tmp_path):
    weighed = "weighed by [this work] and [another work]"
    quartz = verdict_on(weighed, "supported", "weighs quartz by its colour")
    ships = verdict_on("Ships were counted", "partly", "We count boats")
    with ScriptedLlm(quartz, ships) as llm:
        outcome, rows = judged(place(tmp_path, llm=llm))
    columns = (
        "sentence", "number", "verdict", "unjudged", "quote_found", "quoted", "source", "judge", "calls",
    )  # fmt: skip
    assert [tuple(row[name] for name in columns) for row in rows] == [
        (2, 1, "supported", None, True, 0, "full_text", "scripted", 1),
        (2, 9, None, "out_of_range", None, None, None, None, 0),
        (3, 3, "partly", None, False, None, "abstract", "scripted", 1),
        (4, 4, None, "no_text", None, None, "item", None, 0),
    ]
    first, outside, ships_row, _ = (row["passages"] for row in rows)
    places = [(each["passage_id"], each["anchor"]) for each in first]
    assert places == [("2401.00001/2", "S1.p2"), ("2401.00001/1", "S1.p1")]
    assert (outside, ships_row) == ([], [{"passage_id": None, "anchor": None, "text": SHIPS}])
    notes = {
        "judged": 2,
        "unjudged": {"no_text": 1, "out_of_range": 1},
        "works_ranked": {"by_vectors_and_words": 0, "by_words_alone": 1},
    }
    assert outcome.notes | notes == outcome.notes


def test_the_limit_takes_citations_from_the_whole_section_and_tells_of_the_rest(tmp_path):
    with ScriptedLlm() as llm:
        _, rows = judged(place(tmp_path, repeated(6) + " So it is [Reference 9].", llm), 2)
    assert [row["sentence"] for row in rows if row["verdict"]] == [2, 5]
    over = [row["unjudged"] for row in rows if not row["verdict"]]
    assert over == ["over_the_limit"] * 4 + ["out_of_range"]
    assert llm.generations == 2


ENDPOINT = {"llm_url": "http://127.0.0.1:1/v1", "llm_model": "m"}


@pytest.mark.parametrize(
    ("settings", "claims", "embedder", "calls"),
    [
        ({}, 6, WordEmbedder(), 4),
        (ENDPOINT, 6, WordEmbedder(), 6),
        (ENDPOINT, MOST_REHEARSED + 1, None, MOST_REHEARSED + 1),
    ],
    ids=["the bundled model judges a few", "an endpoint all", "without a model to rank many"],
)
def test_an_estimate_counts_calls_and_ranks_as_the_run_unless_that_takes_long(
    tmp_path, settings, claims, embedder, calls
):
    work = place(tmp_path, repeated(claims), **settings)
    vectors = embedding_rows(passage_rows("2401.00001"))
    write_table(work.root, tables.EMBEDDINGS, CITED_MONTH, vectors)
    rehearsal = Rehearsal(lambda prompt, tokens, own: own)
    space = ClientWorkspace(work.settings, rehearsal.make_client)
    job = Job(space, MONTH, stage_with(embedder), rehearsal=True)
    assert (len([*job.stage.build(job)]), rehearsal.count("calls")) == (claims, calls)
    assert job.notes["works_ranked"]["by_words_alone"] == (embedder is None)


def test_without_passages_or_an_endpoint_and_a_system_that_calls_a_model_it_is_off(tmp_path):
    work = place(tmp_path, systems="lexrank")
    outcome, rows = judged(work)
    assert rows == []
    assert outcome.notes["off"].startswith("no endpoint is set")
    assert fingerprint(CITATION_SUPPORT, work, MONTH).inputs == outcome.notes
    with ScriptedLlm() as llm:
        outcome, rows = judged(place(tmp_path / "none", llm=llm, support_passages=0))
    assert (rows, llm.requests) == ([], [])
    assert outcome.notes["off"].startswith("CITELOOM_SUPPORT_PASSAGES is 0")


def test_a_paper_without_passages_and_a_section_without_its_task_are_in_the_ledger(tmp_path):
    text = "It is [Reference 5]. So is [Reference 5]. It is [Reference 1]."
    work = place(tmp_path, text, references=[reference(1), reference(5)])
    front_matter = passage_rows("2401.00001", [])
    write_table(work.root, tables.PASSAGES, CITED_MONTH, front_matter)
    outcome, rows = judged(work)
    reasons = [(row["number"], row["unjudged"]) for row in rows]
    assert reasons == [(5, "no_text"), (5, "no_text"), (1, "no_text")]
    assert outcome.left_out == {"cited_paper_without_passages": 2}
    write_table(work.root, tables.RELATED_WORK_TASKS, MONTH, [])
    outcome, rows = judged(work)
    assert (rows, outcome.left_out) == ([], {"section_without_task": 1})


def test_a_file_of_tasks_may_bring_a_whole_text_whose_headings_are_no_passages(tmp_path):
    text = "# A work\n\n## Method\n\nIt weighs\nquartz.\n\nIt ends."
    whole = {**reference(1, text=text), "arxiv_id": None}
    with ScriptedLlm() as llm:
        _, rows = judged(place(tmp_path, "It is [Reference 1].", llm, [whole]))
    assert sorted(each["text"] for each in rows[0]["passages"]) == ["It ends.", "It weighs quartz."]


def test_sentences_on_one_work_are_asked_one_after_another_and_one_without_a_title_by_its_id(
    tmp_path,
):
    """So that a server that keeps the beginning of a prompt finds it again."""
    text = "It weighs [Reference 1]. They weigh [Reference 2]. It weighed [Reference 1]."
    references = [{**reference(1), "title": None}, reference(2)]
    with ScriptedLlm() as llm:
        judged(place(tmp_path, text, llm, references, llm_concurrency=1))
    asked = [body["messages"][1]["content"].partition("<work>\n")[2] for body in llm.requests]
    titles = [prompt.partition("\n</work>")[0] for prompt in asked]
    assert titles == ["2401.00001", "2401.00001", "Cited work 2"]
    assert {body["max_tokens"] for body in llm.requests} == {FINDING_TOKENS}


@pytest.mark.parametrize("changed", [tables.PASSAGES, tables.EMBEDDINGS])
def test_other_passages_or_vectors_of_what_is_cited_are_other_inputs(tmp_path, changed):
    work = place(tmp_path)
    before = inputs(work, MONTH)
    rows = passage_rows("2401.00001", ["Other words."])
    rows = rows if changed is tables.PASSAGES else embedding_rows(rows)
    write_table(work.root, changed, CITED_MONTH, rows)
    after = inputs(work, MONTH)
    differ = {name for name in before if before[name] != after[name]}
    assert differ == {f"{changed.name} of cited papers"}
