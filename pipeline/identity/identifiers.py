"""arXiv identifiers, their months, and DOIs: parsed from names of dump members, from text, and from
what people type.

Forms and dates: https://info.arxiv.org/help/arxiv_identifier.html.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date
from functools import lru_cache
from urllib.parse import unquote

from pipeline.identity.months import is_month

_NEW = re.compile(r"(\d{2})(\d{2})\.(\d{4,5})", re.ASCII)
_ARCHIVE = (
    "acc-phys|adap-org|alg-geom|ao-sci|astro-ph|atom-ph|bayes-an|chao-dyn|chem-ph|cmp-lg|comp-gas|cond-mat|cs|dg-ga|"
    "funct-an|gr-qc|hep-ex|hep-lat|hep-ph|hep-th|math|math-ph|mtrl-th|nlin|nucl-ex|nucl-th|patt-sol|physics|plasm-ph|"
    "q-alg|q-bio|quant-ph|solv-int|supr-con"
)
_OLD = re.compile(rf"({_ARCHIVE})(?:\.[A-Z]{{2}})?/(\d{{2}})(\d{{2}})(\d{{3}})")
_OLD_NAME = re.compile(rf"({_ARCHIVE})/?(\d{{2}})(\d{{2}})(\d{{3}})")
_MEMBER = re.compile(r"(?:(?:[^/]+/)*?([^/]+)/)?(\d{4})/([^/]+)\.x?html?", re.ASCII)
_VERSION = re.compile(r"(?<=\d)v(\d+)$")
# What may be between the name of the archive and an identifier: e-print arXiv.org/abs/…, Dec. 2015
_BETWEEN = r"(?:\D|(?:19|20)\d\d(?=[\s,;)])(?!\s?\.\s?\d{4})){0,60}?"
_NUMBER = r"(\d{4}\s?\.\s?\d{4,5})"
_IN_TEXT = re.compile(
    rf"(?:arxiv{_BETWEEN}|(?<![a-z])abs/)"
    rf"(?:{_NUMBER}|((?:{_ARCHIVE})(?:\.[A-Z]{{2}})?/\s?\d{{7}}))(?!\d)",
    re.IGNORECASE,
)
# [2105.01234] as physicists print it, and 2105.01234 [cs.CL].
_IN_BRACKETS = re.compile(
    rf"\[(\d{{4}}\.\d{{4,5}})(?:v\d+)?\]|"
    rf"(?<![\w./-])(\d{{4}}\.\d{{4,5}})(?:v\d+)?\s\[(?:{_ARCHIVE})(?:\.[A-Za-z-]{{2,9}})?\]"
)
_INVISIBLE = str.maketrans(dict.fromkeys("\u00ad\u200b\u200c\u200d\u2060\ufeff"))
_OLD_IN_TEXT = re.compile(rf"(?<![\w/])((?:{_ARCHIVE})(?:\.[A-Z]{{2}})?/\d{{7}})(?!\d)")

# Numbers had four digits until 1412 and have five from 1501 on; the old scheme ended with 0703.
_FIRST_NEW, _FIRST_FIVE_DIGITS = "2007-04", "2015-01"

# Of doi.org, or of a publisher's page.
_DOI_ADDRESS = re.compile(r"https?://[^\s/]+/(?:doi/)?(?=10\.)")

_TYPED_NUMBER = r"(?:(\d{4}\s?\.\s?\d{4,5})|([a-z-]{2,8})(?:\.[a-z]{2})?/?(\d{7}))(?:v\d+)?"
# What surrounds an identifier in citations and on arXiv's own stamp: arXiv preprint arXiv:…,
# arXiv:1706.03762v7 [cs.CL] 2 Aug 2023.
_AROUND = (
    r"(?:(?:oai:)?arxiv(?:\.org)?|e-?prints?|pre-?prints?|corr|abs|pdf|html|identifier|id|paper|number|no"
    r"|version|v\d++|(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*+"
    r"|\[(?:[a-z-]++(?!\.?[a-z]*/)(?:\.[a-z-]{2,9})?+)?+|(?:19|20)\d\d(?![.\d])|\d{1,2}(?!\d)"
    r"|[\s.:/,;()\]#_-])*?"
)
_WHOLE = re.compile(rf"{_AROUND}{_TYPED_NUMBER}{_AROUND}", re.ASCII)
_AMONG_WORDS = re.compile(rf"(?:(?<![\w.])|(?<=arxiv\.)){_TYPED_NUMBER}(?![\w-]|\.\d)", re.ASCII)
_SITE = r"(?:https?://)?(?:[\w-]+\.)+[a-z]{2,}(?::\d+)?/"
_TYPED_ADDRESS = re.compile(rf"{_SITE}(\S+)")
_IN_PATH = re.compile(rf"(?:^|[/=:]){_TYPED_NUMBER}(?:\.pdf|\.html)?(?=$|[/?#&])", re.ASCII)
_DOI = re.compile(rf"(?:doi\s*+(?::\s*+)?)?(?:{_SITE}(?:\S{{0,500}}/)?)?(10\.\d{{4,9}}/\S+)")
_ARXIV_DOI = "10.48550/arxiv."


@dataclass(frozen=True, slots=True)
class MemberName:
    """The paper of a member's name, its month, and its severity folder, if any."""

    arxiv_id: str
    month: str
    folder: str | None


@dataclass(frozen=True, slots=True)
class NotAPage:
    """Why a member's name is not that of an arXiv page, and the month of its folder, if any."""

    reason: str
    month: str | None


def split_version(identifier: str) -> tuple[str, int | None]:
    """An identifier without its version, and the version: `1707.08567v2` is (`1707.08567`, 2)."""
    version = _VERSION.search(identifier)
    if version is None:
        return identifier, None
    return identifier[: version.start()], int(version[1])


def strip_version(identifier: str) -> str:
    """The identifier without `v2` and the like."""
    return split_version(identifier)[0]


def normalize_arxiv_id(identifier: str) -> str | None:
    """An identifier in standard form, without version and `arXiv:`; None if it is not one."""
    bare = strip_version(identifier.strip())
    bare = re.sub(r"^arxiv:\s*", "", bare, flags=re.IGNORECASE)
    if _NEW.fullmatch(bare):
        return bare if month_of(bare) else None
    old = _OLD.fullmatch(bare)
    return f"{old[1]}/{old[2]}{old[3]}{old[4]}" if old and month_of(bare) else None


def month_of(identifier: str) -> str | None:
    """The month `YYYY-MM` of an identifier without version; None if it is malformed."""
    new = _NEW.fullmatch(identifier)
    if new:
        month = f"20{new[1]}-{new[2]}"
        digits = 4 if month < _FIRST_FIVE_DIGITS else 5
        return month if is_month(month) and month >= _FIRST_NEW and len(new[3]) == digits else None
    old = _OLD.fullmatch(identifier)
    if old is None:
        return None
    month = f"{'19' if old[2] >= '91' else '20'}{old[2]}-{old[3]}"
    return month if is_month(month) and month < _FIRST_NEW else None


def months_of(identifiers: Iterable[str]) -> list[str]:
    """The months of some identifiers, oldest first; malformed ones have none."""
    months = map(month_of, identifiers)
    return sorted({month for month in months if month is not None})


def group_by_month(identifiers: Iterable[str]) -> dict[str, set[str]]:
    """Identifiers by their months; malformed ones under ""."""
    groups: dict[str, set[str]] = {}
    for identifier in identifiers:
        groups.setdefault(month_of(identifier) or "", set()).add(identifier)
    return groups


def read_member_name(name: str) -> MemberName | NotAPage:
    """Parse the name of a dump member, such as `error/9802/quant-ph9802040.html`."""
    match = _MEMBER.fullmatch(name)
    if match is None:
        return NotAPage("it is not <yymm>/<id>.html", _claimed_month(name))
    folder, yymm, stem = match.groups()
    claimed = folder_month(yymm)
    arxiv_id = id_of_file_name(strip_version(stem))
    if arxiv_id is None:
        return NotAPage(f"{stem} is not an arXiv identifier", claimed)
    # A folder holds thousands of pages of one month: its month is parsed once, and a page only
    # compared with it.
    digits = 4 if claimed and claimed < _FIRST_FIVE_DIGITS else 5
    same = (
        claimed
        and claimed >= _FIRST_NEW
        and arxiv_id[:5] == f"{yymm}."
        and len(arxiv_id) == 5 + digits
    )
    month = claimed if same else month_of(arxiv_id)
    if month is None or claimed != month:
        return NotAPage(f"{stem} does not belong in the folder {yymm}", claimed)
    return MemberName(arxiv_id, month, folder)


def _claimed_month(name: str) -> str | None:
    """The month of the first folder of a path that is named after one; None without one."""
    months = map(folder_month, name.split("/")[:-1])
    return next((month for month in months if month), None)


def id_of_file_name(stem: str) -> str | None:
    """The identifier that names a file, such as `quant-ph9802040`; None for any other name."""
    if _NEW.fullmatch(stem):
        return stem
    old = _OLD_NAME.fullmatch(stem)
    return f"{old[1]}/{old[2]}{old[3]}{old[4]}" if old else None


@lru_cache(maxsize=1024)
def folder_month(part: str) -> str | None:
    """The month `YYYY-MM` of a folder's name `yymm`; None for any other name."""
    if len(part) != 4 or not (part.isdecimal() and part.isascii()):
        return None
    month = f"{'19' if part[:2] >= '91' else '20'}{part[:2]}-{part[2:]}"
    return month if is_month(month) else None


def find_arxiv_id(text: str) -> str | None:
    """The first arXiv identifier that a text names, without version.

    A bare `2403.18886` counts only after "arXiv" or "abs/", in square brackets, or before an
    archive in these: page ranges look alike. A space or line break may be at its full stop.
    Identifiers of months to come and the number 0 are none.
    """
    visible = text.translate(_INVISIBLE)
    for pattern in (_IN_TEXT, _IN_BRACKETS, _OLD_IN_TEXT):
        for match in pattern.finditer(visible):
            written = next(filter(None, match.groups()))
            identifier = normalize_arxiv_id("".join(written.split()))
            if identifier and _may_exist(identifier):
                return identifier
    return None


def _may_exist(identifier: str) -> bool:
    number = re.split(r"[./]", identifier)[-1]
    return str(month_of(identifier)) <= f"{date.today():%Y-%m}" and int(number) > 0


def plain_doi(doi: str | None) -> str | None:
    """A DOI without the address before it."""
    return _DOI_ADDRESS.sub("", doi, count=1) if doi else None


def split_dois(text: str | None) -> list[str]:
    """The DOIs of a field, lower case, without an address; arXiv's field may hold several."""
    if not text:
        return []
    bare = _DOI_ADDRESS.sub(" ", text.lower().replace("doi:", " ").replace(",10.", " 10."))
    return [part.rstrip(".,;") for part in bare.split() if part.startswith("10.")]


def arxiv_id_of(query: str) -> str | None:
    """The arXiv id that a query is, without version; None if the query is anything else.

    Ids with or without `arXiv:`, version and category, DOIs of arXiv, and addresses whose path has
    an id: of arxiv.org and of the sites that take arXiv's ids, such as ar5iv.
    """
    text = _normalized(query)
    doi = doi_of(query)
    if doi is not None:
        return _written_id(_WHOLE.fullmatch(doi.removeprefix(_ARXIV_DOI)))
    arxiv_id = _written_id(_WHOLE.fullmatch(text))
    address = _TYPED_ADDRESS.fullmatch(text)
    if arxiv_id is None and address is not None:
        return _written_id(_IN_PATH.search(address[1]))
    return arxiv_id


def arxiv_ids_among_words(query: str) -> list[str]:
    """What may be arXiv ids in a query that has other words too, without version, in order."""
    ids = map(_written_id, _AMONG_WORDS.finditer(_normalized(query)))
    return [arxiv_id for arxiv_id in ids if arxiv_id is not None]


def doi_of(query: str) -> str | None:
    """The DOI that a query is, in lower case; None if it is anything else."""
    match = _DOI.fullmatch(_normalized(query))
    return match and re.sub(r"(?s:[?#].*|\.pdf)\Z", "", match[1]).rstrip(".,;/")


def _normalized(query: str) -> str:
    text = unquote(unicodedata.normalize("NFKC", query).translate(_INVISIBLE)).strip()
    return text.strip("<>()[]{}\"'“”.,; ").lower()


def _written_id(match: re.Match[str] | None) -> str | None:
    if match is None:
        return None
    number, archive, old_number = match.groups()
    written = f"{archive}/{old_number}" if archive else "".join(number.split())
    return normalize_arxiv_id(written)
