"""What bibliography styles print around names, titles and venues: patterns, each with an example.

In the examples `|` is the end of a block (`\\newblock`), which is a newline in the text that
patterns are tried on. The patterns of a table are one: a mark that they all begin with, by which a
search passes over words, then theirs, the first that fits.
"""

from __future__ import annotations

import re


def alternation(table: tuple[str, ...], mark: str = "") -> re.Pattern[str]:
    """One pattern of a table's patterns, earlier ones first."""
    return re.compile(f"{mark}(?:{'|'.join(table)})")


Italics = tuple[str, ...]
"""The words of an item that are in italics."""

EDGES = " \n\t,.;:"
OPENING, QUOTES = '“‘”„"`«', "“”‘’„\"'`«»"

YEAR = r"(?:19|20)\d\d(?!\d)"
# Of a work that is not printed yet.
STATE = (
    r"(?:[Tt]o (?:appear|be published)|[Ii]n (?:press|prep\w*+)|[Ss]ubmitted|[Aa]ccepted"
    r"|[Mm]anuscript|[Ff]orthcoming|[Uu]npublished|[Pp]reprint|[Pp](?:ersonal|rivate) comm\w*+)"
)
NO_DATE = rf"(?:[Nn]\. ?d\.|{STATE})"
DATE = rf"(?:{YEAR}[a-z]?|{NO_DATE})"
# "Margins 2018" and "Decision 2018" are no dates.
MONTH = (
    r"(?:[Jj]an(?:[uv][a-z]{1,8})?|[Ff]eb[a-z]{0,8}|[Mm]ar(?:ch|s|zo?|ço)?|[Aa]pr(?:il[a-z]{0,8})?"
    r"|[Mm]ayo?|[Jj]u[nl][a-z]?|[Aa]ug[a-z]{0,8}|[Ss]ept?(?:[ei]{0,2}m[a-z]{1,8})?"
    r"|[Oo]ct(?:ob[a-z]{1,8})?|[Nn]ov(?:em[a-z]{1,8})?|[Dd]ec(?:em[a-z]{1,8})?)\b\.?"
)
ADDRESS = (
    r"(?:<?https?:|www\.|URL\b|[Dd][Oo][Ii]\b|10\.\d{4}|ISBN|ISSN|\[[Oo]nline|[Oo]nline\]"
    r"|[Aa]vailable\b|[Aa]ccessed|[Rr]etrieved)"
)
ARCHIVE = (
    r"(?:[Aa]r[Xx]iv(?:\W*(?:\d|[a-z-]{2,9}/\d|[Pp]reprint|e-?[Pp]rint|abs|$)|[.,;]\s)"
    r"|(?:bio|med)[Rr][Xx]iv\b|Co[Rr][Rr]\b)"
)
NUMBER = r"(?:[Vv]ol(?:\.|ume)|[Nn]o\.|[Nn]umber|[Pp]p?\.|[Pp]ages?) ?(?:[A-Z]+-)*\d[\d–-]*"
ORDINAL = r"(?:\d{1,4}(?:st|nd|rd|th)|[Ff]irst|[Ss]econd|[Tt]hird|[Ff]ourth|[Ff]ifth|[Rr]evised)"
THESIS = r"(?:[\w.’']{1,40} ){0,2}(?:[Tt]hesis|[Dd]issertation)\b"
REPORT = r"(?:[Tt]ech(?:nical|\.)|[Rr]esearch) [Rr]ep(?:ort|\.)"
# Behind a long word a stop ends a sentence, unless the word, told by its last letters, is an
# abbreviation as journals have it.
_ABBREVIATIONS = (
    "ommun omput ntell chnol strum ecogn atist stron ctron ophys ychol ochem obiol ernat ombin"
    " lgebr lectr nform ntern ybern eoret rosci ysiol nduct ochim"
)
_NO_ABBREVIATION = "".join(f"(?<!{letters})" for letters in _ABBREVIATIONS.split())
SENTENCE_END = rf"(?<=[a-z]{{5}}){_NO_ABBREVIATION}\. "
SHORT_SENTENCE_END = rf"(?<=[a-z]{{4}}){_NO_ABBREVIATION}\. "
# The name of a journal in abbreviations or capitals, up to its volume.
JOURNAL = (
    rf"[^\W\d_](?:(?! [a-z]{{4}}|{SENTENCE_END}|\. In[: ])[^,;?!()\n\d]){{1,70}}?,?\s"
    rf"(?!{YEAR})[A-Z]?\d[\d.–-]*+\s*(?:[,(;]|:?\d|$)"
)
PUBLISHER = (
    r"(?:Springer|Press\b|Publi[sc]|Verlag|Wiley|Elsevier|Birkh|McGraw|American Mathematical Soc)"
)
_EDITORS = r"[Ee]d(?:itor)?s?\.?"
_INITIALS_AND_NAME = r"(?:[^\W\d_]\. ?-?){1,9}[^\n,]{2,40}"

# Where a list of names ends, after a space, a bracket or a colon.
NAMES_MARK = r"[\s(\[:]"
AFTER_NAMES = (
    # A. Lee and B. Roe, “On words,” J. Words
    r"(?P<quote>(?<!The.)(?<!\b[AO]n.)(?<!\bA.)(?<!\bof.)(?=[“‘„\"«]))",
    # Lee, A., & Roe, B. (1999, May). On words. J. Words.
    rf"(?P<bracketed_year>(?<=[(\[])(?:{MONTH},? )?{DATE}(?:, [^()\[\]\n]{{3,20}})?[)\]][.,:;]*)",
    # Lee, Ann. 1999. On words. J. Words.
    rf"(?P<year>(?<=[.,:]\s){DATE}(?:, {MONTH}(?: \d\d?)?)?(?:[.,:;]+(?=\s)|(?=\n))"
    rf"|{YEAR}[a-z]?\.(?=\n))",
    # Lee A and Roe B 1999 J. Words 12 1
    rf"(?P<bare_year>(?:(?<=[A-Z]\s)|(?<=[A-Zl][.,]\s)){YEAR}[a-z]?[,.]?(?=\s[A-Z“‘]))",
    # Lee, A., Roe, B.: On words. J. Words 1 (1999)
    r"(?P<colon>(?:(?<=[.)]:)|(?<= al:))\s)",
)

# A title in quotation marks.
QUOTED_TITLE = alternation((
    r"“(?:“[^”]{0,200}”|[^“]){1,600}?”",  # “How the world says “Maybe”?,” J. Words
    r"‘(?!‘).{1,600}?(?:[,.?!]’|’(?=[,.;:\n]|$|\s+[Ii]n\b))",  # ‘The reader’s words’, J. Words
    r"[„”][^“”]{1,600}[“”]",  # „Worte“, J. Words
    r'"[^"]{1,600}"',  # "On words," J. Words
))  # fmt: skip

# What follows the title within its block, tried after each comma and stop.
AFTER_TITLE = (
    ARCHIVE,  # Rounded arXiv: a data set of words, arXiv:1909.01234
    rf"\(?{THESIS}",  # Words, and how to count them. PhD thesis, X
    rf"\(?{REPORT}|[Ww]orking [Pp]aper\b",  # On words, Tech. Rep. 12, X
    ADDRESS,  # On words: a tool, https://words.org
    rf"\(?{NUMBER}",  # On words, volume 3 of Lectures
    # On words, 1999.
    rf"\(?(?:{MONTH}[\s-](?:\d{{1,2}},? )?)?{YEAR}[a-z]?(?=\)?[.,;:]*\s*(?:$|\n|http|\()|\)[.,;:])",
)

# What follows the title where nothing but commas and stops tells: names of venues, by their words
# and numbers.
AFTER_TITLE_IN_A_RUN = (
    *AFTER_TITLE,
    STATE,  # On words, submitted to X
    rf"(?!Vol)(?=[A-Z]){JOURNAL}",  # Ledgers, Logs and Lists, J. Words 12 (1999) 1–9
    # On words, Nature, 1999
    rf"[A-Z](?:(?! [a-z]{{4}})[^,.;:?!()\n\d]){{1,70}}?,? \(?{YEAR}",
    # Words, and more. Neural Words Workshop, X
    rf"(?!Vol)(?:[A-Z\d](?:(?!{SENTENCE_END})[^,;:?!()\n]){{0,60}})?\b(?:"
    r"Proc(?:eedings|\.|s\b)|Symp(?:osium|\.)|Conf(?:erence|\.)|Workshop|Congress|Journal|"
    r"Trans(?:actions\b|\.)|Lett(?:ers\b|\.)|Magazine|Annals|Bulletin|Lecture [Nn]otes|"
    r"Advances in|J\. |Acta )",
    # Words and Worlds, Dover, New York
    rf"[A-Z][^,.;:?!()\n]{{0,40}}(?:{PUBLISHER}|Universit)|(?:{PUBLISHER}|Kluwer|North[- ]Holland|"
    r"Addison|Prentice|Morgan|Chapman|Dover|Cambridge|Oxford|IEEE|ACM|AMS)\b",
)

# What styles hang on to a title.
TAIL_MARK = r"[\s,.(\[][\s,.;(\[]{0,3}"
TITLE_TAIL = (
    ADDRESS,  # On words. https://words.org
    ARCHIVE,  # On words. arXiv preprint 1909.01
    # Words at large, Sept. 2021
    rf"(?<=[,.(\[].)(?:{MONTH},?\s+)?{YEAR}[a-z]?[).,\s]*$|(?<=\(){YEAR}\)$",
    rf"{ORDINAL} [Ee]d(?:\.|n\.?|ition)?\)?[.,]*$",  # Words at large, Second Edition
    r"(?<=\[)[^\]]{1,40}\]$",  # On words [Computer software]
    r"\d{1,4},\s\w?\d{3,}$",  # Thermodynamics of words 71, 054508
)

# What is between a title and the name of its venue.
BEFORE_VENUE = (
    r"[Ii]n\s?:?\s+",  # In: Journal of Words
    rf"\(?{NUMBER}\)?(?: of:?|[,.])\s",  # volume 301 of Foundations of Words
    rf"\(?{THESIS}\)?[.,:;]?\s(?:at (?:the )?)?\(?",  # PhD thesis, University of Words
    # Technical Report MA-12, Words Institute
    rf"{REPORT}(?: (?=[\w/-]*\d)[\w./-]++)?, ",
    # New York: Words Press
    rf"[A-Z](?:(?!\. )[^\n:\d]){{2,30}}: (?=[^\n]{{0,30}}{PUBLISHER})",
    rf"\(?{ORDINAL}(?: [Ee]d(?:\.|n\.?|ition)\)?[.,]*\s|[.,;]+\s)",  # 2nd ed., Words Press
    # Able, A. and Baker, B. (eds.), Findings of Words
    rf"(?P<editors>[^\n]{{3,300}}?(?:\({_EDITORS}\)[.,:]?|, ?{_EDITORS}[,.]|[Ee]ds?\.[,:])"
    r"\s(?=\S)(?![A-Z]\.))",
)

# What follows the name of a venue.
VENUE_MARK = r"[\s,.;)][\s,.;]{0,3}"
AFTER_VENUE = (
    r"(?<=\n)",  # J. Words|doi: 10.1/2
    ADDRESS,  # J. Words. URL https://words.org
    # Learning of Words, Volume 1, pages 1–9
    r"\(?(?:[Vv](?:ol)?(?:\.|umes?) ?[\dIVX(]|[Nn]os?\.|[Nn]umber \d|pp?\.|[Pp]ages?\b|pp\b"
    rf"|[Aa]rticle\b|[Aa]rt\.|[Cc]h(?:ap)?(?:ter|\.) ?\d|{REPORT}|ser(?:ies\b|\.)|[Ii]ssue\b)",
    # J. Words 12(3), 1–9
    rf"(?<=,\s)#?[A-Z]?\d|(?!{YEAR})[A-Z]?\d++(?:[-–]\d++)?(?:\s*+[(:,;]|(?<=[-–]\d\d)|(?<=[-–]\d{{3}}))",
    # Words Press (June 1999)
    rf"\(?{MONTH}[\s-](?:\d{{1,2}}(?:\s?[-–]\s?\d+)?,? )?{YEAR}"
    rf"|{YEAR}(?: {MONTH}(?: \d{{1,2}})?)?(?:;|:\d|,\s\d+,)|(?<=[,.;]\s)\(?{YEAR}|\({YEAR}[a-z]?\)",
    rf"(?<=[,.;]\s)(?:{STATE}|ar[Xx]iv)",  # J. Words, to appear
    rf"(?<=,\s){ORDINAL} [Ee]d",  # Words Press, second edition
    # Text and Machine, H. Dahl, ed., X
    rf"(?<=,\s){_INITIALS_AND_NAME}(?:,? (?:and )?{_INITIALS_AND_NAME}){{0,9}}, [Ee]ds?\.|"
    r"(?<=[,.]\s)[Ee]d(?:s|ited)?\b|\([Ee]d(?:s?\.| by)",
    r"\([A-Z][a-z]+(?:, [^()]+)?\)(?=[,.\n]|$)",  # Proceedings of Words (Bergen, Norway), X
    # Words at Large. IEEE, Bergen
    rf"(?<=[,.:]\s)(?:IEEE|ACM)(?=[,.]|$)|(?<=\.\s)[A-Z][\w& ]{{0,30}}{PUBLISHER}",
    # Words at Large. Bergen, Norway: Dover
    r"(?<=\.\s)[A-Z](?:[^\W\d]|[’ -]){2,30}(?:, [A-Z][^\W\d]{1,20})?: ",
    r"(?<=\)\.\s)|(?<=;\s)",  # Conference on Words (CoW). New York
)
