"""Parse pages in other dialects of markup, and print what became of their text: table in
experiments/bad-input.md.

    nice -n 19 .venv/bin/python -m experiments.dialects [--pages 20000]

Each page is one of the repository's or, where they are at hand, of ../shared/data, after one to
six mutations of tests/unit/corpus/dialects.py. Equal is a paper whose texts are those of the
untouched page; in the ledger one that differs, while each character that is missing is counted
there.
"""

from __future__ import annotations

import argparse
import time
from collections import Counter
from functools import cache

from pipeline.corpus.parse import html
from pipeline.corpus.parse.parsed_page import PageError, ParsedPage
from tests.unit.corpus.dialects import (
    MORE_TEXT,
    draw_mutations,
    given_pages,
    lost_outside_ledger,
    mutate,
    sample_pages,
    texts,
    words,
)


@cache
def untouched(number: int) -> ParsedPage:
    """The paper of a page as it is."""
    return html.parse(PAGES[number][1])


def outcome(number: int, seed: int) -> tuple[list[str], str, int]:
    """The mutations of one page, what became of it, and the characters lost outside the ledger."""
    mutations = draw_mutations(seed)
    names = [mutation.__name__ for mutation in mutations]
    before = untouched(number)
    try:
        after = html.parse(mutate(PAGES[number][1], mutations, seed))
    except PageError as error:
        return names, error.reason, 0
    except Exception as error:
        return names, f"exception {type(error).__name__}", 0
    lost = lost_outside_ledger(before, after)
    more_text = not set(mutations).isdisjoint(MORE_TEXT)
    same = words(after) == words(before) if more_text else texts(after) == texts(before)
    return names, "equal" if same else "lost" if lost else "in the ledger", lost


def main() -> None:
    """Parse the pages and print a table: a line per outcome, and each page that is not equal."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--pages", type=int, default=20_000)
    arguments = parser.parse_args()
    outcomes: Counter[str] = Counter()
    characters = 0
    started = time.process_time()
    for seed in range(arguments.pages):
        number = seed % len(PAGES)
        names, result, lost = outcome(number, seed)
        outcomes[result] += 1
        characters += lost
        if result != "equal":
            print(f"{PAGES[number][0]} after {', '.join(names)}: {result}", flush=True)
    seconds = time.process_time() - started
    print(f"{arguments.pages:,} pages made from {len(PAGES)}, {seconds:.0f} s of processor time")
    for result, count in outcomes.most_common():
        print(f"| {result} | {count:,} |")
    print(f"| characters lost outside the ledger | {characters:,} |")


PAGES = (*sample_pages(), *given_pages())

if __name__ == "__main__":
    main()
