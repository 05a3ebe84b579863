"""Reading drafts of many forms: what they cite, their bibliographies, what is not understood, and hostile
files.
"""

from itertools import pairwise

import pytest

import drafts
from drafts.bibliography import correct_bibliography
from drafts.draft import LARGEST_FILE_BYTES, describe_problems
from drafts.reading import read_bibliography, read_draft
from drafts.references import ReferenceCheck
from pipeline.arxiv.record import Record
from pipeline.corpus.citation_formats import entries_of
from pipeline.engine.process_pool import stop_idle_workers
from pipeline.errors import SettingError
from tests.cases import cases, cases_beside
from tests.unit.corpus.test_citation_formats import PAPER, REFERENCE, TITLE, WORKS
from tests.unit.test_patterns import slow_patterns

pytestmark = pytest.mark.slow

BIB = """
@article{lee2020, title = {On {K}eys}, author = {Lee, Ann and Roe, B{\\'o}}, journal = {Journal of Keys}, year = 2020}
@misc{roe2021, title = {Locks}, author = {Bo Roe and others}, eprint = {2101.00001v2}, archivePrefix = {arXiv}}
"""


def latex(folder, body, **files):
    (folder / "refs.bib").write_text(BIB)
    for name, content in files.items():
        (folder / f"{name}.tex").write_text(content)
    main = folder / "main.tex"
    main.write_text(
        f"\\documentclass{{article}}\n\\begin{{document}}\n{body}\n\\bibliography{{refs}}\n\\end{{document}}"
    )
    return read_draft(main)


def sentences(draft):
    return [(sentence.readable, sentence.keys, sentence.line) for sentence in draft.sentences]


def test_sentences_keep_their_citations_and_lines(tmp_path):
    draft = latex(
        tmp_path,
        "Keys open~\\citep[see][p.~3]{lee2020}. \\emph{Locks} do not\n\\cite{lee2020,roe2021}.",
    )
    assert sentences(draft) == [
        ("Keys open [lee2020].", ("lee2020",), 3),
        ("Locks do not [lee2020, roe2021].", ("lee2020", "roe2021"), 4),
    ]
    assert draft.sentences[0].claim("lee2020") == "Keys open."


def test_files_of_the_project_are_read_where_they_are_included(tmp_path):
    draft = latex(
        tmp_path,
        "\\input{part}",
        part="\n\\newcommand{\\ours}{Keyring}\\ours{} opens \\cite{lee2020}.",
    )
    (sentence,) = draft.sentences
    assert (sentence.file, sentence.line, sentence.readable) == (
        "part.tex",
        2,
        "Keyring opens [lee2020].",
    )


def test_nothing_outside_of_the_project_is_read(tmp_path):
    (tmp_path / "secret.tex").write_text("secret \\cite{lee2020}.")
    project = tmp_path / "project"
    project.mkdir()
    draft = latex(project, "\\input{/etc/passwd} \\input{../secret} \\input{missing}")
    assert draft.sentences == []
    assert len(draft.problems) == 3
    assert draft.problems[0].line == 3


def test_two_citations_of_a_sentence_have_a_claim_each(tmp_path):
    (sentence,) = latex(
        tmp_path,
        "Keys of brass wear out soon \\cite{lee2020}, while locks of iron last for years"
        " \\cite{roe2021}.",
    ).sentences
    assert sentence.claim("lee2020") == "Keys of brass wear out soon"
    assert sentence.claim("roe2021") == "while locks of iron last for years"


def test_exported_bibtex_is_read_back(tmp_path):
    (tmp_path / "works.bib").write_text(entries_of(WORKS))
    paper, reference = read_bibliography(tmp_path / "works.bib").entries.values()
    assert (paper.title, paper.arxiv_id) == (TITLE, PAPER.arxiv_id)
    assert (reference.title, reference.doi) == (REFERENCE.raw, REFERENCE.doi)


def test_broken_and_duplicate_entries_are_named(tmp_path):
    (tmp_path / "bad.bib").write_text(
        "@article{a, title={One}}\n@article{a, title={Two}}\n@misc{b, title={Three\n"
    )
    (tmp_path / "main.tex").write_text("\\cite{a}")
    draft = read_draft(tmp_path / "main.tex", tmp_path / "bad.bib")
    assert draft.entries["a"].title == "One"
    assert draft.duplicate_keys == ["a"]
    assert (draft.problems[0].file, draft.problems[0].line) == ("bad.bib", 3)


def test_markdown_with_citations_of_pandoc(tmp_path):
    (tmp_path / "refs.bib").write_text(BIB)
    (tmp_path / "draft.md").write_text(
        "---\nbibliography: refs.bib\n---\n# Keys\n\nKeys **open** [see @lee2020, p. 3; @roe2021]."
        " As @lee2020 says,\nit is so.\n\n```\n[@lee2020]\n```\n"
    )
    draft = read_draft(tmp_path / "draft.md")
    assert [sentence.keys for sentence in draft.sentences] == [("lee2020", "roe2021"), ("lee2020",)]
    assert draft.sentences[0].readable == "Keys open [lee2020, roe2021]."
    assert set(draft.entries) == {"lee2020", "roe2021"}


@cases_beside("text")
def test_arguments_of_layout_are_no_part_of_a_sentence(tmp_path, text):
    sentence = "Keys open 9 of \\num{10} locks \\cite{lee2020}."
    assert [each[0] for each in sentences(latex(tmp_path, text.replace("{S}", sentence)))] == [
        "Keys open 9 of 10 locks [lee2020]."
    ]


@pytest.mark.parametrize(
    "text",
    [
        '::: {.column width="40%"}\n{S}\n:::',
        "{{< pagebreak 12 >}} \\vspace{5mm} {S}",
        "![{S}](fig3.png){width=50%}",
        '[Keys open all]{style="12pt"} locks @lee2020 [p. 3].',
        "[^1]: {S}",
    ],
)
def test_attributes_of_markdown_are_no_part_of_a_sentence(tmp_path, text):
    (tmp_path / "draft.qmd").write_text(text.replace("{S}", "Keys open all locks [@lee2020]."))
    draft = read_draft(tmp_path / "draft.qmd")
    assert [each[0] for each in sentences(draft)] == ["Keys open all locks [lee2020]."]


HOSTILE = {
    "a line of ten megabytes": "x" * (LARGEST_FILE_BYTES - 100),
    "a line of words and citations": "word \\cite{lee2020} " * 20_000,
    "deep braces": "{" * 50_000 + "\\cite{lee2020}" + "}" * 50_000,
    "a million openings": "\\begin{math}" * 200_000,
    "billion laughs": "".join(
        f"\\newcommand{{\\l{name}}}{{" + f"\\l{after}" * 10 + "}"
        for name, after in pairwise("abcdefghijklmnop")
    )
    + "\\la \\cite{lee2020}",
    "a macro of itself": "\\newcommand{\\a}{\\a\\a} \\a \\cite{lee2020}.",
    "backslashes": "\\" * 300_000 + "%",
    "open options": "\\cite[" * 50_000,
    "marks": "⟦0⟧ \\cite{lee2020} ⟦7⟧ \0",
    "dollars": "$" * 100_001,
    "macros and paragraphs": "".join(
        f"\\newcommand{{\\m{'ab'[n % 2] * n}}}{{x}}" for n in range(300)
    )
    + "word \\maa text.\n\n" * 10_000,
    "conditionals": "\\iftrue " * 20_000,
    "blanks": " " * 300_000 + "\\cite{lee2020}",
    "bibitems": "\\bibitem{lee2020}" + "{\\em " * 20_000 + "In: A. Bee and " * 10_000,
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_drafts_end_soon(tmp_path, name):
    (tmp_path / "main.tex").write_text(HOSTILE[name])
    read_draft(tmp_path / "main.tex", seconds=30)


def test_a_draft_that_takes_too_long_is_refused(tmp_path):
    (tmp_path / "main.tex").write_text("word\n\n" * 20_000)
    with pytest.raises(SettingError, match=r"0\.01 s of processor time"):
        read_draft(tmp_path / "main.tex", seconds=0.01)


@pytest.mark.parametrize(
    ("name", "content", "problem"),
    [
        ("main.tex", "\\input{main}", "includes itself"),
        pytest.param("main.tex", "x" * (LARGEST_FILE_BYTES + 1), "10 MB", id="too large"),
        ("main.Rnw", "\\cite{a}", "is a .tex, .ltx, .md"),
        ("missing.tex", None, "no such file"),
    ],
)
def test_a_draft_that_cannot_be_read_is_named(tmp_path, name, content, problem):
    if content is not None:
        (tmp_path / name).write_text(content)
    with pytest.raises(SettingError, match=problem):
        read_draft(tmp_path / name)


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
