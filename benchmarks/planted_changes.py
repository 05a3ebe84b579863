"""True citing sentences with one fact changed in each: how many changes `citeloom check` finds.

    python -m benchmarks.planted_changes [--root FOLDER …] [--part tuned] [--every N]

The changes are mechanical and the same on every run: another number, another unit or counted
thing, a negation put in or taken out, a direction or a gain reversed, the two sides of a comparison
exchanged, another name (of a data set, a system, a language). A hash of the sentence puts it into
the tuned part, on which rules may be chosen, or the held part, which gives the figures that
documents quote.

Sentences come from claims that people labelled as supported (SciFact with abstracts,
Citation-Integrity with passages), if these texts have their numbers, and from data roots with full
texts: sentences that cite one paper of the corpus whose text has their numbers and most of their
words, and sentences of a paper's abstract, and comparisons of its text, as another author would
tell them.
"""

from __future__ import annotations

import argparse
import hashlib
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from benchmarks.harness import Claim, report
from benchmarks.labelled_claims import LABELLED, LabelledClaim, read_sets
from pipeline import tables
from pipeline.arxiv.record import Record
from pipeline.corpus.parse.policies import without_markers
from pipeline.corpus.passages.sentences import split_sentences
from pipeline.draft_check.citations import (
    CitationCase,
    CitationCheck,
    check_citations,
    judge_by_words,
)
from pipeline.draft_check.draft import Draft, DraftSentence
from pipeline.draft_check.references import ReferenceCheck
from pipeline.embedding.lexical import term_id, words_of
from pipeline.engine.stage import Workspace
from pipeline.evaluation.citation_support.overlap_judge import OverlapJudge
from pipeline.evaluation.passages import EvidencePassage
from pipeline.settings import load_settings

Kind = Literal["untouched", "number", "unit", "negation", "direction", "gain", "arguments", "name"]
# Share of a citing sentence's words that one sentence of the cited paper must have, so that the
# text can be said to back it.
_BACKED = 0.5
_FEWEST_WORDS, _MOST_WORDS = 6, 60
_BATCH = 128

# A number that says how many or how much: no year, and no part of a name such as GPT-4 or p53.
_NUMBER = re.compile(r"(?<![\w.,/$^_{-])(\d+(?:,\d{3})*(?:\.\d+)?)(?![\w$^}]|[.,]\d|-[a-z])")
_YEAR = re.compile(r"(?:19|20)\d\d")
_NUMBER_WORDS = ("two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "twelve")
_NUMBER_WORD = re.compile(rf"\b({'|'.join(_NUMBER_WORDS)})\b", re.IGNORECASE)

_UNITS = {
    "%": "points", "percent": "points", "points": "percent", "million": "billion",
    "billion": "million", "thousand": "million", "ms": "s", "seconds": "minutes",
    "minutes": "hours", "hours": "days", "days": "weeks", "weeks": "months", "months": "years",
    "years": "months", "GB": "MB", "MB": "GB", "TB": "GB", "KB": "MB", "mg": "g", "kg": "mg",
    "km": "m", "questions": "answers", "papers": "authors", "documents": "words",
    "sentences": "paragraphs", "passages": "papers", "words": "sentences", "tokens": "sentences",
    "students": "teachers", "patients": "mice", "users": "items", "images": "videos",
    "parameters": "layers", "layers": "parameters", "datasets": "models", "models": "datasets",
    "tasks": "languages", "languages": "tasks", "pages": "characters",
    "claims": "questions", "answers": "claims", "pairs": "triples", "participants": "hospitals",
    "genes": "proteins", "proteins": "genes", "children": "adults", "women": "men", "men": "women",
}  # fmt: skip
_COUNTED = re.compile(
    r"(?<![\w.,-])\d+(?:,\d{3})*(?:\.\d+)?\s?(?:[a-z-]+ )?"
    rf"(?P<unit>{'|'.join(sorted(map(re.escape, _UNITS), key=len, reverse=True))})(?![\w-])"
)

_NEGATIONS = (
    (re.compile(r"\b(do|does|did|is|are|was|were|can|could|has|have|had|will|would) not\b"), r"\1"),
    (re.compile(r"\bcannot\b"), "can"),
    (re.compile(r"\bwithout\b"), "with"),
    (re.compile(r"\bnever\b"), "always"),
    (
        re.compile(r"\bno (?=(?:\w+ ){0,2}(?:effect|difference|evidence|change|impact|role)\b)"),
        "a ",
    ),
)
_AUXILIARY = re.compile(
    r"\b(is|are|was|were|can|could|may|might|will|would|should|has been|have been)\b(?! not\b)"
)
# Verbs of findings and methods, as a third person, or as a plural behind one.
_VERBS = (
    "increase", "reduce", "decrease", "improve", "affect", "cause", "require", "show", "allow",
    "enable", "induce", "inhibit", "promote", "regulate", "contribute", "lead", "play", "provide",
    "support", "suggest", "predict", "depend", "contain", "achieve", "produce", "protect",
    "prevent", "impair", "interact", "bind", "activate", "suppress", "outperform", "exceed",
    "keep", "remove", "raise", "make", "give", "learn", "propose", "introduce", "present",
    "describe", "find", "prove", "apply", "combine", "encode", "express", "occur",
)  # fmt: skip
_VERB = re.compile(
    rf"\b(?:(?P<third>{'|'.join(_VERBS)})s|"
    rf"(?:(?<=s )|(?<=[Tt]hey ))(?P<plural>{'|'.join(_VERBS)}))\b(?= (?!of\b|in\b|is\b|are\b))"
)

_OPPOSITES = {
    "more": "less", "fewer": "more", "less": "more", "higher": "lower", "lower": "higher",
    "larger": "smaller", "smaller": "larger", "better": "worse", "worse": "better",
    "faster": "slower", "slower": "faster", "increases": "decreases", "decreases": "increases",
    "increase": "decrease", "decrease": "increase", "increased": "decreased",
    "decreased": "increased", "reduces": "increases", "reduced": "increased",
    "reduce": "increase", "improves": "worsens", "improve": "worsen", "improved": "worsened",
    "outperforms": "underperforms", "outperform": "underperform", "first": "last",
    "best": "worst", "inhibits": "activates", "activates": "inhibits", "promotes": "prevents",
    "prevents": "promotes", "most": "least", "positively": "negatively",
    "upregulated": "downregulated", "downregulated": "upregulated", "above": "below",
    "longer": "shorter", "shorter": "longer", "stronger": "weaker", "weaker": "stronger",
}  # fmt: skip
_GAINS = {
    "gains": "costs", "gain": "loss", "benefits": "harms", "benefit": "harm", "helps": "hurts",
    "help": "hurt", "saves": "costs", "wins": "loses", "win": "lose", "loses": "gains",
    "costs": "saves", "improves": "degrades", "improve": "degrade", "improved": "degraded",
    "degrades": "improves", "hurts": "helps", "advantage": "disadvantage",
}  # fmt: skip
# Words that end a side of a comparison.
_NO_SIDE = (
    "that|which|and|but|while|although|though|since|as|it|they|may|can|on|in|by|at|for|with|when|to"
    "|across|under|from|even|significantly|substantially|slightly|usually|others|those|this"
)
_SIDE = rf"(?:(?!(?:{_NO_SIDE})\b)[\w/-]+(?:\.\d+)?)"
_COMPARES = re.compile(
    rf"(?:^|(?<=, )|(?<=that ))(?P<left>{_SIDE}(?: {_SIDE}){{0,5}}) "
    r"(?P<verb>(?:(?:significantly|substantially|consistently|clearly) )?"
    r"(?:outperforms?|beats?|surpass(?:es)?|exceeds?)"
    r"|(?:is|are|was|were|has|have) (?:\w+ ){0,2}?"
    r"(?:better|worse|faster|slower|higher|lower|larger|smaller|(?:more|less) \w+)"
    r" (?:\w+ ){0,2}?than) "
    rf"(?P<right>{_SIDE}(?: {_SIDE}){{0,5}})"
)
# A name within a sentence, and others to put in its place.
_NAME = re.compile(r"(?<=[a-z,] )[A-Z][A-Za-z]+\b(?![-’'])")
_NAMES = (
    "ImageNet", "Wikipedia", "BERT", "German", "Japanese", "Amazon", "Reddit", "LSTM", "Kalman",
    "Bayesian", "Twitter", "Haskell", "MIT",
)  # fmt: skip
_TELLING = (
    (re.compile(r"\b[Ii]n this (?:paper|work|article|study),? "), ""),
    (re.compile(r"\b[Ww]e\b"), "they"),
    (re.compile(r"\b[Oo]ur\b"), "their"),
    (re.compile(r"\b[Uu]s\b"), "them"),
)


_MARKER = re.compile(r"\[@[^\]]*\]")
COMPARISON = "comparison retold"


@dataclass(frozen=True, slots=True)
class CitingSentence:
    """A true sentence about a cited work, or one with a change.

    paper: its arXiv id in the data root `root`; where `root` is empty, passages are the work.
    """

    id: str
    source: str
    text: str
    kind: Kind = "untouched"
    root: str = ""
    paper: str = ""
    passages: tuple[str, ...] = ()

    @property
    def part(self) -> str:
        """`tuned` or `held`, by a hash of the sentence's id."""
        return "held" if _hash(self.id) % 2 else "tuned"


def _hash(text: str) -> int:
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4], "big")


def true_sentences(labelled: Path, roots: Sequence[Path]) -> Iterator[CitingSentence]:
    """All true sentences: of the labelled sets, where the folder is there, and of the roots."""
    if labelled.is_dir():
        for part in ("train", "dev"):
            for name, claims in read_sets(labelled, part).items():
                yield from _of_set(f"{name} {part}", name, claims)
    for root in roots:
        yield from _of_root(root)


def _of_set(prefix: str, source: str, claims: Sequence[LabelledClaim]) -> Iterator[CitingSentence]:
    """The supported claims whose passages have their numbers. prefix: of their ids."""
    for claim in claims:
        if claim.label == "SUPPORT" and _has_numbers(claim.claim, claim.passages):
            name = f"{prefix} {claim.id}"
            yield CitingSentence(name, source, claim.claim, passages=claim.passages)


def _of_root(folder: Path) -> Iterator[CitingSentence]:
    """Sentences on papers whose full text a data root has."""
    root = Workspace(load_settings(data=folder, _env_file=None)).root
    passages = [
        row
        for month in root.months(tables.PASSAGES)
        for row in root.read(tables.PASSAGES, month).to_pylist()
    ]
    texts: dict[str, list[str]] = defaultdict(list)
    for row in passages:
        texts[row["arxiv_id"]].append(without_markers(row["text"]))
    cited_paper = {
        (row["arxiv_id"], row["key"]): row["cited_arxiv_id"]
        for month in root.months(tables.REFERENCES)
        for row in root.read(tables.REFERENCES, month).to_pylist()
    }
    for row in passages:
        paper = row["arxiv_id"]
        for place, sentence in enumerate(split_sentences(row["text"])):
            name = f"{row['passage_id']} {place}"
            if row["kind"] == "abstract":
                retold = _retold(sentence)
                if _is_plain(retold):
                    yield CitingSentence(
                        name, "abstract retold", retold, root=str(folder), paper=paper
                    )
            elif row["kind"] == "paragraph":
                retold = _retold(" ".join(_MARKER.sub("", sentence).split()))
                if _is_plain(retold) and _COMPARES.search(retold):
                    yield CitingSentence(name, COMPARISON, retold, root=str(folder), paper=paper)
                keys = re.findall(r"@([^\s;\]]+)", " ".join(_MARKER.findall(sentence)))
                cited = {cited_paper.get((paper, key)) for key in keys}
                target = cited.pop() if len(cited) == 1 else None
                if not target or target == paper:
                    continue
                claim = " ".join(_MARKER.sub("", sentence).split())
                if _is_plain(claim) and _backed(claim, texts[target]):
                    yield CitingSentence(
                        name, "citing sentence", claim, root=str(folder), paper=target
                    )


def _retold(sentence: str) -> str:
    """A sentence of an abstract as another author tells it."""
    for pattern, words in _TELLING:
        sentence = pattern.sub(words, sentence)
    return sentence[:1].upper() + sentence[1:]


def _is_plain(sentence: str) -> bool:
    return "$" not in sentence and _FEWEST_WORDS <= len(sentence.split()) <= _MOST_WORDS


def _has_numbers(claim: str, texts: Sequence[str]) -> bool:
    """Whether a text has all numbers of a claim."""
    return all(
        {number.lower() for number in pattern.findall(claim)}
        <= {number.lower() for text in texts for number in pattern.findall(text)}
        for pattern in (_NUMBER, _NUMBER_WORD)
    )


def _backed(claim: str, texts: Sequence[str]) -> bool:
    """Whether a text has all numbers of a claim, and a sentence of it most of its words."""
    if not _has_numbers(claim, texts):
        return False
    stems = _stems(claim)
    best = max(
        (len(stems & _stems(sentence)) for text in texts for sentence in split_sentences(text)),
        default=0,
    )
    return best >= _BACKED * len(stems)


def _stems(text: str) -> set[int]:
    return {term_id(word) for word in words_of(text)}


def change_number(text: str, seed: int) -> str | None:
    """The text with one of its numbers changed to another of the same form; None without one."""
    matches = [match for match in _NUMBER.finditer(text) if not _YEAR.fullmatch(match[1])]
    if matches:
        match = matches[seed % len(matches)]
        digits = [place for place, sign in enumerate(match[1]) if sign.isdigit()]
        place = digits[seed % min(len(digits), 2)]
        old = int(match[1][place])
        new = (old + 1 + seed % 8) % 10
        if new == 0 and place == 0:
            new = 9 if old != 9 else 8
        start = match.start(1) + place
        return f"{text[:start]}{new}{text[start + 1 :]}"
    word = _NUMBER_WORD.search(text)
    if word is None:
        return None
    others = [other for other in _NUMBER_WORDS if other != word[1].lower()]
    new_word = others[seed % len(others)]
    if word[1][0].isupper():
        new_word = new_word.capitalize()
    return text[: word.start()] + new_word + text[word.end() :]


def change_unit(text: str, seed: int) -> str | None:
    """The text with the unit of a number, or what it counts, changed; None without one."""
    match = _COUNTED.search(text)
    if match is None:
        return None
    changed = f"{text[: match.start('unit')]} {_UNITS[match['unit']]}{text[match.end() :]}"
    return changed.replace("  ", " ")


def change_negation(text: str, seed: int) -> str | None:
    """The text without its negation, or with one; None where no verb is known."""
    for pattern, words in _NEGATIONS:
        if pattern.search(text):
            return pattern.sub(words, text, count=1)
    matches = [match for match in (_AUXILIARY.search(text), _VERB.search(text)) if match]
    if not matches:
        return None
    first = min(matches, key=lambda match: match.start())
    if first.re is _AUXILIARY:
        auxiliary, _, rest = first[0].partition(" ")
        denied = f"{auxiliary} not {rest}".rstrip()
    elif first["third"]:
        denied = f"does not {first['third']}"
    else:
        denied = f"do not {first['plural']}"
    return text[: first.start()] + denied + text[first.end() :]


def change_direction(text: str, seed: int) -> str | None:
    """The text with the first word of direction replaced by its opposite; None without one."""
    return _with_opposite(text, _OPPOSITES)


def change_gain(text: str, seed: int) -> str | None:
    """The text with the first word of gain or loss replaced by its opposite; None without one."""
    return _with_opposite(text, _GAINS)


def _with_opposite(text: str, opposites: Mapping[str, str]) -> str | None:
    match = re.search(rf"\b({'|'.join(opposites)})\b", text, re.IGNORECASE)
    if match is None:
        return None
    opposite = opposites[match[1].lower()]
    if match[1][0].isupper():
        opposite = opposite.capitalize()
    return text[: match.start()] + opposite + text[match.end() :]


def change_arguments(text: str, seed: int) -> str | None:
    """The text with the two sides of a comparison in each other's place; None without one."""
    match = _COMPARES.search(text)
    if match is None:
        return None
    right = match["right"]
    if match.start() == 0:
        right = right[0].upper() + right[1:]
    return f"{text[: match.start()]}{right} {match['verb']} {match['left']}{text[match.end() :]}"


def change_name(text: str, seed: int) -> str | None:
    """The text with one of its names changed to another; None without one."""
    matches = list(_NAME.finditer(text))
    if not matches:
        return None
    match = matches[seed % len(matches)]
    others = [name for name in _NAMES if name not in text]
    return text[: match.start()] + others[seed % len(others)] + text[match.end() :]


CHANGES: Mapping[Kind, Callable[[str, int], str | None]] = {
    "number": change_number,
    "unit": change_unit,
    "negation": change_negation,
    "direction": change_direction,
    "gain": change_gain,
    "arguments": change_arguments,
    "name": change_name,
}


def with_changes(sentence: CitingSentence) -> Iterator[CitingSentence]:
    """The sentence untouched, and with each change that it allows.

    A comparison was chosen for its two sides, and has no other change.
    """
    yield sentence
    for kind, change in CHANGES.items():
        if sentence.source == COMPARISON and kind != "arguments":
            continue
        text = change(sentence.text, _hash(f"{sentence.id} {kind}"))
        if text is None or text == sentence.text:
            continue
        yield replace(sentence, text=text, kind=kind)


def verdicts(sentences: Sequence[CitingSentence]) -> list[CitationCheck]:
    """The checks of sentences, in order, by the judge that calls no model."""
    by_root: dict[str, list[int]] = defaultdict(list)
    for place, sentence in enumerate(sentences):
        by_root[sentence.root].append(place)
    checks: dict[int, CitationCheck] = {}
    for root, places in by_root.items():
        of_root = [sentences[place] for place in places]
        judged = _in_root(Path(root), of_root) if root else _by_passages(of_root)
        checks |= zip(places, judged, strict=True)
    return [checks[place] for place in range(len(sentences))]


def _in_root(root: Path, sentences: Sequence[CitingSentence]) -> list[CitationCheck]:
    settings = load_settings(data=root, llm_url=None, llm_model="", _env_file=None)
    draft = Draft(Path("draft.tex"), sentences=[_in_draft(sentence) for sentence in sentences])
    references = [
        ReferenceCheck(paper, "verified", paper, record=Record(paper))
        for paper in {sentence.paper for sentence in sentences}
    ]
    return check_citations(Workspace(settings), draft, references)


def _by_passages(sentences: Sequence[CitingSentence]) -> list[CitationCheck]:
    judge = OverlapJudge.of(load_settings(_env_file=None))
    checks = []
    for start in range(0, len(sentences), _BATCH):
        cases = [
            CitationCase(
                key="",
                sentence=_in_draft(sentence),
                claim=sentence.text,
                arxiv_id="",
                title="",
                authors=(),
                passages=tuple(map(EvidencePassage, sentence.passages)),
                abstract_only=True,
            )
            for sentence in sentences[start : start + _BATCH]
        ]
        evidence = judge.sentences([(case.claim, case.texts) for case in cases])
        checks += map(judge_by_words, cases, evidence)
    return checks


def _in_draft(sentence: CitingSentence) -> DraftSentence:
    text = f"{sentence.text} [@{sentence.paper}]"
    return DraftSentence(text, (sentence.paper,), "draft.tex", 1, 0)


def is_alarm(check: CitationCheck) -> bool:
    """Whether a check says that a fact of the sentence is wrong: a clash, or a missing number."""
    return check.verdict == "contradicted" or bool(check.ours)


def main() -> None:
    """Judge the sentences of a part and print the shares that raise an alarm."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--labelled", type=Path, default=LABELLED)
    parser.add_argument("--root", type=Path, action="append", default=[], help="a data root")
    parser.add_argument("--part", choices=("tuned", "held"), default="held")
    parser.add_argument(
        "--every", type=int, default=1, help="of labelled claims, judge one of so many"
    )
    parser.add_argument("--json", action="store_true", help="as every benchmark has it")
    options = parser.parse_args()
    sentences = []
    for sentence in true_sentences(options.labelled, options.root):
        is_sampled = sentence.root or _hash(f"{sentence.id} every") % options.every == 0
        if sentence.part == options.part and is_sampled:
            sentences += with_changes(sentence)
    total, alarms, ticks = Counter[str](), Counter[str](), Counter[str]()
    for sentence, check in zip(sentences, verdicts(sentences), strict=True):
        for name in (f"{sentence.source}, {sentence.kind}", f"all, {sentence.kind}"):
            total[name] += 1
            alarms[name] += is_alarm(check)
            ticks[name] += check.verdict == "supported"
    figures = {}
    for name, count in sorted(total.items()):
        figures[f"{name}: alarm, % of {count}"] = round(100 * alarms[name] / count, 1)
        figures[f"{name}: supported, % of {count}"] = round(100 * ticks[name] / count, 1)

    def share(kind: str) -> float:
        return round(100 * alarms[f"all, {kind}"] / max(total[f"all, {kind}"], 1), 1)

    claims = [
        Claim("altered numbers found, %", share("number"), 80),
        Claim("negations found, %", share("negation"), 60),
        Claim("false alarms on untouched sentences, %", share("untouched"), 2, at_most=True),
    ]
    report("planted_changes", {"part": options.part, **figures}, claims)


if __name__ == "__main__":
    main()
