"""Rules for the texts beside the names of a byline.

A rule is a pattern, the kind of text that it yields, and an example; add one with an example of its
own. The kinds are `nothing` (left out), `remark` (a note on authors, and no affiliation though it
may name one), and the parts of an affiliation: organisation, institute (one, or a part of one),
unit (a part of one), street, location (the end of an address).
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

from pipeline.corpus.parse.policies import fold


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
