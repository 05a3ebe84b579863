"""Bibliography items: what is read out of them, and which papers they are resolved to, against
labels made by reading.

    python -m benchmarks.references [--quick]

The labels lie in tests/labels; docs/methods/references.md tells how they were made. They need the
real pages of ../shared/data, which are not part of the project: without them only the catalogue's
speed is measured.
"""

from __future__ import annotations

import random
import re
import statistics
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from multiprocessing import get_context
from pathlib import Path

import numpy as np

from benchmarks import labelled_references as labelled
from benchmarks.harness import (
    Claim,
    argument_parser,
    cpu_seconds,
    interleaved,
    median_ratio,
    report,
)
from benchmarks.labelled_references import Items, Label, Row
from pipeline import tables
from pipeline.corpus.parse.bibliography import ItemParts, read_bibliography
from pipeline.corpus.references.lookups import metadata_titles
from pipeline.corpus.references.resolution import resolve_references
from pipeline.corpus.references.title_index import TitleIndex
from pipeline.engine.stage import Workspace
from pipeline.settings import load_settings
from pipeline.storage.provenance import Provenance
from pipeline.storage.writing import MonthWriter

Figures = dict[str, object]
TITLES, MONTHS, ASKED, BATCH = 500_000, 25, 22_500, 22_500
VOCABULARY = 60_000


def main() -> None:
    """Measure, print the figures and the claims."""
    arguments = argument_parser(__doc__, quick="a tenth of the titles, one round")
    quick = arguments.parse_args().quick
    figures, claims = catalogue_speed(TITLES // 10 if quick else TITLES)
    if labelled.SHARED.is_dir():
        pages = labelled.pages(labelled.SHARED / "dump")
        items, labels = labelled.read_items(pages), labelled.read_labels()
        for told in (
            fields(labels, items),
            resolution(labels, items),
            reading_speed(pages, 1 if quick else 9),
        ):
            figures |= told[0]
            claims += told[1]
    report("references", figures, claims)


def share(hits: int, of: int) -> str:
    """A proportion with its 95 % interval."""
    low, high = labelled.wilson(hits, of)
    return f"{hits}/{of} = {hits / max(of, 1):.3f} ({low:.3f} to {high:.3f})"


def fields(labels: Sequence[Label], items: Items) -> tuple[Figures, list[Claim]]:
    """How many items each field was read rightly of, in the tuned half and in the other."""
    # Two kinds of mistakes in the test half were mended once it had been looked at:
    # docs/methods/references.md.
    figures: Figures = {"labelled items": len(labels)}
    counts = {}
    for half in ("dev", "test"):
        chosen = [label for label in labels if label.half == half]
        counts[half] = labelled.right(chosen, items)
        figures |= {
            f"{name} right, {half}": share(hits, len(chosen)) for name, hits in counts[half].items()
        }
    of = sum(label.half == "test" for label in labels)
    targets = {
        "title": 0.95,
        "first author": 0.95,
        "year": 0.98,
        "venue": 0.9,
        "DOI": 0.98,
        "arXiv id": 0.98,
    }
    claims = [
        Claim(
            f"{name} read rightly, share of the test half",
            round(counts["test"][name] / of, 3),
            target,
        )
        for name, target in targets.items()
    ]
    return figures, claims


def resolution(labels: Sequence[Label], items: Items) -> tuple[Figures, list[Claim]]:
    """Right and wrong resolutions, identifiers hidden or printed, cited works known or unknown."""
    known, cited = labelled.known_papers(), labelled.works(labels)
    others = [*known, *labelled.look_alikes(labels)]
    all_papers = [*others, *{work["arxiv_id"]: work for work in cited.values()}.values()]
    everything = labelled.title_index(all_papers)
    titles = {label.place: cited[label.place]["arxiv_id"] for label in labels if label.title}
    ids = {paper["arxiv_id"] for paper in known}
    there = {label.place: label.cites for label in labels if label.cites in ids}
    hidden = labelled.resolve(labels, items, everything, titles, hidden=True)
    without = labelled.resolve(labels, items, labelled.title_index(others), there, hidden=True)
    printed = {place: work["arxiv_id"] for place, work in cited.items()}
    shown = labelled.resolve(labels, items, everything, printed, hidden=False)
    real = labelled.resolve_all(items, labelled.title_index(known), labelled.read_known_citations())
    right, wrong = (
        hidden.right.total() + without.right.total(),
        hidden.wrong.total() + without.wrong.total(),
    )
    figures: Figures = {
        "papers of the catalogue": len(all_papers),
        "by title, cited work known: precision": share(*hidden.precision),
        "by title, cited work known: recall": share(*hidden.recall),
        "by title, cited work unknown: resolved wrongly": share(without.wrong.total(), len(labels)),
        "by title, both: precision": share(right, right + wrong),
        "as printed: precision": share(*shown.precision),
        "as printed: recall": share(*shown.recall),
        "all items, metadata at hand: precision": share(*real.precision),
        "all items, metadata at hand: recall": share(*real.recall),
    }
    for way in ("identifier", "doi", "title"):
        figures[f"as printed, by {way}: right"] = share(
            shown.right[way], shown.right[way] + shown.wrong[way]
        )
    claims = [
        Claim(
            "precision of resolution by title and year, identifiers hidden",
            round(right / (right + wrong), 3),
            0.98,
        ),
        Claim(
            "recall of resolution by title and year, identifiers hidden",
            round(hidden.recall[0] / hidden.recall[1], 3),
            0.95,
        ),
        Claim(
            "precision of resolution as printed",
            round(shown.precision[0] / shown.precision[1], 3),
            0.98,
        ),
    ]
    return figures, claims


# Speed.


def reading_speed(pages: Mapping[str, bytes], rounds: int) -> tuple[Figures, list[Claim]]:
    """How long the items of the pages take to be read, beside the pages' bare parse."""
    from selectolax.lexbor import LexborHTMLParser

    lists = [list(_parts(page)) for page in pages.values()]
    seconds = interleaved(
        {
            "items": lambda: [read_bibliography(items) for items in lists],
            "lexbor": lambda: [LexborHTMLParser(page) for page in pages.values()],
        },
        rounds,
    )
    median = statistics.median(seconds["items"])
    ratio = round(median_ratio(seconds["items"], seconds["lexbor"]), 3)
    count = sum(map(len, lists))
    figures = {"items read": count, "items read, a second": round(count / median)}
    # 0.25 with rules for the styles of 21 papers alone, 0.7 with those for a hundred styles.
    return figures, [
        Claim("time to read all items, share of selectolax's bare parse", ratio, 0.4, at_most=True)
    ]


def _parts(page: bytes) -> Iterator[ItemParts]:
    """The items of a page, roughly as the parser gathers them."""
    from selectolax.lexbor import LexborHTMLParser

    for node in LexborHTMLParser(page).css(".ltx_bibitem"):
        blocks = [" ".join(block.text().split()) for block in node.css(".ltx_bibblock")]
        italic = [" ".join(part.text().split()) for part in node.css(".ltx_font_italic")]
        emphases = [text for text in italic if text]
        links = [link.attributes.get("href") or "" for link in node.css("a.ltx_ref")]
        label = node.css_first(".ltx_tag_bibitem")
        yield ItemParts(
            node.attributes.get("id") or "",
            " ".join(blocks),
            blocks,
            emphases,
            links,
            label=label.text() if label else "",
        )


def catalogue_speed(titles: int) -> tuple[Figures, list[Claim]]:
    """An index of made-up titles in months of metadata: made, extended, opened, and used."""
    with tempfile.TemporaryDirectory() as folder:
        workspace = Workspace(load_settings(data=Path(folder)))
        rows = list(islice(made_up(), titles))
        months = [f"{2020 + number // 12}-{number % 12 + 1:02}" for number in range(MONTHS)]
        for place, month in enumerate(months[:-1]):
            write_month(workspace, month, rows[place::MONTHS])
        made = cpu_seconds(lambda: open_index(workspace))
        write_month(workspace, months[-1], rows[MONTHS - 1 :: MONTHS])
        added = cpu_seconds(lambda: open_index(workspace))
        opened = cpu_seconds(lambda: open_index(workspace))
        size = metadata_titles(workspace).file.stat().st_size
        asked = cpu_seconds(lambda: ask(workspace, rows))
        with get_context("spawn").Pool(1) as pool:
            grown = pool.apply(memory_when_asked, (Path(folder), rows[:: titles // 2_000]))
    figures: Figures = {
        "titles": titles,
        "seconds to make the catalogue of 24 months": round(made, 1),
        "seconds to add one month more": round(added, 2),
        "milliseconds to open it": round(opened * 1e3, 1),
        "bytes on disk, a title": round(size / titles),
        "megabytes of memory, opened and asked": round(grown),
        "items resolved by title, a second": round(ASKED / asked),
    }
    return figures, [
        Claim("items resolved by title, a second", round(ASKED / asked), 5_000),
        Claim("times as fast to open the index of titles as to make it", round(made / opened), 100),
    ]


def open_index(workspace: Workspace) -> None:
    """Bring the index of titles up to date."""
    with metadata_titles(workspace).open():
        pass


def made_up() -> Iterator[Row]:
    """Metadata without end: titles of 4 to 14 made-up words, as frequent as those of a language."""
    some, numbers = random.Random(1), np.random.default_rng(1)
    letters = "abcdefghijklmnopqrstuvwxyz"
    lengths = [
        min(14, max(2, round(some.gauss(4 + rank**0.18, 2.2)))) for rank in range(VOCABULARY)
    ]
    words = np.array(["".join(some.choices(letters, k=length)) for length in lengths])
    chances = np.cumsum(np.arange(1, VOCABULARY + 1) ** -0.9)
    number = 0
    while True:
        drawn = words[np.searchsorted(chances, numbers.random(14 * 1_000) * chances[-1])].reshape(
            1_000, 14
        )
        for row, length in zip(drawn, numbers.integers(4, 15, 1_000), strict=True):
            authors = [f"A. {row[0].title()}", f"B. {row[-1].title()}"]
            doi = f"10.5555/{number}" if number % 3 == 0 else None
            title = " ".join(row[:length]).capitalize()
            yield {
                "arxiv_id": f"made/{number:07}",
                "title": title,
                "authors": authors,
                "doi": doi,
                "published": None,
            }
            number += 1


def write_month(workspace: Workspace, month: str, rows: Sequence[Row]) -> None:
    """A month of metadata."""
    with MonthWriter(tables.METADATA, workspace.root.file(tables.METADATA, month)) as writer:
        for row in rows:
            writer.add(row)
        writer.commit(
            Provenance(
                tables.METADATA.name, month, tables.METADATA.version, 1, "benchmark", "", {}, {}
            )
        )


def ask(workspace: Workspace, rows: Sequence[Row]) -> int:
    """Resolve items: half are known, half have a title of other words; half of each have no title.

    Returns how many were resolved.
    """
    items = []
    for number in range(ASKED):
        row = rows[number * 7 % len(rows)]
        title, authors = row["title"], row["authors"]
        if number % 2 == 0:
            title = " ".join(sorted(title.split(), reverse=True))
        printed = (
            f"{' and '.join(authors)}. {title}. In Proceedings of the Conference on Something,"
            " pages 1-9, 2021."
        )
        item = {"raw": printed, "authors": authors, "year": 2021, "doi": None, "arxiv_id": None}
        items.append((item | {"title": title if number % 4 < 2 else None}, "x"))
    resolved = 0
    with metadata_titles(workspace).open() as connection:
        titles = TitleIndex(connection)
        for start in range(0, len(items), BATCH):
            found = resolve_references(titles, items[start : start + BATCH])
            resolved += sum(resolution.by is not None for resolution in found)
    return resolved


def memory_when_asked(folder: Path, rows: Sequence[Row]) -> float:
    """Megabytes by which a fresh process grows when it opens a catalogue and resolves items."""
    before = _peak()
    ask(Workspace(load_settings(data=folder)), rows)
    return (_peak() - before) / 1024


def _peak() -> int:
    """This process's peak memory in kilobytes; getrusage would count the parent's too."""
    status = Path("/proc/self/status").read_text()
    return int(re.search(r"VmHWM:\s*(\d+)", status)[1])  # type: ignore[index]


if __name__ == "__main__":
    main()
