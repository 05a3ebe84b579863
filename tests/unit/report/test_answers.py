"""The report's pages of answers: Table 1 beside ours, every answer with its evidence, and texts
that do nothing.
"""

import re

import pytest

from pipeline.answering.answer import ABSTAINED
from pipeline.engine.run import State, run_stage, state
from pipeline.evaluation.answers.measures import answer_measures, read_grades
from pipeline.evaluation.statistics import estimate
from pipeline.report.figures import answering_colour
from pipeline.report.formatting import question_file
from pipeline.report.stages import REPORT
from tests.models_file import write_models
from tests.unit.evaluation.made_up import workspace, write_ledger, write_month
from tests.unit.evaluation.made_up_answers import QUOTE, SYSTEMS, write_answers
from tests.unit.report.test_pages import (
    assert_inert,
    folded,
    pages,
    parsed_page,
    report_tables,
    rows_of,
    text_of,
)

pytestmark = pytest.mark.slow

MONTH = "2024-03"
FOLDER = f"reports/{MONTH}"
SETTINGS = {"judges": "judge-one", "llm_model": "some-model", "llm_cutoff": "2024-03-03"}


def published(folder, *, settings=None, **answers):
    """A month's report with questions; a place of its own for each test, without related work."""
    place = workspace(folder, **{**SETTINGS, **(settings or {})})
    write_month(place.root, MONTH, tasks=0)
    write_answers(place.root, MONTH, **answers)
    run_stage(REPORT, place, MONTH)
    return place


@pytest.fixture(scope="module")
def month(tmp_path_factory):
    """The report of a month with 4 questions, which tests only read."""
    return published(tmp_path_factory.mktemp("month"))


@pytest.fixture(scope="module")
def nine_questions(tmp_path_factory):
    """The report of a month with 9 questions, which tests only read."""
    return published(tmp_path_factory.mktemp("nine"), questions=9)


def test_table_1_has_the_reports_numbers_and_ours_by_age_with_intervals(nine_questions):
    printed = rows_of(nine_questions, "answers_table_1", "As published")[-1]
    told = {"System": "arXivBot", "Coverage, old": 0.93, "Coverage, all": None, "Questions": 50}
    assert printed | told == printed
    ours = rows_of(nine_questions, "answers_table_1", "Ours")
    assert [(row["System"], row["Model"]) for row in ours] == [
        ("the model alone", "some-model"),
        ("a chat site", "elsewhere"),
        ("WikiChat", "some-model"),
        ("arXivBot", "some-model"),
    ]
    mean = estimate(
        {
            grade["question_id"]: [answer_measures(grade)["coverage"]]
            for grade in read_grades(nine_questions.root, MONTH)
            if grade["system"] == "wikichat@some-model"
        }
    )
    assert ours[2]["Coverage, all"] == {"value": mean.value, "low": mean.low, "high": mean.high}
    about = report_tables(nine_questions)["answers_table_1"]["groups"][1]["about"]
    assert about == "9 questions on 2 papers of March 2024; judge judge-one"


def test_what_became_of_the_questions_is_counted(nine_questions):
    counted = {row["System"]: row for row in rows_of(nine_questions, "answers_leaderboard")}
    mine = counted["arXivBot"]
    assert (mine["Questions"], mine["Answered"], mine["Abstained"]) == (9, 8, 1)
    assert counted["the model alone"]["Abstained"] == 0


def test_without_a_cut_off_nothing_is_old_or_recent_and_the_page_says_so(tmp_path):
    place = published(tmp_path, settings={"llm_cutoff": ""})
    ours = rows_of(place, "answers_table_1", "Ours")
    assert {row[name] for row in ours for name in ("Factual, old", "Coverage, recent")} == {None}
    assert ours[0]["Coverage, all"] is not None
    assert "the knowledge cut-off of some-model is not known" in text_of(place, "answers.html")


def test_the_cut_off_of_a_models_own_table_divides_the_questions(tmp_path):
    models = write_models(tmp_path, "http://127.0.0.1:9/v1", "some-model", cutoff="2024-03-03")
    of_table = published(tmp_path / "table", settings={"models": models, "llm_cutoff": ""})
    by_setting = published(tmp_path / "setting")
    ours = rows_of(of_table, "answers_table_1", "Ours")
    assert ours == rows_of(by_setting, "answers_table_1", "Ours")
    note = "latest knowledge cut-off of the models that answered (some-model: 2024-03-03)"
    assert note in text_of(of_table, "answers.html")


def test_the_page_says_in_what_theirs_and_ours_differ(month):
    text = text_of(month, "answers.html")
    assert "In the report three people graded; here the judge is judge-one" in text
    assert "Its corpus has 27,447 papers." in text
    assert "With 4 questions the intervals are too narrow" in text
    searched = "searched in the index citeloom (edge), dense vectors of minilm. Ranked by dense"
    assert f"Passages were {searched} vectors and BM25: " in text_of(month, "answers.html")


def test_each_kind_of_question_has_its_rows(nine_questions):
    rows = rows_of(nine_questions, "answers_kinds")
    kinds = [row["group"] for row in rows[:: len(SYSTEMS)]]
    assert kinds == ["Author", "Dataset", "Summary", "Limitation", "Comparison"]
    assert sum(row["Questions"] for row in rows if row["System"] == "arXivBot") == 9


def test_retrieval_stands_apart_with_the_gain_of_each_hop(month):
    shown = {row["System"]: row for row in rows_of(month, "answers_shown")}
    assert shown.keys() == {"arXivBot", "WikiChat"}
    assert shown["WikiChat"]["Shown by the last hop"]["value"] == 0.5
    assert shown["arXivBot"]["Shown by the first hop"]["value"] == 0.5
    assert shown["arXivBot"]["Shown by the last hop"]["value"] == 0.625
    second = next(row for row in rows_of(month, "answers_gains") if row["Hop"] == 2)
    assert (second["Questions"], second["First shown"]) == (1, 1)


def test_a_month_of_systems_that_search_for_nothing_has_no_table_of_retrieval(tmp_path):
    place = published(tmp_path, systems=("direct",))
    assert not {"answers_shown", "answers_gains"} & report_tables(place).keys()
    assert "Not run here (CITELOOM_ANSWER_SYSTEMS): WikiChat" in text_of(place, "answers.html")


def test_what_a_question_cost_is_told_by_system_and_of_grading(tmp_path):
    models = write_models(tmp_path / "settings", "http://127.0.0.1:9/v1", "judge-one", price="1/0")
    prices = {"llm_url": "http://127.0.0.1:9/v1", "llm_price": "2/8", "models": models}
    place = published(tmp_path, settings=prices)
    rows = {row["Stage"]: row for row in rows_of(place, "answers_cost")}
    asked = {"the model alone", "WikiChat", "arXivBot", "Grading the answers", "All"}
    assert rows.keys() == asked
    mine = rows["arXivBot"]
    assert (mine["Items"], mine["Calls"], mine["Tokens read"]) == (4, 20, 16_000)
    assert mine["Money"] == pytest.approx(4 * (4_000 * 2 + 300 * 8) / 1e6)
    assert mine["Money per item"] == pytest.approx((4_000 * 2 + 300 * 8) / 1e6)
    assert rows["Grading the answers"]["Items"] == 16
    assert rows["All"]["Money per item"] is None


def test_systems_are_compared_over_the_questions_that_both_have(tmp_path):
    rows = rows_of(
        published(tmp_path, questions=9, systems=("direct", "wikichat")), "answers_differences"
    )
    assert [(row["System"], row["Less"]) for row in rows] == [("WikiChat", "the model alone")]
    assert set(rows[0]["Coverage"]) == {"value", "low", "high"}


def test_rows_of_a_second_judge_as_earlier_versions_made_them_do_not_mix_with_those_of_the_first(
    tmp_path, month
):
    both = published(tmp_path, judges=("judge-one", "a-second"))
    assert rows_of(both, "answers_leaderboard") == rows_of(month, "answers_leaderboard")


def test_a_sentence_leads_to_its_claims_and_their_passages(month):
    shown = parsed_page(month, "question-q1.html")
    sentence = shown.css_first("#arxivbot a.said")
    assert sentence.attributes["href"] == "#arxivbot-1"
    assert folded(sentence.text()) == "Sentence 1.[1]"
    panel = shown.css_first("#arxivbot-1")
    assert "Claim 1 of the answer." in panel.text()
    assert panel.css_first(".source").text() == "2403.90001 sample"
    assert panel.css_first(".tag.kept").text() == "holds gold claim 1"


def test_a_question_shows_its_gold_claims_where_they_stand_and_which_answers_hold_them(month):
    shown = parsed_page(month, "question-q1.html")
    assert "2403.90001 sample · S0.p1" in folded(shown.css_first("#gold-1").text())
    links = [link.attributes["href"] for link in shown.css("#gold-1 a")]
    assert links == ["#at-gold-1"]  # nowhere on arXiv
    assert "no passage of the corpus is known to hold it" in shown.css_first("#gold-2").text()
    assert shown.css_first("#gold-3 q").text() == "as it says in place 3"
    text = folded(shown.text())
    assert "How are the weights of study 1 learned?" in text
    assert "newest paper: 2024-03-02, old" in text
    assert "Gold claim 3 ✓ held shown in hop 2" in text


def test_an_answer_shows_its_queries_what_was_read_its_grades_and_its_steps(month):
    text = text_of(month, "question-q1.html")
    for words in (
        "Hop 1: searched for “weights 1”",
        "Hop 2: searched for “weights 2”",
        "holds gold claim 3",
        "Step by step (",
        "query weights 2",
        "It read no passage.",
    ):
        assert words in text, words
    shown = [parsed_page(month, f"question-q{number}.html") for number in range(1, 5)]
    assert {mark.text() for page in shown for mark in page.css("mark")} == {QUOTE}
    verdicts = {folded(verdict.text()) for page in shown for verdict in page.css(".verdict")}
    assert verdicts >= {
        "✓ correct",
        "◐ partly",
        "✗ wrong",
        "? could not be checked",
        "? no readable verdict",
        "✓ held",
        "✗ not held",
    }


def test_an_abstention_is_told_as_one(month):
    shown = parsed_page(month, "question-q4.html")
    assert shown.css_first("#arxivbot .tag").text() == "abstained"
    assert ABSTAINED in shown.css_first("#arxivbot").text()
    listed = rows_of(month, "answers_questions")[3]
    assert listed["arXivBot, factual"] is None
    assert listed["arXivBot, coverage"] == 0


def test_the_months_page_leads_to_the_answers(month):
    links = [link.attributes["href"] for link in parsed_page(month, "index.html").css("a")]
    assert "answers.html" in links
    assert "4 questions, every answer with its evidence" in text_of(month, "index.html")


def test_an_imported_system_may_be_called_anything(tmp_path):
    name = 'a"><script>alert(1)</script> site #1'
    place = published(tmp_path, systems=("direct", name))
    for file, content in pages(place).items():
        assert_inert(file, content)
    shown = parsed_page(place, "question-q1.html")
    assert shown.css_first("#answer-1 h3").text().strip() == name
    assert "no model here" in shown.css_first("#answer-1").text()


def test_pages_of_questions_that_are_no_more_go_away(tmp_path):
    place = published(tmp_path)
    write_answers(place.root, MONTH, questions=2)
    run_stage(REPORT, place, MONTH)
    names = {file.name for file in (place.root.path / FOLDER).glob("question-*.html")}
    assert names == {"question-q1.html", "question-q2.html"}


def test_a_month_without_a_question_says_why_and_names_its_stages_in_one_line(tmp_path):
    place = published(tmp_path)
    write_month(place.root, MONTH, tasks=0)
    run_stage(REPORT, place, MONTH)
    names = {file.name for file in (place.root.path / FOLDER).iterdir()}
    assert names == {"index.html", "failed.html", "report.json"}
    reason = "CITELOOM_QUESTIONS names no question set."
    assert f"No question was asked: {reason}" in text_of(place, "index.html")
    assert not [key for key in report_tables(place) if key.startswith("answers_")]
    failed = text_of(place, "failed.html")
    assert failed.count(reason) == 1
    assert f"questions, answers, answer grades, answer scores: not run; {reason}" in failed


def test_questions_that_no_system_answered_are_listed_all_the_same(tmp_path):
    place = published(tmp_path, systems=())
    assert "4 questions answered by no system" in text_of(place, "answers.html")
    assert "No system wrote anything" in text_of(place, "question-q1.html")


def test_failures_of_answers_lead_to_their_questions(tmp_path):
    place = published(tmp_path)
    write_ledger(place.root, "answer_grades", MONTH, [("q2 arxivbot", "failed_unreadable", "")])
    write_ledger(place.root, "questions", MONTH, [("q9", "over_the_limit", "")])
    assert state(REPORT, place, MONTH) is State.STALE
    run_stage(REPORT, place, MONTH)
    links = parsed_page(place, "failed.html").css("tbody a")
    leads = {link.text(): link.attributes["href"] for link in links}
    assert leads == {"q2 arxivbot": "question-q2.html", "q1": "question-q1.html"}
    text = text_of(place, "failed.html")
    assert "answer grades failed unreadable 1" in text
    assert "questions over the limit 1" in text
    assert "arXivBot unreadable answer: reflect 1" in text


def test_the_small_model_is_named_where_it_answered(tmp_path):
    place = published(tmp_path, model="smollm2-135m-instruct")
    for name in ("answers.html", "question-q1.html", "index.html"):
        assert "not how good the methods are." in text_of(place, name)
    beside = "not a measure of the methods, as smollm2-135m-instruct wrote or graded"
    assert beside in text_of(place, "answers.html")


def test_a_plain_id_names_its_page_and_ids_that_a_file_system_may_take_for_one_have_pages_of_their_own():
    plain = ["q01", "boats-1", "v1.2_x"]
    assert [question_file(id_) for id_ in plain] == [f"question-{id_}.html" for id_ in plain]
    like_a_file = question_file("Q1").removeprefix("question-").removesuffix(".html")
    ids = ["q1", "Q1", "q1-0123abcd", like_a_file, "a" * 100]
    names = [question_file(id_) for id_ in ids]
    assert len({name.lower() for name in names}) == len(ids)
    assert all(re.fullmatch(r"question-[a-z0-9._-]+\.html", name) for name in names)


def test_a_system_has_one_colour_and_those_made_elsewhere_others():
    systems = ["direct", "b site", "a site", "arxivbot", "wikichat"]
    assert [answering_colour(system, systems) for system in systems] == [2, 6, 5, 1, 3]
    assert answering_colour("z", [f"s{number}" for number in range(20)] + ["z"]) == 8
