"""Kinds of questions, and the sentences and table cells that may answer each. English only."""

from __future__ import annotations

import re
from dataclasses import dataclass

from pipeline.arxiv.titles import title_words
from pipeline.text import SPACES


@dataclass(frozen=True, slots=True)
class QuestionKind:
    """A kind of question, recognised by its words.

    asks: matches the questions of this kind.
    example: the beginning of a typical answer; sentences are compared with the question and it.
    evidence: matches every answer; None if an answer needs no such words.
    strong: matches the best answers.
    sections: matches the sections that usually hold answers.
    best_sections: matches sections that alone are read if the passages have some.
    section_suffices: whether sentences of the best sections need no evidence.
    wants_number: whether the evidence is a number; then a cell must begin with one.
    needs_names: whether the quotation itself must have the names in the question; otherwise its
        passage may have them.
    names_something: whether an answer must have a name that the question lacks, or explain one:
        "hotpotqa, a question answering benchmark".
    says_noun: whether an answer must have the noun behind "which".
    reads_tables: whether cells of tables may answer.
    reads_labels: whether the labels of a table's rows or columns may answer.
    is_list: whether a whole list may answer.
    """

    name: str
    asks: re.Pattern[str]
    example: str = ""
    evidence: re.Pattern[str] | None = None
    strong: re.Pattern[str] | None = None
    sections: re.Pattern[str] | None = None
    best_sections: re.Pattern[str] | None = None
    section_suffices: bool = False
    wants_number: bool = False
    needs_names: bool = False
    names_something: bool = False
    says_noun: bool = False
    reads_tables: bool = False
    reads_labels: bool = False
    is_list: bool = False


def _pattern(text: str) -> re.Pattern[str]:
    return re.compile(text, re.IGNORECASE)


_MEASURES = (
    r"accurac\w+|scores?|f1|f-score|bleu|rouge|fid|perplexit\w+|rates?|size|number|values?|ratios?"
    r"|speed-?ups?|precision|recall|auc|loss|log-?likelihoods?|costs?|percentages?|fraction|share"
    r"|temperature|thresholds?|dimension\w*|latency|throughput|run-?time|error|length|width"
    r"|depth|returns?|correlation|amount|budget|ndcg|mrr|map|resolution|iou|wer|ppl"
)
_NUMBER_WORDS = (
    r"two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|twenty|thirty|hundreds?"
    r"|thousands?|millions?|dozens?|half|thirds?|quarters?|twice|doubles?|no|none"
)
NUMBER = _pattern(
    rf"(?<![\w.^_{{-])[-+~]?\d[\d.,]*(?:\s*(?:%|[kmb]\b|×|x\b))?(?![\w-])|\d[\d.,]*[KMB]\b"
    rf"|\\times|\b(?:{_NUMBER_WORDS})\b"
)
_TIME = (
    r"\b(?:19|20)\d\d\b|\b\d[\d.,]*\s*(?:\w+\s)?"
    r"(?:days?|hours?|minutes?|seconds?|weeks?|months?|years?|ms|steps?|h|s)\b"
)

_DATA = r"(?:data ?-?sets?|corp(?:us|ora)|benchmarks?|collections?)"
EXPLAINED_DATA = _pattern(rf"[\w-], (?:an?|the) [^,.]{{0,60}}\b{_DATA}\b")
"""A data set of any spelling with its explanation."""

KINDS = (
    QuestionKind(
        "yes/no",
        _pattern(
            r"^(?:is|are|was|were|do|does|did|can|could|has|have|will|should)\b"
            r"(?!.*\b(?:compare[ds]?|than|outperform\w*|limitations?)\b)"
        ),
    ),
    QuestionKind(
        "limitation",
        _pattern(
            r"\b(?:limit(?:s|ed|ations?)?|weakness\w*|shortcomings?|drawbacks?|caveats?|downsides?"
            r"|disadvantages?|fail(?:s|ures?)?|threats? to validity)\b"
        ),
        example="A limitation of our work is that it cannot",
        evidence=_pattern(
            r"\b(?<!not )(?:limit(?:s|ed|ation|ations|ing)?|weakness\w*|shortcoming\w*|drawback\w*"
            r"|caveats?|disadvantage\w*|cannot|can not|unable|does not|do not|did not"
            r"|fail(?:s|ed|ures?)?|only|future work|lack(?:s|ed)?|restrict\w*|misuse\w*"
            r"|require further|may not|might not|not able|suffer\w*)\b"
        ),
        strong=_pattern(r"\b(?:limitations?|weakness\w*|shortcoming\w*|drawback\w*|caveats?)\b"),
        sections=_pattern(r"limitation|threats to validity|discussion|conclusion|future work"),
        best_sections=_pattern(r"limitations?\b|threats to validity"),
        section_suffices=True,
        is_list=True,
    ),
    QuestionKind(
        "contribution",
        _pattern(r"\bcontribut\w+|\b(?:main|key) (?:ideas?|novelt\w+|findings?|results?)\b"),
        example="Our main contribution is that we propose a new",
        evidence=_pattern(
            r"\b(?:we|this (?:paper|work|article)|(?:our|main|key) contributions?)\b"
        ),
        strong=_pattern(r"\bcontributions?\b"),
        best_sections=_pattern(r"abstract|introduction|contribution"),
        is_list=True,
    ),
    QuestionKind(
        "number",
        _pattern(
            r"\bhow (?:many|much|large|big|high|low|small|deep|wide|often|fast|accurate)\b"
            rf"|\b(?:what|which)\b[^?]{{0,60}}\b(?:{_MEASURES})\b"
            r"|\bwhat (?:do|does|did)\b[^?]*\bcost\b"
        ),
        evidence=NUMBER,
        wants_number=True,
        needs_names=True,
        reads_tables=True,
    ),
    QuestionKind(
        "time",
        _pattern(r"\bhow long\b|^when\b|\b(?:what|which) (?:year|month|date|day)\b"),
        evidence=_pattern(_TIME),
        wants_number=True,
        needs_names=True,
        reads_tables=True,
    ),
    QuestionKind(
        "comparison",
        _pattern(
            r"\b(?:compare[ds]?|comparison|versus|vs\.?|than|outperform\w*|differ(?:s|ence"
            r"|ences|ent)?)\b"
        ),
        evidence=_pattern(
            r"\b(?:than|compar\w+|versus|vs\.?|outperform\w*|whereas|while|unlike|differ\w*|better"
            r"|worse|faster|slower|higher|lower|more|less|fewer|surpass\w*|exceed\w*|improv\w+"
            r"|superior|inferior|instead of|in contrast|on the other hand|relative to|speed-?up)\b"
        ),
        strong=_pattern(
            r"\b(?:than|outperform\w*|surpass\w*|exceed\w*|differs?|differences?|in contrast"
            r"|on the other hand"
            r"|superior|inferior)\b"
        ),
        needs_names=True,
    ),
    QuestionKind(
        "dataset",
        _pattern(
            rf"\b(?:data|{_DATA})\b[^?]*\b(?:us(?:e|ed|es|ing)|train"
            r"|test|evaluat|experiment|measur|appl|work|collect|valid)|\b(?:train|test|evaluat"
            r"|experiment)\w*\b[^?]*\bon\b"
        ),
        example="We evaluate on the following data sets.",
        evidence=_pattern(rf"\b{_DATA}\b|\b(?:evaluat|experiment|train|test)\w*\b.*\bon\b"),
        strong=_pattern(
            rf"\b(?:evaluat|experiment|train|test|us(?:e|ed|ing)\b|stud(?:y|ied)\b|consider|collect"
            rf"|conduct|run\b|appl)\w*.*\b{_DATA}\b|\b{_DATA}\b.*(?:\b(?:used|evaluat|are)\w*|:)"
        ),
        sections=_pattern(r"data|corpus|corpora|experiment|evaluation|empirical|benchmark|setup"),
        names_something=True,
        reads_labels=True,
        is_list=True,
    ),
    QuestionKind(
        "which",
        _pattern(r"\b(?:what|which)\s+(?!is\b|are\b|was\b|were\b|do\b|does\b|did\b)\w"),
        names_something=True,
        says_noun=True,
    ),
    QuestionKind(
        "reason",
        _pattern(r"\bwhy\b|\bwhat (?:is|was) the reason\b"),
        strong=_pattern(
            r"\b(?:because|since|due to|so that|in order to|caused? by|reason|as a result)\b"
        ),
    ),
    QuestionKind(
        "definition",
        _pattern(
            r"^what (?:is|are|was) (?!the (?:main|best|most|reason))[^,]{1,60}$"
            r"|\bstand for\b|\bwhat does\b[^?]* mean\b"
        ),
        strong=_pattern(
            r"\b(?:is|are) (?:an?|the|defined)\b|\brefers? to\b|\bdenotes?\b|\bstands? for\b"
            r"|\bwe (?:\w+ )?(?:propose|introduce|present|define|call)\b|\bproposes that\b"
        ),
    ),
    QuestionKind(
        "method",
        _pattern(
            r"\bhow\b|\bwhat (?:is|are)\b|\bwh(?:at|ich) (?:method|algorithm|approach|technique)"
        ),
        strong=_pattern(
            r"\b(?:by|using|via|through|based on|us(?:es?|ed)|comput\w+|consists? of|defin\w+"
            r"|calculat\w+|propos\w+|introduc\w+|called|refers? to)\b"
        ),
    ),
    QuestionKind("other", _pattern("")),
)
"""A question is of the first kind that matches; the last matches every question."""

STATEMENT = QuestionKind("statement", _pattern(""))
"""The kind of texts that are no question."""

_IS_QUESTION = _pattern(
    r"\?|^\W*(?:and |but |so )?(?:(?:in|on|at|for|by|under|with|from|of|to) )?(?:who|whom|whose"
    r"|what|which|when|where|why|how|is|are|was|were|do|does|did|can|could|has|have|will|should"
    r"|name|list|tell|give)\b"
)


def kind_of(question: str) -> QuestionKind:
    """The kind of a question; a text that is no question is a statement."""
    if not _IS_QUESTION.search(question):
        return STATEMENT
    return next(kind for kind in KINDS if kind.asks.search(question))


_COUNTED = re.compile(
    rf"\bhow (?:many|much)\s++(?P<phrase>.{{1,80}}?){SPACES}"
    r"(?:do|does|did|are|is|was|were|has|have|had|can|could"
    r"|will|would|in|of|on|per|for|from|to|with|by|took|take|make|made)\b",
    re.IGNORECASE,
)
# Words of a question that are not on its subject.
_NOT_CONTENT = frozenset({
    "a", "about", "according", "achieve", "achieved", "achieves", "after", "all", "also", "am",
    "an", "and", "any", "are", "article", "as", "at", "author", "authors", "be", "been",
    "before", "between", "both", "but", "by", "can", "contain", "contains", "could", "did",
    "do", "does", "doing", "each", "for", "from", "get", "gets", "give", "had", "has", "have",
    "how", "i", "if", "in", "into", "is", "it", "its", "many", "me", "more", "most", "much",
    "name", "of", "on", "or", "other", "over", "paper", "reach", "reached", "reaches", "say",
    "she", "should", "so", "some", "state", "study", "than", "that", "the", "their", "them",
    "then", "there", "these", "they", "this", "those", "to", "under", "up", "use", "used",
    "uses", "using", "was", "were", "what", "when", "where", "which", "while", "who", "whom",
    "whose", "why", "will", "with", "work", "would", "you", "your",
})  # fmt: skip


def counted_words(question: str) -> tuple[str, ...]:
    """The words for what a question wants counted: ("attention", "heads"); none for others."""
    match = _COUNTED.search(question)
    return tuple(title_words(match["phrase"])) if match else ()


_TERM = re.compile(
    r"\bwhat\s+(?:is|are|was|were)\s+(?:an?\s+|the\s+)?(?P<term>[^?,]{1,60}?)"
    r"(?:\s+(?:in|of|for|by|from|on)\s.*)?\??$",
    re.IGNORECASE,
)


def definition_pattern(question: str) -> re.Pattern[str] | None:
    """Matches sentences whose subject is the term that a question wants defined: "A block is a …";
    None for a question that names none.
    """
    match = _TERM.search(question)
    if match is None:
        return None
    term = re.escape(match["term"])
    return _pattern(
        rf"(?:an?\s+|the\s+)?{term}s?(?:\s*\([^)]{{0,40}}\))?\s+(?:is|are|refers?|denotes?|means?|stands?"
        r"|consists?|describes?|assumes?|states?)\b"
    )


_NOUN = re.compile(
    r"\b(?:which|what)\s+(?P<phrase>(?:[\w'’-]+\s+){1,5}?)(?:is|are|was|were|do|does|did|has|have|had"
    r"|can|could|will|would|us\w+)\b",
    re.IGNORECASE,
)


def noun_asked(question: str) -> str:
    """The last word of the phrase behind "which" or "what", folded; empty where there is none."""
    match = _NOUN.search(question)
    return "".join(title_words(match["phrase"])[-1:]) if match else ""


_MEASURE = _pattern(rf"\b(?:{_MEASURES})\b")


def measures_in(question: str) -> list[str]:
    """The measures in a question, folded: "accuracy", "ratio"."""
    return [word for text in _MEASURE.findall(question) for word in title_words(text)]


def content_words(question: str) -> list[str]:
    """The words of a question on its subject, folded."""
    return [word for word in title_words(question) if word not in _NOT_CONTENT]


_TOKEN = re.compile(r"[^\s,;:?!()\[\]“”\"]+")


def names_in(question: str) -> list[str]:
    """The proper names in a text: "PaLM 2", "WMT", "Epinions".

    A name is a word with two capitals, or with one that does not begin a sentence. A number after
    it belongs to it.
    """
    names: list[str] = []
    last_was_name, begins = False, True
    for match in _TOKEN.finditer(question):
        at_start, begins = begins, match[0][-1] in ".?!"
        token = match[0].strip(".'’‘").removesuffix("'s").removesuffix("’s")
        if last_was_name and re.fullmatch(r"\d+(?:\.\d+)?", token):
            names[-1] += f" {token}"
            last_was_name = False
            continue
        capitals = sum(letter.isupper() for letter in token)
        last_was_name = capitals > 1 or (capitals == 1 and not at_start and len(token) > 1)
        if last_was_name:
            names.append(token)
    return names
