"""DOIs as arXiv and bibliographies print them."""

from __future__ import annotations

import re

_ANY_ADDRESS = re.compile(r"https?://[^\s/]+/(?:doi/)?(?=10\.)")
_RESOLVERS = ("https://doi.org/", "http://doi.org/", "https://dx.doi.org/", "http://dx.doi.org/")


def plain_doi(doi: str | None) -> str | None:
    """A DOI without the address around it: that of doi.org, or of a publisher's page."""
    return _ANY_ADDRESS.sub("", doi, count=1) if doi else None


def split_dois(text: str | None) -> list[str]:
    """The DOIs of a field, lower case, without an address; arXiv's field may hold several."""
    if not text:
        return []
    bare = text.lower().replace("doi:", " ").replace(",10.", " 10.")
    for address in _RESOLVERS:
        bare = bare.replace(address, " ")
    return [part.rstrip(".,;") for part in bare.split() if part.startswith("10.")]
