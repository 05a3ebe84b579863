"""What the texts of a byline are, as rules: the first pattern that fits says it. Add a rule with an example of its own.

`KINDS` of texts: nothing (left out), remark (a note on authors, and no affiliation though it may name one), and three
kinds of affiliations, of which a text can be several: organisation, institute (one, or a part of one), unit (a part of
one), street (part of an address), location (its end). A text that no rule
knows is a name or an affiliation by its place.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from pipeline.corpus.policies import fold


class Rule(NamedTuple):
    """pattern: without regard to case. yields: a kind of text. example: a text of which that is true."""

    yields: str
    pattern: str
    example: str


# Sought at the beginning of a text.
OPENINGS = (
    Rule("nothing", r"anonymous (?:authors?|submission|\w+ submission)", "Anonymous Authors"),
    Rule("nothing", r"(?:paper )?under (?:double-blind )?review", "Under review as a conference paper"),
    Rule("nothing", r"(?:orcid(?: id)?s?\W*)?\d{4}-\d{4}-\d{4}-\d{3}[\dx]\b", "ORCID: 0000-0002-1825-0097"),
    Rule("nothing", r"(?:orcid|e-?mails?|homepage|project (?:page|website)|website|code|github|url)s?\W*$", "Project page:"),
    Rule("nothing", r"(?:\d{1,2}(?:st|nd|rd|th)? )?(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|"
         r"aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)\.? (?:\d{1,2}, )?(?:19|20)\d\d$",
         "24 May 2024"),
    Rule("remark", r"(?:the |these |this |both |all |two |first |last |senior |\d+ )*(?:authors? )?(?:have |has |are |is )?"
         r"(?:denotes? |indicates? )?(?:correspond|contribut|equal(?:ly)?\b|co-?first|alphabetical)",
         "These authors contributed equally"),
    Rule("remark", r"(?:the |both |all )*(?:authors? )?(?:have |has )?(?:shared|joint(?:ly)?|co-?) ?(?:equal |senior |first |"
         r"last |lead )*(?:authors?|authorship|contribut|supervis|advis|work)", "Joint first authors"),
    Rule("remark", r"(?:the |this |our )?(?:research |work |paper |study |project )?(?:was |is |were )?(?:partially |partly |mainly |"
         r"mostly |in part )?(?:done|performed|conducted|carried|completed|supported|funded|sponsored|accepted|presented)\b",
         "Work done while at X Research"),
    Rule("remark", r"(?:part of (?:this|the) )?(?:work|research) (?:was |done |while |during |at |when )", "Work during an internship at X"),
    Rule("remark", r"(?:while|during|intern(?:ed|ship)?|deceased|on leave|formerly|previously|currently|now|present address)"
         r"\b", "Now at X Research"),
    Rule("remark", r"(?:project|lead|team|senior|first|main|primary|core|student|equal|technical)[\s-]+(?:lead|leader|authors?|"
         r"advisors?|contributors?|supervisors?)", "Project lead"),
    Rule("remark", r"(?:listing|author) order|order(?:ed)? (?:is|by|random|alphabetical)|names? (?:are )?(?:listed|in) ",
         "Listing order is random"),
    Rule("remark", r"manuscript|thanks|e-?mails?\b|contact\b|preprint\b|accepted|copyright|©|to appear|in proceedings", "Manuscript received April 1, 2024"),
)  # fmt: skip

# Sought anywhere in a text.
WORDS = (
    Rule("organisation", r"univers(?:it|id)|\buniv\b|\bcollege\b(?! park| station)|academy|academia|polytech|politec|hochschule|\bécole\b|\becole\b",
         "Université de X"),
    Rule("organisation", r"\binstitut\w* of technology|institute for advanced study|\b(?:national|max planck|max-planck|allen|"
         r"alan turing|flatiron|weizmann|indian|vector|broad|santa fe|karolinska|royal|korea advanced|beijing|toyota|"
         r"software)(?: [\w-]+){0,2} institut",
         "Massachusetts Institute of Technology"),
    Rule("organisation", r"\binc\b|\bcorp\b|corporation|\bltd\b|\bllc\b|gmbh|foundation|hospital|medical cent|\bclinic\b|"
         r"ministry|observator|high school", "Acme Inc."),
    Rule("organisation", r"\bresearch\b|\btechnologies\b|(?-i:\b\w*AI\b)|\b\w+\.(?:ai|com|io|org|net)\b", "Wand.ai"),
    Rule("organisation", r"\b(?:google|microsoft|facebook|meta ai|deepmind|openai|amazon|aws|nvidia|ibm|alibaba|tencent|huawei|"
         r"baidu|bytedance|salesforce|adobe|samsung|anthropic|yahoo|linkedin|netflix|bloomberg|siemens|"
         r"hitachi|fujitsu|xerox|oracle|qualcomm|spotify|naver|kakao|meituan|kuaishou|xiaomi|sensetime|jd\.com)\b",
         "Google DeepMind"),
    Rule("organisation", r"(?-i:\b(?:CNRS|INRIA|Inria|CSIRO|CWI|EPFL|KAIST|MIT|UCLA|UCSD|CMU|ETH|CSAIL|LORIA|CISPA|DFKI|NIST|"
         r"NASA|CERN|INRAE|INSERM|RWTH|POSTECH|USTC|HKUST|UCSF|NYU|NUS|NTU|EPFL)\b)", "CSIRO's Data61"),
    Rule("organisation", r"(?-i:^(?:UT|UC|UW|TU|NC|UM|LMU|FU|HU|IIT|IIIT|NIT|IISc|SUNY|CUNY|KU|VU|KTH|UNC|UMass) \w+)", "UT Austin"),
    Rule("organisation", r"^(?:the )?(?:harvard|stanford|princeton|carnegie mellon|georgia tech|virginia tech|caltech|technion|"
         r"oxford|mcgill|ben-gurion|max planck|allen institute|bell labs)\b", "Carnegie Mellon"),
    Rule("organisation", r"^(?:an )?(?:independent|unaffiliated)(?: (?:researcher|scholar|scientist|consultant))?$",
         "Independent Researcher"),
    Rule("institute", r"\binstitut", "Institute for Reading Machines"),
    Rule("unit", r"school|departm|\bdept\b|\bdep\b|\blab\b|\blabs\b|laborato|cent(?:er|re)\b|facult|division|\bgroup\b|"
         r"\bteam\b|\bunit\b|programme?\b|campus|\bchair of|\bcollaborat|centro|dipartimento|sciences?\b|engineering\b|"
         r"mathemati|informatics|computing\b|technolog|linguistics|physics|statistics|economics|psychology|biology|"
         r"chemistry|philosophy|neuroscience|robotics|studies\b|^(?:cs|ece|eecs|cse|ischool)\b", "Department of Physics"),
    Rule("location", r"(?:^|, ?)(?:the )?(?:u\.?s\.?a\.?|u\.s\.|united states(?: of america)?|u\.?k\.?|united kingdom|england|scotland|"
         r"wales|ireland|china|p\.? ?r\.? china|hong kong|taiwan|japan|(?:south |republic of )?korea|india|singapore|"
         r"australia|new zealand|canada|mexico|brazil|argentina|chile|colombia|germany|france|italy|spain|portugal|"
         r"switzerland|austria|belgium|netherlands|luxembourg|denmark|sweden|norway|finland|poland|czech republic|czechia|"
         r"hungary|romania|greece|turkey|türkiye|russia|ukraine|israel|iran|iraq|saudi arabia|qatar|uae|"
         r"united arab emirates|egypt|south africa|nigeria|kenya|pakistan|bangladesh|vietnam|thailand|malaysia|indonesia|"
         r"philippines)\W*$", "Amsterdam, Netherlands"),
    Rule("location", r",\s+(?-i:[A-Z]{2})(?:\s+\d{5}(?:-\d{4})?)?(?:,|\W*$)", "Boulder, CO"),
    Rule("street", r"\b\d{4,}\b|\b(?-i:[A-Z]{1,2}\d[\dA-Z]? ?\d[A-Z]{2})\b|\bp\.? ?o\.? box|straße|strasse|"
         r"\b\d+\w?,? [\w. ]{2,40}\b(?:street|avenue|road|drive)\b|\brue d", "53115 Bonn"),
)  # fmt: skip

AFFILIATION_KINDS = frozenset({"organisation", "institute", "unit", "street", "location"})


def _either(rules: tuple[Rule, ...], kind: str) -> re.Pattern[str]:
    return re.compile("|".join(f"(?:{rule.pattern})" for rule in rules if rule.yields == kind), re.IGNORECASE)


_NOTHING, _REMARK = _either(OPENINGS, "nothing"), _either(OPENINGS, "remark")
_WORDS = {kind: _either(WORDS, kind) for kind in sorted(AFFILIATION_KINDS)}
# No affiliation is longer; what a hostile page has there is not searched whole.
_LONGEST = 600


def kinds_of(text: str) -> frozenset[str]:
    """What a text beside names is: nothing, remark, or some of organisation, institute, unit, street, location; empty where none tells."""
    text = fold(text).strip(" .,;:*†‡")[:_LONGEST]
    if not text or _NOTHING.match(text):
        return frozenset({"nothing"})
    if _REMARK.match(text):
        return frozenset({"remark"})
    return frozenset(kind for kind, pattern in _WORDS.items() if pattern.search(text))


def is_affiliation(text: str) -> bool:
    """Whether the words of a text say that it is where somebody works."""
    return not kinds_of(text).isdisjoint(AFFILIATION_KINDS)
