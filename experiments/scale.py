"""Hours, disk and money for all of ar5iv, by arithmetic on benchmarks/results: the page
cost-tables.md.

    python -m experiments.scale [--write] [--category-share 0.35] [--gpu-hour 4] [--nodes 4] …

Every other option is an assumption; what was measured is read from the results, by file and field.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Iterator, Sequence
from dataclasses import fields
from pathlib import Path

from experiments.scale_costs import (
    Assumed,
    Corpus,
    Cost,
    Machine,
    calls,
    corpus_costs,
    machines,
    sources_read,
)

PAGE = Path(__file__).resolve().parents[1] / "docs" / "reference" / "cost-tables.md"
INTRODUCTION = """\
<!-- Written by `python -m experiments.scale --write`; do not edit by hand. -->

# Cost tables

Hours, money and disk for all of ar5iv, by arithmetic on what smaller runs took
([scale](../experiments/scale.md)).
Money is in the currency of `--gpu-hour`.
"""


def shown(value: float) -> str:
    """Two digits that count, and no more than they are worth."""
    if value < 0.01:
        return "< 0.01"
    digits = max(0, 1 - math.floor(math.log10(value)))
    return (
        f"{value:,.{digits}f}"
        if digits
        else f"{round(value, 1 - math.floor(math.log10(value))):,.0f}"
    )


def table(title: str, costs: Sequence[Cost], assumed: Assumed) -> Iterator[str]:
    """Markdown: a stage's hours on each machine, their money, the disk that it takes; and all of
    it.
    """
    own, one, many = machines(assumed)
    yield (
        f"| {title} | {own.name}: hours | {one.name}: hours | money | {many.name}: hours | money |"
        " disk, GB |"
    )
    yield "|---|---|---|---|---|---|---|"
    counted = [cost for cost in costs if cost.counted]
    for cost in costs:
        yield _row(cost.name, [cost], (own, one, many))
    if len(counted) > 2:
        yield _row("all, by the snapshot", counted, (own, one, many))


def _row(name: str, costs: Sequence[Cost], chosen: Sequence[Machine]) -> str:
    cells = [name]
    for machine in chosen:
        hours = sum(cost.hours(machine) for cost in costs)
        cells.append(shown(hours))
        if machine.hour is not None:
            cells.append(shown(hours * machine.nodes * machine.hour))
    disk = sum(cost.disk for cost in costs)
    return f"| {' | '.join([*cells, shown(disk) if disk else '–'])} |"


def hosted(assumed: Assumed) -> str:
    """What the same calls cost at a service."""
    return "; ".join(f"{call.name}, {shown(call.hosted(assumed))}" for call in calls())


def sources(assumed: Assumed) -> Iterator[str]:
    """Markdown: what each stage's figures are made of."""
    yield "| stage | is slow by | measured, in benchmarks/results |"
    yield "|---|---|---|"
    sources_read()
    for cost in corpus_costs(Corpus.of(True, assumed), assumed):
        yield f"| {cost.name} | {cost.how} | {sources_read() or '–'} |"
    for call in calls():
        cost = call.cost(assumed)
        yield f"| {cost.name} | {cost.how} | {sources_read()} |"


def assumptions(assumed: Assumed) -> Iterator[str]:
    """Markdown: every option, its value, what it rests on."""
    yield "| option | value | assumed: |"
    yield "|---|---|---|"
    for each in fields(assumed):
        yield (
            f"| `--{each.name.replace('_', '-')}` | {getattr(assumed, each.name):,.10g} |"
            f" {each.metadata['basis']} |"
        )


def page(assumed: Assumed) -> str:
    """The page cost-tables.md."""
    blocks = [
        table("no_problem", list(corpus_costs(Corpus.of(False, assumed), assumed)), assumed),
        table("whole dump", list(corpus_costs(Corpus.of(True, assumed), assumed)), assumed),
        table("a language model", [call.cost(assumed) for call in calls()], assumed),
        [f"By a hosted model: {hosted(assumed)}."],
        sources(assumed),
        assumptions(assumed),
    ]
    return "\n\n".join([INTRODUCTION.rstrip(), *("\n".join(block) for block in blocks)]) + "\n"


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the page, or write it."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    for each in fields(Assumed):
        flag = f"--{each.name.replace('_', '-')}"
        parser.add_argument(
            flag,
            type=float,
            default=each.default,
            help=f"{each.metadata['basis']} ({each.default:g})",
        )
    parser.add_argument("--write", action="store_true", help="write docs/reference/cost-tables.md")
    given = vars(parser.parse_args(arguments))
    if given.pop("write"):
        PAGE.write_text(page(Assumed(**given)))
    else:
        sys.stdout.write(page(Assumed(**given)))


if __name__ == "__main__":
    main()
