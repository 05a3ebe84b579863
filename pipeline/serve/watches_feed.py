"""The new papers of watches as an Atom feed (RFC 4287)."""

from __future__ import annotations

from collections.abc import Sequence
from xml.etree import ElementTree as ET

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from pipeline.index.watches import WatchedPaper, read_watches, watched_papers
from pipeline.serve.site import Site
from pipeline.text import visible

_ATOM = "http://www.w3.org/2005/Atom"
_MOST_ENTRIES = 200


def watches_feed(site: Site, request: Request) -> Response:
    """The feed of all watches, or of `?watch=NAME`. Raises HTTPException for another name, and
    SettingError for a wrong file of watches.
    """
    watches = read_watches(site.workspace.settings.watches)
    name = request.query_params.get("watch")
    if name:
        names = ", ".join(watch.name for watch in watches) or "none"
        watches = [watch for watch in watches if watch.name == name]
        if not watches:
            raise HTTPException(404, f"there is no such watch: there are {names}")
    papers = watched_papers(site.root, watches)[:_MOST_ENTRIES]
    feed = _feed(str(request.base_url), str(request.url), name or "all watches", papers)
    content = ET.tostring(feed, encoding="utf-8", xml_declaration=True)
    return Response(content, media_type="application/atom+xml")


def _feed(site_url: str, own_url: str, name: str, papers: Sequence[WatchedPaper]) -> ET.Element:
    feed = ET.Element("feed", xmlns=_ATOM)
    _add(feed, "id", own_url)
    _add(feed, "title", f"citeloom: {name}")
    newest = papers[0].found if papers else "1970-01-01"
    _add(feed, "updated", _time(newest))
    ET.SubElement(feed, "link", rel="self", href=own_url)
    ET.SubElement(ET.SubElement(feed, "author"), "name").text = "citeloom"
    for paper in papers:
        address = f"{site_url}paper/{paper.arxiv_id}"
        entry = ET.SubElement(feed, "entry")
        _add(entry, "id", f"{address}#{paper.watch}")
        _add(entry, "title", paper.title)
        _add(entry, "updated", _time(paper.found))
        _add(entry, "summary", f"{paper.watch}, {paper.month}")
        ET.SubElement(entry, "link", rel="alternate", type="text/html", href=address)
    return feed


def _add(parent: ET.Element, tag: str, text: str) -> None:
    ET.SubElement(parent, tag).text = visible(text)


def _time(day: str) -> str:
    return f"{day}T00:00:00Z"
