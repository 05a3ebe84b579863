"""Print the table on hostile input in concepts/security.md: outcome, processor time and memory of
each case.

    .venv/bin/python -m experiments.hostile_input [KIND]

Every case is made and read in a process of its own; its seconds are of processor time, its memory
the growth of the process's peak over what it held with the input made, both of the reading alone.
The cases are those of the tests (tests/unit/corpus, tests/unit/arxiv), and some that are larger
than a test should be.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from tests.unit.arxiv.test_xml_answer import HOSTILE as FEEDS
from tests.unit.corpus.hostile_zips import HOSTILE as ZIPS
from tests.unit.corpus.test_hostile_pages import DEEP, LONG
from tests.unit.draft_check.test_reading import HOSTILE as DRAFTS

PROJECT = Path(__file__).resolve().parents[1]
PAGES = {
    **{f"nested: {name}": text for name, text in DEEP.items()},
    **LONG,
    "a text of 50 MB": f'<p class="ltx_p">{"word " * 10_000_000}</p>',
    "2,000,000 empty elements": "<i></i>" * 2_000_000,
}


def read_zip(name: str) -> Callable[[], str]:
    """Writes a zip beside a sound one; reads both."""
    from tests.unit.corpus.building import dump_settings, write_zip
    from tests.unit.corpus.test_zips_hostile import OTHER, read_all

    folder = Path(tempfile.mkdtemp())
    write_zip(folder / "warnings.zip", {OTHER: b"<html>unharmed</html>"})
    ZIPS[name].write(folder / "errors.zip")

    def read() -> str:
        pages, lost = read_all(dump_settings(folder))
        if pages.pop(OTHER) != b"<html>unharmed</html>":
            return "its neighbour is harmed"
        return f"{len(pages)} pages read, {len(lost)} left out"

    return read


def read_page(name: str) -> Callable[[], str]:
    """Makes a page; parses it."""
    from pipeline.corpus.parse.html import parse
    from pipeline.corpus.parse.parsed_page import PageError
    from tests.unit.corpus.building import page, para

    content = page(para("Words.") + PAGES[name])

    def read() -> str:
        try:
            return f"{len(parse(content).blocks)} blocks"
        except PageError as error:
            return error.reason

    return read


def read_feed(name: str) -> Callable[[], str]:
    """Makes an answer of arXiv's; reads it."""
    from pipeline.arxiv.api import read_feed as read_atom

    make, refusal = FEEDS[name]
    content = make()

    def read() -> str:
        try:
            return f"{len(read_atom(content))} papers"
        except refusal as error:
            return type(error).__name__

    return read


def read_hostile_draft(name: str) -> Callable[[], str]:
    """Writes a draft; has a worker read it."""
    from pipeline.draft_check.reading import read_draft
    from pipeline.errors import SettingError

    file = Path(tempfile.mkdtemp()) / "main.tex"
    file.write_text(DRAFTS[name])

    def read() -> str:
        try:
            return f"{len(read_draft(file).sentences)} sentences"
        except SettingError as error:
            return str(error)

    return read


KINDS = {
    "zip": ([*ZIPS], read_zip),
    "page": ([*PAGES], read_page),
    "feed": ([*FEEDS], read_feed),
    "draft": ([*DRAFTS], read_hostile_draft),
}


def measure(kind: str, name: str) -> dict[str, object]:
    """What comes of one case in this process and its worker, if it has one."""
    from pipeline.engine.process_pool import stop_idle_workers

    read = KINDS[kind][1](name)
    before, started = _peak(), time.process_time()
    outcome = read()
    stop_idle_workers()
    workers = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = time.process_time() - started + workers.ru_utime + workers.ru_stime
    megabytes = max(_peak() - before, workers.ru_maxrss / 1024)
    return {"outcome": outcome, "seconds": seconds, "megabytes": megabytes}


def _peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main(kinds: Sequence[str]) -> None:
    """Measure every case of some kinds, and print a line for each kind and one for each case that
    takes a second or more.
    """
    for kind in kinds:
        names, _ = KINDS[kind]
        found = {}
        for name in names:
            command = [sys.executable, "-m", "experiments.hostile_input", kind, name]
            done = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, check=True)
            found[name] = json.loads(done.stdout)
            print(f"  {kind}: {name}: {found[name]['outcome']}, {found[name]['seconds']:.2f} s, "
                  f"{found[name]['megabytes']:.0f} MB", flush=True)  # fmt: skip
        slowest = max(each["seconds"] for each in found.values())
        largest = max(each["megabytes"] for each in found.values())
        print(f"| {kind} | {len(found)} | {slowest:.2f} s | {largest:.0f} MB |", flush=True)


if __name__ == "__main__":
    if len(sys.argv) > 2:
        print(json.dumps(measure(sys.argv[1], sys.argv[2])))
    else:
        main(sys.argv[1:] or [*KINDS])
