"""The report over what the answering stages really write: every step, passage and verdict has its
place on a page.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from selectolax.lexbor import LexborHTMLParser

from pipeline import tables
from pipeline.engine.run import run_stage
from pipeline.engine.stage import Workspace
from pipeline.report.stages import REPORT
from pipeline.system_names import ANSWERING_SYSTEMS
from tests.scripted_llm import ScriptedLlm
from tests.unit.answering.corpus import MARCH
from tests.unit.answering.staging import answers_of, reading, run_all, staged
from tests.unit.evaluation.made_up import paper, write_table
from tests.unit.report.test_pages import assert_inert, folded, pages

pytestmark = pytest.mark.slow


def test_every_answer_of_the_stages_is_shown_with_its_sentences_passages_and_steps(
    corpus: Workspace, tmp_path: Path
) -> None:
    with ScriptedLlm(reading) as llm:
        place = staged(corpus, tmp_path, llm, llm_cutoff="2024-01")
        run_all(place)
    known = [row["arxiv_id"] for row in place.root.rows(tables.PAPERS, MARCH)]
    write_table(
        place.root, tables.PAPERS, MARCH, map(paper, known)
    )  # with all that a report shows of a paper
    for table in REPORT.upstream:
        if not place.root.file(table, MARCH).exists():
            write_table(place.root, table, MARCH, [])
    run_stage(REPORT, place, MARCH)
    for name, content in pages(place).items():
        assert_inert(name, content)
    folder = place.root.path / "reports" / MARCH
    for system in ANSWERING_SYSTEMS:
        for row in answers_of(place, system):
            page = LexborHTMLParser((folder / f"question-{row['question_id']}.html").read_text())
            text = folded(page.text())
            told = page.css_first(f"#{system}")
            assert all(folded(each["text"]) in folded(told.text()) for each in row["sentences"])
            assert all(folded(query) in text for query in row["queries"])
            assert all(folded(each["text"])[:60] in text for each in row["claims"])
            links = {link.attributes["href"] for link in page.css("a.source")}
            assert len(links) >= len(
                {each["anchor"] for each in row["shown"]} - {"front_matter", "abstract"}
            )
    table = folded(LexborHTMLParser((folder / "answers.html").read_text()).text())
    assert "3 questions answered by the model alone; extractive; WikiChat; arXivBot" in table
    assert "Seconds per request" in (folder / "run.html").read_text()
