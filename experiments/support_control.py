"""Print the control table in methods/citation-support.md: a judge's verdicts on right and on wrong works.

    .venv/bin/python -m experiments.support_control RELATED_WORK_FOLDER NEW_ROOT [CITATIONS]

RELATED_WORK_FOLDER holds the authors' own sections, each with the works that it cites, as JSON. Each citation is put
to the judge twice: with the work that the authors cite, and with another one of the same section. No section is written
and no stage is run; the judge is that of the settings, CITATIONS of all sections together are asked about (24), and
NEW_ROOT keeps the answers alone.
"""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pipeline.engine.sampling import evenly_spaced
from pipeline.engine.stage import Workspace
from pipeline.evaluation.citation_support.citations import Citation, citations_of
from pipeline.evaluation.citation_support.judge import Judged, conversation, judge
from pipeline.evaluation.citation_support.passages import among, paragraphs_of
from pipeline.llm.client import LlmClient, open_client
from pipeline.llm.loop import run, side_by_side
from pipeline.llm.models import judge_models
from pipeline.related_work.importers.rwsg import import_rwsg
from pipeline.related_work.summary import cited_numbers, split_sentences
from pipeline.settings import Settings, load_settings

Work = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Pair:
    """One citation, the work that it cites, and another of the same section."""

    citation: Citation
    right: Work
    wrong: Work


def pairs(folder: Path) -> Iterator[Pair]:
    """Every citation of a work with a text; its wrong work is half of the list away, and not cited in the sentence."""
    for file in sorted(folder.glob("*.json")):
        row = import_rwsg(file, "2024-03").task.row()
        works = {each["number"]: each for each in row["references"] if paragraphs_of(each)}
        numbers = sorted(works)
        sentences = [{"text": text, "references": None} for text in split_sentences(row["gold"])]
        for citation in citations_of(sentences):
            others = [number for number in numbers if number not in cited_numbers(citation.text)]
            if citation.number in works and others:
                place = (numbers.index(citation.number) + len(numbers) // 2) % len(others)
                yield Pair(citation, works[citation.number], works[others[place]])


async def ask(client: LlmClient, pair: Pair, work: Work, settings: Settings) -> Judged:
    shown = among(paragraphs_of(work), pair.citation.claim, settings.support_passages)
    return await judge(client, conversation(work["title"], shown, pair.citation.marked, client.model.context))


async def ask_all(workspace: Workspace, asked: Sequence[Pair]) -> list[Judged]:
    """The verdicts on the right works, then those on the wrong ones."""
    model, settings = judge_models(workspace.settings)[0], workspace.settings
    every = [(pair, pair.right) for pair in asked] + [(pair, pair.wrong) for pair in asked]
    async with open_client(workspace, model.name) as client:
        return await side_by_side(ask(client, pair, work, settings) for pair, work in every)


def line(name: str, found: Sequence[Judged]) -> str:
    counts = Counter(each.verdict for each in found)
    quoted = sum(each.verdict == "supported" and each.quoted is not None for each in found)
    verdicts = [counts["supported"], quoted, counts["partly"], counts["not"], counts[None]]
    return "| " + " | ".join([name, *(str(verdict) for verdict in verdicts)]) + " |"


def main() -> None:
    folder, root, *most = sys.argv[1:]
    workspace = Workspace(load_settings(data=Path(root)))
    found = list(pairs(Path(folder)))
    asked = [found[place] for place in evenly_spaced(len(found), int(most[0]) if most else 24)]
    started = time.perf_counter()
    verdicts = run(ask_all(workspace, asked))
    print(f"{judge_models(workspace.settings)[0].name}, {len(asked)} of {len(found)} citations", end=", ")
    print(f"{time.perf_counter() - started:.0f} s\n")
    print("| work shown | supported | of these with a quote found | partly | not | unreadable |")
    print("| --- | --- | --- | --- | --- | --- |")
    print(line("the one cited", verdicts[: len(asked)]))
    print(line("another of the section", verdicts[len(asked) :]))


if __name__ == "__main__":
    main()
