"""Page → passages and references, on one core: ours against what a user would take instead.

    python -m benchmarks.parse [--quick]

Pages: the real ones of ../shared/data/dump where they are there, else the sample corpus; repeated
to 200 MB for the fast contenders, once through for the slow. Ours forgets between repetitions what
tags it met, as if each page were new. Of what is kept, words alone are compared.
"""

from __future__ import annotations

import statistics
import time
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from multiprocessing import get_context
from pathlib import Path

from benchmarks.harness import Claim, argument_parser, median_ratio, read_pages, report
from pipeline.corpus.dump.reader import keep_freed_memory
from pipeline.corpus.parse import html, reference, tree
from pipeline.corpus.parse.parsed_page import PageError, ParsedPage
from pipeline.corpus.passages.packing import pack
from pipeline.identity.titles import title_words

PROJECT = Path(__file__).resolve().parent.parent
DUMPS = (PROJECT.parent / "shared" / "data" / "dump", PROJECT / "examples" / "dump")
REPEATED_BYTES = 200_000_000
# What a row of `papers` has beside what the page tells.
ABOUT = {"arxiv_id": "2404.00001", "year": 2024, "published": None, "categories": ["cs.CL"]}

Parse = Callable[[bytes], ParsedPage]
Pages = Sequence[bytes]

OURS, REPORT, LXML = "ours", "html.parser + mwparserfromhtml", "BeautifulSoup + lxml"
LEXBOR, TURBO = "selectolax, bare parse", "turbohtml, bare parse"
# As in citeloom's workers: the C heap keeps what a page took for the next one, which helps a C
# parser most.
OURS_KEPT, LEXBOR_KEPT = "ours, freed memory kept", "selectolax, freed memory kept"


def extract(parse: Parse, pages: Pages) -> int:
    """Parse every page and pack its passages; the counts of passages and bibliography items."""
    count = 0
    for page in pages:
        try:
            paper = parse(page)
        except PageError:
            continue
        count += len(pack({**paper.as_row(), **ABOUT})) + len(paper.bibliography)
    return count


def extract_repeatedly(pages: Pages, times: int) -> None:
    """Ours over the pages again and again, each time as if they were new."""
    for _ in range(times):
        for tag_types in tree._tag_types.values():
            tag_types.clear()
        extract(html.parse, pages)


def parse_bare(parse: Callable[[bytes], object], pages: Pages, times: int) -> None:
    """A parser's tree alone: nothing is read out of it."""
    for _ in range(times):
        for page in pages:
            parse(page)


def keeping_memory(work: Callable[[], object]) -> None:
    """Some work in a process whose C heap keeps what is freed."""
    keep_freed_memory()
    work()


def ways(pages: Pages, times: int) -> dict[str, Callable[[], object]]:
    """Each way by its name; turbohtml's only where it is installed."""
    from selectolax.lexbor import LexborHTMLParser

    known: dict[str, Callable[[], object]] = {
        OURS: partial(extract_repeatedly, pages, times),
        LEXBOR: partial(parse_bare, LexborHTMLParser, pages, times),
        OURS_KEPT: partial(keeping_memory, partial(extract_repeatedly, pages, times)),
        LEXBOR_KEPT: partial(keeping_memory, partial(parse_bare, LexborHTMLParser, pages, times)),
        REPORT: partial(extract, reference.parse, pages),
        LXML: partial(extract, partial(reference.parse, builder="lxml"), pages),
    }
    if find_spec("turbohtml"):
        known[TURBO] = partial(parse_bare, import_module("turbohtml").parse, pages, times)
    return known


def seconds_of_pass(name: str, folder: Path, times: int) -> float:
    """CPU seconds that one way takes for one pass over the pages. Runs in a process of its own."""
    (work,) = (work for known, work in ways(read_pages(folder), times).items() if known == name)
    started = time.process_time()
    work()
    return (time.process_time() - started) / (1 if name in (REPORT, LXML) else times)


def interleaved_apart(
    names: Sequence[str], folder: Path, times: int, rounds: int
) -> dict[str, list[float]]:
    """Seconds of each way in each round, one after another, each in a fresh process.

    What one parser leaves in the C heap changes the next: lexbor takes a quarter less after
    turbohtml or lxml, and half where freed memory is kept. A program that parses with it and does
    nothing about its heap is the first kind.
    """
    seconds: dict[str, list[float]] = {name: [] for name in names}
    with get_context("spawn").Pool(1, maxtasksperchild=1) as pool:
        for _ in range(rounds):
            for name in names:
                seconds[name].append(pool.apply(seconds_of_pass, (name, folder, times)))
    return seconds


def words_of(paper: ParsedPage) -> Counter[str]:
    """The words of blocks and bibliography, each with how often it occurs."""
    texts = [block.text for block in paper.blocks] + [item.raw for item in paper.bibliography]
    return Counter(title_words(" ".join(texts)))


def same_words(pages: Pages) -> tuple[float, float]:
    """Shares of the reference parser's words that ours has too: of all pages, of the worst."""
    found, total, worst = 0, 0, 1.0
    for page in pages:
        wanted = words_of(reference.parse(page))
        common = (wanted & words_of(html.parse(page))).total()
        found, total = found + common, total + wanted.total()
        worst = min(worst, common / wanted.total())
    return found / total, worst


def main() -> None:
    """Compare the ways, print the figures and the claims."""
    arguments = argument_parser(__doc__, quick="one round, once through the pages")
    quick = arguments.parse_args().quick
    folder = next(folder for folder in DUMPS if folder.is_dir())
    pages = read_pages(folder)
    size = sum(map(len, pages))
    times = 1 if quick else -(-REPEATED_BYTES // size)
    rounds = 1 if quick else 5
    passes = interleaved_apart(list(ways(pages, times)), folder, times, rounds)
    everywhere, worst = same_words(pages)
    figures = {"pages": len(pages), "megabytes": round(size * times / 1e6, 1), "rounds": rounds}
    figures |= {
        f"{name}, MB/s": round(size / 1e6 / statistics.median(spent), 1)
        for name, spent in passes.items()
    }
    kept = median_ratio(passes[OURS_KEPT], passes[LEXBOR_KEPT])
    figures["times selectolax's bare parse, freed memory kept"] = round(kept, 2)
    figures["words, worst page"] = round(worst, 5)
    to_report, to_lxml = (
        round(median_ratio(passes[name], passes[OURS]), 1) for name in (REPORT, LXML)
    )
    claims = [
        Claim(
            "times as long as selectolax's bare parse, which extracts nothing",
            round(median_ratio(passes[OURS], passes[LEXBOR]), 2),
            2.0,
            at_most=True,
        ),
        Claim(
            "times as fast as BeautifulSoup (html.parser) with mwparserfromhtml", to_report, 20.0
        ),
        Claim("the same, held against the aim", to_report, 40.0),
        Claim("times as fast as BeautifulSoup on lxml", to_lxml, 10.0),
        Claim(
            "share of the reference parser's words that ours has too", round(everywhere, 5), 0.999
        ),
    ]
    report("parse", figures, claims)


if __name__ == "__main__":
    main()
