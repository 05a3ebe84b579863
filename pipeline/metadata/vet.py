"""The first look at an answer in XML: whether it is whole, and nothing that harms."""

from __future__ import annotations

import re
from xml.etree.ElementTree import ParseError

from pipeline.errors import CiteloomError, PermanentFailure

_HTML = re.compile(
    rb"(?:\xef\xbb\xbf)?\s*(?:<\?xml[^>]*>\s*)?(?:<!--.{0,500}?-->\s*)*<(?:!doctype\s+)?html\b", re.I | re.S
)
# 100 entries with 3,000 authors each are 600,000 elements, five deep, and counting as many takes a second. lxml cuts
# a text off at 10,000,000 characters, and a chain of elements at 256, without a word.
MOST_ELEMENTS = 700_000
DEEPEST = 100
LONGEST_TEXT = 5_000_000
# A tag is held whole before it is told of: one of a million attributes took 240 MB.
LONGEST_TAG_BYTES = 1_000_000
_CHUNK_BYTES = 1 << 16


class BrokenAnswer(CiteloomError):
    """An answer that is not what it should be; the next one may be."""


class _Counter:
    """What the parser tells its events to: it keeps no element, so no answer can grow in memory."""

    def __init__(self) -> None:
        self.root: str | None = None
        self._elements = self._depth = self._text = self._events = 0
        self._heard = (0, 0)

    def expect_event_by(self, position: int) -> None:
        """Raise BrokenAnswer where nothing was told of for long, up to that byte."""
        if self._events != self._heard[0]:
            self._heard = (self._events, position)
        elif position - self._heard[1] > LONGEST_TAG_BYTES:
            raise BrokenAnswer(f"one of its tags is longer than {LONGEST_TAG_BYTES:,} bytes")

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        self.root = self.root or tag
        self._elements += 1
        self._events += 1
        self._depth += 1
        self._text = 0
        if self._elements > MOST_ELEMENTS or self._depth > DEEPEST:
            raise BrokenAnswer(f"it has more than {MOST_ELEMENTS:,} elements, or {DEEPEST} within one another")

    def end(self, tag: str) -> None:
        self._depth -= 1
        self._text = 0

    def data(self, text: str) -> None:
        self._events += 1
        self._text += len(text)
        if self._text > LONGEST_TEXT:
            raise BrokenAnswer(f"one of its texts is longer than {LONGEST_TEXT:,} characters")

    def close(self) -> str:
        return self.root or ""


def root_of(body: bytes) -> str:
    """The name of the root of a whole XML document, as `{namespace}name`.

    Raises BrokenAnswer where the body is HTML, cut off, not XML or beyond all measure, PermanentFailure where it
    declares a document type or entities: arXiv never does, and those are how a short text becomes a long one.
    """
    from defusedxml.common import DefusedXmlException
    from defusedxml.ElementTree import DefusedXMLParser

    if _HTML.match(body):
        raise BrokenAnswer("it is an HTML page")
    counter = _Counter()
    parser = DefusedXMLParser(target=counter, forbid_dtd=True)
    try:
        for start in range(0, len(body), _CHUNK_BYTES):
            counter.expect_event_by(start)
            parser.feed(body[start : start + _CHUNK_BYTES])
        return str(parser.close())
    except DefusedXmlException as error:
        raise PermanentFailure(f"it declares a document type or entities, as arXiv never does ({error})") from error
    except (ParseError, ValueError, LookupError) as error:
        raise BrokenAnswer(f"it is cut off or no XML ({error})") from error
