"""`relate`: a section for a user's own text."""

import json
import re

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
from tests.cases import cases, cases_beside
from tests.month_tables import write_table
from tests.unit.related_work.building import corpus_with, paper_row, prompts

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
    with corpus_with(folder, {}, *rules, **settings) as (place, llm):
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
    # Key elements of three papers, and the default search over two references.
    assert related.spent.calls == llm.generations == 3 + 19


def test_citations_in_a_row_become_one_group_and_those_of_no_reference_are_noted(tmp_path):
    text = "Both [Reference 1], [Reference 2] and [Reference 7]."
    related, _ = related_by(tmp_path, lambda _: text, system="zero_shot")
    assert "Both [@lovelace2024paper; @lovelace2024paper-2] and [Reference 7]." in related.markdown
    (strange,) = related.notes
    assert strange.endswith("numbers that no reference has: [Reference 7]")


@cases_beside("message", "references", "draft", "system")
def test_wrong_arguments_are_named(tmp_path, message, references, draft, system):
    with corpus_with(tmp_path, {}) as (place, llm), pytest.raises(SettingError, match=message):
        relate(place, draft or DRAFT, references, system or "chatcite")
    assert llm.requests == []


@pytest.mark.parametrize("system", ["chatcite", "zero_shot"])
def test_a_draft_that_was_cut_is_noted(tmp_path, system):
    part = f"## Part\n\n{'We search papers again. ' * 40}"
    with corpus_with(tmp_path, {}, llm_context=4096) as (place, _):
        notes = [
            relate(place, DRAFT + "\n\n".join([part] * parts), TWO[:1], system).notes
            for parts in (0, 40)
        ]
    assert notes[0] == ()
    assert "CITELOOM_LLM_CONTEXT is 4096" in notes[1][0]
    assert notes[1][0].endswith("the beginning was used: the draft")


def test_a_reference_that_is_not_cited_is_noted(tmp_path):
    related, _ = related_by(tmp_path, lambda _: "One [Reference 1].", system="zero_shot")
    assert related.notes == ("the section does not cite [Reference 2]",)


def write_task(folder, *references):
    task = {"format": "citeloom-task-1", "id": "t", "title": "T", "text": "# T\n\nIt."}
    file = folder / "task.json"
    file.write_text(json.dumps(task | {"references": references}))
    return file


def test_a_task_file_is_related_with_what_there_is_of_its_references(tmp_path):
    boats = {
        "title": "Boats",
        "authors": ["Ben Yang"],
        "year": 2021,
        "source": "item",
        "text": "B.",
    }
    with corpus_with(tmp_path, {}) as (place, llm):
        with pytest.raises(SettingError, match=r"2403\.99999: no such paper"):
            relate_file(place, write_task(tmp_path, {"title": "X", "arxiv_id": "2403.99999"}))
        assert llm.requests == []
        corpus = {"title": "In the corpus", "arxiv_id": "2403.00001"}
        related = relate_file(place, write_task(tmp_path, boats, corpus))
    assert "1. [@yang2021boats] Ben Yang (2021). Boats." in related.markdown
    assert re.findall("eprint = {(.*)}", related.bibtex) == ["2403.00001"]
    # Nothing is asked about a work of which there is its item alone.
    assert related.spent.calls == llm.generations == 2 + 19
    known = "Only the bibliography item of this work is known"
    assert any(known in prompt for prompt in prompts(llm))


@cases_beside("title", "shown")
def test_bibtex_keeps_what_tex_can_set(title, shown):
    entry = bibtex_entry("k", paper_row("2403.00001") | {"title": title, "authors": []})
    assert f"title = {{{{{shown}}}}}" in entry
    assert (entry[:9], entry[-2:]) == ("@misc{k,\n", "\n}")


@cases(
    "unit/related_work/cases.toml",
    "bibtex_keeps_a_suffix_apart_from_the_family",
    ["names", "shown", "key"],
)
def test_bibtex_keeps_a_suffix_apart_from_the_family_name(names, shown, key):
    paper = paper_row("2403.00001") | {"authors": names}
    assert f"author = {{{shown}}}" in bibtex_entry("k", paper)
    assert bibtex_keys([paper])[0].startswith(key)


def test_keys_are_unique_and_plain_and_avoid_those_of_the_users_own_bibliography():
    first, second, third = (paper_row(f"2403.0000{n}") | {"authors": ["Ada L"]} for n in (1, 2, 3))
    nobody = paper_row("2403.00009") | {"authors": [], "title": "On the Ähnlichkeit"}
    keys = bibtex_keys([first, nobody, second, nobody])
    plain, anonymous = "l2024paper", "anonymous2024ahnlichkeit"
    assert keys == [plain, anonymous, f"{plain}-2", f"{anonymous}-2"]
    own = {"2403.00002": plain, "2403.00009": f"{plain}-2"}
    assert bibtex_keys([first, second, third], own) == [f"{plain}-3", plain, f"{plain}-4"]


@cases(
    "unit/related_work/cases.toml",
    "a_section_in_latex_cites_keys",
    ["text", "latex", "packages", "names"],
)
def test_a_section_in_latex_cites_keys_and_prints_names_once(text, latex, packages, names):
    style = LatexStyle.of_packages(set(packages or []))
    names_of = {1: names} if names else None
    section = latex_section(text, {1: "one", 2: "two"}, style=style, names=names_of)
    assert section == f"\\section{{Related Work}}\n\n{latex}\n"


def test_without_an_endpoint_notes_are_written_whose_authors_are_of_metadata_or_bibliography(
    tmp_path,
):
    with corpus_with(tmp_path, {}, llm_url="") as (place, llm):
        abstract = {"ordinal": 1, "kind": "abstract"}
        texts = [
            abstract | {"arxiv_id": name, "passage_id": name, "text": f"About {name}."}
            for name in TWO
        ]
        write_table(place.root, tables.PASSAGES, "2024-03", texts)
        record = {"arxiv_id": TWO[0], "authors": ["Mary Poe", "Ann Bly"]}
        write_table(place.root, tables.METADATA, "2024-03", [record])
        own = {TWO[0]: ("Not She",), TWO[1]: ("Jo Cox",)}
        packages = {"natbib"}
        related = relate(place, DRAFT, TWO, keys={TWO[0]: "poe"}, packages=packages, authors=own)
    assert llm.requests == []
    title = "The {Paper} & 2403.00001"
    assert related.markdown.startswith("## Related work: notes, not a section\n\n*No model wrote")
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


@cases_beside("names", "authors")
def test_authors_are_named_as_in_a_text(names, authors):
    assert author_names(authors) == names
