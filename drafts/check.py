"""The whole check of a draft: its references, its citations, and papers that it could cite."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from citeloom import as_bibtex
from drafts.citations import CitationCheck, check_citations
from drafts.draft import Draft, DraftSentence, describe_problems
from drafts.failure_kinds import FAILURES
from drafts.reading import read_bibliography, read_draft
from drafts.references import ReferenceCheck, check_references, keys_by_paper
from pipeline.doors.search import search_sentences
from pipeline.evaluation.claim_judge import ClaimJudge
from pipeline.index.known_papers import KnownPapers

if TYPE_CHECKING:
    from pipeline.corpus.nouns import Hit
    from pipeline.engine.stage import Workspace

# A paragraph of fewer words is a heading or a caption.
_FEWEST_WORDS = 25
_MISSING_PAPERS = 3


@dataclass(frozen=True, slots=True)
class MissingPaper:
    """A paper of the corpus that a paragraph does not cite."""

    paragraph: int
    """Its place, from 0."""
    beginning: str
    arxiv_id: str
    title: str
    url: str


@dataclass(frozen=True, slots=True)
class DraftCheck:
    """The result. judge: the model that judged, if one did. missing: None if nothing was
    searched.
    """

    draft: Draft
    references: Sequence[ReferenceCheck]
    citations: Sequence[CitationCheck]
    missing: Sequence[MissingPaper] | None
    judge: str | None

    @property
    def without_entry(self) -> list[tuple[str, DraftSentence]]:
        """(key, first sentence) of each key that is cited and has no entry."""
        first: dict[str, DraftSentence] = {}
        for sentence in self.draft.sentences:
            for key in sentence.keys:
                if key not in self.draft.entries:
                    first.setdefault(key, sentence)
        return list(first.items())

    def counts(self) -> Counter[str]:
        """Number of each kind of `failure_kinds.FAILURES`."""
        counts = Counter[str](check.status for check in self.references)
        counts.update(check.verdict for check in self.citations if check.verdict in FAILURES)
        counts["number_not_found"] = sum(bool(check.ours) for check in self.citations)
        counts["missing"] = len(self.without_entry)
        return counts

    @property
    def problems(self) -> list[str]:
        """Other problems of the draft, a sentence each."""
        return [
            *describe_problems(self.draft.problems),
            *(
                f"{sentence.file}, line {sentence.line}: {key} is cited and has no entry"
                for key, sentence in self.without_entry
                if self.draft.entries
            ),
        ]

    def as_json(self) -> dict[str, Any]:
        """The result as plain data."""
        references = [asdict(check) for check in self.references]
        for reference in references:
            del reference["record"], reference["corrections"]
        citations = []
        for check in self.citations:
            sentence = check.sentence
            place = {"file": sentence.file, "line": sentence.line}
            citations.append(asdict(check) | {"sentence": sentence.readable} | place)
        return {
            "draft": str(self.draft.file),
            "judge": self.judge,
            "references": references,
            "citations": citations,
            "without_entry": [
                {"key": key, "file": sentence.file, "line": sentence.line}
                for key, sentence in self.without_entry
            ],
            "duplicate_keys": list(self.draft.duplicate_keys),
            "missing": [asdict(paper) for paper in self.missing or ()],
            "problems": describe_problems(self.draft.problems),
            "not_understood": self.draft.not_understood,
        }


def check_draft(
    workspace: Workspace,
    draft: Draft,
    *,
    suggest: bool = False,
    announce: Callable[[str, int], None] = lambda judge, calls: None,
) -> DraftCheck:
    """Check a draft. suggest: also search the index for papers that its paragraphs do not cite.

    Raises MissingInput where there is no metadata, and as `check_citations` and `search` do.
    """
    references = check_references(draft, KnownPapers(workspace))
    citations = check_citations(workspace, draft, references, announce=announce)
    missing = _missing_papers(workspace, draft, references) if suggest else None
    judge = ClaimJudge(workspace).name
    return DraftCheck(draft, references, citations, missing, judge)


def check_file(
    workspace: Workspace, file: Path, bibliography: Path | None = None, *, missing: bool = False
) -> DraftCheck:
    """Check the draft of a file. Raises as `read_draft` and `check_draft` do."""
    return check_draft(workspace, read_draft(file, bibliography), suggest=missing)


def _missing_papers(
    workspace: Workspace, draft: Draft, references: Sequence[ReferenceCheck]
) -> list[MissingPaper]:
    """For each paragraph the papers of the corpus that fit it best and that the draft lacks."""
    cited = {check.arxiv_id for check in references if check.arxiv_id}
    paragraphs = {
        place: text
        for place, text in enumerate(draft.paragraphs)
        if len(text.split()) >= _FEWEST_WORDS
    }
    hits = search_sentences(workspace, list(paragraphs.values()), _MISSING_PAPERS, cited)
    return [
        MissingPaper(
            place,
            " ".join(text.split()[:12]),
            passage.arxiv_id,
            passage.title,
            passage.url,
        )
        for (place, text), of_paragraph in zip(paragraphs.items(), hits, strict=True)
        for passage in (hit.passages[0] for hit in of_paragraph if hit.fits)
    ]


@dataclass(frozen=True, slots=True)
class PaperToCite:
    """A paper, by its best passage.

    key: in the bibliography, or a new one. bibtex: an entry to paste; empty where the bibliography
    has one.
    """

    key: str
    bibtex: str
    hit: Hit


def papers_to_cite(
    workspace: Workspace, sentence: str, bibliography: Path | None, limit: int
) -> list[PaperToCite]:
    """The papers whose passages fit a sentence, best first, then the nearest of the others. Raises
    as `search` does.
    """
    (hits,) = search_sentences(workspace, [sentence], limit)
    keys: dict[str, str] = {}
    if bibliography is not None and hits:
        keys = keys_by_paper(workspace, read_bibliography(bibliography))
    papers = [hit.paper for hit in hits]
    return [
        PaperToCite(key, "" if hit.paper.arxiv_id in keys else bibtex, hit)
        for (key, bibtex), hit in zip(as_bibtex(papers, keys), hits, strict=True)
    ]
