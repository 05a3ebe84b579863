"""Back matter: sections that thank, declare and tick off, and say nothing of a paper's subject."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

BACK_MATTER = "back_matter"
"""The kind of its passages, which a search leaves out unless it asks for them."""

_TITLE = re.compile(
    r"(?:[\dA-Z]{1,2}[.:]?\s+)?(?:"
    r"acknowledge?ments?|acknowledging|funding|(?:credit )?(?:author|individual) contributions?"
    r"|contributions? of (?:the )?authors?|credit authorship contribution statement"
    r"|(?:\w+ )?(?:paper |reproducibility )?checklist"
    r"|(?:declaration of |statement of )?(?:conflicts? of|competing|conflicting)"
    r"(?: financial)? interests?|(?:declaration of )?competing interests?|declarations?"
    r"|(?:data|code|data and code|code and data|data and materials) availability(?: statement)?"
    r"|availability of data(?: and materials?| and code)?|disclosures?|disclaimer"
    r"|about the authors?|author biograph(?:y|ies)"
    r")\b(?:[ ,/:&(].{0,40})?",
    re.IGNORECASE,
)


def is_back_matter(section_path: Sequence[str]) -> bool:
    """Whether one of the titles of a passage's sections is that of back matter."""
    return any(map(_is_title_of_back_matter, section_path))


@lru_cache(maxsize=1 << 14)
def _is_title_of_back_matter(title: str) -> bool:
    return _TITLE.fullmatch(" ".join(title.split())) is not None
