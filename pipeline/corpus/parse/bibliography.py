"""A page's bibliography to items: title, authors, year, venue, DOI, arXiv id, as far as its style
shows them.

A style prints names, a year, a title and a venue, in blocks or in one run of text, and marks them
by place, quotation marks, italics and punctuation. They are read one after the other, and each ends
where a rule of `bibliography_rules.py` says. Where an item leaves open how its names end, most
items of its list decide.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from pipeline.corpus.parse import bibliography_rules as rules
from pipeline.corpus.parse.bibliography_rules import (
    ACCESS,
    DATE,
    EDGES,
    JOURNAL,
    MONTH,
    NO_DATE,
    OPENING,
    QUOTED_TITLE,
    QUOTES,
    SENTENCE_END,
    SHORT_SENTENCE_END,
    THESIS,
    YEAR,
    Italics,
    alternation,
)
from pipeline.corpus.parse.item_fields import (
    archive_in_title,
    find_doi,
    find_item_id,
    find_year,
    tidy_venue,
)
from pipeline.corpus.parse.parsed_page import BibliographyItem
from pipeline.identity.people import LETTER, PARTICLES, split_names

_CAPITAL = r"[^\W\d_a-z]"
_YEAR = re.compile(YEAR)
_WORD = re.compile(rf"{LETTER}{{2}}")


@dataclass(slots=True)
class ItemParts:
    """An item as the page lays it out. fields: those that LaTeXML named."""

    key: str
    raw: str = ""
    blocks: list[str] = field(default_factory=list)
    emphases: list[str] = field(default_factory=list)
    links: list[str] = field(default_factory=list)
    fields: list[tuple[str, str]] = field(default_factory=list)
    label: str = ""


@dataclass(slots=True)
class _Reading:
    """The fields of an item. names_end: the rule by which its names end, or ""."""

    names: str = ""
    names_end: str = ""
    year: int | None = None
    title: str = ""
    venue: str = ""
    italics: Italics = ()


def read_bibliography(items: Sequence[ItemParts]) -> list[BibliographyItem]:
    """All items of a list, in order; a field that an item does not show is None."""
    readings = list[_Reading]()
    for item in items:
        names_before = readings[-1].names if readings else ""
        readings.append(_read(item, "", names_before))
    ends = Counter(reading.names_end for reading in readings)
    usual = next((name for name, count in ends.most_common(1) if 2 * count > len(items)), "")
    names_before = ""
    bibliography = []
    for parts, reading in zip(items, readings, strict=True):
        by_habit = usual and usual != reading.names_end and reading.names_end in _GUESSES
        read = _read(parts, usual, names_before) if by_habit else reading
        title = _tidy_title(read.title)
        bibliography.append(
            BibliographyItem(
                key=parts.key,
                raw=parts.raw,
                title=title,
                authors=_authors(read.names),
                year=read.year or find_year(parts.raw),
                venue=tidy_venue(read.venue, read.italics) or archive_in_title(read.title),
                doi=find_doi(parts.raw, parts.links, title),
                arxiv_id=find_item_id(parts.raw, parts.links, parts.fields),
            )
        )
        names_before = read.names
    return bibliography


# Ends of names that a list in which most items end otherwise need not have.
_GUESSES = ("", "italics", "full_names")


# A dash stands for the names of the item before.
_SAME_NAMES = re.compile(r"\s*(?:[—―]+|[–_-]{2,})(?=[\s,.:(])")


def _read(parts: ItemParts, usual: str, names_before: str = "") -> _Reading:
    """Names, year, title and venue of an item. `usual`: how names end in most items of its list, ""
    if unknown. `names_before`: the names of the item before, which a dash repeats.
    """
    named = _from_fields(parts.fields) if parts.fields else None
    if named:
        return named
    text = _composed("\n".join(filter(None, parts.blocks)) or parts.raw)
    same = _SAME_NAMES.match(text) if names_before else None
    if same:
        text = names_before + text[same.end() :]
    italics = tuple(_composed(words) for words in parts.emphases if len(words) > 3)
    reading = _Reading(italics=italics)
    rest = _take_names(text, parts.label, usual, reading)
    if reading.names_end or not _is_remark(parts):
        own_block = reading.names_end in ("", "block") or rest.lstrip(" ")[:1] == "\n"
        commas = reading.names_end in ("comma", "full_names")
        reading.title, reading.venue = _split_title(
            rest, italics, own_block=own_block, commas=commas
        )
    return reading


def _composed(text: str) -> str:
    """A text whose accents are no letters of their own, as in text copied from a PDF."""
    return text if text.isascii() else unicodedata.normalize("NFC", text)


def _from_fields(fields: Sequence[tuple[str, str]]) -> _Reading | None:
    """LaTeXML's own fields, where it made the bibliography from BibTeX itself.

    Styles that cite by names and year print both in the item's tag alone.
    """
    first = dict(reversed(fields))
    if "title" not in first:
        return None
    names, _, date = first.get("author-year", "").rpartition(" (")
    names = next(filter(None, map(first.get, ("author", "editor"))), names)
    venue = next(filter(None, map(first.get, _VENUE_FIELDS)), "")
    dates = (first.get("year"), first.get("date"), date)
    year = next(filter(None, (_YEAR.search(text or "") for text in dates)), None)
    return _Reading(names, "fields", int(year[0]) if year else None, first["title"], venue)


_VENUE_FIELDS = (
    "journal", "inbook", "crossref", "booktitle", "publisher", "school", "institution",
    "organization",
)  # fmt: skip


def _is_remark(parts: ItemParts) -> bool:
    """Whether an item is a note: words without names, year, italics and address."""
    return (
        len(parts.blocks) < 2
        and not parts.emphases
        and not parts.links
        and not _YEAR.search(parts.raw)
        and parts.raw.count(" ") > _WORDS_OF_AN_ORGANISATION
    )


# Names, and the year that may follow them.

_AFTER_NAMES = alternation(rules.AFTER_NAMES, rules.NAMES_MARK)
_YEAR_RULES = ("year", "bracketed_year", "bare_year")
# How the names of organisations end in a list where most names end so.
_USUAL_ENDS = {
    "colon": re.compile(r":\s"),
    "comma": re.compile(r",\s"),
    "full_names": re.compile(r",\s"),
    "year": re.compile(rf"\s{DATE}[.,:;]*"),
    "bracketed_year": re.compile(rf"[(\[]{DATE}[)\]][.,:;]*"),
    "bare_year": re.compile(rf"\s{YEAR}[a-z]?"),
}
_YEAR_FIRST = re.compile(
    rf"(?:[(\[](?:({YEAR})[a-z]?|{NO_DATE})[)\]]|({YEAR})[a-z]?(?=\.?\n|,\s(?:{_CAPITAL}|[‘“])))"
    r"[.,:]*\s"
)
_YEAR_AT_END = re.compile(rf"\s[(\[]?({DATE})[^\n]{{0,12}}$")
_YEAR_AFTER_NAMES = re.compile(
    rf"(?:[\s,.(]*[Ee]d(?:itor)?s?\b\.?\)?)?"
    rf"(?:[\s,.:;]*(?:[(\[](?:{MONTH},? )?{DATE}[^()\[\]\n]{{0,20}}[)\]]|"
    rf"{DATE}(?:, {MONTH}(?: \d\d?)?)?(?=[.,;:]|\n|$)))?[.,:;]*"
)
# Behind a word, or the initials of an only name: "Roe A. On words.", "Roe A. B. On words."
_SENTENCE = re.compile(
    rf"(?:(?<={LETTER}{{2}})|(?<={LETTER}{{2}} {_CAPITAL})|(?<={LETTER}{{2}} [A-Z]\. [A-Z])|"
    rf"(?<=-{_CAPITAL}))\.\s+(?![A-Z]\.)"
)

_AND = r"(?:and\b|&|et\b(?!\.? al)|und\b|[yei]\b)"
_AND_OTHERS = r"(?:et\.? al\b\.?|u\.\s?a\.)"
# Lists with initials. Groups are atomic: a name is taken whole or not at all, so a list of a
# thousand is read once.
_LAST = rf"(?:(?:d[aeu]|del|der|den|van|von|l[ae]) +){{0,3}}{LETTER}[\w’'`$\\{{}}^-]+"
# In "Roe, A. J. Phys. Words" a journal begins behind "A."
_NO_JOURNAL = r"(?!J\. (?!Jr)[A-Z][a-z]{1,6}\.)"
_FIRST = rf"(?:{_NO_JOURNAL}{_CAPITAL}[a-z]?\.(?:-?[a-z]\.)?[\s~-]*){{1,6}}"
# Medicine's "Roe AB".
_BARE = rf"{_LAST}(?: {_LAST})? {_CAPITAL}(?:[ -]?{_CAPITAL}){{0,2}}(?:,? Jr\.?)?(?!\w)"
_NAME = (
    rf"(?>{_FIRST}{_LAST}(?: (?!and\b|et\b|Jr\b){_LAST})?(?:,? Jr\.?)?|"
    rf"{_LAST}(?: (?:y )?{_LAST})?, {_FIRST}(?:, Jr\.)?|"
    rf"{_LAST}(?: {_LAST})? {_FIRST}(?=[,;:&]|and\b|et\b|\d|$)|{_BARE}(?=[,;:]|\s{_AND}))"
    # "J. Fluid Mech. 508" is a journal: a volume follows where a year would not; so is "J. Mach.
    # Learn. Res."
    r"(?!\.?\s+(?!(?:19|20)\d\d\b)\d|\.\s+[A-Z][a-z]{0,5}\.)"
)
_NAMES_WITH_INITIALS = re.compile(
    rf"{_NAME}(?>(?:\s*[,;–]\s*|\s+(?=\S))(?!{_AND}|et al)(?:{_NAME}|{_BARE}(?=\.)))*"
    rf"(?>\s*+[,;]?\s*+{_AND}\s*(?:{_NAME}|{_LAST}(?: {_LAST}(?=,))?))?"
    rf"(?:\s*+[,;]?\s*+{_AND_OTHERS})?"
)
# Lists of full names before a comma: "Ann Lee, Bob van Roe and Cid Moe, On words".
_FULL_NAME = (
    rf"(?>{_CAPITAL}[\w’'-]+(?: (?:{_CAPITAL}\.)+)*(?:"
    r" (?:van|von|de|der|den|del|la|di|da|dos|du|el|bin))*"
    rf"(?: {_CAPITAL}[\w’'-]+){{1,2}}(?:,? Jr\.?)?)"
)
_FULL_NAMES = re.compile(
    rf"{_FULL_NAME}(?:, (?!and\b){_FULL_NAME})*+(?:,? (?:and|&) {_FULL_NAME}(?=\.\s)"
    rf"|(?:,? (?:and|&) {_FULL_NAME})?(?=,\s(?!and\b|&)|\s*\([Ee]d))"
)

# A question, a number or the end of a sentence is in no list of names.
_NO_NAMES = re.compile(r"[?!\d:.“«](?:(?<=[?!\d“«])|(?<=:)\s|(?<=[a-z]{2}\.)(?<!eds\.)\s(?!\())")
_NO_ORGANISATION = re.compile(r"https?:|[a-z]\.\s|\n|[?!]")
_SEPARATORS = (",", ";", " and ", " & ", " – ")
_MARK_OF_A_NAME = re.compile(rf"\b{LETTER}\.|\bet al\b|\s[A-Z]{{1,3}}$")
_BETWEEN_NAMES = PARTICLES | {"and", "et", "others", "eds", "editors", "editor"}
_IN_ORGANISATIONS = _BETWEEN_NAMES | {
    "of", "for", "on", "the", "in", "at", "to", "with", "und", "für", "its",
}  # fmt: skip
_WORDS_OF_A_NAME, _WORDS_OF_AN_ORGANISATION, _WORDS_OF_AUTHORS = 5, 10, 60


def _take_names(text: str, label: str, usual: str, reading: _Reading) -> str:
    """Read the names, and a year after them, off the front of an item, and return the rest."""
    if text[:1] in OPENING:
        return text
    dated = _YEAR_FIRST.match(text)
    if dated:
        reading.names_end, reading.year = "year", int(dated[1] or dated[2] or 0) or None
        return text[dated.end() :]
    for name, end, start in _ends_of_names(text, usual, reading.italics):
        if _are_names(text, name, end, start, label, usual, reading.italics):
            reading.names, reading.names_end = text[:end], name
            if name not in _YEAR_RULES:
                dated = _YEAR_AFTER_NAMES.match(text, start)
                start = dated.end() if dated else start
            year = _YEAR.search(text, end, start)
            reading.year = int(year[0]) if year else None
            return text[start:]
    return text


def _ends_of_names(text: str, usual: str, italics: Italics) -> Iterator[tuple[str, int, int]]:
    """Where the names of an item may end, the likeliest place first: (rule, end of the names, start
    of the rest).
    """
    line = text.find("\n")
    if line > 0:
        dated = _YEAR_AT_END.search(text, max(0, line - 24), line)
        if dated:
            yield "year", dated.start(), line
        else:
            yield "block", line, line
    end = _AFTER_NAMES.search(text, 0, line if line > 0 else len(text))
    if end:
        yield end.lastgroup or "", end.start(), end.end()
    names = _NAMES_WITH_INITIALS.match(text)
    if names:
        has_comma = text[names.end() :].lstrip().startswith(",")
        yield "comma" if has_comma else "initials", names.end(), names.end()
    places = (text.find(words) for words in italics if " " in words)
    place = next((place for place in places if place > 0), 0)
    has_initials = usual in ("initials", "sentence")
    if place and not has_initials:
        yield "comma" if text[:place].rstrip().endswith(",") else "italics", place, place
    names = None if has_initials else _FULL_NAMES.match(text)
    if names:
        is_sentence = text.startswith(".", names.end())
        yield "sentence" if is_sentence else "full_names", names.end(), names.end()
    rule = usual if usual in _USUAL_ENDS else "colon"
    end = _USUAL_ENDS[rule].search(text)
    if end and (usual or ";" in text[: end.start()]):
        yield rule, end.start(), end.end()
    sentence = _SENTENCE.search(text)
    if sentence:
        yield "sentence", sentence.start(), sentence.end()


def _are_names(
    text: str, rule: str, end: int, start: int, label: str, usual: str, italics: Italics
) -> bool:
    """Whether the text up to a place is names, by form, label, or the list's habit."""
    head = text[:end].strip(EDGES + "([")
    if not head or any(words in head for words in italics):
        return not head and rule in _YEAR_RULES
    listed = _reads_as_names(head)
    if rule == "quote" and head.count(" ") < _WORDS_OF_AUTHORS and _precedes_title(text, start):
        return True
    if not listed and rule == "year" and _confirms(label, head, text[end:start]):
        return True
    by_habit = rule == usual and rule not in ("block", "comma")
    if listed is None or (not listed and by_habit and head.count(" ") < _WORDS_OF_AN_ORGANISATION):
        return label.startswith(head) or not _reads_as_venue(text[start:], italics)
    return listed


def _precedes_title(text: str, start: int) -> bool:
    """Whether names before a comma and a whole title in quotation marks may be an
    organisation's: "FORCE11 Group, “On words,”".
    """
    title = QUOTED_TITLE.match(text, start)
    if title is None or not text[:start].rstrip().endswith(","):
        return False
    return _ends_title(text, title.end()) and not _NO_ORGANISATION.search(text, 0, start)


def _reads_as_names(head: str) -> bool | None:
    """Whether a text is a list of names by its form; None where it may be one name."""
    if _NO_NAMES.search(head) or ", in " in head:
        return False
    head = head.removesuffix(" u. a")
    small = {word.rstrip(".") for word in head.replace(",", " ").split() if word[0].islower()}
    words, names = head.count(" ") + 1, sum(map(head.count, _SEPARATORS)) + 1
    few_small = not small or 3 * len(small - _BETWEEN_NAMES) <= names - 1
    if (
        few_small
        and words <= _WORDS_OF_A_NAME * names
        and (names > 1 or _MARK_OF_A_NAME.search(head))
    ):
        return True
    return None if words <= _WORDS_OF_AN_ORGANISATION and small <= _IN_ORGANISATIONS else False


def _confirms(label: str, head: str, date: str) -> bool:
    """Whether a label, as "Lee et al. (1999a)", names an item's first author and year."""
    year, family = _YEAR.search(label), _LABEL_NAME.search(label)
    return year is not None and family is not None and year[0] in date and family[0] in head


_LABEL_NAME = re.compile(rf"{LETTER}{{3,}}")


def _authors(names: str) -> tuple[str, ...]:
    """The names of a list, given names first."""
    if not names:
        return ()
    bare = (_GROUP.sub("", names) if "(" in names or "[" in names else names).strip(" \n\t,;:([")
    bare = bare.replace(" – ", ", ")
    if bare.endswith(".") and bare[-3:-1].isalpha():
        bare = bare[:-1]
    authors = tuple(name for name in split_names(bare) if len(name) > 2 or name[:1].isalpha())
    if all(map(_INITIALS_LAST.match, authors)):
        return tuple(_INITIALS_LAST.sub(_given_first, name) for name in authors)
    return authors


_GROUP = re.compile(r"\([^()]*\)|\[[^\[\]]*\]")
_INITIALS_LAST = re.compile(
    rf"\A(?=[^,.]+[^\W\d_A-Z])([^,.]+) ({_CAPITAL}(?:[ -]?{_CAPITAL}){{0,2}}|[A-Z]\.[A-Z .-]*)\Z"
)


def _given_first(name: re.Match[str]) -> str:
    """ "Roe A. B" as "A. B. Roe": the stop behind the last initial may be the list's."""
    last, initials = name.groups()
    stop = "." if "." in initials[:-1] and initials[-1] != "." else ""
    return f"{initials}{stop} {last}"


# Titles.

_AFTER_TITLE = alternation(rules.AFTER_TITLE)
_AFTER_TITLE_IN_A_RUN = alternation((*rules.AFTER_TITLE, *rules.AFTER_TITLE_IN_A_RUN))
_TITLE_TAIL = alternation(rules.TITLE_TAIL, rules.TAIL_MARK)
# Where a title may end: behind a comma or a stop, before an address, a date or a report's number in
# brackets, and at a kind in brackets: "On words[J]. ", "On words[C]//", "On words [Internet]. ".
_STOP = re.compile(
    r"(?=[.?!,;:\s\[])(?:[.?!,;]['”’)]?\s++(?!Part\b)|"
    r"(?<!\s)\s++(?=<?https?:|\((?:19|20|No\.|[^()]{0,12}(?:[Tt]hesis|[Rr]ep)))|"
    r"\[[A-Z](?:/[A-Z]{2})?\](?://|\.\s)?|\[[^\W\d][^\d\[\]]{3,30}\][.;,]?\s|"
    r":\s(?=[^:?!\n]{3,80}, v\. ?\d))"  # geology: "On words: J. Words, v. 2, p. 3"
)
_WITHIN = re.compile(r"[Ii]n\s?:\s|[Ii]n (?=[A-Z\d“‘'])")
_FIRST_STOP = re.compile(r"[.?!]\s+(?=[^\W\d_a-z])(?!Part\b|Vol)")
_SENTENCE_STOP = re.compile(
    rf"{SHORT_SENTENCE_END}(?!Part\b)|\. (?<=[a-z]{{2}}\. )(?=[A-Z][a-z]+ [a-z]{{4}})"
)
_FIRST_COMMA = re.compile(r",\s+(?=[A-Z“])")
_NO_TITLE = re.compile(
    r"\(?(?:[Pp]rivate comm|[Pp]ersonal comm|[Uu]npublished|[Uu]ntitled|[Tt]o appear|[Ii]n"
    r" prep|[Ii]n press|"
    r"[Ss]ubmitted|[Pp]reprint)"
)
_VENUE_FIRST = re.compile(
    rf"[Ii]n: |in (?=[A-Z\d“])|In"
    rf" (?=(?:Proc|Advances|[A-Z]{{2,}}\b))|https?:|URL|{ACCESS}|[Aa]r[Xx]iv|Co[Rr][Rr]|"
    rf"[Tt]ech(?:nical|\.) [Rr]ep|{THESIS}|{JOURNAL}|"
    # "J. Phys. Chem. 1999, 3, 12", "Nature. 1999;3:12"
    rf"[A-Z][A-Za-z]*(?:[.,]?\s|(?!{SENTENCE_END})\.\s(?:(?:[A-Z][A-Za-z]*\.?|of|in),?\s){{1,6}})\(?{YEAR}\)?[,;:]\s?\d"
)
# MNRAS prints "Technical Report 12, On Words. Institute": a title is before the last stop.
_REPORT_FIRST = re.compile(
    r"[Tt]ech(?:nical|\.) [Rr]ep(?:ort|\.) (?=[\w/-]*\d)[\w/-]++, "
    rf"(?P<title>{_CAPITAL}[^.\n]+)\. {_CAPITAL}"
)
_INSTITUTION = re.compile(
    r"Universi|Institut|Laborator|Labs?\b|Cent(?:er|re)\b|Agency|Observator|Department|School|College|"
    r"Compan|Corp|Inc\b|Ltd|GmbH|Foundation|Societ|Council|Ministry|Bureau|Academy|Research$|NASA|CERN"
)
_NUMBER_AFTER = re.compile(
    r"[\s,.(]*(?:[Vv]ol|[Nn]o\.|pp?\.|pages|"
    rf"(?!{YEAR})\d+(?!st|nd|rd|th|ᵉ|[ªº]|\d)|{YEAR}[,;)]*\s\d)"
)


def _split_title(rest: str, italics: Italics, *, own_block: bool, commas: bool) -> tuple[str, str]:
    """What follows the names as (title, rest).

    `own_block`: the title has a block of its own if there are more. `commas`: a comma ends the
    names, so that one may end the title.
    """
    rest = rest.lstrip(EDGES + ")–—")
    report = _REPORT_FIRST.match(rest)
    if report and not _INSTITUTION.search(report["title"]):
        rest = rest[report.start("title") :]
    quoted = QUOTED_TITLE.match(rest) if rest[:1] in OPENING else None
    if quoted and _ends_title(rest, quoted.end()):
        return quoted[0], rest[quoted.end() :]
    title, line, later = rest.partition("\n")
    own_block = own_block and bool(line)
    if _NO_TITLE.match(rest):
        return "", rest
    whole = next(
        (words for words in italics if rest.startswith(words) and _ends_title(rest, len(words))), ""
    )
    if whole:
        return whole, rest[len(whole) :]
    if not own_block and _reads_as_venue(rest, italics):
        return "", rest
    stop = _end_of_title(title, italics, own_block=own_block, commas=commas)
    if stop:
        return rest[: stop.start()] + stop[0][:1].strip(",;[ "), rest[stop.end() :]
    if not line:
        for words in italics:
            place = title.find(words)
            if place > 0:
                return title[:place], rest[place:]
    return title, later


def _end_of_title(
    title: str, italics: Italics, *, own_block: bool, commas: bool
) -> re.Match[str] | None:
    """The stop that ends a title within its block; None where it has none."""
    stops = list(_STOP.finditer(title))
    # "In", or words in italics, mark the beginning of a venue.
    marked = (
        stop
        for stop in stops
        if stop[0][0] in "[:"
        or title.startswith(italics, stop.end())
        or _WITHIN.match(title, stop.end())
    )
    after_title = _AFTER_TITLE if own_block else _AFTER_TITLE_IN_A_RUN
    mark = next(marked, None)
    end = mark or next((stop for stop in stops if after_title.match(title, stop.end())), None)
    if end and not commas:
        if end[0][0] != ",":
            return _SENTENCE_STOP.search(title, 0, end.start()) or end
        sentence = None if mark else _SENTENCE_STOP.search(title)
        return _FIRST_STOP.search(title, 0, end.start()) or sentence or end
    if end or own_block or not stops:
        return end
    return (_FIRST_COMMA.search(title) if commas else None) or _FIRST_STOP.search(title)


def _ends_title(text: str, end: int) -> bool:
    """Whether words in quotation marks or italics at the front of a text are all of a title.

    A comma or stop within the quotation ends it in any case: “On words,” arXiv preprint.
    """
    if text[end - 1] in QUOTES and text[end - 2] in ",.;":
        return True
    following = text[end : end + 2]
    if following[:1] == " ":
        is_continued = following[1:].islower() and text[end : end + 4] != " in "
        return not is_continued or _AFTER_TITLE_IN_A_RUN.match(text, end + 1) is not None
    return following[:1] in ("", ".", ",", ";", "\n", "(")


def _reads_as_venue(text: str, italics: Italics) -> bool:
    """Whether a text is empty or begins with a venue, its number or an address."""
    text = text.lstrip(EDGES)
    first = _VENUE_FIRST.match(text)
    if not text or first:
        # A title is before words in italics.
        return not first or not any(text.find(words, 0, first.end()) > 0 for words in italics)
    words = next((words for words in italics if text.startswith(words)), "")
    return bool(words) and _NUMBER_AFTER.match(text, len(words)) is not None


_MOST_TAILS = 5


def _tidy_title(text: str) -> str | None:
    """The title without quotation marks around it and without what styles hang on to it."""
    title = text.strip(EDGES)
    quoted = QUOTED_TITLE.match(title) if title[:1] in OPENING else None
    if quoted and quoted.end() == len(title):
        # Those of a word within the title stay.
        bare = title.strip(QUOTES + EDGES)
        unclosed = bare.count("“") - bare.count("”")
        title = f"{'“' * (unclosed < 0)}{bare}{'”' * (unclosed > 0)}"
    for _ in range(_MOST_TAILS):
        tail = _TITLE_TAIL.search(title)
        if tail is None:
            break
        title = title[: tail.start()].rstrip(EDGES)
    return title if _WORD.search(title) else None
