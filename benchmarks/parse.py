"""Page → Paper: the fast parser against the arXivBot report's way, on one core.

    python -m benchmarks.parse [--quick]

Pages: the real ones of ../shared/data/dump where they are there, else the sample corpus.
"""

from __future__ import annotations

import argparse
import statistics
import zipfile
from pathlib import Path

from benchmarks.harness import Claim, interleaved, median_ratio, report
from pipeline.corpus import html, reference
from pipeline.corpus.paper import PageError

PROJECT = Path(__file__).resolve().parent.parent
DUMPS = (PROJECT.parent / "shared" / "data" / "dump", PROJECT / "examples" / "dump")


def pages(folder: Path) -> list[bytes]:
    """Every page of a folder's zips, in memory."""
    found = []
    for name in sorted(folder.glob("*.zip")):
        with zipfile.ZipFile(name) as archive:
            found += [archive.read(member) for member in archive.namelist() if member.endswith(".html")]
    return found


def parse_all(parse: object, content: list[bytes]) -> int:
    """Parse every page; a page that holds no text counts as parsed."""
    passages = 0
    for page in content:
        try:
            passages += len(parse(page).blocks)  # type: ignore[operator]
        except PageError:
            continue
    return passages


def bare_lexbor(content: list[bytes]) -> None:
    """selectolax's parse alone: what any parser on it pays at least."""
    from selectolax.lexbor import LexborHTMLParser

    for page in content:
        LexborHTMLParser(page)


def main() -> None:
    """Compare the parsers, print the figures and the claims."""
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--quick", action="store_true", help="one round")
    arguments.add_argument("--json", action="store_true", help="accepted for uniformity: JSON is always last")
    rounds = 1 if arguments.parse_args().quick else 5
    folder = next(folder for folder in DUMPS if folder.is_dir())
    content = pages(folder)
    megabytes = sum(map(len, content)) / 1e6
    seconds = interleaved(
        {
            "ours": lambda: parse_all(html.parse, content),
            "report": lambda: parse_all(reference.parse, content),
            "lexbor": lambda: bare_lexbor(content),
        },
        rounds,
    )
    medians = {name: statistics.median(values) for name, values in seconds.items()}
    figures = {"pages": len(content), "megabytes": round(megabytes, 1), "rounds": rounds}
    figures |= {f"{name}, MB/s of one core": round(megabytes / median, 1) for name, median in medians.items()}
    ratio = round(median_ratio(seconds["report"], seconds["ours"]), 1)
    to_bare = round(median_ratio(seconds["ours"], seconds["lexbor"]), 2)
    figures["times the bare lexbor parse"] = to_bare
    report("parse", figures, [Claim("times as fast as the report's way", ratio, 20.0)])


if __name__ == "__main__":
    main()
