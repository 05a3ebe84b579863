"""Sentences of a paper turned into sentences that cite it, without a change to what they state.

The subject of a sentence is named, in one of four ways:

- "We propose SimCSE, a framework that …" → "SimCSE [Reference 3] is a framework that …"
- "We study …" → "Gao et al. [Reference 3] study …"; a single author is quoted, as "we" needs a
  plural verb
- "This paper presents …" → "Gao et al. [Reference 3] present …", or "The paper of Gao et al.
  [Reference 3] …"
- any other sentence keeps its words and gains the citation at its end

Adverbs and clauses that tie a sentence to the one before it are removed ("However,", "To address
this problem,"). A sentence that cannot stand alone is refused: one with a "this" or "it" that
refers to an earlier sentence, with citations or formulas that need an explanation, or that points
to a table or a section.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from pipeline.arxiv.person_names import parse_name
from pipeline.text import one_line

FEWEST_WORDS, MOST_WORDS = 6, 60


def _any_of(words: str) -> str:
    """A pattern for one of these words; `_` stands for a space within one."""
    return "(?:" + "|".join(re.escape(word).replace("_", " ") for word in words.split()) + ")"


_PAPER = _any_of(
    "paper work article study survey review letter report thesis chapter research contribution"
    " tutorial monograph overview"
)
_ADVERBS = _any_of(
    "however moreover furthermore in_addition additionally specifically in_particular particularly"
    " therefore thus hence consequently finally lastly first firstly second secondly third thirdly"
    " then next also here overall notably importantly interestingly surprisingly remarkably"
    " meanwhile nevertheless nonetheless besides indeed similarly instead likewise conversely"
    " accordingly concretely yet but and so as_a_result as_a_consequence to_this_end to_that_end"
    " to_do_so to_do_this in_response in_contrast by_contrast on_the_other_hand for_this_purpose"
    " for_this_reason more_specifically more_precisely more_importantly more_concretely in_short"
    " in_summary to_summarize in_conclusion in_the_paper"
)
_LEAD_IN = re.compile(
    rf"(?:{_ADVERBS}|in (?:this|the present) {_PAPER})(?:\s*,\s*|\s+(?=we\b))", re.IGNORECASE
)
# "To address these challenges, we": the challenges are in the sentence before, and the clause is
# removed.
_PURPOSE = _any_of(
    "to in_order_to in_response_to motivated_by inspired_by driven_by guided_by building_on"
    " building_upon based_on based_upon with given from in_light_of under using by through for"
    " towards toward as in"
)
_OBSTACLE = _any_of(
    "issue problem limitation gap challenge shortcoming drawback difficult question goal"
)
_POINTER = _any_of("this these those that such the_above the_aforementioned it them")
_POINTING_CLAUSE = re.compile(
    rf"{_PURPOSE}\b(?:(?>[^,.;]*?\b{_POINTER}\b)[^,.;]*"
    rf"|[^,.;]*\bthe (?:\w+ )?{_OBSTACLE}\w*),\s+(?=(?:we|this {_PAPER})\b)",
    re.IGNORECASE,
)
# Beginnings of a sentence that refer to the sentence before it.
_LEANS_BACK = re.compile(
    _any_of(
        "this these those that such it they he she its their there here another other others both"
        " each either neither one all some many_of_these many_of_them doing_so the_former"
        " the_latter the_above the_same the_other the_proposed the_resulting the_new the_key"
        " the_main as_such if_so not_only nor or which while_this although_this for_example"
        " for_instance e.g i.e source_code our my i"
    )
    + r"\b",
    re.IGNORECASE,
)
_POINTS_BACK = re.compile(
    r"\b(?:this|these|those|aforementioned|above|above-mentioned|former|latter)\b|\bsuch (?!as\b)"
    r"|\b(?:that|whether|how|because|as|since) (?:it|they)\b|\bit\b(?=[^,]{0,199}\bwe\b)"
    r"|\b(?:is|are|was|were) (?:then|also|further)\b"
    r"|\bwe\b(?: (?!that|which|and)[^\s,]+){1,9} (?:of|on|for|to|in|from) its?\b",
    re.IGNORECASE,
)
_ABOUT_THE_PAPER = re.compile(
    rf"(?:(?:this|the present|the current|our) (?P<noun>{_PAPER})|the"
    r" (?P<plain>paper|article|survey|authors))\b",
    re.IGNORECASE,
)
# Text that makes sense in its own paper alone: formulas, citations, parts of the paper, addresses,
# numbered lists.
_FOREIGN = re.compile(
    r"\$|\\|\[@|\[\d|\[Reference|https?:|www\.|github|\|"
    r"|\b(?:Section|Sec\.|Table|Tab\.|Figure|Fig\.|Figs\.|Appendix|Equation|Eq\.|Algorithm|Theorem|Lemma|Chapter)\s*"
    r"(?:\d|[A-Z]\b|[IVX]+\b)|\((?:i{1,3}|[a-d]|[1-9])\)|\bas follows\b|\bthe"
    r" following\b|\b(?:19|20)\d\d[a-z]?\)"
    r"|\bavailable"
    r" (?:at|from|online|here)\b|\b(?:code|models?|data(?:sets?)?|implementations?)\b[^.]{0,199}"
    r"\b(?:is|are|will"
    r" be|has been|have been) (?:made )?(?:publicly |openly |freely )?(?:available|released|open)",
    re.IGNORECASE,
)
# Formulas that need no explanation: min-$p$, $k$-means, $2.3\times$.
_PLAIN_FORMULA = re.compile(r"(?<=\w-)\$\w\$|\$\w\$(?=-\w)|\$[\d.,]{1,20}(?:\\(?:times|%))?\$")
_LIST_MARK = re.compile(r"(?:\(?\d{1,2}[.)]|[-•–])\s+")
_FIRST_PERSON = re.compile(r"\b(?:we|our|ours|us|ourselves)\b", re.IGNORECASE)
_THIRD_PERSON = {
    "we": "they",
    "our": "their",
    "ours": "theirs",
    "us": "them",
    "ourselves": "themselves",
}
_SINGULAR = re.compile(r"\b(?:I|my|me|mine|myself)\b")
# "We" are the authors where they do one of these; "as we know" and "images we see" speak of
# everybody.
_DEEDS = _any_of(
    "propose present introduce describe develop design show demonstrate study investigate examine"
    " explore analyze analyse evaluate compare find observe report prove provide give address"
    " tackle consider extend apply adapt use employ leverage build construct create collect release"
    " formulate formalize formalise derive establish suggest argue offer conduct perform achieve"
    " obtain improve train learn model define identify revisit review survey discuss combine"
    " integrate incorporate generalize generalise implement validate verify focus aim discover"
    " reveal illustrate outline devise advocate unify bridge exploit utilize utilise reduce"
    " reformulate decompose test measure quantify characterize characterise augment enhance"
    " simplify optimize optimise summarize summarise categorize contribute seek attempt highlight"
    " uncover estimate benchmark curate generate replace begin start treat view cast take make"
    " follow rely set seed fine-tune finetune pre-train pretrain are_the_first"
)
_WE_AS_AUTHORS = re.compile(
    rf"\bwe (?:\w+ly )?(?:{_DEEDS}|have \w+ed|\w+ed|built|found|gave|wrote)\b", re.IGNORECASE
)
# Words that place a sentence among others of its paper, and are removed.
_STEP = re.compile(
    r"\b(?P<we>we)"
    r" (?:also|then|further|furthermore|additionally|first|finally|next|thus|therefore) ",
    re.IGNORECASE,
)
_STATED = (
    "propose present introduce describe develop show demonstrate investigate examine explore"
    " provide report offer prove give extend review survey evaluate compare discuss design argue"
    " consider analyze suggest combine"
)
_STATES = re.compile(rf" (?:first |also )?(?P<verb>{_any_of(_STATED)})s\b")
_STATES_AGAIN = re.compile(r"(?:,|\band|\bthen) (?:\w+ly )?(?:is|has|does|\w+[a-z](?:s|es))\b")
# "We propose SimCSE, a simple framework that …", "we propose a framework, called SimCSE, which …".
_NAME = (
    r"(?P<name>(?:[A-Z][\w’'+*-]{0,60}|\w{1,60}[A-Z][\w-]{0,60})"
    r"(?: [A-Z][\w’'-]{0,60}| for| of){0,8}(?: \([^()]{2,80}\))?)"
)
_WE_PROPOSE = r"(?:We|we) (?:propose|present|introduce|develop|describe|build|construct|design)"
_NAMED_FIRST = re.compile(rf"{_WE_PROPOSE} {_NAME}, (?P<what>(?:a|an|the) [^;:]*)\Z")
_NAMED_LAST = re.compile(
    rf"{_WE_PROPOSE} (?P<what>an? [^,;:]*?),? (?:called|named|dubbed|termed|coined|namely) {_NAME}"
    r"(?P<more>\.|,? (?:which|that|to|for|based|where|consisting|by) [^;:]{0,1000})\Z"
)
# A second thing that the authors do cannot be said of what they propose.
_AND_WE = re.compile(
    rf",? and (?:\w+ly )?(?:we|{_any_of(_STATED)}|use|study|apply|find|release)\b", re.IGNORECASE
)
_FONT = re.compile(r"\\(?:emph|text(?:it|bf|tt|sc|sf|rm)|underline|bf|it|em)\b\s*")


def author_names(authors: Sequence[str]) -> str:
    """The authors as a text names them: "Gal", "Gal and Ghahramani", "Zhao et al."; "" where none
    is known.
    """
    families = [parse_name(author).family for author in authors[:3]]
    if not families or not families[0]:
        return ""
    if len(authors) > 2:
        return f"{families[0]} et al."
    return " and ".join(filter(None, families))


def citable_sentence(sentence: str, number: int, authors: Sequence[str]) -> str | None:
    """The sentence as it can be in a related-work section, citing `[Reference number]`; None where
    it cannot.
    """
    text = _STEP.sub(r"\g<we> ", _without_lead_in(_plain(sentence)))
    citation, names = f"[Reference {number}]", author_names(authors)
    about = _ABOUT_THE_PAPER.match(text)
    if about:
        if not _stands_alone(text[about.end() :], text):
            return None
        return _of_the_paper(text, about, citation, names)
    if _LEANS_BACK.match(text) or not _stands_alone(text, text):
        return None
    if not _FIRST_PERSON.search(text):
        return f"{text[:-1]} {citation}."
    if not _WE_AS_AUTHORS.search(text):
        return None
    return _of_the_thing(text, citation) or _of_the_authors(
        text, citation, names, single=len(authors) == 1
    )


def follow_up(sentence: str, number: int, authors: Sequence[str]) -> str | None:
    """The sentence as it can be behind one whose subject its authors are: "They show …", "Their
    method …".
    """
    text = _STEP.sub(r"\g<we> ", _without_lead_in(_plain(sentence)))
    if not _FIRST_PERSON.search(text) or _ABOUT_THE_PAPER.match(text):
        return citable_sentence(sentence, number, authors)
    leans = _LEANS_BACK.match(text) and not re.match(r"our\b", text, re.IGNORECASE)
    speaks_of_everybody = re.search(r"\bwe\b", text, re.IGNORECASE) and not _WE_AS_AUTHORS.search(
        text
    )
    if len(authors) < 2 or leans or speaks_of_everybody or not _stands_alone(text, text):
        return None
    return f"{_in_third_person(text)[:-1]} [Reference {number}]."


def _plain(sentence: str) -> str:
    """The sentence in one line, without TeX's fonts and escapes."""
    text = one_line(sentence)
    if "\\" not in text:
        return text
    text = _FONT.sub("", text).replace("\\%", "%").replace("\\&", "&")
    return text.replace("{", "").replace("}", "")


def _without_lead_in(text: str) -> str:
    """The text without its number in a list, and without adverbs and clauses that tie it to the
    sentence before; begins with a capital.
    """
    mark = _LIST_MARK.match(text)
    text = text[mark.end() :] if mark else text
    while match := _LEAD_IN.match(text) or _POINTING_CLAUSE.match(text):
        text = text[match.end() :]
    return text[:1].upper() + text[1:]


def _stands_alone(rest: str, text: str) -> bool:
    """Whether a text is one statement, of a usable length, that needs nothing around it.

    rest: the text without its subject where that is "this paper", searched for words that point
    back.
    """
    whole = (
        text[:1].isalnum() and text.endswith(".") and not text.endswith("..") and "?" not in text
    )
    closed = all(text.count(left) == text.count(right) for left, right in ("()", "[]", "“”"))
    usable = FEWEST_WORDS <= len(text.split()) <= MOST_WORDS and text.count('"') % 2 == 0
    foreign = (
        _FOREIGN.search(_PLAIN_FORMULA.sub("", text))
        or _SINGULAR.search(text)
        or _POINTS_BACK.search(rest)
    )
    return whole and closed and usable and not foreign


def _of_the_paper(text: str, about: re.Match[str], citation: str, names: str) -> str | None:
    rest, noun = text[about.end() :], (about["noun"] or about["plain"]).lower()
    states = _STATES.match(rest)
    if not rest.startswith(" "):
        return None
    if noun == "authors":
        subject = f"{names} {citation}" if names else f"The authors of {citation}"
    elif names and " and " not in names and "et al." not in names:
        subject = f"The {noun} of {names} {citation}"
    elif names and states and not _STATES_AGAIN.search(rest, states.end()):
        return f"{names} {citation} {states['verb']}{_in_third_person(rest[states.end() :])}"
    else:
        subject = f"The {noun} of {names} {citation}" if names else f"The {noun} {citation}"
    return subject + _in_third_person(rest)


def _of_the_thing(text: str, citation: str) -> str | None:
    """The proposal as the subject where it has a name of its own: "SimCSE [Reference 3] is a simple
    framework".
    """
    named = _NAMED_FIRST.match(text) or _NAMED_LAST.match(text)
    if named is None:
        return None
    what = named["what"] + named.groupdict().get("more", "")
    if _FIRST_PERSON.search(what) or _AND_WE.search(what) or len(what.split()) < FEWEST_WORDS:
        return None
    return f"{named['name']} {citation} is {what}"


def _of_the_authors(text: str, citation: str, names: str, *, single: bool) -> str:
    """The text with its authors for the first "we"."""
    if single and names:
        return f"{names} {citation} writes: “{text}”"
    before, after = re.split(r"\bwe\b", text, maxsplit=1, flags=re.IGNORECASE)
    nobody = f"the authors of {citation}" if before else f"The authors of {citation}"
    subject = f"{names} {citation}" if names else nobody
    return f"{_in_third_person(before)}{subject}{_in_third_person(after)}"


def _in_third_person(text: str) -> str:
    def third(match: re.Match[str]) -> str:
        if match[0] == "US":  # in capitals it is a country
            return match[0]
        word = _THIRD_PERSON[match[0].lower()]
        return word.capitalize() if match[0][0].isupper() else word

    return _FIRST_PERSON.sub(third, text)
