"""The report's pages: inert whatever the texts hold, the same bytes every time, good also where a month is empty."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from selectolax.lexbor import LexborHTMLParser, LexborNode

from pipeline import tables
from pipeline.evaluation.report import abs_url, month_name, percent, task_file
from pipeline.evaluation.stages import REPORT
from pipeline.stages import Job, State, Workspace, run_stage, state
from tests.unit.evaluation.made_up import same, summary, task, workspace, write_ledger, write_month, write_table

MONTH = "2024-03"

HOSTILE = (
    "<script>alert(1)</script>",
    "</title><script>alert(1)</script>",
    "</style><script>alert(1)</script>",
    "</summary></details><script src=//evil.example/x.js></script>",
    "<img src=x onerror=alert(1)>",
    "<svg onload=alert(1)>",
    "<svg><script>alert(1)</script></svg>",
    "<iframe src=javascript:alert(1)></iframe>",
    "<a href=javascript:alert(1)>click</a>",
    "[click](javascript:alert(1))",
    "![pixel](https://evil.example/p.png)",
    "<body onload=alert(1)>",
    "<input autofocus onfocus=alert(1)>",
    "<details open ontoggle=alert(1)>",
    "<math><mtext><table><mglyph><style><img src=x onerror=alert(1)></style></mglyph></table></mtext></math>",
    "\" onmouseover=\"alert(1)\" x=\"",
    "' onmouseover='alert(1)' x='",
    "{{ 7 * 7 }} {% raw %}{{ config }}{% endraw %}",
    "{{ ''.__class__.__mro__ }}",
    "<!--<img src=x onerror=alert(1)>-->",
    "<![CDATA[<script>alert(1)</script>]]>",
    "&lt;script&gt;alert(1)&lt;/script&gt;",
    "&#106;avascript:alert(1)",
    "<base href=https://evil.example/>",
    "<meta http-equiv=refresh content=0;url=https://evil.example/>",
    "<link rel=stylesheet href=https://evil.example/x.css>",
    "<form action=https://evil.example/><button>Go</button></form>",
    "<style>*{background:url(https://evil.example/)}</style>",
    "<object data=data:text/html,<script>alert(1)</script>></object>",
    "[Reference 1](javascript:alert(1)) [Reference \"><script>alert(1)</script>]",
    "<xmp><script>alert(1)</script></xmp><plaintext>",
    "javascript:alert(1)",
)  # fmt: skip

_ELEMENTS = {
    "html", "head", "meta", "title", "style", "body", "header", "nav", "main", "footer", "a", "span", "h1", "h2", "h3",
    "h4", "p", "b", "bdi", "ul", "ol", "li", "dl", "dt", "dd", "div", "section", "article", "figure", "figcaption",
    "svg", "rect", "table", "thead", "tbody", "tr", "th", "td", "details", "summary",
}  # fmt: skip


def built(folder: Path) -> Workspace:
    """The report of MONTH, over tables that are there."""
    work = workspace(folder)
    run_stage(REPORT, work, MONTH)
    return work


def pages(work: Workspace) -> dict[str, bytes]:
    root = work.root.path
    return {file.relative_to(root).as_posix(): file.read_bytes() for file in sorted(root.glob("reports/**/*.html"))}


def nodes(page: bytes) -> Iterator[LexborNode]:
    top = LexborHTMLParser(page.decode()).root
    assert top is not None
    return top.traverse(include_text=False)


def folded(text: str) -> str:
    return " ".join(text.split())


@pytest.mark.parametrize("payload", HOSTILE)
def test_a_hostile_text_is_shown_and_does_nothing(tmp_path: Path, payload: str) -> None:
    write_month(workspace(tmp_path).root, MONTH, text=lambda text: f"{payload} {text}", tasks=1, papers=2)
    for name, page in pages(built(tmp_path)).items():
        assert_inert(name, page)
    shown = {name: LexborHTMLParser(page.decode()).text() for name, page in pages(built(tmp_path)).items()}
    page = f"reports/{MONTH}/{task_file('2403.90001#S2')}"
    for name in (page, f"reports/{MONTH}/index.html"):
        assert folded(f"{payload} Learned Weights for Retrieval") in folded(shown[name])
    assert folded(f"{payload} Sparse retrieval") in folded(shown[page])
    assert folded(f"{payload} Draft 2. Sparse retrieval") in folded(shown[page])
    assert folded(f"{payload} Cited Work 2: A Study") in folded(shown[page])
    assert folded(f"{payload} The paper's limitations") in folded(shown[page])


def assert_inert(name: str, page: bytes) -> None:
    for node in nodes(page):
        assert node.tag in _ELEMENTS or node.tag.startswith("-"), f"{name} has <{node.tag}>"
        for attribute, value in node.attributes.items():
            assert not attribute.lower().startswith("on"), f"{name}: {node.tag} has {attribute}"
            assert attribute not in {"style", "src", "srcdoc", "action", "formaction"}, f"{name}: {attribute}"
            if attribute == "href":
                assert re.match(
                    r"#reference-\d+$|https://arxiv\.org/abs/|(\.\./)?[\w.-]+(/[\w.-]+)?\.html$", value or ""
                )
        if node.tag == "meta":
            assert (node.attributes.get("http-equiv") or "Content-Security-Policy") == "Content-Security-Policy"


def test_a_page_allows_its_own_style_sheet_and_nothing_else(tmp_path: Path) -> None:
    write_month(workspace(tmp_path).root, MONTH)
    for page in pages(built(tmp_path)).values():
        parsed = LexborHTMLParser(page.decode())
        style = parsed.css("style")
        assert len(style) == 1
        digest = base64.b64encode(hashlib.sha256(style[0].text().encode()).digest()).decode()
        policy = parsed.css_first("meta[http-equiv]").attributes["content"]
        assert policy == f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"


def test_two_builds_give_the_same_bytes(tmp_path: Path) -> None:
    for folder in ("one", "two"):
        write_month(workspace(tmp_path / folder).root, MONTH)
    one, two = built(tmp_path / "one"), built(tmp_path / "two")
    assert pages(one) == pages(two)
    first = pages(one)
    run_stage(REPORT, one, MONTH, force=True)
    assert pages(one) == first
    assert one.root.rows(tables.REPORT, MONTH) == two.root.rows(tables.REPORT, MONTH)


def test_the_table_names_each_file_of_the_month_with_its_hash(tmp_path: Path) -> None:
    write_month(workspace(tmp_path).root, MONTH)
    work = built(tmp_path)
    rows = {row["path"]: row for row in work.root.rows(tables.REPORT, MONTH)}
    written = {name: page for name, page in pages(work).items() if name != "reports/index.html"}
    assert list(rows) == sorted(written)
    for name, page in written.items():
        assert (rows[name]["bytes"], rows[name]["sha256"]) == (len(page), hashlib.sha256(page).hexdigest())


@pytest.mark.parametrize("name", ["reports/index.html", f"reports/{MONTH}/index.html"])
def test_a_page_that_is_gone_is_written_again(tmp_path: Path, name: str) -> None:
    write_month(workspace(tmp_path).root, MONTH)
    work = built(tmp_path)
    before = pages(work)
    assert state(REPORT, work, MONTH) is State.DONE
    (tmp_path / name).unlink()
    assert state(REPORT, work, MONTH) is State.STALE
    assert pages(built(tmp_path)) == before


def test_a_page_that_was_changed_is_written_again(tmp_path: Path) -> None:
    write_month(workspace(tmp_path).root, MONTH)
    work = built(tmp_path)
    before = pages(work)
    (tmp_path / f"reports/{MONTH}/index.html").write_text("torn")
    assert state(REPORT, work, MONTH) is State.STALE
    assert pages(built(tmp_path)) == before


def test_a_ledger_that_changed_makes_the_report_out_of_date(tmp_path: Path) -> None:
    write_month(workspace(tmp_path).root, MONTH)
    work = built(tmp_path)
    write_ledger(work.root, "passages", MONTH, [("2403.90001", "too_short", "3 words")])
    assert state(REPORT, work, MONTH) is State.STALE


def test_pages_of_tasks_that_are_no_more_go_away(tmp_path: Path) -> None:
    write_month(workspace(tmp_path).root, MONTH, tasks=2)
    assert len(pages(built(tmp_path))) == 4
    write_month(workspace(tmp_path).root, MONTH, tasks=1)
    assert len(pages(built(tmp_path))) == 3


def test_every_link_within_the_report_leads_to_a_page_or_a_place(tmp_path: Path) -> None:
    root = workspace(tmp_path).root
    write_month(root, MONTH)
    work = built(tmp_path)
    for name, page in pages(work).items():
        parsed = LexborHTMLParser(page.decode())
        for link in parsed.css("a"):
            target = link.attributes["href"] or ""
            if target.startswith("#"):
                assert "Reference" in link.text() or link.text().isdigit()
                assert parsed.css_first(f"[id='{target[1:]}']") is not None
            elif not target.startswith("https:"):
                assert (tmp_path / name).parent.joinpath(target).resolve().is_file()


def test_a_citation_of_a_reference_that_the_task_lacks_is_no_link(tmp_path: Path) -> None:
    write_month(workspace(tmp_path).root, MONTH, tasks=1)
    page = pages(built(tmp_path))[f"reports/{MONTH}/{task_file('2403.90001#S2')}"].decode()
    assert "#reference-7" not in page
    assert LexborHTMLParser(page).css_first(".unknown").text() == "[Reference 7]"


def test_a_month_without_a_task_says_why(tmp_path: Path) -> None:
    write_month(workspace(tmp_path).root, MONTH, tasks=0)
    text = folded(LexborHTMLParser(pages(built(tmp_path))[f"reports/{MONTH}/index.html"].decode()).text())
    assert "There is no related-work task in this month." in text
    assert "no related work section (4)" in text


def test_a_month_without_a_paper_says_what_was_left_out(tmp_path: Path) -> None:
    write_month(workspace(tmp_path).root, MONTH, tasks=0, papers=0)
    text = folded(LexborHTMLParser(pages(built(tmp_path))[f"reports/{MONTH}/index.html"].decode()).text())
    assert "No paper of this month was kept" in text
    assert "not in categories (1), withdrawn (1)" in text


def test_a_month_that_nobody_judged_shows_rouge_and_says_so(tmp_path: Path) -> None:
    write_month(workspace(tmp_path).root, MONTH, judged=False)
    text = folded(LexborHTMLParser(pages(built(tmp_path))[f"reports/{MONTH}/index.html"].decode()).text())
    assert "Nothing was judged: unreadable judgement (2)." in text
    assert "ROUGE-1" in text


@pytest.mark.parametrize(("model", "said"), [("smollm2-135m-instruct", True), ("a-large-model", False)])
def test_the_small_model_is_named_where_it_wrote(tmp_path: Path, model: str, said: bool) -> None:
    write_month(workspace(tmp_path).root, MONTH, model=model)
    for page in pages(built(tmp_path)).values():
        assert ("They do not show how good the method is." in folded(page.decode())) is said


def test_the_overall_index_has_all_months_and_no_link_to_an_unfinished_one(tmp_path: Path) -> None:
    root = workspace(tmp_path).root
    write_month(root, "2024-02")
    write_month(root, MONTH)
    write_table(root, tables.DUMP_MEMBERS, "2024-04", [{"arxiv_id": "2404.90001", "subset": "error"}])
    built(tmp_path)
    parsed = LexborHTMLParser((tmp_path / "reports/index.html").read_text())
    links = [link.attributes["href"] for link in parsed.css("tbody a")]
    assert links[:2] == ["2024-02/index.html", "2024-03/index.html"]
    assert "April 2024 not finished" in folded(parsed.text())


def test_the_overall_index_is_the_same_whichever_month_is_written_last(tmp_path: Path) -> None:
    root = workspace(tmp_path).root
    for month in ("2024-02", MONTH):
        write_month(root, month)
    work = workspace(tmp_path)
    seen = set()
    for month in ("2024-02", MONTH, "2024-02"):
        run_stage(REPORT, work, month, force=True)
        seen.add((tmp_path / "reports/index.html").read_bytes())
    assert len(seen) == 1


def test_another_months_broken_table_does_not_stop_the_report(tmp_path: Path) -> None:
    root = workspace(tmp_path).root
    for month in ("2024-02", MONTH):
        write_month(root, month)
    root.file(tables.SCORES, "2024-02").write_bytes(b"torn")
    built(tmp_path)
    assert "has tables that cannot be read" in (tmp_path / "reports/index.html").read_text()


def test_rows_do_not_come_before_the_files_are_there(tmp_path: Path) -> None:
    work = workspace(tmp_path)
    write_month(work.root, MONTH)
    rows = iter(REPORT.build(Job(work, MONTH, REPORT)))
    next(rows)
    assert len(pages(work)) == 4


@pytest.mark.parametrize("task_id", ["../../etc/passwd", "a" * 500, "cs/9901001#S2", "", "2403.90001#S2", "x\x00/y"])
def test_a_task_page_has_a_name_that_stays_in_its_folder(task_id: str) -> None:
    assert re.fullmatch(r"task-[A-Za-z0-9.-]{0,60}-[0-9a-f]{8}\.html", task_file(task_id))
    assert ".." not in task_file(task_id) or "/" not in task_file(task_id)


def test_two_tasks_never_share_a_page() -> None:
    assert task_file("2403.90001#S2") != task_file("2403.90001/S2")


@pytest.mark.parametrize("identifier", ["javascript:alert(1)", '2403.1" onclick="x', "//evil.example", "x y?z#f"])
def test_an_identifier_never_leads_off_arxiv(identifier: str) -> None:
    assert re.fullmatch(r"https://arxiv\.org/abs/[\w%./~-]*", abs_url(identifier))


def test_shares_are_not_rounded_to_all_or_nothing() -> None:
    assert [percent(share) for share in (0.0, 0.001, 0.5, 0.999, 1.0)] == [
        "0 %", "under 1 %", "50 %", "over 99 %", "100 %",
    ]  # fmt: skip


def test_a_month_is_called_by_its_name() -> None:
    assert month_name("2024-03") == "March 2024"


def test_made_up_tasks_have_the_columns_of_the_table() -> None:
    assert task("2403.90001", same).keys() == set(tables.RELATED_WORK_TASKS.schema.names)


def test_a_task_of_a_file_and_works_outside_the_corpus_are_told_as_such(tmp_path: Path) -> None:
    place = workspace(tmp_path)
    write_month(place.root, MONTH, papers=1, tasks=0)
    row = task("2403.90001")
    first, second, third = row["references"]
    told = {"source": "item", "text": "As printed."}
    row |= {
        "task_id": "mine-1", "arxiv_id": None,
        "references": [first, second | {"source": "abstract"}, third | {"arxiv_id": None} | told],
    }  # fmt: skip
    at_once = {"reference": 3, "drafts": [{"choice": 1, "parent": 0, "text": "One."}], "tallies": [0], "kept": [1]}
    trace = json.dumps({"at_once": True, "rounds": [at_once | {"votes": [], "cut": False}]})
    write_table(place.root, tables.RELATED_WORK_TASKS, MONTH, [row])
    write_table(place.root, tables.SUMMARIES, MONTH, [summary(row, "chatcite_no_incremental") | {"trace": trace}])
    run_stage(REPORT, place, MONTH)
    page = next(content for name, content in pages(place).items() if "mine-1" in name).decode()
    assert "a task of a file" in page
    assert page.count("abstract alone") == page.count("bibliography item alone") == 1
    assert "All references: 1 draft, 0 votes" in page
    assert "Nobody voted." in page
    assert "/abs/None" not in page
