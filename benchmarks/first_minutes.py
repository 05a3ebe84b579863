"""What a new user waits for: installation, the first search, the whole demo, and the demo again.

    python -m benchmarks.first_minutes [--json]

Clones the checkout's last commit into an empty folder and follows the README there: `make install`,
`citeloom demo`, and while the demo runs, the same search from a second shell every five seconds.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmarks.harness import Claim, report

PROJECT = Path(__file__).resolve().parents[1]
QUERY = "retrieval for scientific questions"
_PAUSE = 5.0


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--json", action="store_true", help="as every benchmark has it: the last line is JSON"
    )
    parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        measure(Path(folder) / "citeloom")


def measure(checkout: Path) -> None:
    """Install and run the demo in a new clone, and print how long each step took."""
    subprocess.run(["git", "clone", "--quiet", str(PROJECT), str(checkout)], check=True)
    # A new user's shell: none of our settings, and Python writes bytecode.
    ours = ("CITELOOM_", "PYTHONPATH", "PYTHONDONTWRITEBYTECODE", "VIRTUAL_ENV")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    installed = _seconds(["make", "install", f"PYTHON={sys.executable}"], checkout, environment)

    started = time.monotonic()
    searches: list[tuple[float, bool]] = []
    with (checkout / "demo.log").open("w") as log:
        demo = subprocess.Popen(
            [".venv/bin/citeloom", "demo"],
            cwd=checkout,
            env=environment,
            stdout=log,
            stderr=subprocess.STDOUT,
        )
        while demo.poll() is None:
            found = _search_finds(checkout, environment)
            searches.append((time.monotonic() - started, found))
            time.sleep(_PAUSE)
    whole = time.monotonic() - started
    if demo.returncode != 0:
        raise RuntimeError(
            f"citeloom demo ended with {demo.returncode}:\n{(checkout / 'demo.log').read_text()}"
        )
    again = _seconds([".venv/bin/citeloom", "demo"], checkout, environment)

    first = next((seconds for seconds, found in searches if found), whole)
    after = [found for seconds, found in searches if seconds >= first]
    figures = {
        "installation, s": round(installed, 1),
        "first search that finds passages, s after the demo began": round(first, 1),
        "searches from then on, of which found passages": f"{len(after)}, {sum(after)}",
        "whole demo with these searches beside it, s": round(whole, 1),
        "the demo again, s": round(again, 1),
    }
    claims = [
        Claim("installation, s", round(installed, 1), 90.0, at_most=True),
        Claim(
            "first search from a second shell that finds passages, s after the demo began",
            round(first, 1),
            45.0,
            at_most=True,
        ),
        Claim("installation and whole demo, s", round(installed + whole, 1), 150.0, at_most=True),
        Claim("the demo again, s", round(again, 1), 10.0, at_most=True),
    ]
    report("first_minutes", figures, claims)


def _seconds(command: Sequence[str], folder: Path, environment: Mapping[str, str]) -> float:
    started = time.monotonic()
    subprocess.run(command, cwd=folder, env=environment, check=True, stdout=subprocess.DEVNULL)
    return time.monotonic() - started


def _search_finds(checkout: Path, environment: Mapping[str, str]) -> bool:
    command = [".venv/bin/citeloom", "search", QUERY, "--limit", "1", "--json"]
    done = subprocess.run(
        command, cwd=checkout, env=environment, capture_output=True, text=True, check=False
    )
    return done.returncode == 0 and "passage_id" in done.stdout


if __name__ == "__main__":
    main()
