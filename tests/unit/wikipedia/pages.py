"""Pages in the form of Wikimedia's HTML dumps, on things that do not exist: Parsoid's HTML, JSON lines, tar.gz.

Imported by name.
"""

from __future__ import annotations

import io
import json
import tarfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

MONTH = "2024-09"
FILE = "enwiki-NS0-20240901-ENTERPRISE-HTML.json.tar.gz"

ORCHARD, LANTERN = "enwiki:101", "enwiki:202"


def html(*sections: str, title: str = "A page", head: str = "", body: str = "") -> str:
    """A page of Parsoid's around sections, the first of which is the lead."""
    told = "".join(
        f'<section data-mw-section-id="{place}" id="mw{place:02}">{each}</section>'
        for place, each in enumerate(sections)
    )
    return (
        '<!DOCTYPE html>\n<html prefix="dc: http://purl.org/dc/terms/ mw: http://mediawiki.org/rdf/" '
        'about="https://en.wikipedia.org/wiki/Special:Redirect/revision/7">'
        '<head prefix="mwr: https://en.wikipedia.org/wiki/Special:Redirect/"><meta charset="utf-8"/>'
        '<meta property="mw:pageId" content="101"/><meta property="mw:htmlVersion" content="2.8.0"/>'
        f'<title>{title}</title><base href="//en.wikipedia.org/wiki/"/>{head}</head>'
        f'<body id="mwAA" lang="en" class="mw-content-ltr mw-parser-output" dir="ltr">{told}{body}</body></html>'
    )


def heading(level: int, title: str) -> str:
    """A heading, wrapped as Parsoid wraps it since 2024."""
    anchor = title.replace(" ", "_")
    return f'<div class="mw-heading mw-heading{level}"><h{level} id="{anchor}">{title}</h{level}></div>'


def cite(key: str, number: int = 1) -> str:
    """A citation in the text."""
    return (
        f'<sup about="#mwt{number}" class="mw-ref reference" id="cite_ref-{key}_{number}-0" rel="dc:references" '
        f'typeof="mw:Extension/ref" data-mw=\'{{"name":"ref"}}\'><a href="./Page#cite_note-{key}-{number}">'
        f'<span class="mw-reflink-text">[{number}]</span></a></sup>'
    )


def references(*items: tuple[str, str]) -> str:
    """The list of references; items are (key with number, text)."""
    told = "".join(
        f'<li about="#cite_note-{key}" id="cite_note-{key}" data-mw-footnote-number="{place}"><span '
        f'class="mw-cite-backlink"><a href="./Page#cite_ref-{key}-0" rel="mw:referencedBy">'
        f'<span class="mw-linkback-text">↑ </span></a></span> <span id="mw-reference-text-cite_note-{key}" '
        f'class="mw-reference-text reference-text">{text}</span></li>'
        for place, (key, text) in enumerate(items, 1)
    )
    return (
        '<div class="mw-references-wrap" typeof="mw:Extension/references" about="#mwt9">'
        f'<ol class="mw-references references">{told}</ol></div>'
    )


def math(tex: str, *, display: bool = False) -> str:
    """A formula, as the Math extension writes it: MathML that nobody sees, and a picture."""
    block = ' display="block"' if display else ""
    return (
        '<span class="mwe-math-element" typeof="mw:Extension/math" about="#mwt5"><span '
        'class="mwe-math-mathml-inline mwe-math-mathml-a11y" style="display: none;"><math '
        f'xmlns="http://www.w3.org/1998/Math/MathML"{block} alttext="{{\\displaystyle {tex}}}"><semantics><mrow>'
        '<mi>E</mi><mo>=</mo><mi>m</mi></mrow><annotation encoding="application/x-tex">'
        f'{{\\displaystyle {tex}}}</annotation></semantics></math></span><img src="./x.svg" '
        f'class="mwe-math-fallback-image-inline" alt="{{\\displaystyle {tex}}}"/></span>'
    )


HATNOTE = (
    '<div role="note" class="hatnote navigation-not-searchable" about="#mwt1" typeof="mw:Transclusion">For the film, '
    'see <a rel="mw:WikiLink" href="./The_Orchard_(film)" title="The Orchard (film)">The Orchard (film)</a>.</div>'
)
MESSAGE = (
    '<table class="box-More_citations_needed plainlinks metadata ambox ambox-content" role="presentation"><tbody><tr>'
    "<td>This article needs additional citations for verification.</td></tr></tbody></table>"
)
INFOBOX = (
    '<table class="infobox vcard" about="#mwt2" typeof="mw:Transclusion"><tbody><tr><th colspan="2" '
    'class="infobox-above">Tumblewick orchard robot</th></tr><tr><td colspan="2" class="infobox-image"><span '
    'typeof="mw:File"><a href="./File:Robot.jpg"><img alt="" resource="./File:Robot.jpg" src="r.jpg"/></a></span>'
    '</td></tr><tr><th scope="row">Maker</th><td><a rel="mw:WikiLink" href="./Brindle">Brindle Works</a></td></tr>'
    "<tr><th>Sensors</th><td><ul><li>Lidar</li><li>Hyperspectral camera</li></ul></td></tr><tr><th>Speed</th><td>Two "
    "trees in an hour, four in summer</td></tr><tr><th>Power</th><td>A battery of 4 kWh</td></tr></tbody></table>"
)
NAVBOX = (
    '<div role="navigation" class="navbox" aria-labelledby="Robots"><table><tbody><tr><td>Robots of farms: '
    "Tumblewick, Plodder</td></tr></tbody></table></div>"
)
TABLE = (
    '<table class="wikitable"><caption>Yield by season</caption><tbody><tr><th>Season</th><th>Apples (t)</th></tr>'
    '<tr><td rowspan="2">2021</td><td>14</td></tr><tr><td>15 | sorted</td></tr></tbody></table>'
)
CLEANUP = (
    '<sup class="noprint Inline-Template Template-Fact" style="white-space:nowrap;">[<i><a rel="mw:WikiLink" '
    'href="./Wikipedia:Citation_needed" title="Wikipedia:Citation needed">citation needed</a></i>]</sup>'
)


def orchard_html() -> str:
    """An article that has something of everything."""
    lead = (
        f"{HATNOTE}{MESSAGE}<style>.x{{color:red}}</style>{INFOBOX}<p>The <b>Tumblewick orchard robot</b> prunes apple "
        f'<a rel="mw:WikiLink" href="./Tree" title="Tree">trees</a> at night.{cite("Brindle")} It was shown to growers '
        f"in the valley of Ash in 2019, and was sold from 2021 on.{CLEANUP}</p><!-- nobody reads this -->"
    )
    history = (
        f"{heading(2, 'History')}<p>Work on pruning by machine began with a sledge that two people pulled between the "
        "rows of the orchard at Nettlefield.</p><p>The first robot fell over in wet grass, so that its wheels were "
        'made twice as wide.</p><figure class="mw-default-size" typeof="mw:File/Thumb"><a href="./File:Sledge.jpg">'
        '<img resource="./File:Sledge.jpg" src="s.jpg"/></a><figcaption>The sledge of 2016, restored</figcaption>'
        "</figure>"
    )
    design = (
        f"{heading(2, 'Design')}<p>It finds branches by their spectrum.{cite('Ash', 2)}</p>"
        f'<section data-mw-section-id="3" id="mw13">{heading(3, "Cutting force")}<p>A cut of a branch of radius '
        f"{math('r')} needs the force</p><dl><dd>{math('F=k r^{2}', display=True)}</dd></dl><p>where "
        f"{math('k')} is a property of the wood.</p><ul><li>Soft wood is cut in one go.</li><li>Hard wood is cut "
        f"twice.<ul><li>Dead wood is left.</li></ul></li></ul>{TABLE}</section>"
    )
    notes = f"{heading(2, 'References')}" + references(
        ("Brindle-1", "Brindle, A. (2019). <i>Robots at night</i>."),
        ("Ash-2", 'Ash, B. (2020). <a href="https://arxiv.org/abs/2001.01234">Spectra of bark</a>.'),
    )
    return html(lead, history, design, notes, title="Tumblewick orchard robot", body=NAVBOX)


def lantern_html() -> str:
    """A short article."""
    return html(
        "<p>A <b>moth lantern</b> is a lamp that draws moths out of a library, so that they do not eat the bindings of "
        "the books. Lanterns burn for three hours after dusk.</p>",
        f"{heading(2, 'Fuel')}<p>Most lanterns burn colza oil, which gives a dim and steady light; beeswax is used "
        "only where smoke would harm illuminated pages.</p>",
        title="Moth lantern",
    )


def line(number: int, name: str, page_html: str, revision: int = 7, **changed: Any) -> dict[str, Any]:
    """One line of a dump, as Wikimedia Enterprise's article model has it."""
    return {
        "name": name,
        "identifier": number,
        "abstract": "",
        "date_created": "2011-02-03T04:05:06Z",
        "date_modified": "2024-08-30T10:11:12Z",
        "version": {"identifier": revision, "comment": "typo", "is_minor_edit": True},
        "url": f"https://en.wikipedia.org/wiki/{name.replace(' ', '_')}",
        "namespace": {"name": "Article", "identifier": 0},
        "in_language": {"name": "English", "identifier": "en"},
        "main_entity": {"identifier": "Q1", "url": "https://www.wikidata.org/entity/Q1"},
        "categories": [{"name": "Category:Robots", "url": "https://en.wikipedia.org/wiki/Category:Robots"}],
        "is_part_of": {"name": "Wikipedia", "identifier": "enwiki"},
        "article_body": {"html": page_html, "wikitext": "'''Wikitext'''"},
        "license": [{"identifier": "CC-BY-SA-4.0"}],
    } | changed


def orchard(**changed: Any) -> dict[str, Any]:
    return line(101, "Tumblewick orchard robot", orchard_html(), **changed)


def lantern(**changed: Any) -> dict[str, Any]:
    return line(202, "Moth lantern", lantern_html(), **changed)


def write_dump(folder: Path, *parts: Iterable[dict[str, Any] | bytes], name: str = FILE) -> Path:
    """A dump of some members, each of lines; a line given as bytes is written as it is."""
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / name
    with tarfile.open(file, "w:gz") as archive:
        for number, lines in enumerate(parts):
            content = b"".join(
                (line if isinstance(line, bytes) else json.dumps(line, ensure_ascii=False).encode()) + b"\n"
                for line in lines
            )
            member = tarfile.TarInfo(f"{name.split('-')[0]}_{number}.ndjson")
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return file
