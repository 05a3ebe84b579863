"""Write the page of measurements, and the README's table of them, from benchmarks/results."""

from __future__ import annotations

import json
import re
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from tools.markdown import markdown_table

REPOSITORY = Path(__file__).resolve().parents[1]
RESULTS = REPOSITORY / "benchmarks" / "results"
TEXTS = Path(__file__).with_suffix(".toml")
START, END = "<!-- figures -->", "<!-- /figures -->"
_PLACE = re.compile(r"\{(\w+):\s+([^{}]+)\}")

Result = Mapping[str, Any]


class Measurements:
    """The committed results with the texts that explain them."""

    def __init__(self) -> None:
        self._results: dict[str, Result] = {
            file.stem: json.loads(file.read_text()) for file in sorted(RESULTS.glob("*.json"))
        }
        self._texts = tomllib.loads(TEXTS.read_text())
        machines = Counter(result["machine"] for result in self._results.values())
        ((self._machine, _),) = machines.most_common(1)

    def page(self) -> Iterator[str]:
        """The parts of the page. Raises ValueError where a result has no topic, or two."""
        topics = self._texts["topics"]
        named = [name for topic in topics for name in topic["results"]]
        if sorted(named) != list(self._results):
            unlike = sorted({*named} ^ {*self._results}) or "one twice"
            raise ValueError(f"{TEXTS.name} has to name each result once, unlike {unlike}")
        yield self._texts["introduction"].strip().replace("{machine}", self._machine) + "\n"
        for topic in topics:
            yield f"## {topic['title']}\n"
            yield " ".join(self._filled(topic["text"]).split()) + "\n"
            yield "".join(f"- {line}\n" for line in map(self._command, topic["results"]))
            yield markdown_table(("measured", "value", "bound"), self._rows(topic))

    def readme(self, text: str) -> str:
        """The README's text with its table of figures as the results have them."""
        head, rest = text.split(START)
        _, tail = rest.split(END)
        rows = [[self._filled(cell) for cell in row] for row in self._texts["readme"]["rows"]]
        block = markdown_table(("what", "citeloom", "compared with"), rows)
        return f"{head}{START}\n{block}{END}{tail}"

    def _command(self, name: str) -> str:
        """The command that wrote a result, its date, and what to know of its machine."""
        result = self._results[name]
        facts = [result["machine"]] if result["machine"] != self._machine else []
        facts += [result["note"]] if "note" in result else []
        about = f": {'; '.join(facts)}" if facts else ""
        return f"{result['date']}, `{result['command']}`{about}"

    def _rows(self, topic: Mapping[str, Any]) -> Iterator[list[str]]:
        """The chosen figures, then every claim of the topic's results."""
        for text, value in topic.get("rows", []):
            yield [self._filled(text), self._filled(value), ""]
        for name, prefix in topic["results"].items():
            for claim in self._results[name]["claims"]:
                bound = f"at {'most' if claim['at_most'] else 'least'} {_plain(claim['target'])}"
                missed = "" if claim["holds"] else ", **missed**"
                yield [prefix + claim["claim"], _plain(claim["value"]), bound + missed]

    def _filled(self, text: str) -> str:
        """The text with each place in braces replaced by its figure."""
        return _PLACE.sub(lambda found: self._figure(found[1], " ".join(found[2].split())), text)

    def _figure(self, name: str, place: str) -> str:
        """Raises KeyError where the result has no such claim or figure."""
        result = self._results[name]
        claims = {claim["claim"]: claim["value"] for claim in result["claims"]}
        if place in claims:
            return _plain(claims[place])
        value = result["figures"]
        for part in place.split(" > "):
            if part not in value:
                raise KeyError(f"{name}.json has no figure {place!r}")
            value = value[part]
        return _plain(value)


def _plain(value: float | str) -> str:
    """Four digits of a number; a text as it is."""
    match value:
        case int():
            return f"{value:,}"
        case float():
            return f"{float(f'{value:.4g}'):,}".removesuffix(".0")
    return value
