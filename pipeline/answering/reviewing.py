"""The talk with a person who reviews drafts: each shown with its claims and where they stand, then a decision on it.

Papers and models may write anything: no line that is told steers a terminal.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pipeline.answering.drafting_review import Draft, Shelf, accept, reject
from pipeline.answering.marks import speaks_to_the_model
from pipeline.answering.question_files import as_yaml, entry_of, read_entry
from pipeline.answering.questions import GoldClaim, Question
from pipeline.answering.retrieving import Found
from pipeline.answering.telling import line_of
from pipeline.engine.stage import Workspace
from pipeline.errors import SettingError
from pipeline.index.links import abstract_url, passage_url

HELP = "a accepts it, e opens it in your editor, r rejects it for good, s leaves it for later, q ends"
_CHOICE = "accept, edit, reject, skip, quit [a/e/r/s/q]? "
_AGAIN = "edit it again, or leave it as it was [e/l]? "
_EDIT_HEAD = "# One question with its gold claims. Save to take the changes; leave the id as it is.\n"
# Of a passage, around the phrase; the link leads to the whole.
_AROUND_CHARS = 140


@dataclass(slots=True)
class Reviewed:
    """What came of a review: how many drafts went which way."""

    accepted: int = 0
    rejected: int = 0
    skipped: int = 0


@dataclass(frozen=True, slots=True)
class Desk:
    """What a review needs of the outside: to ask for a line, to have a text edited, to tell a line.

    ask: None where the person is gone. edit: None where nothing was saved; raises SettingError without an editor.
    """

    ask: Callable[[str], str | None]
    edit: Callable[[str], str | None]
    tell: Callable[[str], None]


class Review:
    """A review of drafts into one question set; each decision takes effect at once."""

    def __init__(self, workspace: Workspace, file: Path, desk: Desk) -> None:
        self._workspace, self._file, self._desk = workspace, file, desk
        self._shelf = Shelf(workspace)
        self.reviewed = Reviewed()

    def go_through(self, drafts: Sequence[Draft]) -> None:
        """Each draft in turn, until the person quits. Raises as `accept` and `reject` do."""
        for number, draft in enumerate(drafts, 1):
            self._desk.tell("")
            self._desk.tell(f"Draft {number} of {len(drafts)}")
            if not self._decide(draft):
                return

    def _decide(self, draft: Draft) -> bool:
        """Ask until there is a decision; whether the person goes on."""
        self._show(draft)
        while True:
            given = self._desk.ask(_CHOICE)
            choice = "q" if given is None else given.strip().lower()[:1]
            if choice == "e":
                draft = self._edited(draft)
                self._show(draft)
            elif choice in ("a", "r", "s", "q"):
                return self._take(choice, draft.question)
            else:
                self._desk.tell(HELP)

    def _take(self, choice: str, question: Question) -> bool:
        if choice == "a":
            done = accept(self._workspace, self._file, [question])
            self.reviewed.accepted += len(done.added)
            self._desk.tell(f"accepted into {line_of(str(self._file))}" if done.added else "the set has it already")
        elif choice == "r":
            reject(self._workspace, [question])
            self.reviewed.rejected += 1
        elif choice == "s":
            self.reviewed.skipped += 1
        return choice != "q"

    def _edited(self, draft: Draft) -> Draft:
        """The draft as the editor gives it back, or as it was where the person leaves it so."""
        before = text = _EDIT_HEAD + as_yaml(_for_editing(draft.question))
        while True:
            try:
                given = self._desk.edit(text)
                if given is None or not given.strip() or given == before:
                    return draft
                text = given
                return Draft(_same(read_entry(given), draft.question), draft.model)
            except SettingError as error:
                self._desk.tell(line_of(str(error)))
                if (self._desk.ask(_AGAIN) or "l").strip().lower()[:1] != "e":
                    return draft

    def _show(self, draft: Draft) -> None:
        for line in draft_lines(draft, self._shelf):
            self._desk.tell(line)


def _for_editing(question: Question) -> dict[str, Any]:
    """Without `reviewed`, which the decision alone sets."""
    return {name: value for name, value in entry_of(question).items() if name != "reviewed"}


def _same(edited: Question, draft: Question) -> Question:
    """Raise SettingError where the id changed, by which a draft is known to be in the set."""
    if edited.id != draft.id:
        raise SettingError(f"the id is {edited.id}: leave it as it was, {draft.id}")
    return edited


def draft_lines(draft: Draft, shelf: Shelf) -> Iterator[str]:
    """A draft as a reader sees it: question, papers with links, claims with the passages that hold their evidence."""
    question = draft.question
    origin = f"proposed by {line_of(draft.model)}" if draft.model else "from the tables"
    yield f"{question.kind} · {origin} · {question.id}"
    yield f"Q: {line_of(question.question)}"
    for paper in question.papers:
        known = shelf.paper(paper)
        yield f"   {line_of(known.title) if known else 'not in the corpus'} (arXiv:{paper}) {abstract_url(paper)}"
    standing = shelf.standing(question)
    told: set[str] = set()
    for place, claim in enumerate(question.claims):
        yield from _claim_lines(place + 1, claim, standing[place], told, several=len(question.papers) > 1)


def _claim_lines(
    number: int, claim: GoldClaim, found: Sequence[Found], told: set[str], *, several: bool
) -> Iterator[str]:
    """A claim, its evidence and where it stands; the text of a passage that was told before is not told again."""
    yield f"{number}. {line_of(claim.claim)}{f' (arXiv:{claim.paper})' if several else ''}"
    for phrase in claim.evidence:
        yield f'   "{line_of(phrase)}"'
    if not found:
        why = "no passage holds this phrase" if claim.evidence else "without evidence"
        yield f"   {why}: it can be graded, and counts for no retrieval"
    for passage in found:
        where = " › ".join(passage.section_path or (passage.kind.replace("_", " "),))
        yield f"   in {line_of(where)}: {passage_url(passage.arxiv_id, passage.anchor)}"
        if passage.passage_id in told:
            continue
        told.add(passage.passage_id)
        yield f"      {line_of(around(passage.content(), claim.evidence))}"
        if speaks_to_the_model(passage.text):
            yield "      this passage speaks to the model, which read it as data"


def around(text: str, phrases: Sequence[str]) -> str:
    """The part of a text about the first of the phrases that it holds as it stands, else its beginning."""
    folded = " ".join(text.split())
    lowered = folded.lower()
    # A letter that is longer in lower case moves what follows: then the beginning will do.
    places = [found for each in phrases if (found := lowered.find(" ".join(each.lower().split()))) >= 0]
    start = max(min(places, default=0) - _AROUND_CHARS, 0)
    end = start + 3 * _AROUND_CHARS
    return f"{'… ' if start else ''}{folded[start:end]}{' …' if end < len(folded) else ''}"


def draft_json(draft: Draft, shelf: Shelf) -> Mapping[str, Any]:
    """A draft as a program reads it: the set's own entry, and for each claim the passages that hold its evidence."""
    standing = shelf.standing(draft.question)
    entry = entry_of(draft.question)
    claims = [
        each | {"passages": [_passage_json(found) for found in standing[place]]}
        for place, each in enumerate(entry["claims"])
    ]
    return entry | {"model": draft.model, "month": draft.question.month, "claims": claims}


def _passage_json(found: Found) -> dict[str, Any]:
    told = {"section_path": list(found.section_path), "text": found.text}
    return found.trace() | told | {"passage_url": passage_url(found.arxiv_id, found.anchor)}
