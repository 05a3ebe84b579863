"""DOIs as arXiv and bibliographies print them."""

from __future__ import annotations

import re

# Of doi.org, or of a publisher's page.
_ADDRESS = re.compile(r"https?://[^\s/]+/(?:doi/)?(?=10\.)")


def plain_doi(doi: str | None) -> str | None:
    """A DOI without the address before it."""
    return _ADDRESS.sub("", doi, count=1) if doi else None


def split_dois(text: str | None) -> list[str]:
    """The DOIs of a field, lower case, without an address; arXiv's field may hold several."""
    if not text:
        return []
    bare = _ADDRESS.sub(" ", text.lower().replace("doi:", " ").replace(",10.", " 10."))
    return [part.rstrip(".,;") for part in bare.split() if part.startswith("10.")]
