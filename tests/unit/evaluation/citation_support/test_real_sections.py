"""The authors' own sections of five real papers, put through the stage as if a system had written
them.
"""

import json
import re

from pipeline.evaluation.citation_support.measures import citation_measures
from tests.real_targets import read_real_targets
from tests.scripted_llm import ScriptedLlm
from tests.unit.evaluation.citation_support.building import judged, place_with
from tests.unit.evaluation.made_up import section


def copies(asked):
    """A dozen words from the middle of what is shown, in capitals and spaced otherwise."""
    match = re.search(r"<passages>\n(.*)\n</passages>", asked.prompt, re.DOTALL)
    words = match.group(1).replace("\n\n", " ").split() if match else []
    return json.dumps({"quote": "  ".join(words[8:20]).upper()[:200], "verdict": "supported"})


def test_every_citation_of_real_sections_is_judged_by_real_words(shared_data, tmp_path):
    for imported in read_real_targets(shared_data, "2024-03"):
        task = imported.task.row()
        numbers = [each["number"] for each in task["references"]]
        written = section(task["gold"], numbers)
        with ScriptedLlm(copies) as llm:
            work = place_with(
                tmp_path / imported.task.id, [written], task["references"], llm, support_passages=1
            )
            outcome, rows = judged(work)
        assert {row["number"] for row in rows} <= set(numbers)
        assert len(rows) == outcome.notes["citations"] >= 8
        told = {row["number"]: row["source"] for row in rows}
        assert {row["number"] for row in rows if row["unjudged"]} == {
            n for n, source in told.items() if source == "item"
        }
        assert all(row["quote_found"] for row in rows if row["verdict"]), imported.task.id
        found = citation_measures(task, written, rows)
        assert found["citation_precision"] == found["citation_precision_quoted"] == 1.0
        # Authors cite in a third to two thirds of their sentences; the rest compares, or tells of
        # their own work.
        assert 0.3 < found["citation_recall"] < 0.7, found
        assert found["reference_coverage"] > 0.8
