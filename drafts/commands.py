"""The commands `citeloom check` and `cite`: citations of your own draft."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from citeloom import SettingError
from drafts.failure_kinds import FAILURES

AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]
BibOption = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="Bibliography to use (.bib or .bbl); by default a draft's own.",
    ),
]


def check(
    draft: Annotated[
        Path,
        typer.Argument(metavar="DRAFT", help="Main file: .tex, .md, .qmd or .Rmd."),
    ],
    bib: BibOption = None,
    report: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Also write a page to this folder.")
    ] = None,
    missing: Annotated[
        bool, typer.Option("--missing", help="Also find papers that the draft does not cite.")
    ] = False,
    write_bib: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write the bibliography with what differs corrected."),
    ] = None,
    fail_on: Annotated[
        str,
        typer.Option(metavar="KIND,…", help=f"End with 1 if there are any: {', '.join(FAILURES)}."),
    ] = "",
    as_json: AsJson = False,
) -> int:
    """Check the citations of a draft: does each reference exist as stated, and what does the cited
    paper say?

    Examples:
      citeloom check paper.tex
      citeloom check paper.tex --report check --fail-on number_not_found,missing
    """
    from drafts.bibliography import correct_bibliography
    from drafts.check import check_draft
    from drafts.page import sections, write_page
    from drafts.reading import read_draft
    from pipeline.doors.cli.console import Terminal
    from pipeline.evaluation.claim_judge import ClaimJudge

    kinds = _kinds(fail_on)
    Terminal.check_file("DRAFT", draft)
    Terminal.check_file("--bib", bib)
    loaded = read_draft(draft, bib)
    files = [bib] if bib else loaded.bibliography_files
    if write_bib is not None and (len(files) != 1 or files[0].suffix != ".bib"):
        raise SettingError(
            "--write-bib: the draft must have exactly one .bib file; name it with --bib"
        )

    def announce(judge: str, calls: int) -> None:
        if calls:
            Terminal.note(
                f"{judge} is asked {calls} questions at most; answers of earlier checks cost"
                " nothing"
            )

    workspace = Terminal.workspace()
    _refuse_unsaid(kinds, ClaimJudge(workspace).name)
    with Terminal.spinner("checking"):
        result = check_draft(workspace, loaded, suggest=missing, announce=announce)
    page = write_page(result, report) if report else None
    if as_json:
        Terminal.json(result.as_json())
    else:
        Terminal.note(*result.problems)
        for section in sections(result, good=False):
            Terminal.section(section)
    if page:
        Terminal.note(f"Page: {page}")
    if write_bib is not None:
        content, corrected = correct_bibliography(files[0], result.references)
        Terminal.write(write_bib, content)
        Terminal.note(f"{write_bib}: {corrected} entries corrected")
    counts = result.counts()
    return int(any(counts[kind] for kind in kinds))


def _kinds(fail_on: str) -> list[str]:
    kinds = [kind.strip() for kind in fail_on.split(",") if kind.strip()]
    for kind in kinds:
        if kind not in FAILURES:
            raise SettingError(
                f"--fail-on {kind}: there is no such kind; give some of {', '.join(FAILURES)}"
            )
    return kinds


def _refuse_unsaid(kinds: Sequence[str], judge: str | None) -> None:
    """Raise SettingError for a verdict that nothing gives: with a judge, or without one."""
    for kind in {"contradicted", "not_supported"}.intersection(kinds):
        if judge is None:
            raise SettingError(
                f"--fail-on {kind} needs a language model: set CITELOOM_LLM_URL, or give"
                " number_not_found"
            )
    if "not_about_paper" in kinds and judge is not None:
        raise SettingError(f"--fail-on not_about_paper: {judge} judges, so give not_supported")


def cite(
    sentence: Annotated[
        str, typer.Argument(metavar="SENTENCE", help="A sentence that needs a citation.")
    ],
    bib: BibOption = None,
    limit: Annotated[int, typer.Option(metavar="N", min=1, max=50, help="At most N papers.")] = 5,
    as_json: AsJson = False,
) -> int:
    """Find the papers of the corpus to cite for a sentence, with their keys in your bibliography.

    Examples:
      citeloom cite "retrieval reduces invented citations"
      citeloom cite "drafts are written one reference at a time" --bib refs.bib
    """
    from drafts.check import papers_to_cite
    from pipeline.corpus.nouns import Results
    from pipeline.doors.cli.console import Terminal
    from pipeline.index.scored import NOTHING_FITS

    # draft.tex, ../draft; a version such as GPT-3.5 is a word.
    if re.fullmatch(r"\S+\.[A-Za-z]\w*|[.~]*/\S*", sentence):
        raise SettingError(
            f"SENTENCE {sentence}: give a sentence, not a file; citeloom check reads drafts"
        )
    Terminal.check_file("--bib", bib)
    with Terminal.spinner("searching"):
        papers = papers_to_cite(Terminal.workspace(), sentence, bib, limit)
    if as_json:
        Terminal.noun(papers, "json")
        return 0
    fitting = [paper for paper in papers if paper.hit.fits]
    hits = tuple(paper.hit for paper in papers)
    Terminal.noun(Results(sentence, "passages", hits, note="" if fitting else NOTHING_FITS))
    for paper in fitting:
        Terminal.text(f"\n{paper.bibtex or paper.key}")
    return 0
