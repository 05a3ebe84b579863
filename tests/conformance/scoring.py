"""Compare what the parser reads from a page with what the page is known to say, field by field.

A field counts where the page prints it or the parser reads something; it is right where both say
the same. Case, punctuation, white space and the signs around math are no difference; accents are.
Whether an item prints a field is looked up in the item's own text and links, read from the page
without the parser.
"""

import re
import unicodedata
from collections import Counter
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from itertools import permutations
from urllib.parse import unquote

from pipeline.corpus.parse.parsed_page import Author

BYLINE_FIELDS = (
    "paper title",
    "author names",
    "affiliations",
    "affiliations one by one",
    "e-mails",
)
ITEM_FIELDS = ("title", "item authors", "year", "venue", "DOI", "arXiv id")

_WORD = re.compile(r"[^\W_]+")
_MATH_SIGNS = re.compile(r"[\\${}]")


@dataclass(frozen=True, slots=True)
class Mistake:
    """One field that was not read as it is printed."""

    page: str
    place: str
    field: str
    expected: str
    read: str


@dataclass(slots=True)
class Score:
    """Fields that count and fields that are right, by name of field."""

    right: Counter[str] = field(default_factory=Counter)
    total: Counter[str] = field(default_factory=Counter)
    mistakes: list[Mistake] = field(default_factory=list)

    def add(self, page, place, name, expected, read, *, right):
        """Count one field."""
        self.total[name] += 1
        self.right[name] += right
        if not right:
            self.mistakes.append(Mistake(page, place, name, str(expected), str(read)))

    def rate(self, name):
        """The share of a field that is right; None where it never counts."""
        return self.right[name] / self.total[name] if self.total[name] else None


def words(text):
    """The words of a text in small letters, accents kept."""
    plain = _MATH_SIGNS.sub(" ", unicodedata.normalize("NFKC", text or "").casefold())
    # LaTeXML puts the accent of \'\i on a dotless i, which has no composed form.
    return _WORD.findall(
        unicodedata.normalize("NFC", plain.replace("ı\N{COMBINING ACUTE ACCENT}", "í"))
    )


# Bylines.


def score_byline(score, page, paper, authors, text):
    """Count the names, affiliations and e-mails of a page; `text` is the page's whole text."""
    score_names(score, page, paper.authors, authors)
    read = {" ".join(words(author.name)): author for author in paper.authors}
    for author in authors:
        mine = read.get(" ".join(words(author.name)), Author(""))
        score_affiliations(score, page, author, mine)
        expected = (
            {author.email} if author.email and is_address_printed(author.email, text) else set()
        )
        if expected or mine.emails:
            right = set(mine.emails) == expected
            score.add(page, author.name, "e-mails", sorted(expected), mine.emails, right=right)


def score_names(score, page, read, authors):
    """Count names in order; a name too many is a mistake like one too few."""
    expected_words = [" ".join(words(author.name)) for author in authors]
    read_words = [" ".join(words(author.name)) for author in read]
    matcher = SequenceMatcher(None, expected_words, read_words, autojunk=False)
    for kind, start, end, read_start, read_end in matcher.get_opcodes():
        expected = [author.name for author in authors[start:end]]
        actual = [author.name for author in read[read_start:read_end]]
        for place in range(max(end - start, read_end - read_start)):
            pair = (expected[place : place + 1], actual[place : place + 1])
            score.add(page, "byline", "author names", *pair, right=kind == "equal")


def score_affiliations(score, page, author, read):
    """Count an author's affiliations: as the words of all of them, and as one string for each
    institution.

    "and" is no word of an affiliation, since it may stand between two.
    """
    if author.affiliations is None or not (author.affiliations or read.affiliations):
        return
    expected, actual = (
        [" ".join(word for word in words(text) if word != "and") for text in texts]
        for texts in (author.affiliations, read.affiliations)
    )
    same_words = any(" ".join(order) == " ".join(actual) for order in permutations(expected))
    one_by_one = sorted(expected) == sorted(actual)
    pair = (author.affiliations, read.affiliations)
    score.add(page, author.name, "affiliations", *pair, right=same_words)
    score.add(page, author.name, "affiliations one by one", *pair, right=one_by_one)


def is_address_printed(email, text):
    """Whether a page has an address, be it as one of several: `{ada, bo}@x.example`."""
    name, _, host = email.partition("@")
    rest_of_group = r"(?:,\s*[\w.]+)*\}?\s?"
    return (
        re.search(rf"(?<![\w.]){re.escape(name)}{rest_of_group}@{re.escape(host)}", text)
        is not None
    )


# Bibliographies.


@dataclass(frozen=True, slots=True)
class PrintedItem:
    """One item of a page as text and the targets of its links."""

    key: str
    text: str
    links: tuple[str, ...]


def printed_items(html):
    """The bibliography items of a page, read without the parser."""
    from selectolax.lexbor import LexborHTMLParser

    tree = LexborHTMLParser(html)
    for formula in tree.css("math"):
        formula.replace_with(formula.attributes.get("alttext") or "")
    for label in tree.css(".ltx_tag_bibitem"):
        label.decompose()
    return [
        PrintedItem(
            node.attributes.get("id") or "",
            " ".join(node.text().split()),
            tuple(unquote(link.attributes.get("href") or "") for link in node.css("a")),
        )
        for node in tree.css("li.ltx_bibitem")
    ]


def match_references(items, references):
    """Each work with its item: the one that has its title, or its authors where the style prints no
    title.
    """
    left = list(items)
    pairs = []
    for names_work in (names_title, names_authors):
        for reference in [
            work for work in references if work not in [matched for _, matched in pairs]
        ]:
            item = next((item for item in left if names_work(item, reference)), None)
            if item is not None:
                pairs.append((item, reference))
                left.remove(item)
    return pairs


def names_title(item, reference):
    """Whether an item's text holds the title of a work."""
    return contains(words(item.text), words(reference.title))


def names_authors(item, reference):
    """Whether an item's text has the first authors of a work or all, and its year if it has one."""
    printed = printed_authors(item, reference)
    dated = reference.year is None or is_year_printed(item, reference)
    return bool(printed) and printed == list(reference.authors)[: len(printed)] and dated


def score_item(score, page, printed, reference, read):
    """Count every field of one item that it prints, or that the parser reads."""

    def add(name, expected, value, *, right):
        if expected or value:
            score.add(page, reference.key, name, expected, value, right=right)

    title = reference.title if names_title(printed, reference) else ""
    add("title", title, read.title, right=words(title) == words(read.title))
    authors = printed_authors(printed, reference)
    same = len(authors) == len(read.authors) and all(map(is_same_name, authors, read.authors))
    add(
        "item authors",
        authors,
        read.authors,
        right=same or read.authors == (reference.organization,),
    )
    year = reference.year if is_year_printed(printed, reference) else None
    add("year", year, read.year, right=year == read.year)
    is_printed = any(
        contains(words(printed.text), words(venue)) for venue in reference.venue if venue
    )
    venues = reference.venue if is_printed else ("",)
    add(
        "venue",
        " / ".join(venues),
        read.venue,
        right=any(is_same_venue(venue, read.venue) for venue in venues),
    )
    target = " ".join([printed.text, *printed.links]).casefold()
    doi = reference.doi if reference.doi and reference.doi.casefold() in target else None
    add("DOI", doi, read.doi, right=(doi or "").casefold() == (read.doi or "").casefold())
    arxiv_id = reference.arxiv_id if reference.arxiv_id and reference.arxiv_id in target else None
    add("arXiv id", arxiv_id, read.arxiv_id, right=arxiv_id == read.arxiv_id)


def is_same_venue(expected, read):
    """Whether a venue is the expected one, which "… " opens where the kind of work may stand before
    it.
    """
    expected_words, read_words = words(expected), words(read)
    if expected.startswith("…"):
        read_words = read_words[-len(expected_words) :]
    return read_words == expected_words


def contains(text, part):
    """Whether the words of a part stand in a row in a text."""
    return f" {' '.join(part)} " in f" {' '.join(text)} "


def printed_authors(item, reference):
    """The authors of a work whose surnames an item prints outside of its title: "et al." leaves
    some out.
    """
    rest = " ".join(words(item.text)).replace(" ".join(words(reference.title)), " ").split()
    return [
        author for author in reference.authors if contains(rest, words(author.partition(",")[0]))
    ]


def is_year_printed(item, reference):
    """Whether an item prints the year of a work."""
    return (
        reference.year is not None
        and re.search(rf"(?<!\d){reference.year}(?!\d)", item.text) is not None
    )


def is_same_name(expected, read):
    """Whether a name that was read is that of "Family, Given, Suffix", be its given names whole or
    initials.
    """
    family, given, suffix = [*expected.split(","), "", ""][:3]
    if not contains(words(read), words(family)):
        return False
    rest = f" {' '.join(words(read))} ".replace(f" {' '.join(words(family))} ", " ", 1).split()
    rest = [word for word in rest if word not in words(suffix)]
    whole = words(given)
    initials = [
        "".join(word[0] for word in names) for names in (whole, words(given.replace("-", "")))
    ]
    same = all(word in (name, name[0]) for word, name in zip(rest, whole, strict=False))
    return "".join(rest) in initials or (len(rest) == len(whole) and same)
