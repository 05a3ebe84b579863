"""`relate`: a section for a user's own text."""

import json

import pytest

from pipeline import tables
from pipeline.corpus.citation_formats import (
    LatexStyle,
    author_names,
    bibtex_entry,
    bibtex_keys,
    latex_section,
)
from pipeline.errors import SettingError
from pipeline.related_work.relate import relate, relate_file
from pipeline.related_work.systems import SYSTEMS
from tests.cases import cases
from tests.planned_calls import beam_calls
from tests.scripted_llm import ScriptedLlm
from tests.unit.related_work.building import (
    beam,
    paper_row,
    prompts,
    workspace,
    write_corpus,
    write_month,
)

pytestmark = pytest.mark.slow

DRAFT = "# My paper\n\nWe search papers.\n"
TWO = ("2403.00001", "2403.00002")
SPELLINGS_OF_ONE_ID = [
    "2403.00002",
    "https://arxiv.org/abs/2403.00002",
    "http://www.arxiv.org/pdf/2403.00002v3.pdf#page=2",
    "arxiv.org/abs/2403.00002v1?context=cs",
    "https://ar5iv.labs.arxiv.org/html/2403.00002/",
    " arXiv: 2403.00002v2 ",
]


def related_by(folder, *rules, references=TWO, system=None, **settings):
    """What is written for the draft over papers of a corpus, and the endpoint that was asked."""
    with ScriptedLlm(*rules) as llm:
        place = workspace(llm, folder, **settings)
        write_corpus(place, {})
        return relate(place, DRAFT, references, system), llm


def test_a_section_with_its_citations_and_their_bibtex(tmp_path):
    named = [*SPELLINGS_OF_ONE_ID, "arXiv:2403.00001v3", "2403.00002"]
    related, llm = related_by(tmp_path, references=named)
    assert related.keys == {1: "lovelace2024paper", 2: "lovelace2024paper-2"}
    assert related.markdown.startswith("## Related work\n\nWork ")
    assert "is close to [@lovelace2024paper]." in related.markdown
    assert "2. [@lovelace2024paper-2] Ada Lövelace (2024)." in related.markdown
    assert related.bibtex.count("@misc{") == 2
    assert "eprint = {2403.00001}" in related.bibtex
    settings = workspace(llm, tmp_path).settings
    assert related.spent.calls == 3 + beam_calls(2, settings) == llm.generations


def test_several_citations_in_a_row_become_one_group(tmp_path):
    def rule(asked):
        return (
            "Both [Reference 1], [Reference 2] and [Reference 7]." if asked.schema is None else None
        )

    related, _ = related_by(tmp_path, rule, system="zero_shot")
    assert "Both [@lovelace2024paper; @lovelace2024paper-2] and [Reference 7]." in related.markdown
    assert related.spent.calls == 1


@cases(
    "unit/related_work/cases.toml",
    "wrong_arguments_are_named",
    ["message", "references", "draft", "system"],
)
def test_wrong_arguments_are_named(tmp_path, message, references, draft, system):
    with ScriptedLlm() as llm:
        place = workspace(llm, tmp_path)
        write_corpus(place, {})
        with pytest.raises(SettingError, match=message):
            relate(place, draft or DRAFT, references, system or "chatcite")
    assert llm.requests == []


@pytest.mark.parametrize("system", ["chatcite", "zero_shot"])
def test_a_draft_that_was_cut_is_noted(tmp_path, system):
    long = DRAFT + "\n\n".join(
        f"## Part {n}\n\n{'We search papers again. ' * 40}" for n in range(40)
    )
    with ScriptedLlm() as llm:
        place = workspace(llm, tmp_path, llm_context=4096)
        write_corpus(place, {})
        whole, cut = (relate(place, draft, ["2403.00001"], system) for draft in (DRAFT, long))
    assert whole.notes == ()
    assert "CITELOOM_LLM_CONTEXT is 4096" in cut.notes[0]
    assert cut.notes[0].endswith("the beginning was used: the draft")


def test_what_a_reader_should_know_of_a_section_is_noted(tmp_path):
    def rule(asked):
        if asked.schema is not None:
            return None
        return "One [Reference 1], and another [Reference 7]."

    related, _ = related_by(tmp_path, rule)
    uncited, strange = related.notes
    assert uncited == "the section does not cite [Reference 2]"
    assert strange.endswith("numbers that no reference has: [Reference 7]")


@pytest.mark.parametrize("system", sorted(SYSTEMS))
def test_every_system_relates_a_users_own_draft(tmp_path, system):
    related, llm = related_by(tmp_path, system=system, **beam())
    assert "[@lovelace2024paper" in related.markdown
    assert related.spent.calls == llm.generations
    assert (llm.generations > 0) == SYSTEMS[system].calls_model
    from_elements = {"chatcite", "chatcite_no_reflection"}
    assert sum("Its seven fields" in prompt for prompt in prompts(llm)) == (
        3 if system in from_elements else 0
    )


def write_task(folder, **changed):
    references = [
        {
            "title": "Boats",
            "authors": ["Ben Yang"],
            "year": 2021,
            "source": "item",
            "text": "Yang. Boats. 2021.",
        },
        {"title": "In the corpus", "arxiv_id": "2403.00001"},
    ]
    given = {
        "format": "citeloom-task-1",
        "id": "t",
        "title": "T",
        "text": "# T\n\nIt.",
        "references": references,
    }
    file = folder / "task.json"
    file.write_text(json.dumps(given | changed))
    return file


def test_a_task_file_is_related_with_what_there_is_of_its_references(tmp_path):
    with ScriptedLlm() as llm:
        place = workspace(llm, tmp_path)
        write_corpus(place, {})
        lacking = write_task(tmp_path, references=[{"title": "X", "arxiv_id": "2403.99999"}])
        with pytest.raises(SettingError, match=r"2403\.99999: no such paper"):
            relate_file(place, lacking)
        assert llm.requests == []
        related = relate_file(place, write_task(tmp_path))
        calls = llm.generations
    assert "1. [@yang2021boats] Ben Yang (2021). Boats." in related.markdown
    assert "eprint = {2403.00001}" in related.bibtex
    assert related.bibtex.count("eprint") == 1
    # Nothing is asked about a work of which there is its item alone.
    assert related.spent.calls == calls == 2 + beam_calls(2, place.settings)
    assert any(
        "Only the bibliography item of this work is known" in str(body["messages"])
        for body in llm.requests
    )


def test_bibtex_escapes_what_tex_would_read():
    authors = ["Ada Lövelace", "Hal Daumé III", "Ships and Boats Group"]
    entry = bibtex_entry("k", paper_row("2403.00001") | {"authors": authors})
    assert "{Ada Lövelace and Daumé, III, Hal and {Ships and Boats Group}}" in entry
    assert r"title = {{The {Paper} \& 2403.00001}}" in entry
    assert entry.startswith("@misc{k,\n")
    assert entry.endswith("\n}")


@cases("unit/related_work/cases.toml", "bibtex_keeps_what_tex_can_set", ["title", "shown"])
def test_bibtex_keeps_what_tex_can_set(title, shown):
    paper = paper_row("2403.00001") | {"title": title, "authors": []}
    assert f"title = {{{{{shown}}}}}" in bibtex_entry("k", paper)


@cases(
    "unit/related_work/cases.toml", "bibtex_keeps_a_suffix_apart_from_the_family", ["name", "shown"]
)
def test_bibtex_keeps_a_suffix_apart_from_the_family_name(name, shown):
    paper = paper_row("2403.00001") | {"authors": [name]}
    assert f"author = {{{shown}}}" in bibtex_entry("k", paper)
    assert bibtex_keys([paper])[0].startswith(("daume", "lee", "casas"))


def test_keys_are_unique_and_plain_and_avoid_those_of_the_users_own_bibliography():
    authors = {"authors": ["Ada Lövelace"]}
    first, second, third = (paper_row(f"2403.0000{number}") | authors for number in (1, 2, 3))
    nobody = paper_row("2403.00009") | {"authors": [], "title": "On the Ähnlichkeit"}
    plain, anonymous = "lovelace2024paper", "anonymous2024ahnlichkeit"
    assert bibtex_keys([first, nobody, second, nobody]) == [
        plain,
        anonymous,
        f"{plain}-2",
        f"{anonymous}-2",
    ]
    own = {"2403.00002": plain, "2403.00009": f"{plain}-2"}
    assert bibtex_keys([first, second, third], own) == [f"{plain}-3", plain, f"{plain}-4"]


def test_a_section_in_latex_cites_keys_and_escapes_what_tex_would_read():
    text = (
        "Both [Reference 1], [Reference 2] gain 5% of $\\frac{a_1}{b}$.\n\n"
        "See \\input{x} & $\\input{/etc/passwd}$ [Reference 7]."
    )
    assert (
        latex_section(text, {1: "one", 2: "two"})
        == "\\section{Related Work}\n\nBoth \\cite{one,two} gain 5\\% of $\\frac{a_1}{b}$.\n\nSee"
        " \\textbackslash{}input\\{x\\} \\& \\$\\textbackslash{}input\\{/etc/passwd\\}\\$"
        " [Reference 7].\n"
    )


def test_without_an_endpoint_notes_are_written_whose_authors_are_of_metadata_or_bibliography(
    tmp_path,
):
    with ScriptedLlm() as llm:
        place = workspace(llm, tmp_path, llm_url="")
        write_corpus(place, {})
        texts = [
            {
                "arxiv_id": name,
                "passage_id": name,
                "ordinal": 1,
                "kind": "abstract",
                "text": f"About {name}.",
            }
            for name in TWO
        ]
        write_month(place, tables.PASSAGES, "2024-03", texts)
        record = {"arxiv_id": TWO[0], "authors": ["Mary Poe", "Ann Bly"]}
        write_month(place, tables.METADATA, "2024-03", [record])
        own = {TWO[0]: ("Not She",), TWO[1]: ("Jo Cox",)}
        packages = {"natbib"}
        related = relate(place, DRAFT, TWO, keys={TWO[0]: "poe"}, packages=packages, authors=own)
    assert llm.requests == []
    title = "The {Paper} & 2403.00001"
    assert related.markdown.startswith(
        "## Related work: notes, not a section\n\n*No model wrote this"
    )
    assert f"\n- Poe and Bly [@poe]. {title}: “About 2403.00001.” (abstract" in related.markdown
    assert "\n- Cox [@cox2024paper]. " in related.markdown
    assert "\n\\item \\citet{poe}. The" in related.latex
    assert "``About 2403.00001.''" in related.latex
    assert related.latex.endswith("\\end{itemize}\n")


def test_quotations_are_marked_and_a_line_says_so(tmp_path):
    related, _ = related_by(tmp_path, system="lead", references=TWO[:1])
    assert "\n\n“About 2403.00001” [@lovelace2024paper]." in related.markdown
    assert "\n\n*No model wrote this section" in related.markdown
    assert "\n% No model wrote this section" in related.latex
    text = "“Boats float” [Reference 1]."
    assert "\n``Boats float'' \\cite{one}." in latex_section(text, {1: "one"})
    style = LatexStyle(enquotes=True)
    assert "\\enquote{Boats float} \\cite{one}." in latex_section(text, {1: "one"}, style=style)


@cases("unit/related_work/cases.toml", "names_are_printed_once", ["cited", "packages"])
def test_names_are_printed_once_where_the_citation_prints_them(cited, packages):
    text = "Poe and Bly [Reference 1] sail. Boats float [Reference 1]."
    style = LatexStyle.of_packages(set(packages))
    assert cited in latex_section(text, {1: "one"}, style=style, names={1: "Poe and Bly"})


@cases("unit/related_work/cases.toml", "authors_are_named_as_in_a_text", ["names", "authors"])
def test_authors_are_named_as_in_a_text(names, authors):
    assert author_names(authors) == names
