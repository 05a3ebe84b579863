"""Tables and figures of a report counted again from sheets and rows, by arithmetic of this file."""

from collections import defaultdict
from statistics import fmean, stdev

import pytest

from pipeline import tables
from pipeline.engine.run import run_stage
from pipeline.evaluation.annotation.study import import_files
from pipeline.report.stages import REPORT
from tests.unit.evaluation.annotation.studies import MONTH, give_out, rows_of, save
from tests.unit.evaluation.made_up import write_month
from tests.unit.report.test_pages import cells, parsed_page, report_tables
from tests.workspaces import make_workspace

pytestmark = pytest.mark.slow

SECTIONS = {"chatcite": "ChatCite", "few_shot": "few-shot", "zero_shot": "zero-shot"}
ABLATION = {"chatcite_no_elements": "ChatCite without key elements"}
# Marks of two raters on the first task and on the second, where the second left a section out.
MARKS = {"chatcite": [5, 4, 3, 3], "few_shot": [2, 4, 4, ""], "zero_shot": [1, 3, 5, 1]}
BEST = ("chatcite", "few_shot", "zero_shot", "zero_shot")
SHARES = {"ChatCite": 1 / 4, "few-shot": 1 / 4, "zero-shot": 2 / 4}


def mean_by(pairs):
    """The mean over tasks or questions of the mean of each one's values."""
    values = defaultdict(list)
    for item, value in pairs:
        values[item].append(value)
    return pytest.approx(fmean(map(fmean, values.values())))


def mean_mark(marks):
    return fmean(marks[criterion] for criterion in tables.CRITERIA)


def bars(page, title):
    """(Heading, label) → number, of the figure whose caption begins so."""
    figure = next(f for f in page.css("figure.of-bars") if f.text().strip().startswith(title))
    return {
        (group.css_first("h4").text(), bar.css_first("span").text()): bar.css_first(".n").text()
        for group in figure.css(".bars > div")
        for bar in group.css(".bar")
    }


def test_tables_and_figures_of_sections_are_those_counted_by_hand(tmp_path):
    place = make_workspace(tmp_path / "data", judges="strict", llm_model="some-model")
    writers = [*SECTIONS, *ABLATION]
    write_month(place.root, MONTH, systems=writers, judges=["strict"], repeats=2)
    study, sheets = give_out(place, tmp_path / "out", 2)
    for rater, sheet in enumerate(sheets):
        lines = []
        for line in rows_of(sheet):
            unit = study.units[line["unit"]]
            system = unit.system.removesuffix("@some-model")
            turn = rater + 2 * unit.item_id.endswith("2#S2")
            marks = dict.fromkeys(tables.CRITERIA, MARKS[system][turn])
            lines.append(line | marks | {"preferred": "x" if BEST[turn] == system else ""})
        save(sheet, lines)
    import_files(place, sheets)
    run_stage(REPORT, place, MONTH)
    grids = report_tables(place)
    page = parsed_page(place)

    def cell(*path):
        (value,) = cells(grids, "/".join(path))
        return value

    figure, people = bars(page, "Figure 4: the six criteria (main"), "People, 4 votes on 2 tasks"
    for system, name in SECTIONS.items():
        mean = mean_by((turn // 2, mark) for turn, mark in enumerate(MARKS[system]) if mark)
        for column in ("Fluency", "G-Score"):
            assert cell("criteria", "People", name, column) == mean
        shown = float(figure["Fluency", f"{name}, people"])
        assert shown == pytest.approx(mean.expected, abs=0.006)
    figure = bars(page, "Figure 5: preference (main")
    for name, share in SHARES.items():
        assert cell("preference", name, people) == share
        assert figure[people, name] == f"{100 * share:.0f} %"
    rated = [cell("people", name, "Rated twice or more") for name in ("Fluency", "Preference")]
    assert rated == [5, 2]

    judged = place.root.rows(tables.G_SCORES, MONTH)
    scores = place.root.rows(tables.SCORES, MONTH)
    for table, of_criteria, candidates, names in (
        ("table_1", "criteria", "main", SECTIONS),
        ("table_2", "criteria_ablations", "ablations", ABLATION),
    ):
        for system, name in names.items():
            writer = f"{system}@some-model"
            given = [
                (row, marks)
                for row in judged
                for marks in row["marks"]
                if (row["candidate_set"], marks["system"]) == (candidates, system)
            ]
            first = [(row, marks) for row, marks in given if not row["section_repeat"]]
            mean = mean_by((row["task_id"], mean_mark(marks)) for row, marks in first)
            assert cell(table, "Ours", name, "G-Score") == mean
            assert cell(of_criteria, "Judge strict", name, "G-Score") == mean
            fluency = mean_by((row["task_id"], marks["fluency"]) for row, marks in first)
            assert cell(of_criteria, "Judge strict", name, "Fluency") == fluency
            voted = mean_by((row["task_id"], 100 * (row["best"] == writer)) for row, _ in first)
            assert cell(table, "Ours", name, "Best, %") == voted
            wanted = {"system": system, "metric": "rouge1", "repeat": 0}
            rouge = mean_by((r["task_id"], r["value"]) for r in scores if r | wanted == r)
            assert cell(table, "Ours", name, "R-1") == rouge
            # Marks of all runs are of one order.
            of_run = [
                fmean(
                    mean_mark(m) for r, m in given if (r["section_repeat"], r["repeat"]) == (run, 0)
                )
                for run in (0, 1)
            ]
            (spread,) = (
                row
                for row in grids["stability"]["rows"]
                if candidates in row["group"]
                and (row["Metric"], row["System"]) == ("G-Score", name)
            )
            found = tuple(spread[column] for column in ("Mean", "SD of runs", "Runs", "Tasks"))
            assert found == pytest.approx((fmean(of_run), stdev(of_run), 2, 2))
