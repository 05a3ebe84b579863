"""Words of a question: those on its subject, and proper names.

English only.
"""

from __future__ import annotations

import re

from pipeline.identity.titles import title_words

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
