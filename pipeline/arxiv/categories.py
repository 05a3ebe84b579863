"""How arXiv spells its subjects."""

from __future__ import annotations

import re

_CATEGORY = re.compile(r"([a-z-]+)(?:\.([a-z-]+))?", re.IGNORECASE | re.ASCII)


def spelt(category: str) -> str | None:
    """A category as arXiv spells it, whatever case it came in; None for what is none.

    Archives are in small letters, subjects of two letters in capitals (cs.CL), longer ones in small letters
    (physics.optics).
    """
    match = _CATEGORY.fullmatch(category.strip())
    if match is None:
        return None
    archive, subject = match[1].lower(), match[2]
    if subject is None:
        return archive
    return f"{archive}.{subject.upper() if len(subject) == 2 else subject.lower()}"
