"""Drafts of many forms: what they cite, their bibliographies, and what is not understood."""

import pytest

import drafts
from drafts.bibliography import correct_bibliography
from drafts.draft import describe_problems
from drafts.reading import read_draft
from drafts.references import ReferenceCheck
from pipeline.arxiv.record import Record
from pipeline.engine.process_pool import stop_idle_workers
from tests.cases import cases
from tests.unit.test_patterns import slow_patterns


def printed(entry):
    return f"{entry.title} | {', '.join(entry.authors)} | {entry.year} | {entry.venue}"


@cases("drafts/drafts.toml")
def test_a_draft_is_read_whole(tmp_path, case):
    folder = tmp_path / case.get("folder", "")
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in case.get("files", {}).items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(content)
    main = folder / f"main{case.get('suffix', '.tex')}"
    main.write_text(case["text"])
    draft = read_draft(main)
    assert [key for sentence in draft.sentences for key in sentence.keys] == case["keys"]
    assert draft.packages == set(case.get("packages", draft.packages))
    expected = case.get("entries", {})
    assert {key: printed(draft.entries[key]) for key in expected} == expected
    sentences = describe_problems(draft.problems)
    problems = [each for each in sentences if "no bibliography was found" not in each]
    assert len(problems) == len(case["problems"]), problems
    for words in case["problems"]:
        assert any(words in problem for problem in problems), problems


def test_a_corrected_bibliography_differs_in_the_corrected_fields_alone(tmp_path):
    kept = '@string{j = "Journal"}\r\n% Müller\r\n@misc{b, title="T", journal = j # {x}, url={a}, url={b}}\r\n'
    entry = "@article{A,\r\n title = {%s},\r\n year = %s, note={}, author = j }\r\n"
    (tmp_path / "refs.bib").write_bytes((kept + entry % ("Old", 2011)).encode("latin-1"))
    corrections = {"title": "{New & old}", "year": "2021", "author": "Ann Lee"}
    record = Record("2101.00001")
    check = ReferenceCheck("a", "differs", record=record, corrections=corrections)
    expected = kept + entry % ("{New \\& old}", 2021)
    assert correct_bibliography(tmp_path / "refs.bib", [check]) == (expected.encode("latin-1"), 1)


def test_of_a_library_the_cited_entries_alone_are_read(tmp_path):
    entries = (f"@misc{{k{number}, title={{T}}, crossref={{p}}}}\n" for number in range(1_000))
    library = "".join(entries) + "@proceedings{p, title={Proceedings}}"
    (tmp_path / "library.bib").write_text(library)
    (tmp_path / "main.tex").write_text("\\cite{k7} \\bibliography{library}")
    draft = read_draft(tmp_path / "main.tex")
    assert printed(draft.entries["k7"]) == "T |  | None | Proceedings"
    assert len(draft.entries) == 1
    assert "1,000 entries are never cited" in draft.problems[0].message


def test_a_bibliography_is_found_in_the_working_folder_of_the_reader(tmp_path, monkeypatch):
    """Also by a worker that was started in another folder, which is gone."""
    stop_idle_workers()
    gone = tmp_path / "gone"
    draft = tmp_path / "thesis/chapters/main.tex"
    for folder in (gone, draft.parent):
        folder.mkdir(parents=True)
    draft.write_text("\\cite{a} \\bibliography{../refs}")
    (tmp_path / "thesis/refs.bib").write_text("@misc{a, title={T}}")
    monkeypatch.chdir(gone)
    assert list(read_draft(draft).entries) == []
    gone.rmdir()
    assert list(read_draft(draft).entries) == []
    monkeypatch.chdir(tmp_path / "thesis")
    assert list(read_draft(draft).entries) == ["a"]


@pytest.mark.slow
def test_the_time_of_every_pattern_grows_linearly():
    assert slow_patterns(drafts) == {}
