"""Task files from works and a section that cites them, and the folder layout of NudtRwG.

A section that is not numbered yet cites a work as `[Work i]`, i being the place of the work in the
data set, from 0. Citations by name and year, (Zhang et al., 2018) or Popović (2015), are matched to
the works first.

Of the ChatCite paper's own set NudtRwG-Citation, whose texts are PDF files, a folder holds one
folder for each target:

    A Decomposable Attention/target_paper_title.txt
    A Decomposable Attention/Target Paper.pdf
    A Decomposable Attention/Reference Papers/<title of the work>.pdf

Beside each PDF its text is expected, as `pdftotext` writes it (`Target Paper.txt`), or as Markdown
(`.md`). The related work is cut out of the target; its citations are names and years, which are
matched through the target's bibliography.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path

from pydantic import ValidationError

from pipeline.corpus.related_work import is_related_work
from pipeline.errors import SettingError
from pipeline.identity.people import split_names
from pipeline.related_work.task import FileReference, ReferenceSource, TaskFile
from pipeline.text import one_line

_WORK = re.compile(r"\[Work (\d+)\]")


@dataclass(frozen=True, slots=True)
class ImportedTask:
    """A task, the titles of references that its section does not cite, and citations that match no
    reference.
    """

    task: TaskFile
    uncited: tuple[str, ...]
    unmatched: tuple[str, ...] = ()


def make_imported_task(
    identifier: str,
    month: str | None,
    title: str,
    text: str,
    section: str,
    works: Sequence[FileReference],
    *,
    arxiv_id: str | None = None,
    unmatched: Sequence[str] = (),
    in_bibliography_order: bool = False,
) -> ImportedTask:
    """The task with its references in the order of a bibliography, not of their first citation.

    in_bibliography_order: whether the works come in that order; else they are sorted as most
    bibliographies of names are. Raises pydantic's ValidationError where a task file cannot hold it.
    """
    places = (
        range(len(works))
        if in_bibliography_order
        else sorted(range(len(works)), key=lambda i: _key(works[i]))
    )
    numbers = {place: number for number, place in enumerate(places, 1)}
    cited = {int(place) for place in _WORK.findall(section)}
    task = TaskFile(
        format="citeloom-task-1",
        id=identifier,
        month=month,
        title=title,
        arxiv_id=arxiv_id,
        text=text,
        related_work=_WORK.sub(
            lambda match: f"[Reference {numbers[int(match[1])]}]", section
        ).strip(),
        references=tuple(works[place] for place in places),
    )
    uncited = tuple(work.title for place, work in enumerate(works) if place not in cited)
    return ImportedTask(task, uncited, tuple(unmatched))


def _key(work: FileReference) -> tuple[str, int, str]:
    """Family name of the first author, year, title; works without authors are sorted in by their
    title.
    """
    return family_name(work.authors) or letters(work.title), work.year or 0, letters(work.title)


def family_name(authors: Sequence[str]) -> str:
    """The letters of the first author's last name, in lower case; "" without authors."""
    words = authors[0].split() if authors else []
    return letters(words[-1]) if words else ""


def letters(text: str) -> str:
    """A text's letters without accents and case, by which names and titles are compared."""
    plain = unicodedata.normalize("NFKD", text).casefold()
    return "".join(sign for sign in plain if sign.isalpha())


def item_text(authors: Sequence[str], year: int | None, title: str) -> str:
    """A bibliography item for a work of which no more is known."""
    return f"{', '.join(authors)}{f' ({year})' if year else ''}. {title}.".lstrip(" .")


_NAME = r"[^\W\d_][\w’'´`\-]{1,60}"
_OTHERS = rf"(?:\s+et\s+al\.?|\s+(?:and|&)\s+{_NAME})?"
_YEAR = r"(?P<year>(?:19|20)[0-9]{2})(?P<letter>[a-z]?)"
# Zhang et al. (2018), Bulte and Tezcan (2019), Popović (2015): the names stay, the year goes.
_IN_TEXT = re.compile(rf"(?P<names>(?P<first>{_NAME}){_OTHERS})\s*\({_YEAR}\)")
# Text between two semicolons of (Zhang et al., 2018; Popović, 2015).
_IN_GROUP = re.compile(rf"(?:.*?\s)??(?P<first>{_NAME}){_OTHERS},?\s+{_YEAR}")
_GROUP = re.compile(r"\(([^()]*(?:19|20)[0-9]{2}[a-z]?)\)")


class NameYearCitations:
    """Replaces citations of works by `[Work i]`; `unmatched` collects those that match none."""

    def __init__(self, works: Sequence[FileReference]) -> None:
        self.unmatched: list[str] = []
        self._works = works

    def mark(self, text: str) -> str:
        """The text with `[Work i]` in place of citations, i being a place among the works, from
        0.
        """
        return _GROUP.sub(self._mark_group, _IN_TEXT.sub(self._mark_in_text, text))

    def _mark_in_text(self, match: re.Match[str]) -> str:
        place = self._place(match)
        return match.group() if place is None else f"{match['names']} [Work {place}]"

    def _mark_group(self, match: re.Match[str]) -> str:
        marks, others = [], []
        for part in match[1].split(";"):
            cited = _IN_GROUP.fullmatch(part.strip())
            place = self._place(cited) if cited else None
            if place is None:
                others.append(part.strip())
            else:
                marks.append(f"[Work {place}]")
        if not marks:
            return match.group()
        return " ".join(marks + ([f"({'; '.join(others)})"] if others else []))

    def _place(self, cited: re.Match[str]) -> int | None:
        """Of works by this first author the one of this year, else the only one a year off, as
        preprints are.
        """
        family, year = letters(cited["first"]), int(cited["year"])
        same = [
            (place, work.year or 0)
            for place, work in enumerate(self._works)
            if family_name(work.authors) == family
        ]
        exact = [place for place, other in same if other == year]
        near = [place for place, other in same if abs(other - year) == 1]
        if exact:
            return exact[min(max(ord(cited["letter"] or "a") - ord("a"), 0), len(exact) - 1)]
        if len(near) == 1:
            return near[0]
        self.unmatched.append(one_line(cited.group()))
        return None


# --- NudtRwG ---

_TITLE, _TARGET, _REFERENCES = "target_paper_title.txt", "Target Paper", "Reference Papers"
_YEAR_BEHIND = re.compile(r"(?:19|20)\d\d(?=[a-z]?\b)")
_YEAR_BEFORE = re.compile(r"(?P<year>(?:19|20)\d\d)[a-z]?\b[\W_]*\Z")
_INITIAL_LAST = re.compile(r"\b[A-Z]\.\Z")
# Where the entry before ends: pages or a venue, a full stop, and a capital. Initials have one
# letter before their stop.
_ENTRY_END = re.compile(r"(?:\d|[a-z]{3}|\))\.\s+(?=[A-Z])|\n\n")
_LABEL = re.compile(r"\[\d{1,3}\]\s*")
# The year is right before the title, or a venue's length behind it; authors take no more than so
# many characters.
_BEHIND, _AUTHORS = 250, 600


def import_nudtrwg(folder: Path, month: str | None = None) -> tuple[list[ImportedTask], list[str]]:
    """The tasks of the folder by name; and of each target that could not be read, why.

    Raises SettingError where the folder holds no target, or no text of any.
    """
    targets = sorted(file.parent for file in folder.glob(f"*/{_TITLE}"))
    if not targets:
        raise SettingError(
            f"{folder} holds no folder with {_TITLE}: give the folder that holds NudtRwG's targets"
        )
    tasks, faults = [], []
    for number, target in enumerate(targets, 1):
        try:
            tasks.append(_task(target, number, month))
        except (SettingError, ValidationError) as error:
            faults.append(
                f"{target.name}:"
                f" {error.errors()[0]['msg'] if isinstance(error, ValidationError) else error}"
            )
    if not tasks:
        raise SettingError(f"{folder}: no target could be read; {faults[0]}")
    return tasks, faults


def _task(folder: Path, number: int, month: str | None) -> ImportedTask:
    title = _folded((folder / _TITLE).read_text(encoding="utf-8", errors="replace"))
    text = _text_of(folder / f"{_TARGET}.pdf")
    if text is None:
        raise SettingError(
            f"{_TARGET}.txt is not there: turn each PDF into text beside it, such as by pdftotext"
        )
    paper = read_plain_paper(text)
    sections = paper.related_work()
    if not sections:
        raise SettingError("its text has no section on related work")
    files = sorted(folder.glob(f"{_REFERENCES}/*.pdf"))
    entries = sorted(
        (_work(file, paper) for file in files), key=lambda entry: (entry[0], entry[1].title)
    )
    works = [work for _, work in entries]
    citations = NameYearCitations(works)
    return make_imported_task(
        f"nudtrwg-{number}",
        month,
        title,
        f"# {title}\n\n{paper.markdown(without=sections)}",
        citations.mark("\n\n".join(section.text for section in sections if section.text)),
        works,
        unmatched=citations.unmatched,
        in_bibliography_order=True,
    )


def _work(file: Path, target: PlainPaper) -> tuple[int, FileReference]:
    """(place in the target's bibliography, the work); a work that the bibliography does not show
    comes last.
    """
    # A file's name holds no colon: two spaces stand for it.
    title = _folded(re.sub(r"(?<=\S)  +(?=\S)", ": ", file.stem))
    place, authors, year = bibliography_entry(target.bibliography, title)
    text = _text_of(file)
    content = item_text(authors, year, title)
    if text is not None:
        content = read_plain_paper(text).markdown() or title
    source: ReferenceSource = "item" if text is None else "full_text"
    return place, FileReference(
        title=title, authors=authors, year=year, source=source, text=content
    )


def bibliography_entry(bibliography: str, title: str) -> tuple[int, tuple[str, ...], int | None]:
    """(place of the title in a bibliography, authors, year); at its end, and nothing, where the
    title is not in it.

    Read are "Authors. Year. Title" and "[1] Authors. Title. Venue, year".
    """
    positions = [place for place, sign in enumerate(bibliography) if sign.isalpha()]
    squashed = "".join(letters(bibliography[place])[:1] or "?" for place in positions)
    wanted = letters(title)
    start = squashed.find(wanted) if len(wanted) > 5 else -1
    if start < 0:
        return len(bibliography), (), None
    begin, end = positions[start], positions[min(start + len(wanted), len(positions)) - 1] + 1
    before = bibliography[max(begin - _AUTHORS, 0) : begin]
    year_before = _YEAR_BEFORE.search(before)
    year = year_before or _YEAR_BEHIND.search(bibliography, end, end + _BEHIND)
    names = before[: year_before.start()] if year_before else before
    names = names[max((match.end() for match in _ENTRY_END.finditer(names)), default=0) :]
    names = _LABEL.split(names)[-1].strip(' ,:;(“"\n')
    names = names if _INITIAL_LAST.search(names) else names.rstrip(".")
    return begin, split_names(names), int(year[0][:4]) if year else None


def _text_of(pdf: Path) -> str | None:
    for ending in (".md", ".txt"):
        file = pdf.with_suffix(ending)
        if file.is_file():
            return file.read_text(encoding="utf-8", errors="replace")
    return None


def _folded(text: str) -> str:
    return one_line(unicodedata.normalize("NFKC", text))


# --- texts of PDF files ---

_NUMBER_ABOVE = re.compile(r"(?m)^(\d{1,2}(?:\.\d{1,2})*)\.?[ \t]*\n\s*\n?(?=[A-Z][^\n.]{2,60}$)")
_NUMBERED = re.compile(
    r"(?P<number>\d{1,2}(?:\.\d{1,2}){0,3})\.?\s+(?P<title>[A-Z][^\n]{1,80}[^.,;:\s])"
)
_UNNUMBERED = re.compile(
    r"(?:abstract|introduction|background|related works?|previous work|conclusions?|conclusions?"
    r" and future work"
    r"|discussion|acknowledge?ments?|references|bibliography|appendix)",
    re.IGNORECASE,
)
_BIBLIOGRAPHY = re.compile(r"references|bibliography", re.IGNORECASE)
_PAGE_NUMBER = re.compile(r"\s*\d{1,5}\s*")


@dataclass(frozen=True, slots=True)
class PlainSection:
    """A section under its heading: its number in parts, none where it has no number, and its text
    in paragraphs.
    """

    title: str
    number: tuple[int, ...]
    text: str


@dataclass(frozen=True, slots=True)
class PlainPaper:
    """The text of a PDF. sections: all in order, the bibliography's left out; bibliography:
    as printed, "" where there is none.
    """

    sections: tuple[PlainSection, ...]
    bibliography: str

    def related_work(self) -> list[PlainSection]:
        """The section about related work and its subsections; none where there is none."""
        start = next(
            (i for i, section in enumerate(self.sections) if is_related_work(section.title)), None
        )
        if start is None:
            return []
        head, *following = self.sections[start:]
        depth = len(head.number)
        return [head, *takewhile(lambda each: 0 < depth < len(each.number), following)]

    def markdown(self, without: Sequence[PlainSection] = ()) -> str:
        """The other sections as Markdown, each under its heading."""
        return "\n\n".join(
            f"## {section.title}\n\n{section.text}".strip() if section.title else section.text
            for section in self.sections
            if section not in without
        )


def read_plain_paper(text: str) -> PlainPaper:
    """The paper of a text. Ligatures become letters, words that a line's end divides become one."""
    plain = unicodedata.normalize("NFKC", text.replace("\f", "\n")).replace("\r\n", "\n")
    sections = list(_sections(_NUMBER_ABOVE.sub(r"\1 ", plain)))
    end = next(
        (i for i, section in enumerate(sections) if _BIBLIOGRAPHY.fullmatch(section.title)),
        len(sections),
    )
    bibliography = sections[end].text if end < len(sections) else ""
    return PlainPaper(
        tuple(section for section in sections[:end] if section.title or section.text), bibliography
    )


def _sections(text: str) -> Iterator[PlainSection]:
    title, number, lines = "", (), []  # type: str, tuple[int, ...], list[str]
    for line in text.splitlines():
        plain = line.strip().lstrip("# ")
        numbered = _NUMBERED.fullmatch(plain)
        if numbered or line.strip().startswith("#") or _UNNUMBERED.fullmatch(plain):
            yield PlainSection(title, number, _paragraphs(lines))
            title, number, lines = plain, (), []
            if numbered:
                title, number = numbered["title"], tuple(map(int, numbered["number"].split(".")))
        else:
            lines.append(line)
    yield PlainSection(title, number, _paragraphs(lines))


def _paragraphs(lines: list[str]) -> str:
    """Lines joined to paragraphs, which a blank line divides; page numbers go."""
    text = "\n".join("" if _PAGE_NUMBER.fullmatch(line) else line.strip() for line in lines)
    text = re.sub(r"(?<=[a-z])-\n+(?=[a-z])", "", text)
    return "\n\n".join(one_line(part) for part in re.split(r"\n\s*\n", text) if part.strip())
