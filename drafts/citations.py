"""Show for each citation of a draft the nearest passage of the cited paper, with what can be said
of it without a model, or a model's verdict.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import chain, groupby
from typing import TYPE_CHECKING, Literal

from drafts.cited_passages import CitedPassages
from drafts.draft import Draft, DraftSentence
from drafts.numbers import Number, numbers_of
from drafts.references import ReferenceCheck
from pipeline.corpus.passages.sentences import split_sentences
from pipeline.evaluation.claim_judge import ClaimJudge
from pipeline.evaluation.passages import EvidencePassage
from pipeline.index.exact import lexical_scores

if TYPE_CHECKING:
    from pipeline.engine.stage import Workspace
    from pipeline.evaluation.claim_judge import ClaimFinding

FAR = 0.42
"""A sentence is not about a paper of less nearness: chosen on one half of DeepScholar-Bench's
sentences so that at most 3 % of the right keys have less; `benchmarks.evidence` has the figures.
"""
Verdict = Literal[
    "number_not_found",
    "not_about_paper",
    "read",
    "contradicted",
    "not_supported",
    "partly",
    "supported",
    "not_checked",
]

Extent = Literal["full text", "part of the text", "abstract"]

# Passages of a cited paper that are looked at, as in the evaluation of citations.
PASSAGES = 3
_FEWEST_WORDS = 2
_BY_MODEL: Mapping[str, Verdict] = {
    "supported": "supported",
    "partly": "partly",
    "not": "not_supported",
    "contradicted": "contradicted",
}
# What a verdict is worth without a quote that is in the passages.
_UNQUOTED: Mapping[str, Verdict] = {
    **_BY_MODEL,
    "supported": "partly",
    "contradicted": "not_supported",
}


@dataclass(frozen=True, slots=True)
class CitationCheck:
    """A sentence beside the paper that it cites; one check for each key of each citing sentence.

    verdict: without a model `number_not_found` (`ours` is nowhere in the paper's full text),
    `not_about_paper` (other papers are much nearer to the sentence) or `read`; a model's
    `supported`, `partly`, `contradicted` or `not_supported`; or `not_checked`. reason: of the
    verdict, if the quote does not show it. quote: a sentence of the paper, or the row of a table
    below its header. ours, theirs: a number of the sentence that the paper lacks, and the one in
    the quote. url: of the passage. extent: how much of the paper could be read; None where nothing
    was.
    """

    key: str
    sentence: DraftSentence
    verdict: Verdict
    reason: str = ""
    arxiv_id: str | None = None
    quote: str = ""
    ours: str = ""
    theirs: str = ""
    passage_id: str | None = None
    url: str = ""
    extent: Extent | None = None


@dataclass(frozen=True, slots=True)
class CitationCase:
    """A citation whose paper can be read, with the passages nearest to it, best first.

    missing: numbers of the claim that are nowhere in the paper's full text.
    """

    key: str
    sentence: DraftSentence
    claim: str
    arxiv_id: str
    title: str
    passages: tuple[EvidencePassage, ...]
    extent: Extent
    missing: tuple[Number, ...] = ()

    def check(self, quote: str, place: int = 0) -> CitationCheck:
        """The citation with a quote from one of its passages, to be read."""
        passage = self.passages[place]
        return CitationCheck(
            self.key,
            self.sentence,
            "read",
            arxiv_id=self.arxiv_id,
            quote=quote,
            passage_id=passage.passage_id,
            url=passage.url,
            extent=self.extent,
        )


def check_citations(
    workspace: Workspace,
    draft: Draft,
    references: Sequence[ReferenceCheck],
    announce: Callable[[str, int], None] = lambda judge, calls: None,
) -> list[CitationCheck]:
    """A check of every citation of a draft, in order.

    announce: is called with the judge's name and the number of its calls before the first is made.
    Raises SettingError where the judge's context is too small, and as the model's client and the
    search do.
    """
    by_key = {check.key: check for check in references}
    pairs = [(key, sentence) for sentence in draft.sentences for key in sentence.keys]
    papers = {check.arxiv_id for check in references if check.arxiv_id}
    sentences = {
        text: None for key, sentence in pairs for text in (sentence.claim(key), sentence.plain)
    }
    search = CitedPassages(workspace, papers if pairs else (), list(sentences))
    cases, unchecked = _cases(pairs, by_key, search)
    readable = list(with_numbers(cases.values(), search.by_paper))
    shown = show_nearest(readable)
    judge = ClaimJudge(workspace)
    if judge.name is None:
        checked = [_named_if_far(check, search) for check in shown]
    else:
        announce(judge.name, len(readable))
        checked = _by_model(judge, readable, shown)
    checks = unchecked | dict(zip(cases, checked, strict=True))
    return [checks[place] for place in range(len(pairs))]


def _cases(
    pairs: Sequence[tuple[str, DraftSentence]],
    checks: Mapping[str, ReferenceCheck],
    search: CitedPassages,
) -> tuple[dict[int, CitationCase], dict[int, CitationCheck]]:
    """The citations whose paper can be read, by place, with its passages; the others with a
    reason.
    """
    cases, unchecked = {}, {}
    for place, (key, sentence) in enumerate(pairs):
        check = checks.get(key)
        if check is None or not check.arxiv_id or check.record is None:
            reason = "the work is not in arXiv's metadata"
            if check is None:
                reason = "the bibliography has no such entry"
            unchecked[place] = CitationCheck(key, sentence, "not_checked", reason)
            continue
        claim = sentence.claim(key)
        if not _says_something(claim):
            reason = "no sentence is around it"
            unchecked[place] = CitationCheck(key, sentence, "not_checked", reason, check.arxiv_id)
            continue
        passages: tuple[EvidencePassage, ...] = ()
        extent: Extent = "abstract"
        if check.arxiv_id in search.by_paper:
            passages = search.best(check.arxiv_id, claim, PASSAGES)
            extent = "full text" if check.arxiv_id in search.whole else "part of the text"
        elif check.record.abstract:
            passages = (EvidencePassage(check.record.abstract, arxiv_id=check.arxiv_id),)
        if not passages:
            reason = "neither the paper's text nor its abstract is here"
            unchecked[place] = CitationCheck(key, sentence, "not_checked", reason, check.arxiv_id)
            continue
        cases[place] = CitationCase(
            key=key,
            sentence=sentence,
            claim=claim,
            arxiv_id=check.arxiv_id,
            title=check.record.title or check.arxiv_id,
            passages=passages,
            extent=extent,
        )
    return cases, unchecked


def _says_something(claim: str) -> bool:
    """Whether a citation has words beside it, unlike in a table, a formula or an option."""
    return len(claim.split()) >= _FEWEST_WORDS


def with_numbers(
    cases: Iterable[CitationCase], passages: Mapping[str, Sequence[EvidencePassage]]
) -> Iterator[CitationCase]:
    """The cases with the numbers that their papers lack; of a number that is in none of the nearest
    passages, with the passage that has it.

    passages: of whole papers, by arXiv id.
    """

    @cache
    def numbers_by_passage(arxiv_id: str) -> list[list[Number]]:
        return [list(numbers_of(passage.text)) for passage in passages[arxiv_id]]

    for case in cases:
        quantities = [number for number in numbers_of(case.claim) if number.is_quantity]
        if not quantities or case.extent == "abstract":
            yield case
            continue
        by_passage = numbers_by_passage(case.arxiv_id)
        nearest = [number for passage in case.passages for number in numbers_of(passage.text)]
        lacking = _without_agreeing(quantities, nearest)
        stated = [len(lacking) - len(_without_agreeing(lacking, of)) for of in by_passage]
        if any(stated):
            more = passages[case.arxiv_id][stated.index(max(stated))]
            case = replace(case, passages=(*case.passages, more))
        if case.extent == "full text":
            missing = _without_agreeing(lacking, chain.from_iterable(by_passage))
            case = replace(case, missing=tuple(missing))
        yield case


def _without_agreeing(numbers: Sequence[Number], others: Iterable[Number]) -> list[Number]:
    """The numbers that agree with none of others."""
    others = list(others)
    return [number for number in numbers if not any(map(number.agrees, others))]


@dataclass(frozen=True, slots=True)
class _Piece:
    """A sentence, or the row of a table, of a passage. context: the header above a row.

    passage: its place among those of a case.
    """

    text: str
    context: str
    passage: int

    @property
    def quantities(self) -> list[Number]:
        return [number for number in numbers_of(self.text) if number.is_quantity]

    @property
    def quote(self) -> str:
        return f"{self.context}\n{self.text}" if self.context else self.text


def show_nearest(cases: Sequence[CitationCase]) -> list[CitationCheck]:
    """The nearest sentence or table row of each cited paper, and a number that the paper lacks.

    What has most numbers of the sentence comes first, then what has most of its words (BM25).
    """
    pieces = [list(_pieces(case)) for case in cases]
    texts = [piece.quote for of_case in pieces for piece in of_case]
    # Compared with pieces of all papers, so that the words of a paper's topic count too.
    rows = lexical_scores(texts, [case.claim for case in cases]).tolist() if cases else []
    shown, start = [], 0
    for case, of_case, row in zip(cases, pieces, rows, strict=True):
        scores = dict(zip(of_case, row[start:], strict=False))
        shown.append(_show_nearest(case, scores))
        start += len(of_case)
    return shown


def _show_nearest(case: CitationCase, scores: Mapping[_Piece, float]) -> CitationCheck:
    """The check of a citation, by the scores of its pieces."""
    quantities = [number for number in numbers_of(case.claim) if number.is_quantity]

    def rank(piece: _Piece) -> tuple[int, float]:
        return len(_without_agreeing(quantities, piece.quantities)), -scores[piece]

    best_first = sorted(scores, key=rank)
    if not case.missing:
        return case.check(best_first[0].quote, best_first[0].passage)
    ours, theirs, quoted = case.missing[0], "", best_first[0]
    reason = f"{ours.text} is nowhere in this paper"
    for piece in best_first:
        alike = [number for number in piece.quantities if number.unit == ours.unit]
        if alike:
            theirs, quoted = min(alike, key=ours.distance).text, piece
            reason += f", the nearest sentence has {theirs}"
            break
    return replace(
        case.check(quoted.quote, quoted.passage),
        verdict="number_not_found",
        reason=reason,
        ours=ours.text,
        theirs=theirs,
    )


def _pieces(case: CitationCase) -> Iterator[_Piece]:
    for place, passage in enumerate(case.passages):
        for is_table, group in groupby(passage.text.splitlines(), lambda line: line[:1] == "|"):
            lines = list(group)
            header, rows = ("", split_sentences("\n".join(lines)))
            if is_table:
                header, rows = lines[0], lines[2:] or lines
            yield from (_Piece(row, header, place) for row in rows)


def _named_if_far(check: CitationCheck, search: CitedPassages) -> CitationCheck:
    """The check; with the verdict that says so if other papers are much nearer to the sentence."""
    if check.extent != "full text" or check.arxiv_id is None:
        return check
    near = search.nearness(check.arxiv_id, check.sentence.plain)
    if near is None or near.value >= FAR:
        return check
    reason = f"other papers are much nearer, such as {near.nearest}"
    return replace(check, verdict="not_about_paper", reason=reason, ours="", theirs="")


def _by_model(
    judge: ClaimJudge, cases: Sequence[CitationCase], shown: Sequence[CitationCheck]
) -> list[CitationCheck]:
    claims = [(case.title, case.passages, case.claim) for case in cases]
    checks = []
    for case, nearest, finding in zip(cases, shown, judge.judge(claims), strict=True):
        if finding.failure:
            reason = f"the judge's answer could not be read: {finding.failure}"
            check = CitationCheck(case.key, case.sentence, "not_checked", reason, case.arxiv_id)
        else:
            check = judge_by_model(case, nearest, finding)
        checks.append(check)
    return checks


def judge_by_model(
    case: CitationCase, nearest: CitationCheck, finding: ClaimFinding
) -> CitationCheck:
    """A model's verdict. "supported" and "contradicted" need a quote that is in the passages.

    nearest: what is shown without a model, the number that the paper lacks included.
    """
    if finding.place is not None:
        return replace(
            case.check(finding.quote, finding.place),
            verdict=_BY_MODEL[finding.verdict],
            reason=nearest.reason,
            ours=nearest.ours,
        )
    reason = "; ".join(
        filter(None, ["the quote of the judge is not in the passages", nearest.reason])
    )
    return replace(nearest, verdict=_UNQUOTED[finding.verdict], reason=reason)
