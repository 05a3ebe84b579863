"""Check whether cited papers support the draft, by a verdict on the best passages of each."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import TYPE_CHECKING, Literal

from pipeline.corpus.links import abstract_url, passage_url
from pipeline.draft_check.draft import Draft, DraftSentence
from pipeline.draft_check.references import ReferenceCheck
from pipeline.embedding.choice import make_embedder, model_name
from pipeline.engine.stage import Workspace
from pipeline.evaluation.citation_support.claim_comparison import (
    Comparison,
    Sentence,
    compare,
    missing_numbers,
    states,
)
from pipeline.evaluation.citation_support.claim_facts import (
    Facts,
    Number,
    facts_of_passage,
    numbers_of,
)
from pipeline.evaluation.citation_support.judge import judge, judge_request, place_of
from pipeline.evaluation.citation_support.overlap_judge import (
    OverlapJudge,
    decide,
    fitted_model,
    share_of_words,
)
from pipeline.evaluation.citation_support.table_claims import clash_with_cell, stated_by_cells
from pipeline.evaluation.passages import (
    ClaimSearch,
    EvidencePassage,
    among,
    read_passages,
    read_vectors,
)
from pipeline.llm.client import open_client
from pipeline.llm.loop import run, side_by_side
from pipeline.llm.models import get_model, judge_model
from pipeline.settings.validators import OVERLAP_JUDGE

if TYPE_CHECKING:
    from pipeline.settings import Settings

Verdict = Literal["supported", "words_found", "partly", "contradicted", "not_found", "not_checked"]

# Passages of a cited paper that a verdict rests on, as in the evaluation of citations.
PASSAGES = 3
_FEWEST_WORDS = 2
# Least share by weight of a claim's words for `words_found`.
_WORDS_FOUND = 0.5
_BY_MODEL: Mapping[str, Verdict] = {
    "supported": "supported",
    "partly": "partly",
    "not": "not_found",
}
_BY_WORDS: Mapping[str, Verdict] = {**_BY_MODEL, "supported": "words_found"}


@dataclass(frozen=True, slots=True)
class CitationCheck:
    """Whether a cited paper supports a sentence; one check for each key of each citing sentence.

    verdict: `supported`; `words_found` (many of the claim's words, and no fact that decides);
    `partly`; `contradicted`; `not_found` (the best passages do not say it, or a number is not in
    the paper); or `not_checked`. reason: of the verdict, if the quote does not show it. quote: the
    words of the paper that decide. ours, theirs: the words of claim and quote that clash. url: of
    the passage. abstract_only: whether only the paper's abstract could be read.
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
    abstract_only: bool = False


@dataclass(frozen=True, slots=True)
class CitationCase:
    """A citation that can be judged, with the passages of the cited paper to judge it by.

    more: passages with numbers of the claim that the best passages lack; numbers: of the whole
    paper where they were looked up, None where the passages have all of the claim's.
    """

    key: str
    sentence: DraftSentence
    claim: str
    arxiv_id: str
    title: str
    authors: tuple[str, ...]
    passages: tuple[EvidencePassage, ...]
    abstract_only: bool
    more: tuple[EvidencePassage, ...] = ()
    numbers: tuple[Number, ...] | None = None

    @property
    def evidence(self) -> tuple[EvidencePassage, ...]:
        return (*self.passages, *self.more)

    @property
    def texts(self) -> list[str]:
        return [passage.text for passage in self.evidence]


def judge_name(settings: Settings) -> str:
    """The judge of CITELOOM_JUDGES; without an endpoint, the one that calls no model."""
    if settings.bundled_llm or settings.judges[:1] == (OVERLAP_JUDGE,):
        return OVERLAP_JUDGE
    return judge_model(settings).name


def check_citations(
    workspace: Workspace,
    draft: Draft,
    references: Sequence[ReferenceCheck],
    announce: Callable[[str, int], None] = lambda judge, calls: None,
) -> list[CitationCheck]:
    """A check of every citation of a draft, in order.

    announce: is called with the judge's name and the number of its calls before the first is made.
    Raises SettingError where the judge's context is too small, and as the model's client does.
    """
    by_key = {check.key: check for check in references}
    pairs = [(key, sentence) for sentence in draft.sentences for key in sentence.keys]
    papers = {check.arxiv_id for check in references if check.arxiv_id}
    passages = read_passages(workspace.root, papers) if pairs else {}
    name = judge_name(workspace.settings)
    best = _best_passages(workspace, pairs, by_key, passages, by_vectors=name != OVERLAP_JUDGE)
    cases, unchecked = _cases(pairs, by_key, best)
    cases = {
        place: _with_numbers(case, passages.get(case.arxiv_id, ())) for place, case in cases.items()
    }
    announce(name, 0 if name == OVERLAP_JUDGE else len(cases))
    if name == OVERLAP_JUDGE:
        judged = _by_overlap(workspace.settings, list(cases.values()))
    else:
        judged = run(_by_model(workspace, name, list(cases.values())))
    checks = unchecked | dict(zip(cases, judged, strict=True))
    return [checks[place] for place in range(len(pairs))]


def _best_passages(
    workspace: Workspace,
    pairs: Sequence[tuple[str, DraftSentence]],
    checks: Mapping[str, ReferenceCheck],
    passages: Mapping[str, Sequence[EvidencePassage]],
    *,
    by_vectors: bool,
) -> dict[tuple[str, str], tuple[EvidencePassage, ...]]:
    """(arXiv id, claim) → the paper's best passages for the claim.

    by_vectors: by embeddings too. The judge without a model needs none here: it compares the
    sentences of these passages by embeddings.
    """
    claims: dict[str, dict[str, None]] = defaultdict(dict)
    for key, sentence in pairs:
        check, claim = checks.get(key), sentence.claim(key)
        arxiv_id = (check.arxiv_id if check else None) or ""
        if arxiv_id in passages and _says_something(claim):
            claims[arxiv_id][claim] = None
    every_claim = sorted({claim for of_paper in claims.values() for claim in of_paper})
    settings = workspace.settings
    claim_search = ClaimSearch(every_claim, settings, make_embedder)
    vectors = read_vectors(workspace.root, claims, model_name(settings)) if by_vectors else {}
    best: dict[tuple[str, str], tuple[EvidencePassage, ...]] = {}
    for arxiv_id, of_paper in claims.items():
        ranked = claim_search.best(passages[arxiv_id], list(of_paper), PASSAGES, vectors)
        best |= {(arxiv_id, claim): of_claim for claim, of_claim in ranked.items()}
    return best


def _cases(
    pairs: Sequence[tuple[str, DraftSentence]],
    checks: Mapping[str, ReferenceCheck],
    best: Mapping[tuple[str, str], tuple[EvidencePassage, ...]],
) -> tuple[dict[int, CitationCase], dict[int, CitationCheck]]:
    """The citations that can be judged, by place, with their passages; the others with a reason."""
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
        of_paper = best.get((check.arxiv_id, claim), ())
        of_abstract = among([check.record.abstract], claim, 1) if check.record.abstract else ()
        if not (of_paper or of_abstract):
            reason = "neither the paper's text nor its abstract is here"
            unchecked[place] = CitationCheck(key, sentence, "not_checked", reason, check.arxiv_id)
            continue
        cases[place] = CitationCase(
            key=key,
            sentence=sentence,
            claim=claim,
            arxiv_id=check.arxiv_id,
            title=check.record.title or check.arxiv_id,
            authors=check.record.authors,
            passages=of_paper or of_abstract,
            abstract_only=not of_paper,
        )
    return cases, unchecked


def _with_numbers(case: CitationCase, of_paper: Sequence[EvidencePassage]) -> CitationCase:
    """The case; where the best passages lack a number of the claim, with the numbers of the whole
    paper, and the passage that has most of those that are missing.
    """
    ours = Facts(case.claim).numbers
    numbers = [number for text in case.texts for number in numbers_of(text)]
    missing = missing_numbers(ours, numbers)
    if case.abstract_only or not missing:
        return case
    by_passage = [numbers_of(passage.text) for passage in of_paper]
    counts = [len(missing) - len(missing_numbers(missing, numbers)) for numbers in by_passage]
    best = max(range(len(counts)), key=counts.__getitem__)
    return replace(
        case,
        more=(of_paper[best],) if counts[best] else (),
        numbers=tuple(number for numbers in by_passage for number in numbers),
    )


def _says_something(claim: str) -> bool:
    """Whether a citation has words beside it, unlike in a table, a formula or an option."""
    return len(claim.split()) >= _FEWEST_WORDS


def _by_overlap(settings: Settings, cases: Sequence[CitationCase]) -> list[CitationCheck]:
    if not cases:
        return []
    sentences = OverlapJudge.of(settings).sentences([(case.claim, case.texts) for case in cases])
    return [judge_by_words(case, of_case) for case, of_case in zip(cases, sentences, strict=True)]


def judge_by_words(case: CitationCase, sentences: Sequence[Sentence]) -> CitationCheck:
    """The verdict that words, embeddings and facts give on a case; sentences: of its passages."""
    judged = decide(case.claim, sentences, case.numbers)
    verdict, comparison = _BY_WORDS[judged.label], judged.comparison
    quoted = judged.sentence
    work = " ".join([case.title, *case.authors])
    if verdict == "words_found" and quoted:
        of_passage = [sentence for sentence in sentences if sentence.passage == quoted.passage]
        stating = _stating(case.claim, sentences, work)
        if stating:
            verdict, quoted = "supported", max(stating, key=attrgetter("cosine"))
        elif share_of_words(case.claim, of_passage, fitted_model().words) < _WORDS_FOUND:
            verdict = "partly"
    if verdict != "supported" and not (comparison.clash or comparison.missing):
        for place, text in enumerate(case.texts):
            cells = stated_by_cells(case.claim, text, work)
            if cells:
                return _checked(case, "supported", cells, place, comparison)
        prose = [
            number
            for sentence in sentences
            if not sentence.facts.is_cell
            for number in sentence.facts.numbers
        ]
        comparison.clash = clash_with_cell(case.claim, case.texts, prose, work)
    quote = quoted.facts.text if quoted else ""
    return _checked(case, verdict, quote, quoted.passage if quoted else 0, comparison)


def _stating(claim: str, sentences: Sequence[Sentence], work: str) -> list[Sentence]:
    """The sentences that state a claim; "our model" stands for the name that the paper gives it."""
    own = " ".join(sentence.facts.introduced_name for sentence in sentences)
    return [
        sentence
        for sentence in sentences
        if states(claim, sentence, f"{work} {own}" if sentence.facts.speaks_of_own else work)
    ]


async def _by_model(
    workspace: Workspace, model: str, cases: Sequence[CitationCase]
) -> list[CitationCheck]:
    context = get_model(workspace.settings, model, "CITELOOM_JUDGES").context
    async with open_client(workspace, model) as client:

        async def check(case: CitationCase) -> CitationCheck:
            question = judge_request(case.title, case.passages, case.claim, context)
            answer = await judge(client, question)
            if answer.verdict is None:
                reason = f"the judge's answer could not be read: {answer.failure}"
                return CitationCheck(case.key, case.sentence, "not_checked", reason, case.arxiv_id)
            return judge_by_model(case, answer.verdict, answer.quote)

        return await side_by_side(check(case) for case in cases)


def judge_by_model(case: CitationCase, verdict: str, quote: str) -> CitationCheck:
    """A model's verdict, which facts overrule: "supported" needs a quote that is in the passages,
    and no number that is missing and no fact that clashes.
    """
    sentences = [
        Sentence(facts, passage=place)
        for place, text in enumerate(case.texts)
        for facts in facts_of_passage(text)
    ]
    numbers = case.numbers
    if numbers is None:
        numbers = tuple(number for sentence in sentences for number in sentence.facts.numbers)
    comparison = compare(case.claim, sentences, numbers)
    place = place_of(quote, case.texts)
    if verdict == "supported" and place is None:
        reason = "the quote of the judge is not in the passages"
        return replace(_checked(case, "partly", quote, 0, Comparison()), reason=reason)
    return _checked(case, _BY_MODEL[verdict], quote, place or 0, comparison)


def _checked(
    case: CitationCase, verdict: Verdict, quote: str, place: int, comparison: Comparison
) -> CitationCheck:
    """The check by a judge's verdict, which a clash and a missing number overrule."""
    reason = ours = theirs = ""
    clash = comparison.clash
    if clash:
        verdict, quote, ours, theirs = "contradicted", clash.sentence, clash.ours, clash.theirs
        place = clash.passage
        reason = f"the draft has “{ours}”, the paper “{theirs}”"
        if not theirs:
            reason = f"the draft has “{ours}”, and the paper does not deny it"
        elif not ours:
            reason = f"the paper has “{theirs}”, and the draft does not"
    elif comparison.missing:
        verdict, reason = "not_found", _missing_numbers(case, comparison)
        ours = comparison.missing[0].number
    passage = case.evidence[place]
    url = abstract_url(case.arxiv_id)
    if passage.anchor:
        url = passage_url(case.arxiv_id, passage.anchor)
    return CitationCheck(
        case.key,
        case.sentence,
        verdict,
        reason,
        case.arxiv_id,
        quote,
        ours,
        theirs,
        passage_id=passage.passage_id,
        url=url,
        abstract_only=case.abstract_only,
    )


def _missing_numbers(case: CitationCase, comparison: Comparison) -> str:
    work = "its abstract" if case.abstract_only else "this paper"
    reasons = []
    for missing in comparison.missing:
        reasons.append(f"{missing.number} is not in {work}")
        if missing.nearest:
            reasons.append(f"nearest: {missing.nearest}")
    return "; ".join(reasons)
