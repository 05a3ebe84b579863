"""Pages and files with faults put into them, for the property-based tests."""

import re
import zipfile
from functools import cache

from hypothesis import strategies as st

from tests.conftest import PROJECT

# The real pages where they are at hand, else the sample's.
DUMPS = (PROJECT.parent / "shared" / "data" / "dump", PROJECT / "examples" / "dump")

# What breaks parsers: markup cut off, nested wrongly or without end, raw text, foreign content,
# other character sets, entities that stand for nothing, and citeloom's own marks. One on each line,
# so that a page's own quotes may stand.
_JUNK_TEXT = """
<
>
&
"
</
<!--
-->
<![CDATA[
]]>
<?xml version='1.0'?>
<!DOCTYPE html>
&#0;
&#x110000;
&bogus;
&nbsp;
&lt;p&gt;
<script>if (a < b) { x('</div>') }</script>
<style>p > a {color: red}</style>
<plaintext>
<textarea>
<math
</math>
<math alttext="
<math alttext="x < y & z">
<svg><path d='M0 0'/><foreignObject>
</p>
</section>
</body></html>
<p class=ltx_p>
<p class='ltx_p' class="ltx_para">
<a href=x><a href=y>
<section class="ltx_section">
<li class="ltx_bibitem">
<cite class="ltx_cite">
<td colspan="99999999" rowspan="-1">
<span class="ltx_ERROR undefined">\\foo</span>
<span class="ltx_note ltx_role_footnote">
<table class="ltx_tabular"><tr>
<span style="display:none">
[@S1.p1; @]
$$$
‮漢字🙂́
"""
_JUNK = (
    *(line.encode() for line in _JUNK_TEXT.splitlines() if line),
    *(b"\0", b"\1\2\3\6", b"\xff\xfe", b"\xed\xa0\x80", b"\xc3", b"<math "),
    *(b"<b><i></b></i>" * 20, b"<div>" * 300, b"<div a=1>" * 40 + b"</p>" * 40),
)
_CLOSERS = (b"</p>", b"</div>", b"</span>", b"</td>", b"</section>", b"</math>")
_QUOTES = (b"", b"'", b'""')
_ENCODINGS = ("utf-16", "utf-16-le", "cp1252")
_TAG = re.compile(rb"</?[a-zA-Z][^>]*>")


@cache
def pages():
    """Whole pages that nobody has touched, smallest first; the ten smallest keep thousands of cases
    within minutes.
    """
    folder = next(folder for folder in DUMPS if folder.is_dir())
    found = []
    for file in sorted(folder.glob("*.zip")):
        with zipfile.ZipFile(file) as archive:
            found += [archive.read(name) for name in archive.namelist() if name.endswith(".html")]
    return tuple(sorted(found, key=len)[:10])


class Mutated:
    """A page with faults: (kind, place, size of the page after it) in the order in which they were
    put in.

    No dataclass: hypothesis would print the fields of one, and half a megabyte of HTML in a
    failure's report helps nobody.
    """

    def __init__(self, content, page, faults):
        self.content, self.page, self.faults = content, page, faults

    def __repr__(self):
        return (
            f"page {self.page} with"
            f" {', '.join(f'{name} at {at} ({size} bytes)' for name, at, size in self.faults)}"
        )


@st.composite
def mutated_pages(draw):
    """A page with one to six faults."""
    page = draw(st.integers(0, len(pages()) - 1))
    content, faults = pages()[page], []
    for _ in range(draw(st.integers(1, 6))):
        fault, at = draw(st.sampled_from(_FAULTS)), draw(st.integers(0, len(content)))
        content = fault(draw, content, at)
        faults.append((fault.__name__, at, len(content)))
    return Mutated(content, page, faults)


def _junk(draw, content, at):
    return content[:at] + draw(st.sampled_from(_JUNK)) + content[at:]


def _cut(draw, content, at):
    return content[:at]


def _delete(draw, content, at):
    return content[:at] + content[at + draw(st.integers(1, 5000)) :]


def _repeat(draw, content, at):
    return (
        content[:at]
        + content[at : at + draw(st.integers(1, 5000))] * draw(st.integers(2, 20))
        + content[at:]
    )


def _flip(draw, content, at):
    return content[:at] + bytes([draw(st.integers(0, 255))]) + content[at + 1 :]


def _other_tag(draw, content, at):
    old, new = _TAG.search(content, at), _TAG.search(content, draw(st.integers(0, len(content))))
    return (
        content
        if old is None or new is None
        else content[: old.start()] + new.group() + content[old.end() :]
    )


def _no_closers(draw, content, at):
    return content[:at] + content[at:].replace(draw(st.sampled_from(_CLOSERS)), b"")


def _other_quotes(draw, content, at):
    return content[:at] + content[at:].replace(
        b'"', draw(st.sampled_from(_QUOTES)), draw(st.integers(1, 9))
    )


def _other_encoding(draw, content, at):
    return content.decode("utf-8", "replace").encode(draw(st.sampled_from(_ENCODINGS)), "replace")


_FAULTS = (
    _junk,
    _junk,
    _junk,
    _cut,
    _delete,
    _repeat,
    _flip,
    _other_tag,
    _no_closers,
    _other_quotes,
    _other_encoding,
)
