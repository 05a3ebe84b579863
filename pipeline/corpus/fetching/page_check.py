"""Check that an answer of arXiv's site is the complete page of a paper.

A paper without HTML is a valid outcome; denied access ends the run.
"""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import unquote, urlsplit

from pipeline.arxiv.rate_limited_client import Answer
from pipeline.corpus.parse.source import as_utf8, is_html
from pipeline.errors import PermanentFailure

_KINDS = ("text/html", "application/xhtml+xml")
_GONE = (404, 410)
_END_BYTES = 2048  # where LaTeXML's pages have their </html>, with nothing or a comment after it


@dataclass(frozen=True, slots=True)
class Unusable:
    """Why an answer is no page: no_html, not_html, not_latexml, elsewhere or cut, with a description."""

    reason: str
    detail: str


def check_answer(answer: Answer, arxiv_id: str) -> Unusable | None:
    """Why an answer is not the page of a paper; None where it is.

    Raises PermanentFailure where the site denies access or answers with another error.
    """
    if answer.status in _GONE:
        return Unusable("no_html", f"arXiv has no HTML of it (status {answer.status})")
    if answer.status in (401, 403):
        raise PermanentFailure(
            f"{answer.address} denies access (status {answer.status}): stop, because arXiv treats further requests as "
            "an attack; set CITELOOM_ARXIV_USER_AGENT to a contact and write to arXiv's support"
        )
    if answer.status != 200:
        raise PermanentFailure(f"{answer.address} answers with status {answer.status}: check CITELOOM_HTML_URL")
    kind = answer.kind.partition(";")[0].strip().lower()
    if arxiv_id not in unquote(urlsplit(answer.address).path):
        return Unusable("elsewhere", f"the answer is of another address, {answer.address}")
    return _check_body(answer.body, kind)


def _check_body(body: bytes, kind: str) -> Unusable | None:
    page = as_utf8(body)
    if (kind and kind not in _KINDS) or not is_html(page):
        return Unusable("not_html", f"it is no HTML page, but {kind or 'of no kind that is told'}")
    if b"</html>" not in page[-_END_BYTES:].lower():
        return Unusable("cut", f"it breaks off after {len(body):,} bytes, without </html>")
    if b"ltx_document" not in page:
        return Unusable("not_latexml", "it is HTML, and not a paper that LaTeXML converted")
    return None
