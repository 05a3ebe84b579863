"""Rules for the texts beside the names of a byline.

A rule yields a kind of text and has an example; add one with an example of its own. The kinds are
`nothing` (left out), `remark` (a note on authors, and no affiliation though it may name one), and
the parts of an affiliation: organisation, institute (one, or a part of one), unit (a part of one),
location (the end of an address).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple

from pipeline.corpus.parse.policies import fold


class TextRule(NamedTuple):
    """A kind of text, an example of it, and its patterns: one a line, without regard to case."""

    kind: str
    example: str
    patterns: str


def _any_of(patterns: str) -> str:
    """One pattern for the patterns of several lines."""
    return "|".join(filter(None, map(str.strip, patterns.splitlines())))


_AUTHORS_HAVE = r"(?:authors? )?(?:have |has )?"
_COUNTRIES = _any_of(r"""
    u\.?s\.?a\.?|u\.s\.|united states(?: of america)?|u\.?k\.?|united kingdom|england|scotland
    wales|ireland|china|p\.? ?r\.? china|hong kong|taiwan|japan|(?:south |republic of )?korea
    india|singapore|australia|new zealand|canada|mexico|brazil|argentina|chile|colombia|germany
    france|italy|spain|portugal|switzerland|austria|belgium|netherlands|luxembourg|denmark|sweden
    norway|finland|poland|czech republic|czechia|hungary|romania|greece|turkey|türkiye|russia
    ukraine|israel|iran|iraq|saudi arabia|qatar|uae|united arab emirates|egypt|south africa
    nigeria|kenya|pakistan|bangladesh|vietnam|thailand|malaysia|indonesia|philippines
""")
_MONTHS = "jan|feb|mar|apr|may|june?|july?|aug|sep|oct|nov|dec"

# Sought at the beginning of a text.
OPENINGS = (
    TextRule(
        "nothing",
        "Anonymous Authors",
        r"anonymous (?:\w+ )?(?:authors?|submission|institution|affiliation)",
    ),
    TextRule("nothing", "Affiliation", r"(?:affiliation|institution|address)s?$"),
    TextRule(
        "nothing",
        "Associate Professor",
        r"(?!independent|unaffiliated)(?:[\w.'’-]+ ){0,4}(?:students?|professors?|fellow"
        r"|candidate|lecturer|member|scientist|researcher|engineer|post-?doc\w*)"
        r"(?:,? (?:IEEE|ACM|AAAI))?$",
    ),
    TextRule("nothing", "et al.", r"(?:and|&|et al|(?:and )?others)$"),
    TextRule(
        "nothing",
        "Under review as a conference paper",
        r"(?:paper )?under (?:double-blind )?review",
    ),
    TextRule(
        "nothing",
        "Project page:",
        r"(?:e-?mails?|homepage|project (?:page|website)|website|code|github|url)s?\W*$",
    ),
    TextRule(
        "nothing",
        "24 May 2024",
        rf"(?:\d{{1,2}}(?:st|nd|rd|th)? )?(?:{_MONTHS})[a-z]*\.? (?:\d{{1,2}}, )?(?:19|20)\d\d$",
    ),
    TextRule(
        "remark",
        "These authors contributed equally",
        r"(?:(?:the|these|this|both|all|two|first|last|senior|\d+) )*"
        r"(?:authors? )?(?:have |has |are |is )?(?:denotes? |indicates? )?"
        r"(?:correspond|contribut|equal(?:ly)?\b|co-?first|alphabetical)",
    ),
    TextRule(
        "remark",
        "Joint first authors",
        rf"(?:the |both |all )*{_AUTHORS_HAVE}(?:shared|joint(?:ly)?|co-?) ?"
        r"(?:(?:equal|senior|first|last|lead) )*"
        r"(?:authors?|authorship|contribut|supervis|advis|work)",
    ),
    TextRule(
        "remark",
        "Work done while at X Research",
        r"(?:the |this |our )?(?:research |work |paper |study |project )?(?:was |is |were )?"
        r"(?:partially |partly |mainly |mostly |in part )?"
        r"(?:done|performed|conducted|carried|completed|supported|funded|sponsored|accepted"
        r"|presented)\b",
    ),
    TextRule(
        "remark",
        "Work during an internship at X",
        r"(?:part of (?:this|the) )?(?:work|research) (?:was |done |while |during |at |when )",
    ),
    TextRule(
        "remark",
        "Now at X Research",
        r"(?:while|during|intern(?:ed|ship)?|deceased|on leave|formerly|previously|currently|now"
        r"|present address)\b",
    ),
    TextRule(
        "remark",
        "Project lead",
        r"(?:project|lead|team|senior|first|main|primary|core|student|equal|technical)[\s-]+"
        r"(?:lead|leader|authors?|advisors?|contributors?|supervisors?)",
    ),
    TextRule(
        "remark",
        "Listing order is random",
        r"""
        (?:listing|author) order
        order(?:ed)? (?:is|by|random|alphabetical)
        names? (?:are )?(?:listed|in)\x20
        """,
    ),
    TextRule(
        "remark",
        "Manuscript received April 1, 2024",
        r"""
        manuscript
        thanks
        e-?mails?\b
        contact\b
        preprint\b
        accepted
        copyright|©
        to appear
        in proceedings
        """,
    ),
)
# Sought anywhere in a text.
WORDS = (
    TextRule(
        "organisation",
        "Université de X",
        r"""
        univers(?:it|id)|\buniv\b
        \bcollege\b(?! park| station)
        academy|academia
        polytech|politec|hochschule
        \bécole\b|\becole\b
        """,
    ),
    TextRule(
        "organisation",
        "Acme Inc.",
        r"""
        \binc\b|\bcorp\b|corporation|\bltd\b|\bllc\b|gmbh
        foundation|hospital|medical cent|\bclinic\b
        ministry|observator|high school
        """,
    ),
    TextRule(
        "organisation",
        "Wand.ai",
        r"\bresearch\b|\btechnologies\b|(?-i:\b\w*AI\b)|\b\w+\.(?:ai|com|io|org|net)\b",
    ),
    TextRule(
        "organisation",
        "Independent Researcher",
        r"^(?:an )?(?:independent|unaffiliated)"
        r"(?: (?:researcher|scholar|scientist|consultant))?$",
    ),
    TextRule(
        "organisation",
        "清华大学",
        r"大学|大學|学院|學院|研究|公司|实验室|대학|연구",
    ),
    TextRule("institute", "Institute for Reading Machines", r"\binstitut"),
    TextRule(
        "unit",
        "Department of Physics",
        r"""
        school|departm|\bdept\b|\bdep\b
        \blabs?\b|laborato
        cent(?:er|re)\b|centro
        facult|division|\bgroup\b|\bteam\b|\bunit\b|programme?\b|campus
        \bchair of|dipartimento
        """,
    ),
    TextRule(
        "unit",
        "Computer Science",
        r"""
        sciences?\b|engineering\b|mathemati|informatics|computing\b|technolog|linguistics
        physics|statistics|economics|psychology|biology|chemistry|philosophy|neuroscience
        robotics|studies\b
        ^(?:cs|ece|eecs|cse)\b
        """,
    ),
    TextRule("location", "Amsterdam, Netherlands", rf"(?:^|, ?)(?:the )?(?:{_COUNTRIES})\W*$"),
    TextRule("location", "Boulder, CO", r",\s+(?-i:[A-Z]{2})(?:\s+\d{5}(?:-\d{4})?)?(?:,|\W*$)"),
)

AFFILIATION_KINDS = frozenset({"organisation", "institute", "unit", "location"})


def _pattern_of(rules: Iterable[TextRule], kind: str) -> re.Pattern[str]:
    patterns = (_any_of(rule.patterns) for rule in rules if rule.kind == kind)
    return re.compile("|".join(f"(?:{pattern})" for pattern in patterns), re.IGNORECASE)


_NOTHING, _REMARK = _pattern_of(OPENINGS, "nothing"), _pattern_of(OPENINGS, "remark")
_WORDS = {kind: _pattern_of(WORDS, kind) for kind in sorted(AFFILIATION_KINDS)}
# No affiliation is longer; what a hostile page has there is not searched whole.
_LONGEST = 600


@lru_cache(maxsize=4096)
def kinds_of(text: str) -> frozenset[str]:
    """Kinds of a text: nothing, remark, or some of AFFILIATION_KINDS; empty if unknown."""
    text = fold(text).strip(" .,;:*†‡")[:_LONGEST]
    if not text or _NOTHING.match(text):
        return frozenset({"nothing"})
    if _REMARK.match(text):
        return frozenset({"remark"})
    return frozenset(kind for kind, pattern in _WORDS.items() if pattern.search(text))


def is_affiliation(text: str) -> bool:
    """Whether the words of a text say that it is where somebody works."""
    return not kinds_of(text).isdisjoint(AFFILIATION_KINDS)
