"""Sections without content on a paper's subject: acknowledgements, ethics, checklists."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

_TITLE = re.compile(
    r"(?:[\dA-Z]{1,2}[.:]?\s+)?(?:"
    r"acknowledge?ments?|acknowledging|funding|(?:credit )?(?:author|individual) contributions?"
    r"|contributions? of (?:the )?authors?|credit authorship contribution statement"
    r"|(?:statement (?:of|on) )?ethic(?:s|al)(?:[ ,/].*)?|(?:broader |societal |social )?impacts?"
    r"(?: statement| concerns)|broader impacts?|(?:\w+ )?(?:paper |reproducibility )?checklist"
    r"|(?:declaration of |statement of )?(?:conflicts? of|competing|conflicting)"
    r"(?: financial)? interests?|(?:declaration of )?competing interests?|declarations?"
    r"|(?:data|code|data and code|code and data|data and materials) availability(?: statement)?"
    r"|availability of data(?: and materials?| and code)?|disclosures?|disclaimer"
    r"|reproducibility statement|about the authors?|author biograph(?:y|ies)"
    r")\b(?:[ ,/:&(].{0,40})?",
    re.IGNORECASE,
)


def is_boilerplate(section_path: Sequence[str]) -> bool:
    """Whether one of the titles of a passage's sections is that of a boilerplate section."""
    return any(map(_is_title_of_boilerplate, section_path))


@lru_cache(maxsize=1 << 14)
def _is_title_of_boilerplate(title: str) -> bool:
    return _TITLE.fullmatch(" ".join(title.split())) is not None
