"""Search for passages alone, as people type queries: `citeloom search --passages`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pipeline.arxiv.titles import title_words
from pipeline.corpus.references.citation_index import CitingPaper
from pipeline.index.papers import text_of_paper
from pipeline.index.scored import Hit, IndexedPassage, Scored
from pipeline.index.search import search_many
from pipeline.index.search_options import MOST, SearchOptions, check_queries
from pipeline.index.typed_queries import (
    QueryReading,
    may_be_name,
    read_example,
    read_query,
    spelling_note,
)

if TYPE_CHECKING:
    from pipeline.engine.stage import Workspace

# The passage that stands for a paper: its abstract, or else its title and authors.
_LEADING = {"abstract": 0, "front_matter": 1}
_CANDIDATES = 50
# Passages among which a phrase is looked for.
_TOP = 10


@dataclass(frozen=True, slots=True)
class PassageRanking:
    """The passages of a query, best first, and how the query was read.

    text: what was searched for. paper: arXiv id of the paper that the query names; its abstract or
    front matter comes first, and then what is similar. note: for the reader; empty for an ordinary
    search. cited_by: who cites the named paper, where the corpus does not hold it.
    """

    text: str
    passages: Sequence[Scored[IndexedPassage]] = ()
    paper: str | None = None
    cited_by: tuple[CitingPaper, ...] = ()
    note: str = ""

    def hits(self, *, include_unfit: bool = False) -> list[Hit]:
        """The passages that fit the query, or all of them."""
        return [Hit.of(scored) for scored in self.passages if include_unfit or scored.fits]


def search_passages(
    workspace: Workspace, queries: Sequence[str], options: SearchOptions
) -> list[PassageRanking]:
    """The results of each query. Raises as `search.search` does."""
    options = options.checked()
    check_queries(queries)
    readings = {query: read_query(workspace, query, options) for query in dict.fromkeys(queries)}
    results: dict[str, PassageRanking] = {}
    names: list[QueryReading] = []
    plain: list[QueryReading] = []
    for query, reading in readings.items():
        if reading.without:
            results[query] = _similar_to_paper(workspace, reading, options)
        elif not reading.text:
            results[query] = _results(reading)
        elif (reading.paper or may_be_name(query, options)) and options.end < MOST:
            names.append(reading)
        else:
            plain.append(reading)
    # A leading passage moves the others: these pages are cut from the whole ranking.
    whole = replace(options, offset=0, limit=options.end + 1) if names else options
    for reading, ranking in zip(names, _ranked(workspace, names, whole), strict=True):
        results[reading.typed] = _led_by_paper(workspace, reading, ranking, options)
    for reading, ranking in zip(plain, _ranked(workspace, plain, options), strict=True):
        results[reading.typed] = _results(reading, ranking)
    return [results[query] for query in queries]


def passages_like(workspace: Workspace, identifier: str, options: SearchOptions) -> PassageRanking:
    """The passages of other papers that are like a paper or a passage. Raises SettingError for an
    unknown id, and as `search_passages` does.
    """
    reading = read_example(workspace, identifier)
    options = replace(options.checked(), without_papers=(reading.without or "",))
    return PassageRanking(reading.text, search_many(workspace, [reading.text], options)[0])


def own_passages(
    workspace: Workspace, paper: str, text: str, options: SearchOptions
) -> list[Scored[IndexedPassage]]:
    """A paper's passages, those first that have most of the words of a text; none where the options
    leave the paper out.
    """
    if paper in options.without_papers:
        return []
    own = replace(options, papers=(paper,), limit=_CANDIDATES, offset=0, per_paper=False)
    # By words alone: to read a whole abstract, the model takes longer than the rest of a search.
    by_words = search_many(workspace, [text], replace(own, by="lexical"))[0]
    return by_words or search_many(workspace, [text], own)[0]


def _ranked(
    workspace: Workspace, readings: Sequence[QueryReading], options: SearchOptions
) -> list[list[Scored[IndexedPassage]]]:
    texts = [reading.text for reading in readings]
    return search_many(workspace, texts, options, [reading.as_typed for reading in readings])


def _results(
    reading: QueryReading, passages: Sequence[Scored[IndexedPassage]] = ()
) -> PassageRanking:
    note = reading.note
    if any(scored.fits for scored in passages):
        note = spelling_note(reading)
    return PassageRanking(reading.text, passages, reading.paper, reading.cited_by, note)


def _led_by_paper(
    workspace: Workspace,
    reading: QueryReading,
    ranking: Sequence[Scored[IndexedPassage]],
    options: SearchOptions,
) -> PassageRanking:
    """The results with the abstract of the paper that the query names first, cut to the page.

    ranking: from the first on. Such is the paper that introduces the name, or else the best one, if
    its best passages have the query as a phrase.
    """
    passages = list(ranking)
    paper = reading.paper or _paper_of_phrase(reading.text, passages)
    leading = paper and _leading_passage(workspace, paper, options)
    if leading:
        first = leading.item
        passages = [
            scored
            for scored in passages
            if scored.item.passage_id != first.passage_id
            and not (options.per_paper and scored.item.arxiv_id == first.arxiv_id)
        ]
        score = max((scored.score for scored in passages), default=1.0)
        passages.insert(0, Scored(first, score, "strong"))
    return _results(replace(reading, paper=None), passages[options.offset : options.end])


def _leading_passage(
    workspace: Workspace, paper: str, options: SearchOptions
) -> Scored[IndexedPassage] | None:
    """The passage that stands for a paper, or else its best one; None if the options leave the
    paper out.
    """
    text = text_of_paper(workspace, paper)
    own = own_passages(workspace, paper, text, options) if text else []
    return min(own, key=lambda scored: _LEADING.get(scored.item.kind, len(_LEADING)), default=None)


def _paper_of_phrase(text: str, passages: Sequence[Scored[IndexedPassage]]) -> str | None:
    """The paper of the first passage, if one of its passages at the top has the query's words in a
    row.
    """
    phrase = f" {' '.join(title_words(text))} "
    if not passages or not passages[0].fits:
        return None
    best = passages[0].item.arxiv_id
    for scored in passages[:_TOP]:
        passage = scored.item
        words = title_words(f"{passage.title} {' '.join(passage.section_path)} {passage.text}")
        if passage.arxiv_id == best and phrase in f" {' '.join(words)} ":
            return best
    return None


def _similar_to_paper(
    workspace: Workspace, reading: QueryReading, options: SearchOptions
) -> PassageRanking:
    """A paper's leading passage, and then passages of other papers that are like the paper."""
    paper = reading.paper or ""
    leading = _leading_passage(workspace, paper, options)
    # The leading passage is number 1 of the results; those of other papers follow it.
    before = 0 if leading is None else 1
    offset = max(options.offset - before, 0)
    limit = options.end - before - offset
    others = []
    if limit > 0:
        similar = replace(
            options,
            offset=offset,
            limit=limit,
            without_papers=(*options.without_papers, paper),
        )
        others = search_many(workspace, [reading.text], similar)[0]
    if leading is None:
        note = f"no passage of {paper} is indexed within these filters; passages similar to it"
        return PassageRanking(reading.text, others, paper, note=note)
    passages = others
    if options.offset == 0:
        score = max((scored.score for scored in others), default=1.0)
        passages = [Scored(leading.item, score, "strong"), *others]
    note = f"{paper} first, then passages similar to it"
    return PassageRanking(reading.text, passages, paper, note=note)
