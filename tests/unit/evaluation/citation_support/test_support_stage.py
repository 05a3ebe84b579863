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
from tests.cases import cases, values_at
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
    task,
    verdict_on,
)
from tests.unit.evaluation.made_up import section

pytestmark = pytest.mark.slow

SHIPS = "We count ships in ports. It takes a year."
REFERENCES = ((1,), (2,), (3, "abstract", SHIPS), (4, "item", "A. Lovelace. Stones. 1843."))
# As rows of `sections.toml` have them.
COLUMNS = (
    "sentence", "number", "unjudged", "verdict", "source", "quote_found", "quoted", "calls",
)  # fmt: skip


def place(folder, text="It is [Reference 1].", llm=None, references=REFERENCES, **settings):
    """A month of one section, and a repeat of it."""
    written = section(text, (1, 2, 3, 4, 5))
    references = [reference(*each) for each in references]
    return place_with(folder, [written, written | {"repeat": 1}], references, llm, **settings)


def repeated(count):
    """A section with so many sentences on one work."""
    return " ".join(f"It weighs {number} stones [Reference 1]." for number in range(count))


@cases("unit/evaluation/citation_support/sections.toml")
def test_every_citation_has_a_row_with_its_verdict_or_why_there_is_none(tmp_path, case):
    rules = [verdict_on(words, *verdict) for words, verdict in case.get("verdicts", {}).items()]
    with ScriptedLlm(*rules) as llm:
        work = place(tmp_path, case["text"], llm, case.get("references", REFERENCES))
        if "without_passages" in case:
            write_table(work.root, tables.PASSAGES, CITED_MONTH, passage_rows("2401.00001", []))
        outcome, rows = judged(work, case.get("most"))
    values = [["" if row[name] is None else row[name] for name in COLUMNS] for row in rows]
    expected = case["rows"]
    assert [of_row[: len(expected[0])] for of_row in values] == expected
    assert llm.generations == sum(row["calls"] for row in rows)
    passages, notes = case.get("passages", {}), case.get("notes", {})
    assert values_at([row["passages"] for row in rows], passages) == passages
    assert values_at(outcome.notes, notes) == notes
    assert outcome.left_out == case.get("left_out", {})


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


def test_a_section_without_its_task_is_in_the_ledger(tmp_path):
    work = place(tmp_path)
    write_table(work.root, tables.RELATED_WORK_TASKS, MONTH, [])
    outcome, rows = judged(work)
    assert (rows, outcome.left_out) == ([], {"section_without_task": 1})


def test_sentences_on_one_work_are_asked_one_after_another_and_one_without_a_title_by_its_id(
    tmp_path,
):
    """So that a server that keeps the beginning of a prompt finds it again."""
    text = "It weighs [Reference 1]. They weigh [Reference 2]. It weighed [Reference 1]."
    with ScriptedLlm() as llm:
        work = place(tmp_path, text, llm, llm_concurrency=1)
        references = [{**reference(1), "title": None}, reference(2)]
        write_table(work.root, tables.RELATED_WORK_TASKS, MONTH, [task(references)])
        judged(work)
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
