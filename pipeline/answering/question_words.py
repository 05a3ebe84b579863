"""Words of a question: those on its subject, proper names, and what it asks for.

English only.
"""

from __future__ import annotations

import re

from pipeline.arxiv.titles import title_words

_NUMBER_WORDS = (
    r"two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|twenty|thirty|hundreds?"
    r"|thousands?|millions?|dozens?|half|thirds?|quarters?|twice|doubles?|no|none"
)
NUMBER = re.compile(
    rf"(?<![\w.^_{{-])[-+~]?\d[\d.,]*(?:\s*(?:%|[kmb]\b|×|x\b))?(?![\w-])|(?<![\d.,])[.,]*+\d[\d.,]*[KMB]\b"
    rf"|\\times|\b(?:{_NUMBER_WORDS})\b",
    re.IGNORECASE,
)
"""A number in digits or words; no digits of a name ("GPT-4")."""

_MEASURES = (
    r"accuracy|scores?|f1|bleu|rouge|fid|perplexity|rates?|size|number|values?|ratios?"
    r"|speed-?ups?|precision|recall|loss|costs?|percentages?|fraction|share|temperature"
    r"|thresholds?|dimensions?|latency|error|length|budget"
)
_ASKS_FOR_NUMBER = re.compile(
    r"\bhow (?:many|much|large|big|high|low|small|deep|wide|often|fast|accurate|long)\b"
    rf"|\b(?:what|which)\b[^?]{{0,40}}\b(?:{_MEASURES})\b|\bwhen\b",
    re.IGNORECASE,
)
_IS_QUESTION = re.compile(
    r"\?|^\W*(?:and |but |so )?(?:(?:in|on|at|for|by|under|with|from|of|to) )?(?:who|whom|whose"
    r"|what|which|when|where|why|how|is|are|was|were|do|does|did|can|could|has|have|will|should"
    r"|name|list|tell|give)\b",
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
AUTHORS = re.compile(r"(?<![\w'’-])([A-Z][\w'’-]+) et al\b\.?(?: \(?(?:19|20)\d\d[a-z]?\)?)?")
"""Authors as citations name them: "Quill et al. (2024)"."""
_TOKEN = re.compile(r"[^\s,;:?!()\[\]“”\"]+")
_VERSION = re.compile(r"\d+(?:\.\d+)?")


def is_question(text: str) -> bool:
    """Whether a text is a question, and no statement or words to search for."""
    return _IS_QUESTION.search(text) is not None


def asks_for_number(question: str) -> bool:
    """Whether an answer needs a number: "how many …", "what accuracy …", "when …"."""
    return _ASKS_FOR_NUMBER.search(question) is not None


def content_words(question: str) -> list[str]:
    """The words of a question on its subject, folded."""
    return [word for word in title_words(question) if word not in _NOT_CONTENT]


def names_in(question: str) -> list[str]:
    """The proper names in a text: "PaLM 2", "WMT", "Epinions".

    A name is a word with two capitals, or with one that does not begin a sentence. A number after
    it belongs to it.
    """
    names: list[str] = []
    last_was_name = False
    begins_sentence = True
    for match in _TOKEN.finditer(question):
        token = match[0].strip(".'’‘").removesuffix("'s").removesuffix("’s")
        if last_was_name and _VERSION.fullmatch(token):
            names[-1] += f" {token}"
            last_was_name = False
        else:
            capitals = sum(letter.isupper() for letter in token)
            is_capitalized = capitals == 1 and len(token) > 1 and not begins_sentence
            last_was_name = capitals > 1 or is_capitalized
            if last_was_name:
                names.append(token)
        following = question[match.end() : match.end() + 1]
        begins_sentence = match[0].endswith(".") or following in ("?", "!")
    return names
