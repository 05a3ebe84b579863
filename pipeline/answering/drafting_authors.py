"""The question who wrote a paper, where they work, and when it appeared: made of tables, no model has a say in it."""

from __future__ import annotations

import calendar
import re

from pipeline.answering.drafting import TITLE_CHARS, Paper, Proposal, make_question, stands, tidy, tidy_phrase
from pipeline.answering.facts import Author, FrontMatter
from pipeline.answering.questions import FEWEST_WORDS, MOST_WORDS, GoldClaim, plain
from pipeline.arxiv.identifiers import month_of

# Nobody is expected to list more: of longer lists, the first author alone is asked for.
MOST_AUTHORS = 8


def propose_authors(known: FrontMatter | None, paper: Paper, date: str | None) -> Proposal:
    """The question and its claims; none where the tables name no author.

    A claim has a phrase of the front matter for evidence, and none where that does not say it in one piece.
    """
    if known is None or not known.authors:
        return Proposal(None, (("no_authors", "the tables name no author, or it has no front matter"),), by_model=False)
    named = f'"{tidy(paper.title)[:TITLE_CHARS]}"' if paper.title else f"arXiv:{paper.arxiv_id}"
    asked = known.authors if len(known.authors) <= MOST_AUTHORS else known.authors[:1]
    claims = [_author_claim(author, named, paper, first=len(asked) < len(known.authors)) for author in asked]
    unlike = {plain(claim.claim): claim for claim in (*claims, *_month_claim(named, paper))}
    question = make_question(
        _question(named, asked, len(known.authors)), "author", (paper.arxiv_id,), tuple(unlike.values()), date
    )
    return Proposal(question, by_model=False)


def _question(named: str, asked: tuple[Author, ...], authors: int) -> str:
    who = f"Who is the first author of {named}" if len(asked) < authors else f"Who wrote {named}"
    where = ", where does this author work" if len(asked) == 1 else ", where do its authors work"
    where = where if any(each.affiliations for each in asked) else ""
    return f"{who}{where}, and when did it appear on arXiv?"


def _author_claim(author: Author, named: str, paper: Paper, *, first: bool) -> GoldClaim:
    name, places = tidy(author.name), [tidy(each) for each in author.affiliations]
    works = f" ({'; '.join(places)})" if places else ""
    return GoldClaim(
        f"{name}{works} is {'the first' if first else 'an'} author of {named}.", paper.arxiv_id,
        _evidence(name, places, paper),
    )  # fmt: skip


def _month_claim(named: str, paper: Paper) -> tuple[GoldClaim, ...]:
    """When it appeared, as its identifier says and the front matter repeats."""
    month = month_of(paper.arxiv_id)
    if month is None:
        return ()
    told = f"{calendar.month_name[int(month[5:])]} {month[:4]}"
    phrase = f"arXiv:{paper.arxiv_id} ({told}), categories"
    evidence = (phrase,) if stands(phrase, paper) else ()
    return (GoldClaim(f"{named} first appeared on arXiv in {told}.", paper.arxiv_id, evidence),)


def _evidence(name: str, places: list[str], paper: Paper) -> tuple[str, ...]:
    """A phrase of the front matter from the author's name on, as far as it tells where they work."""
    spelt = r"\s+".join(map(re.escape, name.split()))
    wanted = re.compile(rf"(?<!\w){spelt}(?!\w)", re.IGNORECASE)
    for passage in paper.passages:
        found = wanted.search(passage.text) if passage.kind == "front_matter" and name else None
        if found is not None:
            phrase = _from(passage.text, found.start(), found.end(), places)
            return (phrase,) if phrase and stands(phrase, paper) else ()
    return ()


def _from(text: str, start: int, end: int, places: list[str]) -> str:
    """The words from a name on: to the end of the last place that follows at once, else as many as evidence needs."""
    rest = text[start:].split()
    ends = [found + len(place) for place in places if (found := text.find(place, end)) >= 0]
    most = len(text[start : max(ends, default=end)].split())
    count = min(max(most, FEWEST_WORDS), MOST_WORDS)
    before = text[:start].split()[len(rest) - count :] if len(rest) < count else []
    phrase = tidy_phrase(" ".join([*before, *rest[:count]]))
    return phrase if len(plain(phrase).split()) >= FEWEST_WORDS else ""
