"""Check whether cited papers support the draft, by a verdict on the best passages of each."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from pipeline.corpus.links import abstract_url, passage_url
from pipeline.corpus.passages.sentences import split_sentences
from pipeline.draft_check.draft import Draft, DraftSentence
from pipeline.draft_check.references import ReferenceCheck
from pipeline.embedding.choice import make_embedder
from pipeline.embedding.lexical import words_of
from pipeline.engine.stage import Workspace
from pipeline.evaluation.citation_support.judge import judge, judge_request, place_of
from pipeline.evaluation.citation_support.overlap_judge import OverlapJudge
from pipeline.evaluation.passages import EvidencePassage, among, search
from pipeline.llm.client import open_client
from pipeline.llm.loop import run, side_by_side
from pipeline.llm.models import get_model, judge_models
from pipeline.settings.validators import OVERLAP_JUDGE

if TYPE_CHECKING:
    from pipeline.settings import Settings

Verdict = Literal["supported", "partly", "contradicted", "not_found", "not_checked"]

# Passages of a cited paper that a verdict rests on, as in the evaluation of citations.
PASSAGES = 3
_FEWEST_WORDS = 2
_VERDICTS: Mapping[str, Verdict] = {
    "supported": "supported",
    "partly": "partly",
    "not": "not_found",
}
_NUMBER = re.compile(r"(?<![\w.])\d+(?:[.,]\d+)*(?![\w]|\.\d)")
_WORD = re.compile(r"[^\W\d_]+")
_NEGATION = re.compile(
    r"\b(?:not|no|never|none|neither|nor|cannot|without|fails?|failed|lacks?|hardly)\b|n['’]t\b",
    re.IGNORECASE,
)
# Share of the claim's words that a sentence must have before a difference in a number or a negation
# is a contradiction and not another subject. Chosen on the drafts of benchmarks/draft_check.py.
_SAME_SUBJECT = 0.6


@dataclass(frozen=True, slots=True)
class CitationCheck:
    """Whether a cited paper supports a sentence; one check for each key of each citing sentence.

    verdict: `supported`, `partly`, `contradicted`, `not_found` (the best passages do not say it),
    or `not_checked`, for `reason`. quote: the words of the paper that decide. url: of the passage.
    abstract_only: whether only the paper's abstract could be read.
    """

    key: str
    sentence: DraftSentence
    verdict: Verdict
    reason: str = ""
    arxiv_id: str | None = None
    quote: str = ""
    passage_id: str | None = None
    url: str = ""
    abstract_only: bool = False


@dataclass(frozen=True, slots=True)
class CitationCase:
    """A citation that can be judged, with the passages of the cited paper to judge it by."""

    key: str
    sentence: DraftSentence
    claim: str
    arxiv_id: str
    title: str
    passages: tuple[EvidencePassage, ...]
    abstract_only: bool

    @property
    def texts(self) -> list[str]:
        return [passage.text for passage in self.passages]


def judge_name(settings: Settings) -> str:
    """The first judge that CITELOOM_JUDGES names; without an endpoint, one without a model."""
    if settings.embedded_llm or settings.judges[:1] == (OVERLAP_JUDGE,):
        return OVERLAP_JUDGE
    return judge_models(settings)[0].name


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
    cases, unchecked = _with_passages(workspace, pairs, by_key)
    name = judge_name(workspace.settings)
    announce(name, 0 if name == OVERLAP_JUDGE else len(cases))
    if name == OVERLAP_JUDGE:
        judged = _by_overlap(workspace.settings, list(cases.values()))
    else:
        judged = run(_by_model(workspace, name, list(cases.values())))
    checked = dict(zip(cases, judged, strict=True))
    return [checked[place] if place in checked else unchecked[place] for place in range(len(pairs))]


def _with_passages(
    workspace: Workspace,
    pairs: Sequence[tuple[str, DraftSentence]],
    checks: Mapping[str, ReferenceCheck],
) -> tuple[dict[int, CitationCase], dict[int, CitationCheck]]:
    """The citations that can be judged, by place, with their passages; the others with a reason."""
    claims: dict[str, dict[str, None]] = defaultdict(dict)
    for key, sentence in pairs:
        check, claim = checks.get(key), sentence.claim(key)
        if check is not None and check.arxiv_id and _says_something(claim):
            claims[check.arxiv_id][claim] = None
    claims_by_paper = {arxiv_id: list(texts) for arxiv_id, texts in claims.items()}
    passages = {}
    if claims:
        passages = search(workspace, claims_by_paper, PASSAGES, make_embedder).passages
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
        of_paper = passages.get((check.arxiv_id, claim), ())
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
            passages=of_paper or of_abstract,
            abstract_only=not of_paper,
        )
    return cases, unchecked


def _says_something(claim: str) -> bool:
    """Whether words stand beside a citation; none do in a table, a formula or an option."""
    return len(claim.split()) >= _FEWEST_WORDS


def _by_overlap(settings: Settings, cases: Sequence[CitationCase]) -> list[CitationCheck]:
    if not cases:
        return []
    judge = OverlapJudge.of(settings)
    verdicts = judge.verdicts([(case.claim, case.texts) for case in cases])
    checks = []
    for case, verdict in zip(cases, verdicts, strict=True):
        against = contradicting_sentence(case.claim, case.texts)
        checks.append(_checked(case, verdict.label, verdict.sentence, against))
    return checks


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
            against = ""
            if answer.verdict != "supported":
                against = contradicting_sentence(case.claim, case.texts)
            return _checked(case, answer.verdict, answer.quote, against)

        return await side_by_side(check(case) for case in cases)


def _checked(case: CitationCase, verdict: str, quote: str, against: str) -> CitationCheck:
    """verdict, quote: the judge's; a sentence that contradicts the claim overrules both."""
    quote = against or quote
    passage = case.passages[place_of(quote, case.texts) or 0]
    url = abstract_url(case.arxiv_id)
    if passage.anchor:
        url = passage_url(case.arxiv_id, passage.anchor)
    return CitationCheck(
        case.key,
        case.sentence,
        "contradicted" if against else _VERDICTS[verdict],
        arxiv_id=case.arxiv_id,
        quote=quote,
        passage_id=passage.passage_id,
        url=url,
        abstract_only=case.abstract_only,
    )


def contradicting_sentence(claim: str, passages: Sequence[str]) -> str:
    """The sentence of passages that says a claim with another number, or denies it; else empty.

    It must share most of the claim's words, and no sentence of the passages may say the claim as it
    is. Words alone decide: a paraphrase that contradicts is not seen.
    """
    stems = _stems(claim)
    numbers, denied = _numbers(claim), _is_denied(claim)
    anywhere = {number for text in passages for number in _numbers(text)}
    unknown = {number: beside for number, beside in numbers.items() if number not in anywhere}
    against, best = "", 0.0
    for sentence in [sentence for text in passages for sentence in split_sentences(text)]:
        shared = len(stems & _stems(sentence)) / max(len(stems), 1)
        if shared < _SAME_SUBJECT:
            continue
        # Another number beside the same word as a number of the claim that no passage has.
        others = [words for number, words in _numbers(sentence).items() if number not in numbers]
        differs = any(ours & theirs for ours in unknown.values() for theirs in others)
        if not differs and _is_denied(sentence) == denied:
            return ""
        if shared > best:
            best, against = shared, sentence
    return against


def _stems(text: str) -> set[str]:
    return set(words_of(_NUMBER.sub(" ", _NEGATION.sub(" ", text))))


def _numbers(text: str) -> dict[str, set[str]]:
    """Each number of a text with the words before and after it."""
    numbers: dict[str, set[str]] = {}
    for match in _NUMBER.finditer(text):
        before = _WORD.findall(text[: match.start()])[-1:]
        after = _WORD.findall(text[match.end() :])[:1]
        numbers.setdefault(match[0], set()).update(word.lower() for word in (*before, *after))
    return numbers


def _is_denied(text: str) -> bool:
    return len(_NEGATION.findall(text)) % 2 == 1
