"""What the ratings say: numbers that can be worked out by hand, and nothing where there is
nothing.
"""

import pytest

from pipeline.evaluation.annotation.ratings import (
    MEAN,
    rating_results,
    read_rating_results,
)
from pipeline.evaluation.g_score.sample import ABLATIONS, MAIN
from pipeline.report.judgements import rating_results_section
from pipeline.settings import Settings
from pipeline.tables import CRITERIA, G_SCORES, HUMAN_RATINGS, SUMMARIES
from pipeline.text import text_digest
from tests.month_tables import write_table
from tests.unit.evaluation.annotation.studies import MONTH
from tests.unit.evaluation.made_up import judgement, workspace

SYSTEMS = ("one", "two")
SETTINGS = Settings(_env_file=None)


def rating(
    rater,
    task,
    system,
    mark,
    preferred=None,
    **marks,
):
    given = dict.fromkeys(CRITERIA, mark) | marks
    return {
        "study": "pilot",
        "rater": rater,
        "task_id": task,
        "system": system,
        "label": "A",
        **given,
        "preferred": preferred,
        "comment": None,
    }


def judged(task, marks, best, repeat=0):
    return judgement(task, dict(zip(SYSTEMS, marks, strict=True)), best, repeat=repeat)


RATINGS = [
    rating("Ada", "t1", "one", 5, True),
    rating("Ada", "t1", "two", 2, False),
    rating("Ben", "t1", "one", 4, True),
    rating("Ben", "t1", "two", 2, False),
    rating("Ada", "t2", "one", 3, False),
    rating("Ada", "t2", "two", 4, True),
    rating("Ben", "t2", "one", 3),
    rating("Ben", "t2", "two", None),
]


def rated(ratings, judgements=()):
    """The results of the one candidate set."""
    (found,) = rating_results(ratings, {MAIN: SYSTEMS}, judgements).sets
    return found


def system(found, name):
    return next(each for each in found.systems if each.system == name)


def test_means_and_preference_are_those_worked_out_by_hand():
    found = rated(RATINGS)
    assert (found.studies, found.raters, found.tasks, found.ratings, found.choices) == (
        ("pilot",),
        ("Ada", "Ben"),
        2,
        8,
        3,
    )
    one, two = system(found, "one"), system(found, "two")
    assert one.marks["fluency"].value == pytest.approx(15 / 4)
    # A task weighs the same however many rated it: 2 on the first, 4 on the second.
    fluency = two.marks["fluency"]
    assert (fluency.value, fluency.count) == (3, 2)
    assert (one.preferred.value, one.preferred.count) == (0.5, 2)
    assert two.preferred.value == 0.5
    assert one.marks["fluency"].low <= 15 / 4 <= one.marks["fluency"].high
    # Of what two raters marked.
    assert (found.alpha["fluency"].count, found.preference.count) == (3, 1)
    assert set(found.alpha) == set(CRITERIA)


def test_the_mean_of_the_six_takes_only_raters_who_gave_all_six():
    found = rated([rating("Ada", "t1", "one", 4, fluency=None), rating("Ben", "t1", "one", 2)])
    assert (found.systems[0].marks[MEAN].value, found.systems[0].marks[MEAN].count) == (2, 1)
    assert found.systems[0].marks["coherence"].value == 3


def test_full_agreement_of_raters_is_1_but_not_across_studies():
    marks = {("t1", "one"): 5, ("t1", "two"): 2, ("t2", "one"): 4, ("t2", "two"): 1}
    rows = [
        rating(rater, *place, mark, place[1] == "one")
        for rater in ("Ada", "Ben")
        for place, mark in marks.items()
    ]
    assert rated(rows).alpha["integrity"].value == 1
    assert rated(rows).preference.value is None, "all prefer one system: chance would agree as well"
    apart = [row | {"study": row["rater"]} for row in rows]
    assert (
        rated(apart).alpha["fluency"].count,
        rated(apart).preference.count,
    ) == (0, 0)


def test_of_nothing_there_are_no_numbers():
    assert rating_results([], {}).empty
    found = rated([rating("Ada", "t1", "one", None)])
    assert all(each.value is None for each in found.alpha.values())
    assert found.preference.value is None
    for system in found.systems:
        assert {mean.value for mean in (*system.marks.values(), system.preferred)} == {None}


def test_the_judge_is_compared_section_by_section_with_the_mean_of_the_raters():
    rows = [
        judged("t1", (4, 1), "one"),
        judged("t1", (5, 1), "one", 1),
        judged("t2", (5, 2), "one"),
    ]
    (judge,) = rated(RATINGS, rows).judges
    assert judge.judge == "strict"
    # Raters: 4.5 and 2 on the first task, 3 and 4 on the second; the judge: 4.5 and 1, 5 and 2.
    fluency = judge.marks["fluency"]
    assert fluency is not None
    assert (fluency.sections, fluency.spearman, fluency.same_order) == (4, pytest.approx(0.4), 0.5)
    assert fluency.mean_difference == pytest.approx(13.5 / 4 - 12.5 / 4)
    # Ada and the judge disagree on the second task.
    assert (judge.votes, judge.same) == (2, 1)
    assert rated(RATINGS[::-1], rows[::-1]) == rated(RATINGS, rows)


def test_a_judge_has_no_vote_by_a_tie_of_raters_on_one_section_or_on_other_ones():
    tied = [
        rating("Ada", "t1", "one", 5, True),
        rating("Ada", "t1", "two", 5, False),
        rating("Ben", "t1", "one", 5, False),
        rating("Ben", "t1", "two", 5, True),
    ]
    (of_tie,) = rated(tied, [judged("t1", (5, 5), "one")]).judges
    (alone,) = rated(RATINGS, [judged("t1", (4, 1), None)]).judges
    (elsewhere,) = rated(RATINGS, [judged("t9", (4, 1), "one")]).judges
    assert (of_tie.votes, alone.votes, elsewhere.votes) == (0, 0, 0)
    assert alone.marks[MEAN] is not None
    assert alone.marks[MEAN].spearman is None
    assert elsewhere.marks["fluency"] is None


def write_ratings(root, month, ratings):
    """Ratings of a month with the sections that were rated, as they were."""
    sections = {
        (row["task_id"], row["system"]): f"{row['system']} on {row['task_id']}" for row in ratings
    }
    write_table(
        root,
        SUMMARIES,
        month,
        [
            {"task_id": task, "system": system, "repeat": 0, "text": text}
            for (task, system), text in sections.items()
        ],
    )
    rows = [
        row | {"text_sha256": text_digest(sections[row["task_id"], row["system"]])}
        for row in ratings
    ]
    write_table(root, HUMAN_RATINGS, month, rows)


def test_ratings_of_sections_that_have_changed_count_in_no_figure(tmp_path):
    root = workspace(tmp_path).root
    write_ratings(root, MONTH, RATINGS)
    changed = [
        row | {"text": "Written again."} if row["system"] == "two" else row
        for row in root.rows(SUMMARIES, MONTH)
    ]
    write_table(root, SUMMARIES, MONTH, changed)
    found = read_rating_results(root, SETTINGS, [MONTH])
    assert (found.outdated, found.sets[0].ratings) == (4, 4)
    assert [each.system for each in found.sets[0].systems] == ["one"]
    write_table(root, SUMMARIES, MONTH, [row | {"text": "Written again."} for row in changed])
    found = read_rating_results(root, SETTINGS, [MONTH])
    assert (found.outdated, found.sets, found.empty) == (8, (), False)
    assert "8 ratings of sections that have changed since" in " ".join(
        rating_results_section(found).paragraphs
    )


def test_results_are_read_from_the_tables_of_the_months_that_have_some(tmp_path):
    root = workspace(tmp_path).root
    write_ratings(root, MONTH, RATINGS)
    write_ratings(root, "2024-04", [rating("Ada", "t9", "one", 1) | {"study": "other"}])
    write_table(root, G_SCORES, MONTH, [judged("t1", (4, 1), "one"), judged("t2", (5, 2), "one")])
    found = read_rating_results(root, SETTINGS, [MONTH, "2024-05"])
    assert found.sets == (rated(RATINGS, root.rows(G_SCORES, MONTH)),)
    (other,) = read_rating_results(root, SETTINGS, [MONTH, "2024-04"], "other").sets
    assert other.ratings == 1
    assert read_rating_results(root, SETTINGS, [MONTH], "none").empty


def test_studies_of_two_candidate_sets_are_never_pooled_and_the_shares_of_each_sum_to_1():
    sets = {MAIN: ("one", "two", "three"), ABLATIONS: ("one", "four")}
    rows = [
        rating(rater, task, system, 3, system == best) | {"study": study}
        for study, candidates, bests in (
            ("first", MAIN, ("one", "two", "one")),
            ("second", ABLATIONS, ("one", "one", "four")),
            ("third", MAIN, ("three", "three", "two")),
        )
        for rater, task, best in zip(("Ada", "Ben", "Ada"), ("t1", "t1", "t2"), bests, strict=True)
        for system in sets[candidates]
    ]
    main, ablations = rating_results(rows, sets, [judged("t1", (5, 1), "one")]).sets
    assert (main.studies, ablations.studies) == (("first", "third"), ("second",))
    assert (main.choices, ablations.choices) == (6, 3)
    for found in (main, ablations):
        assert sum(each.preferred.value for each in found.systems) == pytest.approx(1)
    assert system(ablations, "one").preferred.value == (1 + 0) / 2
    assert (len(main.judges), ablations.judges) == (1, ())
