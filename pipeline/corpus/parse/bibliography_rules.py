"""What bibliography styles print around names, titles and venues: tables of patterns, each with an
example.

In the examples `|` is the end of a block (`\\newblock`), which is a newline in the text that
patterns are tried on. The rules of a table are one pattern: a mark that they all begin with, by
which a search passes over words, then theirs.
"""

from __future__ import annotations

import re
from typing import NamedTuple


class StyleRule(NamedTuple):
    """A pattern of what a style prints, an example, and the part that the example yields."""

    name: str
    pattern: str
    example: str
    yields: str


Rules = tuple[StyleRule, ...]


def alternation(table: Rules, mark: str = "") -> re.Pattern[str]:
    """One pattern of a table's rules, earlier ones first; the last group names the rule.

    Names stand behind the rules: a group around a rule would hide its first letter, by which the
    engine passes over it.
    """
    rules = (f"(?:{rule.pattern})(?P<{rule.name}>)" for rule in table)
    return re.compile(f"{mark}(?:{'|'.join(rules)})")


Italics = tuple[str, ...]
"""The words of an item that are in italics."""

EDGES = " \n\t,.;:"
OPENING, QUOTES = '“‘”„"`«', "“”‘’„\"'`«»"

YEAR = r"(?:19|20)\d\d(?!\d)"
NO_DATE = (
    r"[Nn]\. ?d\.|[Nn]o date|[Ss]\. ?[df]\.|[Oo]\. ?[JD]\."
    r"|[Ii]n press|[Tt]o appear|[Ff]orthcoming|[Ss]ubmitted|[Ii]n preparation|[Uu]nder"
    r" review"
)
DATE = rf"(?:{YEAR}[a-z]?|{NO_DATE})"
# "Margins 2018" and "Decision 2018" are no dates.
MONTH = (
    r"(?:[Jj]an(?:[uv][a-z]{1,8})?|[Ff]eb[a-z]{0,8}|[Mm]ar(?:ch|s|zo?|ço)?|[Aa]pr(?:il[a-z]{0,8})?"
    r"|[Mm]ayo?|[Jj]u[nl][a-z]?|[Aa]ug[a-z]{0,8}|[Ss]ept?(?:[ei]{0,2}m[a-z]{1,8})?"
    r"|[Oo]ct(?:ob[a-z]{1,8})?|[Nn]ov(?:em[a-z]{1,8})?|[Dd]ec(?:em[a-z]{1,8})?)\b\.?"
)
# Before an address or the date on which it was read.
ACCESS = r"(?:[Aa]vailable|[Aa]ccessed|[Rr]etrieved|Disponi|Disponí|[Cc]onsult[éa]|[Aa]bgerufen)"
ORDINAL = r"(?:\d{1,4}(?:st|nd|rd|th)|[Ff]irst|[Ss]econd|[Tt]hird|[Ff]ourth|[Ff]ifth|[Rr]evised)"
THESIS = r"(?:[\w.’']{1,40} ){0,2}(?:[Tt]hesis|[Dd]issertation)\b"
# Behind a long word a stop ends a sentence, unless the word, told by its last letters, is an
# abbreviation as journals have it.
_ABBREVIATIONS = (
    "ommun omput ntell chnol strum ecogn atist stron ctron ophys ychol ochem obiol ernat ombin"
    " lgebr lectr nform ntern ybern eoret rosci ysiol nduct ochim"
)
_NO_ABBREVIATION = "".join(rf"(?<!{letters}\. )" for letters in _ABBREVIATIONS.split())
# The stop is first: a search for it is faster than one for letters.
SENTENCE_END = rf"\. (?<=[a-z]{{5}}\. ){_NO_ABBREVIATION}"
SHORT_SENTENCE_END = rf"\. (?<=[a-z]{{4}}\. ){_NO_ABBREVIATION}"
# The name of a journal in abbreviations or capitals, up to its volume.
JOURNAL = (
    rf"[^\W\d_](?:(?! [a-z]{{4}}|{SENTENCE_END}|\. In[: ])[^,;?!()\n\d]){{1,70}}?,?\s"
    rf"(?!{YEAR})[A-Z]?\d[\d.–-]*+\s*(?:[,(;]|:?\d|$)"
)
PUBLISHER = (
    r"(?:Springer|Press\b|Publi[sc]|Verlag|Wiley|Elsevier|Birkh|McGraw|American Mathematical Soc)"
)
EDITORS = r"(?:[Ee]d(?:itor)?s?|[Éé]ds?|Hrsg|hg|[Oo]rgs?)\.?"
_INITIALS_AND_NAME = r"(?:[^\W\d_]\. ?-?){1,9}[^\n,]{2,40}"

# Where a list of names ends, after a space, a bracket or a colon. An example yields the list.
NAMES_MARK = r"[\s(\[:]"
AFTER_NAMES: Rules = (
    StyleRule(
        "quote",
        r"(?<!The.)(?<!\b[AO]n.)(?<!\bA.)(?<!\bof.)(?=[“‘„\"«]|``)",
        "A. Lee and B. Roe, “On words,” J. Words",
        "A. Lee and B. Roe,",
    ),
    StyleRule(
        "bracketed_year",
        rf"(?<=[(\[])(?:{MONTH},? )?{DATE}(?:, [^()\[\]\n]{{3,20}})?[)\]][.,:;]*",
        "Lee, A., & Roe, B. (1999, May). On words. J. Words.",
        "Lee, A., & Roe, B. ",
    ),
    StyleRule(
        "year",
        rf"(?<=[.,:]\s)(?=[\dfinosuFINOSU]){DATE}(?:, {MONTH}(?: \d\d?)?)?"
        rf"(?:(?:[.,:;]+|(?<=d\.))(?=\s)|(?=\n))|{YEAR}[a-z]?\.(?=\n)",
        "Lee, Ann. 1999. On words. J. Words.",
        "Lee, Ann.",
    ),
    StyleRule(
        "bare_year",
        rf"(?=[12])(?:(?<=[a-z]\s){YEAR}[a-z]?\.(?=\s)|(?<=[A-Z]\s){YEAR}[a-z]?[,.]?(?=\s)|"
        rf"(?<=[A-Zl][.,]\s){YEAR}[a-z]?,?(?=\s[A-Z“‘]))",
        "Lee A and Roe B 1999 J. Words 12 1",
        "Lee A and Roe B",
    ),
    StyleRule(
        "colon",
        r"(?:(?<=[.)]:)|(?<= al:))\s",
        "Lee, A., Roe, B.: On words. J. Words 1 (1999)",
        "Lee, A., Roe, B.",
    ),
)

# A title in quotation marks. An example yields the title, marks and all.
QUOTED: Rules = (
    StyleRule(
        "double",
        r"“(?:“[^”]{0,200}”|[^“]){1,600}?”",
        "“How the world says “Maybe”?,” J. Words",
        "“How the world says “Maybe”?,”",
    ),
    StyleRule(
        "single",
        r"‘(?!‘).{1,600}?(?:[,.?!]’|’(?=[,.;:\n]|$|\s+(?:[Ii]n\b|[A-Z\d])))",
        "‘The reader’s words’, J. Words",
        "‘The reader’s words’",
    ),
    StyleRule("low", r"„[^“”]{1,600}[“”]", "„Worte“, J. Words", "„Worte“"),
    StyleRule("closing", r"”[^”]{1,600}”", "”On words” J. Words", "”On words”"),
    StyleRule("straight", r'"[^"]{1,600}"', '"On words," J. Words', '"On words,"'),
)

QUOTED_TITLE = alternation(QUOTED)

# What follows the title within its block, tried after each comma and stop. An example yields the
# title.
AFTER_TITLE: Rules = (
    StyleRule(
        "archive",
        r"[Aa]r[Xx]iv(?:\s?:\s*\d|:[a-z-]+/\d|,? e?-?[Pp]rint|,? [Pp]reprint|,? \(?\d|,?"
        rf" abs|$|[.,;](?:\s|$)|\s{MONTH}\s)|(?:bio|med|[Cc]hem)[Rr][Xx]iv\b|Co[Rr][Rr]\b",
        "Rounded arXiv: a data set of words, arXiv:1909.01234",
        "Rounded arXiv: a data set of words",
    ),
    StyleRule(
        "thesis",
        rf"\(?{THESIS}",
        "Words, and how to count them. PhD thesis, X",
        "Words, and how to count them",
    ),
    StyleRule(
        "report",
        r"\(?[Tt]ech(?:nical|\.) [Rr]ep|[Rr]esearch [Rr]ep|[Ww]orking [Pp]aper\b",
        "On words, Tech. Rep. 12, X",
        "On words",
    ),
    StyleRule(
        "address",
        r"https?:|www\.|URL\b|[Dd][Oo][Ii]:|10\.\d{4,9}/|ISBN|ISSN|\[[Oo]nline|"
        rf"{ACCESS}|\[[Cc]it|<?http|\[S\.",
        "On words: a tool, https://words.org",
        "On words: a tool",
    ),
    StyleRule(
        "number",
        r"\(?(?:[Vv]ol(?:ume|\.)|[Nn][o°º]\.?|[Nn]umber|[Pp]p?\.|[Pp]ages?) ?"
        r"(?:[A-Z]+-)*\d+(?: of|[-–.,)\s]|$)",
        "On words, volume 3 of Lectures",
        "On words",
    ),
    StyleRule(
        "date",
        rf"\(?(?:{MONTH}[\s-](?:\d{{1,2}},?"
        rf" )?)?{YEAR}[a-z]?(?=\)?[.,;:]*\s*(?:$|\n|http|\()|\)[.,;:])",
        "On words, 1999.",
        "On words",
    ),
)

# What follows the title where nothing but commas and stops tells: names of venues, by their words
# and numbers.
AFTER_TITLE_IN_A_RUN: Rules = (
    StyleRule(
        "state",
        r"[Tt]o appear|[Tt]o be published|[Ss]ubmitted|[Mm]anuscript|[Ii]n press|[Ii]n preparation|"
        r"[Aa]ccepted|[Pp]ersonal comm|[Pp]rivate comm|[Ff]orthcoming|[Uu]npublished|[Pp]reprint",
        "On words, submitted to X",
        "On words",
    ),
    StyleRule(
        "journal",
        rf"(?!Vol)(?=[A-Z]){JOURNAL}",
        "Ledgers, Logs and Lists, J. Words 12 (1999) 1–9",
        "Ledgers, Logs and Lists",
    ),
    StyleRule(
        "journal_by_year",
        rf"[A-Z](?:(?! [a-z]{{4}})[^,.;:?!()\n\d]){{1,70}}?,? \(?{YEAR}",
        "On words, Nature, 1999",
        "On words",
    ),
    StyleRule(
        "meeting",
        rf"(?!Vol)(?:[A-Z\d](?:(?!{SENTENCE_END})[^,;:?!()\n]){{0,60}})?\b(?:"
        r"Proc(?:eedings|\.|s\b)|Symp(?:osium|\.)|Conf(?:erence|\.)|Workshop|Congress|Journal|Trans(?:actions\b|\.)|"
        r"Lett(?:ers\b|\.)|Magazine|Annals|Bulletin|Lecture [Nn]otes|Advances in|J\. |Acta )",
        "Words, and more. Neural Words Workshop, X",
        "Words, and more",
    ),
    StyleRule(
        "publisher",
        rf"[A-Z][^,.;:?!()\n]{{0,40}}(?:{PUBLISHER}|Universit)|(?:{PUBLISHER}|Kluwer|North[-"
        r" ]Holland|"
        r"Addison|Prentice|Morgan|Chapman|Dover|Cambridge|Oxford|IEEE|ACM|AMS)\b",
        "Words and Worlds, Dover, New York",
        "Words and Worlds",
    ),
)

# What styles hang on to a title. An example yields the title.
TAIL_MARK = r"[\s,.(\[][\s,.;(\[]{0,3}"
TITLE_TAIL: Rules = (
    StyleRule(
        "address",
        r"https?:|www\.|URL\b|[Oo]nline\]|Available (?:from|at)",
        "On words. https://words.org",
        "On words",
    ),
    StyleRule(
        "archive",
        r"[Aa]r[Xx]iv(?::\s*\d|:[a-z-]+/\d|\s[Pp]reprint|\se-prints?\b|\s\d{4})",
        "On words. arXiv preprint 1909.01",
        "On words",
    ),
    StyleRule(
        "date",
        rf"(?<=[,.(\[].)(?:{MONTH},?\s+)?{YEAR}[a-z]?[).,\s]*$|(?<=\(){YEAR}\)$",
        "Words at large, Sept. 2021",
        "Words at large",
    ),
    StyleRule(
        "edition",
        rf"{ORDINAL} [Ee]d(?:\.|n\.?|ition)?\)?[.,]*$",
        "Words at large, Second Edition",
        "Words at large",
    ),
    StyleRule("kind", r"(?<=\[)[^\]]{1,40}\]$", "On words [Computer software]", "On words"),
    StyleRule(
        "journal_number",
        r"\d{1,4},\s\w?\d{3,}$",
        "Thermodynamics of words 71, 054508",
        "Thermodynamics of words",
    ),
)

# What is between a title and the name of its venue. An example yields the venue.
BEFORE_VENUE: Rules = (
    StyleRule("within", r"[Ii]n\s?:?\s+", "In: Journal of Words", "Journal of Words"),
    StyleRule(
        "volume",
        r"\(?(?:[Vv]ol(?:\.|ume)|[Nn]o\.|[Pp]ages?|[Pp]p?\.) ?(?:[A-Z]+-)*\d[\d–-]*\)?"
        r"(?: of:?|[,.])\s",
        "volume 301 of Foundations of Words",
        "Foundations of Words",
    ),
    StyleRule(
        "thesis",
        rf"\(?{THESIS}\)?[.,:;]?\s(?:at (?:the )?)?\(?",
        "PhD thesis, University of Words",
        "University of Words",
    ),
    StyleRule(
        "report",
        r"(?:[Tt]ech(?:nical|\.)|[Rr]esearch) [Rr]ep(?:ort|\.)(?: (?=[\w/-]*\d)[\w./-]++)?, ",
        "Technical Report MA-12, Words Institute",
        "Words Institute",
    ),
    StyleRule(
        "place",
        rf"[A-Z](?:(?!\. )[^\n:\d]){{2,30}}: (?=[^\n]{{0,30}}{PUBLISHER})",
        "New York: Words Press",
        "Words Press",
    ),
    StyleRule(
        "edition",
        rf"\(?{ORDINAL}(?: [Ee]d(?:\.|n\.?|ition)\)?[.,]*\s|[.,;]+\s)",
        "2nd ed., Words Press",
        "Words Press",
    ),
    StyleRule(
        "editors",
        rf"[^\n]{{3,300}}?(?:\({EDITORS}\)[.,:]?|, ?{EDITORS}[,.]|[Ee]ds?\.[,:])"
        r"\s(?=\S)(?![A-Z]\.)",
        "Able, A. and Baker, B. (eds.), Findings of Words",
        "Findings of Words",
    ),
)

# What follows the name of a venue. An example yields the venue.
VENUE_MARK = r"[\s,.;)][\s,.;]{0,3}"
AFTER_VENUE: Rules = (
    StyleRule("block", r"(?<=\n)", "J. Words|doi: 10.1/2", "J. Words"),
    StyleRule(
        "address",
        rf"<?https?:|www\.|doi:|DOI|URL|ISSN|ISBN|\[Online|{ACCESS}",
        "J. Words. URL https://words.org",
        "J. Words",
    ),
    StyleRule(
        "locator",
        r"\(?(?:[Vv](?:ol)?(?:\.|umes?) ?[\dIVX(]|[Nn]os?\.|[Nn]umber \d|pp?\.|[Pp]ages?\b|pp\b|"
        r"[Aa]rticle\b|[Aa]rt\.|[Cc]h(?:ap)?(?:ter|\.) ?\d|[Tt]ech(?:nical|\.)"
        r" [Rr]ep|ser(?:ies\b|\.)|[Ii]ssue\b)",
        "Learning of Words, Volume 1, pages 1–9",
        "Learning of Words",
    ),
    StyleRule(
        "number",
        rf"(?<=,\s)#?[A-Z]?\d|(?!{YEAR})[A-Z]?\d++(?:[-–]\d++)?(?:\s*+[(:,;]|(?<=[-–]\d\d)|(?<=[-–]\d{{3}}))",
        "J. Words 12(3), 1–9",
        "J. Words",
    ),
    StyleRule(
        "date",
        rf"\(?{MONTH}[\s-](?:\d{{1,2}}(?:\s?[-–]\s?\d+)?,?"
        rf" )?{YEAR}|{YEAR}(?: {MONTH}(?: \d{{1,2}})?)?(?:;|:\d|,\s\d+,)|"
        rf"(?<=[,.;]\s)\(?{YEAR}|\({YEAR}[a-z]?\)",
        "Words Press (June 1999)",
        "Words Press",
    ),
    StyleRule(
        "state",
        r"(?<=[,.;]\s)(?:[Ii]n press|[Tt]o appear|[Ss]ubmitted|[Aa]ccepted|[Pp]reprint|ar[Xx]iv)",
        "J. Words, to appear",
        "J. Words",
    ),
    StyleRule("edition", rf"(?<=,\s){ORDINAL} [Ee]d", "Words Press, second edition", "Words Press"),
    StyleRule(
        "editors",
        rf"(?<=,\s){_INITIALS_AND_NAME}(?:,? (?:and )?{_INITIALS_AND_NAME}){{0,9}}, [Ee]ds?\.|"
        r"(?<=[,.]\s)[Ee]d(?:s|ited)?\b|\([Ee]d(?:s?\.| by)",
        "Text and Machine, H. Dahl, ed., X",
        "Text and Machine",
    ),
    StyleRule(
        "town",
        r"\([A-Z][a-z]+(?:, [^()]+)?\)(?=[,.\n]|$)",
        "Proceedings of Words (Bergen, Norway), X",
        "Proceedings of Words",
    ),
    StyleRule(
        "publisher",
        rf"(?<=[,.:]\s)(?:IEEE|ACM)(?=[,.]|$)|(?<=\.\s)[A-Z][\w& ]{{0,30}}{PUBLISHER}",
        "Words at Large. IEEE, Bergen",
        "Words at Large",
    ),
    StyleRule(
        "place",
        r"(?<=\.\s)[A-Z](?:[^\W\d]|[’ -]){2,30}(?:, [A-Z][^\W\d]{1,20})?: ",
        "Words at Large. Bergen, Norway: Dover",
        "Words at Large",
    ),
    StyleRule(
        "bracket",
        r"(?<=\)\.\s)|(?<=;\s)",
        "Conference on Words (CoW). New York",
        "Conference on Words (CoW",
    ),
)
