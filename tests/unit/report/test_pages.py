"""The report's pages: inert whatever the texts hold, the same bytes every time, good also where a
month is empty.
"""

import base64
import hashlib
import json
import re
import tomllib
from pathlib import Path

import pytest
from selectolax.lexbor import LexborHTMLParser

from pipeline import tables
from pipeline.corpus.links import abstract_url
from pipeline.engine.run import State, run_stage, state
from pipeline.report.formatting import percent, question_file, task_file
from pipeline.report.publish import write_overall_page
from pipeline.report.rendering import TEMPLATES
from pipeline.report.stages import REPORT
from pipeline.stage_names import RELATED_WORK_SYSTEMS
from tests.cases import cases
from tests.models_file import write_models
from tests.month_tables import write_table
from tests.unit.evaluation.made_up import write_ledger, write_month
from tests.unit.evaluation.made_up_answers import write_answers
from tests.workspaces import make_workspace

pytestmark = pytest.mark.slow

MONTH = "2024-03"
FOLDER = f"reports/{MONTH}"
TASK_PAGE = task_file("2403.90001#S2")
SCRIPT = (TEMPLATES / "sort.js").read_text()

ELEMENTS = tomllib.loads(Path(__file__).with_name("cases.toml").read_text())["elements"]


def built(work):
    """Make the report of MONTH and the page over all months, of tables that are there."""
    run_stage(REPORT, work, MONTH)
    write_overall_page(work)
    return work


def reported(folder, **month):
    """The report of a made-up month, and the page over all months."""
    work = make_workspace(folder)
    write_month(work.root, MONTH, **month)
    return built(work)


def pages(work):
    root = work.root.path
    return {
        file.relative_to(root).as_posix(): file.read_bytes()
        for file in sorted(root.glob("reports/**/*.html"))
    }


def folded(text):
    return " ".join(text.split())


def parsed_page(work, name="index.html"):
    """A page of MONTH by the name of its file."""
    return LexborHTMLParser((work.root.path / FOLDER / name).read_text())


def text_of(work, name="index.html"):
    return folded(parsed_page(work, name).text())


def report_tables(work):
    """The tables of report.json by their keys."""
    return json.loads((work.root.path / FOLDER / "report.json").read_text())["tables"]


def cells(grids, path):
    """The values of a column in the rows of a table that hold all the values between."""
    key, *wanted, column = path.split("/")
    rows = [
        {name: cell["value"] if isinstance(cell, dict) else cell for name, cell in row.items()}
        for row in grids[key]["rows"]
    ]
    chosen = [row for row in rows if {*wanted} <= {*map(str, row.values())}]
    return ["" if row[column] is None else row[column] for row in chosen]


@pytest.fixture(scope="module")
def full_month(tmp_path_factory):
    """The report of a month with all systems, repeats, judges, raters and answers, which tests only
    read.
    """
    work = make_workspace(
        tmp_path_factory.mktemp("full"),
        judges="one",
        llm_model="some-model",
        llm_cutoff="2024-03-03",
    )
    write_month(
        work.root, MONTH, systems=RELATED_WORK_SYSTEMS, judges=("one", "two"), repeats=3, raters=2
    )
    write_answers(work.root, MONTH, judges=("one", "two"))
    return built(work)


def add_large_model(root, table, change=dict):
    """Rows of ChatCite by another model beside those of a month, each changed by a function."""
    rows = root.rows(table, MONTH)
    large = [change(row) | {"model": "large"} for row in rows if row["system"] == "chatcite"]
    in_order = sorted([*rows, *large], key=lambda row: (row["system"], row["model"]))
    write_table(root, table, MONTH, in_order)


def assert_inert(name, page):
    for node in LexborHTMLParser(page.decode()).root.traverse(include_text=False):
        assert node.tag in ELEMENTS or node.tag.startswith("-"), f"{name} has <{node.tag}>"
        for attribute, value in node.attributes.items():
            assert not attribute.lower().startswith("on"), f"{name}: {node.tag} has {attribute}"
            assert attribute not in {"style", "src", "srcdoc", "action", "formaction"}, (
                f"{name}: {attribute}"
            )
            if attribute == "href":
                assert re.match(
                    r"(\w[\w.-]*(/index)?\.html)?#[\w-]+$|https://(arxiv|ar5iv\.labs\.arxiv)\.org/(abs|html)/[\w.%/#~-]*$|"
                    r"(\.\./)?[\w.-]+(/[\w.-]+)?\.html$|report\.(md|json)$",
                    value,
                ), value
        if node.tag == "script":
            assert node.text() == SCRIPT
        if node.tag == "meta":
            assert (
                node.attributes.get("http-equiv") or "Content-Security-Policy"
            ) == "Content-Security-Policy"


def test_a_page_allows_its_own_style_sheet_and_a_script_only_where_a_table_is_sorted(full_month):
    for name, page in pages(full_month).items():
        parsed = LexborHTMLParser(page.decode())
        (style,), scripts = (
            [
                base64.b64encode(hashlib.sha256(each.text().encode()).digest()).decode()
                for each in parsed.css(tag)
            ]
            for tag in ("style", "script")
        )
        assert len(scripts) == bool(parsed.css("table.sortable")), name
        policy = (
            f"default-src 'none'; style-src 'sha256-{style}'; base-uri 'none'; form-action 'none'"
        )
        policy += "".join(f"; script-src 'sha256-{script}'" for script in scripts)
        assert parsed.css_first("meta[http-equiv]").attributes["content"] == policy


def test_the_table_names_each_file_of_the_month_with_its_hash(full_month):
    root = full_month.root
    rows = {row["path"]: row for row in root.rows(tables.REPORT, MONTH)}
    files = (root.path / FOLDER).iterdir()
    written = {file.relative_to(root.path).as_posix(): file.read_bytes() for file in files}
    names = {"report.json", "failed.html", "index.html", "answers.html", "question-q1.html"}
    assert names < {Path(name).name for name in written}
    assert {name: (row["bytes"], row["sha256"]) for name, row in rows.items()} == {
        name: (len(page), hashlib.sha256(page).hexdigest()) for name, page in written.items()
    }


def test_a_page_that_is_gone_or_changed_is_written_again(tmp_path):
    work = reported(tmp_path)
    before, page = pages(work), tmp_path / FOLDER / "index.html"
    content = page.read_bytes()
    page.write_bytes(content)
    assert state(REPORT, work, MONTH) is State.DONE, "newer than its table, as in a copied root"
    # The other content has the same size, so that nothing else tells them apart.
    for changed in (None, content.replace(b"March", b"mArch")):
        page.unlink() if changed is None else page.write_bytes(changed)
        assert state(REPORT, work, MONTH) is State.STALE
        assert pages(built(work)) == before


def test_prices_ratings_and_ledgers_that_changed_make_the_report_out_of_date(tmp_path):
    work = reported(tmp_path)
    assert state(REPORT, make_workspace(tmp_path, llm_price="1/0"), MONTH) is State.STALE
    write_month(work.root, MONTH, raters=1)
    assert state(REPORT, work, MONTH) is State.STALE
    run_stage(REPORT, work, MONTH)
    assert state(REPORT, work, MONTH) is State.DONE
    write_ledger(work.root, "passages", MONTH, [("2403.90001", "too_short", "3 words")])
    assert state(REPORT, work, MONTH) is State.STALE


def test_every_link_within_the_report_leads_to_a_page_or_to_the_one_place_of_its_name(full_month):
    root = full_month.root.path
    parsed = {
        (root / name).resolve(): LexborHTMLParser(page.decode())
        for name, page in pages(full_month).items()
    }
    assert len(parsed) == 3 + 2 * 2 + 1 + 4
    for file, page in parsed.items():
        ids = [node.attributes["id"] for node in page.css("[id]")]
        assert len(ids) == len(set(ids)), file.name
        for link in page.css("a"):
            target, _, place = link.attributes["href"].partition("#")
            if not target.startswith("https:"):
                leads_to = file.parent.joinpath(target).resolve() if target else file
                assert leads_to.is_file(), target
                assert not place or parsed[leads_to].css_first(f"[id='{place}']") is not None, (
                    file.name,
                    place,
                )


def test_the_overall_index_has_all_months_and_is_the_same_whichever_is_written_last(tmp_path):
    work = make_workspace(tmp_path)
    for month in ("2024-02", MONTH):
        write_month(work.root, month)
    write_table(
        work.root, tables.DUMP_MEMBERS, "2024-04", [{"arxiv_id": "2404.90001", "subset": "error"}]
    )
    seen = set()
    for month in ("2024-02", MONTH, "2024-02"):
        run_stage(REPORT, work, month, force=True)
        write_overall_page(work)
        seen.add((tmp_path / "reports/index.html").read_text())
    (page,) = map(LexborHTMLParser, seen)
    links = [link.attributes["href"] for link in page.css("tbody a")]
    assert links[:2] == ["2024-02/index.html", "2024-03/index.html"]
    assert not [link for link in links if "2024-04" in link]
    assert "April 2024 not finished" in folded(page.text())


def test_pages_of_tasks_and_questions_that_are_no_more_go_away(tmp_path):
    for number in (2, 1):
        write_answers(reported(tmp_path, tasks=number).root, MONTH, questions=2 * number)
        work = built(make_workspace(tmp_path))
        names = [name.rpartition("/")[2].partition("-")[0] for name in pages(work)]
        assert (names.count("task"), names.count("question")) == (2 * number, 2 * number)
    # The questions of a month are written with its other tables, none by default.
    work = reported(tmp_path, tasks=0)
    names = {file.name for file in (work.root.path / FOLDER).iterdir()}
    assert names == {"index.html", "failed.html", "report.json"}
    reason = "CITELOOM_QUESTIONS names no question set."
    assert f"No question was asked: {reason}" in text_of(work)
    assert not [key for key in report_tables(work) if key.startswith("answers_")]
    not_run = f"questions, answers, answer grades, answer scores: not run; {reason}"
    assert not_run in text_of(work, "failed.html")


def test_an_imported_system_may_be_called_anything(tmp_path):
    name = 'a"><script>alert(1)</script> site #1'
    work = make_workspace(tmp_path)
    write_month(work.root, MONTH, tasks=0)
    write_answers(work.root, MONTH, systems=("direct", name))
    for file, content in pages(built(work)).items():
        assert_inert(file, content)
    shown = parsed_page(work, "question-q1.html")
    assert shown.css_first("#answer-1 h3").text().strip() == name


def test_a_task_and_a_question_have_pages_of_their_own_names_which_stay_in_their_folder():
    tasks = ["../../etc/passwd", "a" * 500, "", "2403.90001#S2", "2403.90001/S2", "x\x00/y"]
    names = {task_file(task_id) for task_id in tasks}
    assert len(names) == len(tasks)
    assert all(re.fullmatch(r"task-[A-Za-z0-9.-]{0,60}-[0-9a-f]{8}\.html", name) for name in names)
    assert question_file("v1.2_x") == "question-v1.2_x.html"
    # A file system may take some of these for one.
    like_a_file = question_file("Q1").removeprefix("question-").removesuffix(".html")
    ids = ["q1", "Q1", "q1-0123abcd", like_a_file, "a" * 100]
    names = {question_file(id_).lower() for id_ in ids}
    assert len(names) == len(ids)
    assert all(re.fullmatch(r"question-[a-z0-9._-]+\.html", name) for name in names)


@cases("unit/report/cases.toml", "identifiers")
def test_an_identifier_never_leads_off_arxiv(case):
    assert re.fullmatch(r"https://arxiv\.org/abs/[\w%./~-]*", abstract_url(case))


def test_shares_are_not_rounded_to_all_or_nothing():
    shares = [percent(share) for share in (0.0, 0.001, 0.5, 0.999, 1.0)]
    assert shares == ["0 %", "under 1 %", "50 %", "over 99 %", "100 %"]


def test_page_and_json_tell_the_same_numbers(full_month):
    told = report_tables(full_month)
    shown = {
        node.attributes["aria-label"]: node
        for name in ("index.html", "answers.html")
        for node in parsed_page(full_month, name).css("div.scroll")
    }
    assert "answers_cost" in told
    for key in told.keys() - {"failed"}:
        on_page = shown[told[key]["title"]]
        assert len(on_page.css("tbody tr:not(.group)")) == len(told[key]["rows"]), key
    fluency = told["criteria"]["rows"][0]["Fluency"]
    assert f"{fluency['value']:.2f}" in folded(shown[told["criteria"]["title"]].text())


def test_two_models_of_one_system_have_rows_and_sections_of_their_own_and_are_compared(tmp_path):
    work = make_workspace(tmp_path)
    write_month(work.root, MONTH, model="small", tasks=3)
    add_large_model(work.root, tables.SCORES, lambda row: row | {"value": row["value"] + 1})
    for table in (tables.SUMMARIES, tables.CITATION_SUPPORT):
        add_large_model(work.root, table)
    grids = report_tables(built(work))
    ours = [cells(grids, f"table_1/Ours/{column}") for column in ("System", "Model")]
    systems = ["zero-shot", "ChatCite (large)", "ChatCite (small)"]
    assert ours == [systems, ["small", "large", "small"]]
    columns = ("System", "Less", "R-1", "Common tasks")
    between = [cells(grids, f"differences/Between models of one system/{name}") for name in columns]
    assert between == [["ChatCite (large)"], ["ChatCite (small)"], [1.0], [3]]
    assert cells(grids, "differences/From ChatCite (small)/Less") == ["ChatCite (small)"] * 2
    page = parsed_page(work, TASK_PAGE)
    sections = [article.attributes.get("id") for article in page.css("article")]
    assert sections == [None, "chatcite@large", "chatcite@small", "zero_shot"]


PAGES = {"task": TASK_PAGE, "written": task_file("2403.90001#S2", "-written")}


def report_of(folder, case):
    """The report of a case, and the page over all months."""
    settings = dict(case.get("settings", {}))
    if "models" in case:
        models = dict(case["models"])
        url = "http://127.0.0.1:9/v1"
        settings["models"] = write_models(folder / "set", url, *models.pop("names"), **models)
    work = make_workspace(folder, **settings)
    for month in ("2024-02", MONTH) if "earlier" in case else (MONTH,):
        write_month(work.root, month, **case["month"])
        if "answers" in case:
            write_answers(work.root, month, **case["answers"])
    for name, change in case.get("changes", {}).items():
        change = {column: None if value == "" else value for column, value in change.items()}
        rows = [row | change for row in work.root.rows(tables.TABLES[name], MONTH)]
        write_table(work.root, tables.TABLES[name], MONTH, rows)
    for stage, rows in case.get("ledgers", {}).items():
        write_ledger(work.root, stage, MONTH, rows)
    return built(work)


def selected(page, selector):
    """The texts of nodes of a page, or of an attribute of theirs, each once."""
    selector, _, attribute = selector.partition(" @")
    nodes = page.css(selector)
    texts = [node.attributes.get(attribute, "") if attribute else node.text() for node in nodes]
    return list(dict.fromkeys(map(folded, texts)))


@cases("unit/report/months.toml")
def test_a_report_shows_what_its_month_holds(tmp_path, case):
    work = report_of(tmp_path, case)
    for key, are_there in (("says", True), ("lacks", False)):
        for name, words in case.get(key, {}).items():
            text = text_of(work, PAGES.get(name, name))
            assert [each for each in words if (each in text) is not are_there] == [], name
    for name, expected in case.get("shows", {}).items():
        page = parsed_page(work, PAGES.get(name, name))
        assert {selector: selected(page, selector) for selector in expected} == expected, name
    grids = report_tables(work)
    for path, expected in case.get("cells", {}).items():
        values = expected if isinstance(expected, list) else [expected]
        assert cells(grids, path) == pytest.approx(values), path
    assert grids.keys().isdisjoint(case.get("no_tables", ()))


def test_leaderboards_can_be_sorted(tmp_path):
    work = make_workspace(tmp_path)
    write_month(work.root, MONTH)
    write_answers(work.root, MONTH)
    leaderboards = parsed_page(built(work), "../index.html").css("table.sortable")
    assert len(leaderboards) == 2
    for table in leaderboards:
        heads = len(table.css("thead th"))
        assert all(len(row.css("[data-sort]")) == heads for row in table.css("tbody tr"))


@pytest.mark.parametrize("table", [tables.PAPERS, tables.SCORES, tables.ANSWER_GRADES])
def test_a_broken_table_of_another_month_is_told_and_stops_nothing(tmp_path, table):
    work = make_workspace(tmp_path)
    for month in ("2024-02", MONTH):
        write_month(work.root, month)
        write_answers(work.root, month)
    work.root.file(table, "2024-02").write_bytes(b"torn")
    text = text_of(built(work), "../index.html")
    assert "has tables that cannot be read" in text
    assert "4 questions on 2 papers" in text
