"""The judge that calls no model on labelled claims.

    python -m benchmarks.judges [--labelled FOLDER] [--json] [--quick]

labelled: the folder of public labelled sets, with Citation-Integrity and SciFact. Figures are of the dev parts, which
nothing was fitted on. Beside it the two judges that read no text: always "supported", and a draw by the labels' shares
in the training part. What a language model reaches is measured by `citeloom verify-judge`.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Iterable, Sequence
from pathlib import Path

from benchmarks.harness import Claim, report
from pipeline.evaluation.citation_support.overlap_judge import (
    EMBEDDING_WEIGHT,
    PARTLY_FROM,
    SUPPORTED_FROM,
    Overlap,
    OverlapJudge,
    score,
)
from pipeline.evaluation.judge_check.labelled_claims import LabelledSet, Part, read_sets
from pipeline.evaluation.judge_check.verify import CITATION_SUPPORT, Measures, measure_set
from pipeline.settings import load_settings

LABELLED = Path(__file__).resolve().parents[2] / "shared" / "data" / "labelled"
QUICK = 60


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--labelled", type=Path, default=LABELLED)
    parser.add_argument("--json", action="store_true", help="as every benchmark has it: the last line is JSON")
    parser.add_argument("--quick", action="store_true", help=f"{QUICK} claims of each set")
    options = parser.parse_args(arguments)
    if not options.labelled.is_dir():
        print(f"skipped: the labelled sets ({options.labelled}) are not on this machine")
        return
    judge = OverlapJudge.of(load_settings(_env_file=None))
    limit = QUICK if options.quick else None
    figures: dict[str, float] = {}
    claims: list[Claim] = []
    for labelled in read_sets(options.labelled, "dev", limit):
        given = {
            "overlap": verdicts(overlaps_of(judge, labelled)),
            "always supported": ["supported"] * len(labelled.claims),
            "by the training part's shares": drawn(options.labelled, labelled),
        }
        for name, of_set in given.items():
            measured = measure_set(CITATION_SUPPORT, labelled, of_set)
            figures |= {f"{labelled.name}, {name}, {key}": value for key, value in rows(measured)}
        ours, floor = (figures[f"{labelled.name}, {name}, two classes"] for name in ("overlap", "always supported"))
        claims.append(
            Claim(
                f"{labelled.name}: macro-F1 of two classes above that of always supported", round(ours - floor, 3), 0.0
            )
        )
    report("judges", figures, claims)


def overlaps_of(judge: OverlapJudge, labelled: LabelledSet) -> list[Overlap]:
    """The overlap of every claim of a set with its passages."""
    return judge.overlaps([(claim.claim, claim.passages) for claim in labelled.claims])


def verdicts(overlaps: Iterable[Overlap]) -> list[str]:
    """The judge's verdicts."""
    values = (score(overlap.words, overlap.cosine, EMBEDDING_WEIGHT) for overlap in overlaps)
    return ["supported" if value >= SUPPORTED_FROM else "partly" if value >= PARTLY_FROM else "not" for value in values]


def drawn(folder: Path, labelled: LabelledSet) -> list[str]:
    """Verdicts drawn by the shares of labels in the training part."""
    part: Part = "train"
    train = next(each for each in read_sets(folder, part) if each.name == labelled.name)
    names = {"SUPPORT": "supported", "REFUTE": "partly", "NEI": "not"}
    return random.Random(0).choices([names[claim.label] for claim in train.claims], k=len(labelled.claims))


def rows(measured: Measures) -> Iterable[tuple[str, float]]:
    """Name and value of the figures of one judge on one set."""
    for name, interval in (("two classes", measured.support_macro_f1), ("three classes", measured.macro_f1)):
        if interval is not None:
            yield name, round(interval.mean, 3)
            yield f"{name}, low", round(interval.low, 3)
            yield f"{name}, high", round(interval.high, 3)


if __name__ == "__main__":
    main()
