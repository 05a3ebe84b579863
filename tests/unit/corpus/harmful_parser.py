"""A parser that harms its worker where a page asks for it.

A worker imports this module by its name, which is why it is no function of a test module.
"""

import os
import signal

from pipeline.corpus.parse import html
from pipeline.corpus.parse.parsed_page import Block, ParsedPage


def parse(page, authors=()):
    """The fast parser, but for pages that hold a word of harm."""
    if b"crash" in page:
        os.kill(os.getpid(), signal.SIGSEGV)
    if b"loop" in page:
        while True:
            pass
    if b"grow" in page:
        return ParsedPage(title="x" * (4 * 1024**3))
    if b"raise" in page:
        raise IndexError("list index\nout of range")
    if b"package" in page:
        raise ModuleNotFoundError("No module named 'bs4'")
    if b"disk" in page:
        raise OSError(28, "No space left on device")
    if b"surrogate" in page:
        return ParsedPage(
            abstract="Words.", blocks=(Block("paragraph", "S1", (), "no \ud800 Unicode"),)
        )
    return html.parse(page, authors)
