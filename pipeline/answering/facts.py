"""Claims from tables, not from a model, on a paper's authors, affiliations, date and categories.

Author information is a question topic of the arXivBot report, whose system answers it by search.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence

from pipeline.answering.answer import UnnumberedClaim
from pipeline.answering.front_matter import FrontMatter, FrontMatterTables
from pipeline.answering.question_words import content_words
from pipeline.corpus.nouns import Passage
from pipeline.identity.identifiers import arxiv_ids_among_words
from pipeline.text import number_of, one_line

MOST_AUTHORS = 30
_FEWEST_TITLE_CHARS = 4

# Words of questions for each facet. "Who" by itself also asks for users and annotators.
_FACET_WORDS = {
    "authors": (
        r"\bauthors?\b"
        r"|\b(?:who|whom)\b[^.?!]{0,40}"
        r"\b(?:wrote|written|published|proposed|developed|introduced|created|behind)\b"
        r"|\b(?:written|proposed|developed|created) by wh"
    ),
    "affiliations": (
        r"\baffiliat\w*"
        r"|\bwhere (?:do|does|did)\b[^.?!]{0,100}\b(?:work|come from)\b"
        r"|\bwhere (?:is|are|was|were)\b[^.?!]{0,60}\b(?:based|employed)\b"
        r"|\bfor whom\b[^.?!]{0,60}\bwork"
        r"|\bauthors?\b[^.?!]{0,80}"
        r"\b(?:work(?:s|ed)? (?:at|for)|employed (?:at|by)|based (?:at|in))\b"
        r"|\b(?:which|what) (?:\w+ )?(?:universit\w+|institut\w+|compan\w+|organi[sz]ations?|labs?"
        r"|laborator\w+|employers?|workplaces?)\b"
        r"|\b(?:which|what) (?:groups?|teams?|departments?|countr(?:y|ies)|cit(?:y|ies)|schools?)"
        r" (?:do|does|did|are|is)\b[^.?!]{0,30}\bauthors?\b"
    ),
    "number of authors": r"\bhow many (?:\w+ )?authors\b",
    "e-mail": r"\be-?mails?\b",
    "date": (
        r"\bwhen\b[^.?!]{0,80}"
        r"\b(?:publish|appear|written|submitted|released|posted|come out|put)\w*"
        r"|\b(?:which|what) (?:year|month|date)\b"
        r"|\b(?:publication|submission|release) date\b"
    ),
    "categories": (
        r"\b(?:arxiv|primary|subject) (?:subject )?(?:categor|class|area)\w*"
        r"|\bcategor\w+\b[^.?!]{0,40}\b(?:arxiv|filed|listed|posted|belong)"
        r"|\b(?:filed|listed|posted) (?:in|under)\b"
    ),
}
_FACETS = {facet: re.compile(words, re.IGNORECASE) for facet, words in _FACET_WORDS.items()}
# A question that names the authors as those who say something does not ask who they are: "What do
# the authors concede?" asks for limitations.
_SAYING = (
    r"(?:acknowledge|admit|argue|believe|call|caution|claim|concede|conclude|consider|describe"
    r"|discuss|expect|explain|find|give|identify|leave|list|mention|name|note|plan|point|raise"
    r"|recommend|regard|report|say|see|state|suggest|think|use|warn)(?:s|d|ed)?\b"
)
_AUTHORS_AS_SPEAKERS = re.compile(
    # "do the paper's authors …", also "have they", "would they"
    r"\b(?:do|does|did|have|has|had|can|could|would|should)\s+(?:(?:the|its|their|these)\s+)?"
    r"(?:[\w'’-]+\s+)?authors?\b(?!['’])"
    # "limits that the authors …", "what its authors …", "according to the authors"
    r"|\b(?:that|what|which|how|why|as|to)\s+(?:the|its|their)\s+(?:[\w'’-]+\s+)?authors?\b"
    r"(?!['’]|\s+(?:are|is|were|was)\b)"
    # "by its authors' own account", and not "the authors' names"
    r"|\bauthors?['’]s?\s+(?!(?:\w+\s+)?"
    r"(?:names?|affiliat|e-?mail|address|employer|institut|universit|workplace))\w"
    # "the authors themselves admit", "conceded by the authors", "author questions", "questions
    # about authors"
    rf"|(?<!which )(?<!what )(?<!many )\bauthors?\s+(?:themselves\s+|also\s+)?{_SAYING}"
    r"|\b(?!written)\w+(?:ed|en)\s+by\s+(?:the|its|their)\s+authors?\b"
    r"|\bauthors?\s+questions?\b|\bquestions?\s+(?:about|on)\s+authors?\b",
    re.IGNORECASE,
)
_WORD = re.compile(r"[^\W_]+")
# Words by which questions ask for a facet; the others say of which paper.
_FACT_WORDS = frozenset({
    "who", "whom", "whose", "wrote", "write", "written", "publish", "published", "propose",
    "proposed", "develop", "developed", "introduce", "introduced", "create", "created",
    "behind", "author", "authors", "authored", "affiliation", "affiliations", "affiliated",
    "work", "works", "university", "universities", "institution", "institutions",
    "institute", "company", "companies", "organization", "organisation", "lab", "labs",
    "laboratory", "employer", "employ", "employs", "employed", "based", "come", "year",
    "month", "date", "first", "appear", "appeared", "submitted", "submit", "released",
    "release", "posted", "post", "category", "categories", "arxiv", "primary", "subject",
    "class", "filed", "listed", "publication", "country", "countries", "city", "group",
    "team", "department", "school", "people", "person",
})  # fmt: skip
_MENTIONS_PAPER = re.compile(
    r"\b(?:papers?|articles?|preprints?|stud(?:y|ies)|authors?)\b", re.IGNORECASE
)


async def fact_claims(
    facts: FrontMatterTables | None, question: str, papers: Sequence[str], most: int
) -> list[UnnumberedClaim]:
    """At most `most` claims from tables, paper by paper, each with its front matter.

    papers: arXiv ids. There are no claims without tables, for a question that asks for no facet,
    and on facets that the tables do not hold.
    """
    facets = facets_of(question)
    if facts is None or not facets or not papers:
        return []
    claims = [
        UnnumberedClaim(sentence, front.passage, "front_matter")
        for front in await facts.front_matter(papers)
        for sentence in _facet_sentences(front, facets)
    ]
    return claims[:most]


def facets_of(question: str) -> tuple[str, ...]:
    """Which of `_FACET_WORDS` a question asks for."""
    without_speakers = _AUTHORS_AS_SPEAKERS.sub(" ", question)
    return tuple(
        facet
        for facet, pattern in _FACETS.items()
        if pattern.search(without_speakers if facet == "authors" else question)
    )


def named_papers(question: str, passages: Iterable[Passage]) -> list[str]:
    """The papers that a question is about: those whose ids it names, else those of the passages
    whose titles it names, else the paper of the first passage.

    A question names a title if it holds the whole title, or the part before its colon in the same
    case ("QuillNet: Reading Margins"); in another case that part may be a common word.
    """
    ids = arxiv_ids_among_words(question)
    if ids:
        return list(dict.fromkeys(ids))
    candidates = list(passages)
    return _papers_titled(question, candidates) or [passage.arxiv_id for passage in candidates[:1]]


def subject_words(question: str) -> str:
    """The question without the words that ask for a facet; the whole question if none is left."""
    words = [word for word in content_words(question) if word not in _FACT_WORDS]
    return " ".join(words) or question


def asks_only_for_facts(question: str) -> bool:
    """Whether a question does not say of which paper: "and who wrote it?"."""
    return _FACT_WORDS.issuperset(content_words(question))


def papers_by_title_or_rank(question: str, passages: Sequence[Passage]) -> list[str]:
    """The papers whose titles a question names, else the paper of the first passage, but that only
    for a question that mentions a paper or its authors: the authors of the first paper that uses
    dropout did not propose it.

    passages: best first.
    """
    titled = _papers_titled(question, passages)
    if titled or not _MENTIONS_PAPER.search(question):
        return titled
    return [passage.arxiv_id for passage in passages[:1]]


def _papers_titled(question: str, passages: Sequence[Passage]) -> list[str]:
    titled: list[str] = []
    for passage in passages:
        head, colon, _ = passage.title.partition(":")
        if _holds_words(question.casefold(), passage.title.casefold()) or (
            colon and head != head.lower() and _holds_words(question, head)
        ):
            titled.append(passage.arxiv_id)
    return list(dict.fromkeys(titled))


def _holds_words(text: str, name: str) -> bool:
    """Whether a text holds the words of a name, in order and one after the other."""
    words_of_text = " ".join(_WORD.findall(text))
    words_of_name = " ".join(_WORD.findall(name))
    is_long = len(words_of_name) >= _FEWEST_TITLE_CHARS
    return is_long and f" {words_of_name} " in f" {words_of_text} "


def _facet_sentences(front: FrontMatter, facets: Collection[str]) -> Iterator[str]:
    """A sentence on each facet that the tables hold; authors and affiliations share one."""
    paper = f'"{one_line(front.passage.title)}" (arXiv:{front.passage.arxiv_id})'
    if front.authors and "number of authors" in facets:
        yield f"{paper} has {number_of(len(front.authors), 'author')}."
    addresses = [
        f"{author.name} ({', '.join(author.emails)})" for author in front.authors if author.emails
    ]
    if addresses and "e-mail" in facets:
        yield f"{paper} gives e-mail addresses of {'; '.join(addresses[:MOST_AUTHORS])}."
    if front.authors and {"authors", "affiliations"} & set(facets):
        names = []
        for author in front.authors[:MOST_AUTHORS]:
            places = f" ({', '.join(author.affiliations)})" if author.affiliations else ""
            names.append(f"{author.name}{places}")
        more = len(front.authors) - len(names)
        others = f", and {more} others" if more else ""
        yield f"{paper} was written by {'; '.join(names)}{others}."
    if front.date and "date" in facets:
        yield f"{paper} first appeared on arXiv in {front.date}."
    if front.categories and "categories" in facets:
        primary, *further = front.categories
        also = f", also in {', '.join(further)}" if further else ""
        yield f"{paper} is in arXiv's primary category {primary}{also}."
