"""Parse XML answers of arXiv strictly and in bounded memory."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from pipeline.arxiv.rate_limited_client import BrokenAnswer
from pipeline.errors import PermanentFailure

if TYPE_CHECKING:
    from lxml.etree import _Element as Element

_HTML = re.compile(rb"<(?:!doctype\s+)?html\b", re.I)
# 100 entries with 3,000 authors each are 600,000 elements. lxml bounds depth (256) and the length of a text (10 MB)
# itself; 7,000,000 elements took 800 MB and a million attributes 240 MB.
MOST_ELEMENTS = 700_000
MOST_ATTRIBUTES = 400_000


def parse_xml(body: bytes, root: str) -> Element:
    """The root element of a whole document; `root` is the name that it must have, as `{namespace}name`.

    Raises BrokenAnswer where the body is HTML, truncated, not XML, too large or has another root, PermanentFailure
    where it declares a document type: arXiv never does, and entities make a long text of a short one.
    """
    from lxml import etree

    if _HTML.search(body[:1000]):
        raise BrokenAnswer("it is an HTML page")
    if b"<!DOCTYPE" in body.replace(b"\0", b""):  # UTF-16 has zeros between the letters
        raise PermanentFailure("it declares a document type or entities, as arXiv never does")
    if body.count(b"<") > 2 * MOST_ELEMENTS or body.count(b"=") > MOST_ATTRIBUTES:
        raise BrokenAnswer(f"it has more than {MOST_ELEMENTS:,} elements or {MOST_ATTRIBUTES:,} attributes")
    parser = etree.XMLParser(resolve_entities=False, no_network=True, remove_comments=True, remove_pis=True)
    try:
        element = etree.fromstring(body, parser)
    except (etree.XMLSyntaxError, ValueError, LookupError) as error:
        raise BrokenAnswer(f"it is truncated or not XML ({error})") from error
    if element.tag != root:
        raise BrokenAnswer(f"its root is {element.tag}, not {root}")
    return element
