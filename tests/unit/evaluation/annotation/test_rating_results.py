"""What the ratings say: numbers that can be worked out by hand, and nothing where there is nothing.
`test_recount.py` counts means and preference of a month.
"""

import pytest

from pipeline.evaluation.annotation.results import MEAN, rate_sets, read_rating_results
from pipeline.evaluation.g_score.sample import ABLATIONS, MAIN
from pipeline.report.judgements import ratings_section
from pipeline.tables import CRITERIA, SUMMARIES
from tests.month_tables import write_table
from tests.unit.evaluation.made_up import judgement, workspace, write_month

MONTH = "2024-03"
SYSTEMS = ("one", "two")


def rating(rater, task, system, mark, preferred=None, **more):
    marks = dict.fromkeys(CRITERIA, mark)
    where = {"study": "pilot", "rater": rater, "task_id": task, "system": system}
    return {**where, **marks, "preferred": preferred, **more}


def ratings_of(*lines):
    """Raters, task, marks of both systems, and whether the first is preferred."""
    return [
        rating(rater, task, system, mark, None if first is None else first == (system == "one"))
        for rater, task, marks, first in lines
        for system, mark in zip(SYSTEMS, marks, strict=True)
    ]


RATINGS = ratings_of(
    ("Ada", "t1", (5, 2), True),
    ("Ben", "t1", (4, 2), True),
    ("Ada", "t2", (3, 4), False),
    ("Ben", "t2", (3, None), None),
)


def judged(task, marks, best, repeat=0):
    return judgement(task, dict(zip(SYSTEMS, marks, strict=True)), best, repeat=repeat)


def rated(ratings, *judgements):
    """The results of the one candidate set."""
    return rate_sets(ratings, {MAIN: SYSTEMS}, judgements)[MAIN]


def test_the_mean_of_the_six_takes_only_raters_who_gave_all_six():
    found = rated([rating("Ada", "t1", "one", 4, fluency=None), rating("Ben", "t1", "one", 2)])
    marks = found.marks["one"]
    assert (marks[MEAN].value, marks[MEAN].count, marks["coherence"].value) == (2, 1, 3)


def test_full_agreement_of_raters_is_1_but_not_across_studies():
    alike = [(task, marks) for task, marks in (("t1", (5, 2)), ("t2", (4, 1)))]
    rows = ratings_of(*((rater, *each, True) for rater in ("Ada", "Ben") for each in alike))
    assert rated(rows).alpha["integrity"].value == 1
    assert rated(rows).preference.value is None, "all prefer one system: chance would agree as well"
    apart = rated([row | {"study": row["rater"]} for row in rows])
    assert (apart.alpha["fluency"].count, apart.preference.count) == (0, 0)


def test_of_nothing_there_are_no_numbers(tmp_path):
    work = workspace(tmp_path)
    assert ratings_section(read_rating_results(work.root, work.settings, [MONTH])) is None
    found = rated([rating("Ada", "t1", "one", None)])
    means = (*found.alpha.values(), found.preference, *found.marks["one"].values())
    assert {mean.value for mean in (*means, found.preferred["one"])} == {None}


def test_the_judge_is_compared_section_by_section_with_the_mean_of_the_raters():
    """Raters: 4.5 and 2 on the first task, 3 and 4 on the second; the judge: 4.5 and 1, 5 and 2."""
    rows = [
        judged("t1", (4, 1), "one"),
        judged("t1", (5, 1), "one", 1),
        judged("t2", (5, 2), "one"),
    ]
    (judge,) = rated(RATINGS, *rows).judges
    fluency = judge.marks["fluency"]
    assert (fluency.sections, fluency.spearman, fluency.same_order) == (4, pytest.approx(0.4), 0.5)
    assert fluency.mean_difference == pytest.approx(13.5 / 4 - 12.5 / 4)
    # Ada and the judge disagree on the second task.
    assert (judge.judge, judge.votes, judge.same) == ("strict", 2, 1)


def test_a_judge_has_no_vote_by_a_tie_of_raters_on_one_section_or_on_other_ones():
    tied = ratings_of(("Ada", "t1", (5, 5), True), ("Ben", "t1", (5, 5), False))
    (of_tie,) = rated(tied, judged("t1", (5, 5), "one")).judges
    (alone,) = rated(RATINGS, judged("t1", (4, 1), None)).judges
    (elsewhere,) = rated(RATINGS, judged("t9", (4, 1), "one")).judges
    assert of_tie.votes == alone.votes == elsewhere.votes == 0
    assert alone.marks[MEAN].spearman is None
    assert elsewhere.marks["fluency"] is None


def test_ratings_of_sections_that_have_changed_count_in_no_figure(tmp_path):
    work = workspace(tmp_path)
    write_month(work.root, MONTH, systems=("chatcite", "zero_shot"), raters=2)

    def results(*anew):
        rows = work.root.rows(SUMMARIES, MONTH)
        rows = [row | ({"text": "New."} if row["system"] in anew else {}) for row in rows]
        write_table(work.root, SUMMARIES, MONTH, rows)
        return read_rating_results(work.root, work.settings, [MONTH, "2024-05"])

    of_set = results().sets[MAIN]
    assert (of_set.ratings, len(of_set.judges)) == (8, 1)
    found = results("chatcite")
    assert (found.outdated, found.sets[MAIN].ratings) == (4, 4)
    assert {*found.sets[MAIN].marks} == {"zero_shot@some-model"}
    found = results("zero_shot")
    assert (found.outdated, found.sets) == (8, {})
    told = " ".join(ratings_section(found).paragraphs)
    assert "8 ratings of sections that have changed since" in told


def test_studies_of_two_candidate_sets_are_never_pooled_and_the_shares_of_each_sum_to_1():
    sets = {MAIN: ("one", "two", "three"), ABLATIONS: ("one", "four")}
    rows = [
        rating(rater, task, system, 3, system == best, study=study)
        for study, candidates, bests in (
            ("first", MAIN, ("one", "two", "one")),
            ("second", ABLATIONS, ("one", "one", "four")),
            ("third", MAIN, ("three", "three", "two")),
        )
        for rater, task, best in zip(("Ada", "Ben", "Ada"), ("t1", "t1", "t2"), bests, strict=True)
        for system in sets[candidates]
    ]
    found = rate_sets(rows, sets, [judged("t1", (5, 1), "one")])
    assert [*found] == [MAIN, ABLATIONS]
    main, ablations = found.values()
    assert (main.studies, ablations.studies) == (["first", "third"], ["second"])
    assert (main.raters, main.tasks, main.ratings) == (2, 2, 18)
    assert (main.choices, ablations.choices) == (6, 3)
    shares = {system: share.value for system, share in ablations.preferred.items()}
    assert shares == {"one": (1 + 0) / 2, "four": (0 + 1) / 2}
    assert sum(share.value for share in main.preferred.values()) == pytest.approx(1)
    assert (len(main.judges), ablations.judges) == (1, [])
