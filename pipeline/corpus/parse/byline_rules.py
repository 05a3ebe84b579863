"""What is in a byline: the kinds of its texts, by rules; its marks; its e-mail addresses.

A rule is a pattern, what it yields, and an example; add one with an example of its own. Kinds of
texts are `nothing` (left out), `remark` (a note on authors, and no affiliation though it may name
one), and those that an affiliation is
made of: organisation, institute (one, or a part of one), unit (a part of one), street (part of an
address), location (an address's end). A text that no rule knows is a name or an affiliation by its
place.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

from pipeline.corpus.parse.policies import (
    AUTHOR,
    CELL,
    EMAIL,
    ERRED,
    INNER,
    LINE,
    MARK,
    NOTE,
    PLACE,
    fold,
)


class Rule(NamedTuple):
    """pattern: without regard to case. yields: a kind of text. example: a text of which that is
    true.
    """

    yields: str
    pattern: str
    example: str


# Sought at the beginning of a text.
OPENINGS = (
    Rule(
        "nothing",
        r"anonymous (?:\w+ )?(?:authors?|submission|institution|affiliation)",
        "Anonymous Authors",
    ),
    Rule("nothing", r"(?:affiliation|institution|address)s?$", "Affiliation"),
    Rule("nothing", r"(?:and|&|et al|(?:and )?others)$", "et al."),
    Rule(
        "nothing",
        r"(?:paper )?under (?:double-blind )?review",
        "Under review as a conference paper",
    ),
    Rule(
        "nothing",
        r"(?:e-?mails?|homepage|project (?:page|website)|website|code|github|url)s?\W*$",
        "Project page:",
    ),
    Rule(
        "nothing",
        r"(?:\d{1,2}(?:st|nd|rd|th)?"
        r" )?(?:jan|feb|mar|apr|may|june?|july?|aug|sep|oct|nov|dec)[a-z]*\.?"
        r" (?:\d{1,2}, )?(?:19|20)\d\d$",
        "24 May 2024",
    ),
    Rule(
        "remark",
        r"(?:(?:the|these|this|both|all|two|first|last|senior|\d+) )*(?:authors? )?(?:have |has"
        r" |are |is )?"
        r"(?:denotes? |indicates? )?(?:correspond|contribut|equal(?:ly)?\b|co-?first|alphabetical)",
        "These authors contributed equally",
    ),
    Rule(
        "remark",
        r"(?:the |both |all )*(?:authors? )?(?:have |has )?(?:shared|joint(?:ly)?|co-?) ?"
        r"(?:(?:equal|senior|first|last|lead)"
        r" )*(?:authors?|authorship|contribut|supervis|advis|work)",
        "Joint first authors",
    ),
    Rule(
        "remark",
        r"(?:the |this |our )?(?:research |work |paper |study |project )?(?:was |is |were )?"
        r"(?:partially |partly |mainly |mostly |in part )?"
        r"(?:done|performed|conducted|carried|completed|supported|funded|sponsored|accepted|presented)\b",
        "Work done while at X Research",
    ),
    Rule(
        "remark",
        r"(?:part of (?:this|the) )?(?:work|research) (?:was |done |while |during |at |when )",
        "Work during an internship at X",
    ),
    Rule(
        "remark",
        r"(?:while|during|intern(?:ed|ship)?|deceased|on"
        r" leave|formerly|previously|currently|now|present address)\b",
        "Now at X Research",
    ),
    Rule(
        "remark",
        r"(?:project|lead|team|senior|first|main|primary|core|student|equal|technical)[\s-]+"
        r"(?:lead|leader|authors?|advisors?|contributors?|supervisors?)",
        "Project lead",
    ),
    Rule(
        "remark",
        r"(?:listing|author) order|order(?:ed)? (?:is|by|random|alphabetical)|names? (?:are"
        r" )?(?:listed|in) ",
        "Listing order is random",
    ),
    Rule(
        "remark",
        r"manuscript|thanks|e-?mails?\b|contact\b|preprint\b|accepted|copyright|©|to appear|in"
        r" proceedings",
        "Manuscript received April 1, 2024",
    ),
)
# Sought anywhere in a text.
WORDS = (
    Rule(
        "organisation",
        r"univers(?:it|id)|\buniv\b|\bcollege\b(?! park|"
        r" station)|academy|academia|polytech|politec|hochschule|"
        r"\bécole\b|\becole\b",
        "Université de X",
    ),
    Rule(
        "organisation",
        r"\binstitut\w* of technology|institute for advanced study|"
        r"\b(?:national|max planck|max-planck|allen|alan"
        r" turing|flatiron|weizmann|indian|vector|broad|santa fe|"
        r"karolinska|royal|korea advanced|beijing|toyota|software)(?: [\w-]+){0,2} institut",
        "Massachusetts Institute of Technology",
    ),
    Rule(
        "organisation",
        r"\binc\b|\bcorp\b|corporation|\bltd\b|\bllc\b|gmbh|foundation|hospital|medical"
        r" cent|\bclinic\b|ministry|"
        r"observator|high school",
        "Acme Inc.",
    ),
    Rule(
        "organisation",
        r"\bresearch\b|\btechnologies\b|(?-i:\b\w*AI\b)|\b\w+\.(?:ai|com|io|org|net)\b",
        "Wand.ai",
    ),
    Rule(
        "organisation",
        r"\b(?:google|microsoft|facebook|meta"
        r" ai|deepmind|openai|amazon|aws|nvidia|ibm|alibaba|tencent|huawei|baidu|"
        r"bytedance|salesforce|adobe|samsung|anthropic|yahoo|linkedin|netflix|bloomberg|siemens|hitachi|fujitsu|xerox|"
        r"oracle|qualcomm|spotify|naver|kakao|meituan|kuaishou|xiaomi|sensetime|jd\.com|hugging"
        r" face|cohere)\b",
        "Google DeepMind",
    ),
    Rule(
        "organisation",
        r"(?-i:\b(?:CNRS|INRIA|Inria|CSIRO|CWI|EPFL|KAIST|MIT|UCLA|UCSD|UCSF|CMU|NYU|ETH|CSAIL|LORIA|CISPA|DFKI|NIST|"
        r"NASA|CERN|INRAE|INSERM|RWTH|POSTECH|USTC|HKUST|NUS|NTU)\b)",
        "CSIRO's Data61",
    ),
    Rule(
        "organisation",
        r"(?-i:^(?:UT|UC|UW|TU|NC|UM|LMU|FU|HU|IIT|IIIT|NIT|IISc|SUNY|CUNY|KU|VU|KTH|UNC|UMass)"
        r" \w+)",
        "UT Austin",
    ),
    Rule(
        "organisation",
        r"^(?:the )?(?:harvard|stanford|princeton|carnegie mellon|georgia tech|virginia"
        r" tech|caltech|technion|oxford|"
        r"mcgill|ben-gurion|max planck|allen institute|bell labs)\b(?!,)",
        "Carnegie Mellon",
    ),
    Rule(
        "organisation",
        r"^(?:an )?(?:independent|unaffiliated)(?: (?:researcher|scholar|scientist|consultant))?$",
        "Independent Researcher",
    ),
    Rule("organisation", r"大学|大學|学院|學院|研究|公司|实验室|대학|연구", "清华大学"),
    Rule("institute", r"\binstitut", "Institute for Reading Machines"),
    Rule(
        "unit",
        r"school|departm|\bdept\b|\bdep\b|\blabs?\b|laborato|cent(?:er|re)\b|facult|division|\bgroup\b|\bteam\b|"
        r"\bunit\b|programme?\b|campus|\bchair of|centro|dipartimento",
        "Department of Physics",
    ),
    Rule(
        "unit",
        r"sciences?\b|engineering\b|mathemati|informatics|computing\b|technolog|linguistics|physics|statistics|"
        r"economics|psychology|biology|chemistry|philosophy|neuroscience|robotics|studies\b|^(?:cs|ece|eecs|cse)\b",
        "Computer Science",
    ),
    Rule(
        "location",
        r"(?:^|, ?)(?:the )?(?:u\.?s\.?a\.?|u\.s\.|united states(?: of america)?|u\.?k\.?|united"
        r" kingdom|england|"
        r"scotland|wales|ireland|china|p\.? ?r\.? china|hong kong|taiwan|japan|(?:south |republic"
        r" of )?korea|india|"
        r"singapore|australia|new"
        r" zealand|canada|mexico|brazil|argentina|chile|colombia|germany|france|italy|spain|"
        r"portugal|switzerland|austria|belgium|netherlands|luxembourg|denmark|sweden|norway|finland|poland|"
        r"czech"
        r" republic|czechia|hungary|romania|greece|turkey|türkiye|russia|ukraine|israel|iran|iraq"
        r"|saudi"
        r" arabia|"
        r"qatar|uae|united arab emirates|egypt|south"
        r" africa|nigeria|kenya|pakistan|bangladesh|vietnam|thailand|"
        r"malaysia|indonesia|philippines)\W*$",
        "Amsterdam, Netherlands",
    ),
    Rule("location", r",\s+(?-i:[A-Z]{2})(?:\s+\d{5}(?:-\d{4})?)?(?:,|\W*$)", "Boulder, CO"),
    Rule(
        "street",
        r"\b\d{4,}\b|\b(?-i:[A-Z]{1,2}\d[\dA-Z]? ?\d[A-Z]{2})\b|\bp\.? ?o\.?"
        r" box|straße|strasse|\brue d|"
        r"\b\d+\w?,? [\w. ]{2,40}\b(?:street|avenue|road|drive)\b",
        "53115 Bonn",
    ),
)

AFFILIATION_KINDS = frozenset({"organisation", "institute", "unit", "street", "location"})


def _either(rules: tuple[Rule, ...], kind: str) -> re.Pattern[str]:
    return re.compile(
        "|".join(f"(?:{rule.pattern})" for rule in rules if rule.yields == kind), re.IGNORECASE
    )


_NOTHING, _REMARK = _either(OPENINGS, "nothing"), _either(OPENINGS, "remark")
_WORDS = {kind: _either(WORDS, kind) for kind in sorted(AFFILIATION_KINDS)}
# No affiliation is longer; what a hostile page has there is not searched whole.
_LONGEST = 600


@lru_cache(maxsize=4096)
def kinds_of(text: str) -> frozenset[str]:
    """What a text beside names is: nothing, remark, or some of AFFILIATION_KINDS; empty where no
    rule knows it.
    """
    text = fold(text).strip(" .,;:*†‡")[:_LONGEST]
    if not text or _NOTHING.match(text):
        return frozenset({"nothing"})
    if _REMARK.match(text):
        return frozenset({"remark"})
    return frozenset(kind for kind, pattern in _WORDS.items() if pattern.search(text))


def is_affiliation(text: str) -> bool:
    """Whether the words of a text say that it is where somebody works."""
    return not kinds_of(text).isdisjoint(AFFILIATION_KINDS)


# Marks: superscripts, symbols, and formulas that are nothing but such.

_SYMBOLS = "*∗⋆★†‡§¶∥‖♯♭♮♠♣♥♦♡♢♤♧◇⋄☆✉✝∘△▲▽▼□■○●◆⊕⊗⊙∇❖"
_SAME_MARK = str.maketrans({"∗": "*", "★": "⋆", "☆": "⋆", "‖": "∥", "✝": "†", "◇": "⋄"})
_TEX_SYMBOLS = {
    "dagger": "†",
    "ddagger": "‡",
    "ast": "*",
    "star": "⋆",
    "bigstar": "⋆",
    "S": "§",
    "P": "¶",
    "diamond": "⋄",
    "Diamond": "⋄",
    "dag": "†",
    "ddag": "‡",
    "sharp": "♯",
    "natural": "♮",
    "flat": "♭",
    "clubsuit": "♣",
    "spadesuit": "♠",
    "heartsuit": "♥",
    "diamondsuit": "♦",
    "parallel": "∥",
    "circ": "∘",
    "bullet": "•",
    "cdot": "·",
    "Letter": "✉",
    "alpha": "α",
    "beta": "β",
    "gamma": "γ",
    "delta": "δ",
}
_SYMBOL_RUN = re.compile(f"[{_SYMBOLS}]+")
_MARK_PARTS = re.compile(rf"{NOTE}?\d+|{NOTE}?[{_SYMBOLS}]|{NOTE}?[^\W\d_]+")
_MARK_ONLY = re.compile(rf"(?:[{_SYMBOLS}]|\d{{1,2}}|[a-zα-δ]|[,;\s])+")
_MARKED = re.compile(f"{MARK}[^{MARK}]*{MARK}")
_FORMULA = re.compile(r"\$([^$]*)\$")
_TEX_COMMAND = re.compile(r"\\([A-Za-z]+)\s*|\\.")
_TEX_SPACE = re.compile(r"[\s~{}^_]+")
# A \\footnotemark within a formula: "11footnotemark: 1".
_FOOTNOTE_MARK = re.compile(r"(\S{1,3}?)\1footnotemark:\s*\1")
_BRACKETED_MARK = re.compile(r"\s?[(\[](\d{1,2}(?:\s?,\s?\d{1,2})*)[)\]]")
# What an unknown macro set as marks, such as SPIE's \\supit: the macro is an error, its argument is
# text.
_MARK_OF_UNKNOWN_MACRO = re.compile(
    rf"{ERRED}((?:[a-z]|\d{{1,2}})(?:,\s?(?:[a-z]|\d{{1,2}}))*)(?![a-z\d@./-])"
)
_SUPERSCRIPT_DIGITS = re.compile("[⁰¹²³⁴⁵⁶⁷⁸⁹]+")
_DIGITS = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹", "0123456789")
# What LaTeXML makes of LNCS's \\inst{1} and \\inst{1,2}: each mark twice.
_DOUBLED_MARKS = re.compile(r"(?:(\d{1,2}(?:,\s?\d{1,2})*?)\1)+")
_DOUBLED_MARK = re.compile(r"(\d{1,2}(?:,\s?\d{1,2})*?)\1(?!\d*\1)")
_LONGEST_MARKS = 24
_SIGNS = str.maketrans(dict.fromkeys((AUTHOR, CELL, EMAIL, INNER, LINE, MARK, NOTE, PLACE), " "))


def normalize(names: str) -> str:
    """The text of names with formulas and symbols as marks, and addresses that were broken over
    lines whole again.
    """
    text = _MARK_OF_UNKNOWN_MACRO.sub(rf"{MARK}\1{MARK}", names).replace(ERRED, "")
    text = _FORMULA.sub(_formula_as_mark, text)
    pieces = text.split(MARK)
    pieces[1::2] = [_FOOTNOTE_MARK.sub(rf"{NOTE}\1", piece) for piece in pieces[1::2]]
    pieces[::2] = [_SYMBOL_RUN.sub(rf"{MARK}\g<0>{MARK}", piece) for piece in pieces[::2]]
    text = _BRACKETED_MARK.sub(rf"{MARK}\1{MARK}", MARK.join(pieces))
    text = _SUPERSCRIPT_DIGITS.sub(lambda found: f"{MARK}{found[0].translate(_DIGITS)}{MARK}", text)
    if "@" in text:
        text = _BROKEN_GROUP.sub(
            lambda found: found[0].replace(LINE, " "), _BROKEN_EMAIL.sub("@", text)
        )
    return text


def _formula_as_mark(formula: re.Match[str]) -> str:
    """A formula among names: a mark where it is nothing else, else its text."""
    tex = formula[1].replace("\\{", "{").replace("\\}", "}")
    if tex in ("{", "}"):
        return tex
    plain = _TEX_COMMAND.sub(lambda command: _TEX_SYMBOLS.get(command[1] or "", " "), tex)
    text = _TEX_SPACE.sub(" ", plain).strip()
    if text in ("•", "·", "|", "&"):
        return text
    if not text:
        return "  " if "quad" in tex else " "
    return f"{MARK}{text}{MARK}" if _MARK_ONLY.fullmatch(text) else formula[0]


def split_marks(text: str) -> frozenset[str]:
    """The single marks in a superscript: "1,2", "∗1", "2†", "a,b"."""
    return frozenset(_MARK_PARTS.findall(fold(text).translate(_SAME_MARK)))


def doubled_marks(text: str) -> frozenset[str]:
    """The marks in a text that is nothing but marks, each twice; none in any other."""
    if len(text) > _LONGEST_MARKS or not _DOUBLED_MARKS.fullmatch(text):
        return frozenset()
    return frozenset(
        mark for found in _DOUBLED_MARK.finditer(text) for mark in split_marks(found[1])
    )


def without_signs(text: str) -> str:
    """The text on one line, without the signs that citeloom sets in bylines."""
    return fold(text.translate(_SIGNS))


def plain_line(line: str) -> str:
    """The words of a line, without marks."""
    return without_signs(_MARKED.sub(" ", line))


def has_letters(text: str) -> bool:
    """Whether a text says anything beside its marks."""
    return any(letter.isalpha() for letter in plain_line(text))


# E-mails and other addresses.

_EMAILS = re.compile(
    r"[{(\[](?P<group>[^{}()\[\]@]*)[})\]]\s*@\s*(?P<domain>[\w-]+(?:\.[\w-]+)+)"
    r"|(?<![\w.+-])[\w.+-]++@[\w-]+(?:\.[\w-]+)+"
)
_EMAIL_WORD = re.compile(
    r"\b(?:corresponding |contact )?e-?mails?(?: address(?:es)?)?\b\s*:?", re.IGNORECASE
)
_EMAIL_PARTS = re.compile(r"[,;|/\s]+")
_BROKEN_EMAIL = re.compile(rf"@\s*{LINE}\s*|\s*{LINE}\s*@")
_BROKEN_GROUP = re.compile(rf"\{{[^{{}}@]{{0,400}}{LINE}[^{{}}@]{{0,400}}\}}\s*@")
_SPELLED_AT = re.compile(r"\s*[\[(<{]\s*(?:at|@)\s*[\])>}]\s*", re.IGNORECASE)
_SPELLED_DOT = re.compile(r"\s*[\[(<{]\s*dot\s*[\])>}]\s*", re.IGNORECASE)
_URL = re.compile(r"\b(?:https?://|www\.)\S+", re.IGNORECASE)
_ORCID = re.compile(
    r"(?:\borcid(?: id)?s?\W*)?(?<!\d)\d{4}-\d{4}-\d{4}-\d{3}[\dX]\b", re.IGNORECASE
)
EDGES = " ,;:-–—"


def find_emails(*texts: str) -> list[str]:
    """The e-mail addresses in some texts; `{a, b}@x.org` is two."""
    return [email for text in texts for email in take_emails(text)[1]]


def take_emails(text: str) -> tuple[str, list[str]]:
    """The text with EMAIL in place of each e-mail address, and the addresses."""
    if "@" not in text and not ("dot" in text and _SPELLED_AT.search(text)):
        return text, []
    emails: list[str] = []

    def take(found: re.Match[str]) -> str:
        group = _EMAIL_PARTS.split(without_signs(_MARKED.sub("", found["group"] or "")))
        addresses = [f"{name}@{found['domain']}" for name in group if name] or [found[0]]
        emails.extend(addresses)
        return EMAIL * len(addresses)

    return _EMAILS.sub(take, _SPELLED_DOT.sub(".", _SPELLED_AT.sub("@", text))), emails


def without_addresses(text: str) -> str:
    """The text without e-mails, addresses of pages, ORCIDs, and the words that announce them."""
    text = take_emails(text)[0]
    if EMAIL in text:
        text = _EMAIL_WORD.sub(" ", text.replace(EMAIL, " "))
    if "://" in text or "www." in text or "-" in text:
        text = _ORCID.sub(" ", _URL.sub(" ", text))
    return text.strip(EDGES)
