"""`citeloom check` on the example draft and the finished sample corpus, and `citeloom cite`."""

import json
import re
import shutil
import subprocess
from collections import Counter
from pathlib import Path
from typing import get_args

import pytest

import citeloom
from drafts.bibliography import correct_bibliography
from drafts.check import check_draft, papers_to_cite
from drafts.citations import Verdict
from drafts.failure_kinds import FAILURES
from drafts.page import sections, write_page
from drafts.reading import read_draft
from drafts.references import Status
from drafts.related_work import relate_draft
from pipeline.corpus.parse.policies import without_markers
from pipeline.engine.stage import Workspace
from pipeline.errors import SettingError
from pipeline.index.opening import close_indexes
from pipeline.index.papers import read_paper
from pipeline.settings import load_settings
from tests.processes import COMMAND, environment_without_settings
from tests.scripted_llm import ScriptedLlm

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "draft"
# The form in which Zotero exports a preprint; its DOI alone says which paper it is.
ZOTERO = """
@misc{halabi_tidepool_2024,
\ttitle = {Tidepool: {A} {Test} {Collection} for {Finding} {Passages} in {Scientific} {Papers}},
\tdoi = {10.48550/arXiv.2403.90001},
\tabstract = {We build a collection, "Tidepool", with 100\\% of its judgements by readers.},
\tpublisher = {arXiv},
\tauthor = {Halabi, Noor and Quintela, Tomás},
\tmonth = mar,
\tyear = {2024},
}

@misc{nowhere,
\ttitle = {A Work That Nobody Wrote},
\tyear = {2001},
}
"""
DRAFT = EXAMPLE / "draft.tex"
FAULTS = json.loads((EXAMPLE / "faults.json").read_text())


@pytest.fixture(scope="module")
def workspace(finished):
    """The finished sample corpus, without an endpoint."""
    with finished.place.entered():
        yield Workspace(load_settings(llm_url=None, llm_model="", _env_file=None))
    close_indexes()


@pytest.fixture(scope="module")
def checked(workspace):
    """The check of the example."""
    return check_draft(workspace, read_draft(DRAFT))


def run_check(finished, *arguments, cwd=None):
    """The command in a process of its own, without settings but the data root."""
    environment = environment_without_settings() | {"CITELOOM_DATA": str(finished.place.root)}
    command = [COMMAND, "check", *arguments]
    return subprocess.run(command, cwd=cwd, env=environment, capture_output=True)


def test_a_paper_is_cited_and_checked_from_python(finished, tmp_path):
    bibliography, draft = tmp_path / "refs.bib", tmp_path / "draft.tex"
    with finished.place.entered(), citeloom.open_corpus(finished.place.root) as corpus:
        (listed,) = corpus.papers(author="Haddad", year=2024)
        paper = listed.paper
        bibliography.write_text(corpus.bibtex([paper.arxiv_id]))
        key = bibliography.read_text().partition("{")[2].partition(",")[0]
        draft.write_text(rf"Drafts are written one reference at a time \cite{{{key}}}.")
        (reference,) = corpus.check(draft, bibliography=bibliography).references
        cited = corpus.cite(paper.title, bibliography=bibliography, limit=3)
    assert (reference.key, reference.status) == (key, "verified")
    assert key in [found.key for found in cited]


def test_every_kind_that_fails_a_check_is_a_status_or_a_verdict():
    statuses = {*get_args(Status)} - {"verified"}
    verdicts = {*get_args(Verdict)} - {"read", "partly", "supported", "not_checked"}
    assert {*FAILURES} == statuses | verdicts | {"missing"}


def test_every_planted_fault_of_a_reference_is_found_and_nothing_else(checked):
    found = {}
    for check in checked.references:
        notes = [note for note in check.notes if "published since" not in note]
        if check.status != "verified" or notes:
            fields = [difference.field for difference in check.differences]
            found[check.key] = (check.status, " ".join([*fields, *notes]))
    assert found.keys() == FAULTS["references"].keys()
    for key, (status, words) in FAULTS["references"].items():
        assert (found[key][0], words in found[key][1]) == (status, True), (key, found)


def test_every_planted_fault_of_a_citation_is_beside_its_sentence_and_one_is_named(checked):
    for place, (verdict, words) in FAULTS["citations"].items():
        assert any(
            check.verdict == verdict and words in check.quote
            for check in checked.citations
            if f"{check.sentence.file}:{check.sentence.line}" == place
        ), place
    verdicts = Counter(check.verdict for check in checked.citations)
    assert verdicts == {"number_not_found": 1, "read": 12, "not_checked": 2}
    assert [key for key, _ in checked.without_entry] == FAULTS["without_entry"]


def test_a_sentence_that_cites_the_wrong_paper_is_not_about_it(workspace, tmp_path):
    sentence = "Late interaction compares every token of a question with every token of a passage"
    (tmp_path / "draft.md").write_text(
        f"---\nbibliography: refs.bib\n---\n{sentence} [@wrong]. {sentence} [@right].\n"
    )
    (tmp_path / "refs.bib").write_text(
        "@misc{right, title={Late Interaction on a Budget}, eprint={2404.90003}}\n"
        "@misc{wrong, title={Resumable Batch Pipelines for Text Corpora}, eprint={2404.90010}}\n"
    )
    checked = check_draft(workspace, read_draft(tmp_path / "draft.md"))
    wrong, right = checked.citations
    assert (wrong.verdict, right.verdict) == ("not_about_paper", "read")
    assert "2404.90003" in wrong.reason
    assert checked.counts()["not_about_paper"] == 1


def test_no_module_of_the_drafts_folder_is_run(finished, tmp_path):
    shutil.copytree(EXAMPLE, tmp_path / "draft")
    for name in ("multiprocessing", "selectors", "signal"):
        (tmp_path / "draft" / f"{name}.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')")
    run_check(finished, "draft.tex", "--json", cwd=tmp_path / "draft")
    assert not (tmp_path / "ran").exists()


def test_a_verdict_leads_to_its_passage(checked, workspace):
    judged = [check for check in checked.citations if check.passage_id]
    assert len(judged) > 10
    for check in judged:
        paper = read_paper(workspace, check.arxiv_id or "")
        (passage,) = [each for each in paper.passages if each.passage_id == check.passage_id]
        assert check.url == passage.url
        text = without_markers(passage.text)
        assert all(line in text for line in check.quote.splitlines())


def test_what_has_no_fault_is_no_row_and_uncited_entries_are_one_sentence(checked):
    citations, references = sections(checked, good=False)
    assert len(citations.grids[0].rows) == len(checked.citations) - 2
    assert any("Not checked" in words for words in citations.paragraphs)
    (grid,) = references.grids
    keys = {row[1] for row in grid.rows}
    assert "halabi2024tidepool" not in keys
    assert "zelinkova2024ledger" not in keys
    assert "zelinkova2024ledger" in references.paragraphs[-1]


def test_the_page_escapes_what_the_draft_says(workspace, tmp_path):
    (tmp_path / "draft.md").write_text("<script>alert(1)</script> is said [@<b>x].\n")
    draft = read_draft(tmp_path / "draft.md")
    page = write_page(check_draft(workspace, draft), tmp_path / "page").read_text()
    assert "<script>alert" not in page
    assert "<b>x" not in page


def test_a_corrected_bibliography_is_verified(workspace, checked, tmp_path):
    target = tmp_path / "mended.bib"
    content, corrected = correct_bibliography(EXAMPLE / "references.bib", checked.references)
    assert corrected == 2
    target.write_bytes(content)
    again = check_draft(workspace, read_draft(DRAFT, target))
    assert not [check for check in again.references if check.status == "differs"]


def test_papers_that_fit_a_paragraph_are_suggested(workspace, tmp_path):
    (tmp_path / "draft.md").write_text(
        "A judge that reads several summaries in a list prefers the first of them more often than"
        " chance would, and shuffling the order in which summaries are read removes most of this"
        " bias of position from its grades.\n"
    )
    check = check_draft(workspace, read_draft(tmp_path / "draft.md"), suggest=True)
    assert check.missing[0].arxiv_id == "2404.90009"
    papers = papers_to_cite(
        workspace, "position bias of judges in graded summaries", EXAMPLE / "references.bib", 3
    )
    assert papers[0].hit.paper.arxiv_id == "2404.90009"
    assert papers[0].bibtex.startswith(f"@misc{{{papers[0].key},")


def test_to_cite_what_fits_comes_first_and_what_does_not_is_marked(finished, workspace):
    fits = [paper.hit.fits for paper in papers_to_cite(workspace, "late interaction", None, 20)]
    assert fits == sorted(fits, reverse=True) != [True] * 20
    assert "SENTENCE draft.tex: " in finished.place.invoke("cite", "draft.tex").stderr
    weak = finished.place.invoke("cite", "gardening of roses in spring").stdout
    assert (weak.count("nearest ·"), "@misc" in weak) == (5, False)


def test_the_command_ends_with_1_on_what_it_was_told_to_fail_on(finished, tmp_path):
    draft = str(DRAFT)
    failing = ("check", draft, "--json", "--fail-on", "number_not_found")
    ended = finished.place.invoke(*failing, "--report", str(tmp_path / "page"))
    assert ended.exit_code == 1, ended.stderr
    assert json.loads(ended.stdout)["without_entry"][0]["key"] == FAULTS["without_entry"][0]
    assert (tmp_path / "page" / "index.html").is_file()
    for kind, words in (
        ("nonsense", "there is no such kind"),
        ("not_about_paper", "judges, so give not_supported"),
    ):
        refused = finished.place.invoke("check", draft, "--fail-on", kind)
        assert (refused.exit_code, words in refused.stderr) == (2, True)
    assert finished.place.invoke("check", "no-such.tex").exit_code == 2
    without_model = run_check(finished, draft, "--fail-on", "contradicted")
    assert without_model.returncode == 2
    assert b"needs a language model" in without_model.stderr


def test_a_model_that_judges_says_contradicted_with_a_quote_of_the_paper(finished):
    def contradict(asked):
        passages = asked.prompt.split("<passages>")[-1].split("</passages>")[0].strip()
        return json.dumps({"quote": passages[:40], "verdict": "contradicted"})

    # A name of its own: the corpus has answers of the scripted model in its cache.
    judge = "judge-that-contradicts"
    with ScriptedLlm(contradict, models=(judge,)) as llm, finished.place.entered():
        place = Workspace(load_settings(llm_url=llm.url, llm_model=judge, _env_file=None))
        check = check_draft(place, read_draft(DRAFT))
    assert {citation.verdict for citation in check.citations} == {"contradicted", "not_checked"}
    assert check.counts()["contradicted"] == len(llm.requests)
    assert "four verdicts" in llm.requests[0]["messages"][0]["content"]


def test_a_section_for_the_draft_cites_its_own_keys(workspace, tmp_path):
    related = relate_draft(workspace, DRAFT, system="notes")
    draft = read_draft(DRAFT)
    assert set(related.keys.values()) <= draft.entries.keys()
    cited = {
        key
        for keys in re.findall(r"\\cite[tp]?\{([^}]*)\}", related.latex)
        for key in keys.split(",")
    }
    assert cited
    assert cited <= set(related.keys.values())
    (note,) = [note for note in related.notes if "not cited, since" in note]
    assert "tidepool" in note


def test_references_by_key_in_zoteros_bibtex_and_by_id(workspace, tmp_path):
    draft, bibliography = tmp_path / "draft.md", tmp_path / "library.bib"

    def relate(*references, bibliography=None):
        return relate_draft(workspace, draft, bibliography, references, "notes")

    bibliography.write_text(ZOTERO)
    draft.write_text("# Passages\n\nWe search passages.\n")
    related = relate("halabi_tidepool_2024", "2403.90002", bibliography=bibliography)
    assert related.keys[1] == "halabi_tidepool_2024"
    assert "eprint = {2403.90002}" in related.bibtex
    with pytest.raises(SettingError, match="--reference nowhere: its paper is not in the corpus"):
        relate("nowhere", bibliography=bibliography)
    with pytest.raises(SettingError, match="no bibliography of it was found"):
        relate()
    draft.write_text(f"---\nbibliography: library.bib\n---\n{draft.read_text()}")
    assert relate().keys[1] == "halabi_tidepool_2024"
