"""The judge that calls no model on labelled claims, and how its thresholds were fitted.

    python -m benchmarks.judges [--labelled FOLDER] [--fit] [--json] [--quick]

labelled: the folder of public labelled sets, with Citation-Integrity and SciFact. Figures are of the dev parts, which
nothing was fitted on. --fit: search the weight of embeddings and the two thresholds on the training parts, and print
the constants of `overlap_judge.py`: those with the highest mean of two macro-F1, of three classes on Citation-Integrity
and of two on SciFact, whose CONTRADICT and NOT ENOUGH INFO the verdicts of this judge do not tell apart. Beside it the
two judges that read no text: always "supported", and a draw by the labels' shares in the training part. What a
language model reaches is measured by `citeloom verify-judge`.
"""

from __future__ import annotations

import argparse
import random
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import product
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
from pipeline.evaluation.judge_check.measures import Measures
from pipeline.evaluation.judge_check.verify import CITATION_SUPPORT, measure_set
from pipeline.settings import load_settings

LABELLED = Path(__file__).resolve().parents[2] / "shared" / "data" / "labelled"
QUICK = 60
_STEPS = [round(0.02 * step, 2) for step in range(5, 48)]


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the figures, and with --fit the constants."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--labelled", type=Path, default=LABELLED)
    parser.add_argument("--fit", action="store_true")
    parser.add_argument("--json", action="store_true", help="as every benchmark has it: the last line is JSON")
    parser.add_argument("--quick", action="store_true", help=f"{QUICK} claims of each set")
    options = parser.parse_args(arguments)
    if not options.labelled.is_dir():
        print(f"skipped: the labelled sets ({options.labelled}) are not on this machine")
        return
    judge = OverlapJudge.of(load_settings(_env_file=None))
    limit = QUICK if options.quick else None
    fitted = (EMBEDDING_WEIGHT, SUPPORTED_FROM, PARTLY_FROM)
    if options.fit:
        fitted = fit([(each, overlaps_of(judge, each)) for each in read_sets(options.labelled, "train", limit)])
        print("EMBEDDING_WEIGHT, SUPPORTED_FROM, PARTLY_FROM = {}, {}, {}".format(*fitted))
    figures: dict[str, float] = {}
    claims: list[Claim] = []
    for labelled in read_sets(options.labelled, "dev", limit):
        given = {
            "overlap": verdicts(overlaps_of(judge, labelled), *fitted),
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


def verdicts(overlaps: Iterable[Overlap], weight: float, supported: float, partly: float) -> list[str]:
    """The verdicts with these constants."""
    values = (score(overlap.words, overlap.cosine, weight) for overlap in overlaps)
    return ["supported" if value >= supported else "partly" if value >= partly else "not" for value in values]


def fit(sets: Sequence[tuple[LabelledSet, Sequence[Overlap]]]) -> tuple[float, float, float]:
    """Weight and thresholds with the highest mean macro-F1 over the sets."""
    best, constants = -1.0, (0.0, 0.0, 0.0)
    for weight, supported, partly in product((0.0, 0.25, 0.5, 0.75, 1.0), _STEPS, _STEPS):
        if partly <= supported:
            mean = sum(
                macro_f1(labelled, verdicts(overlaps, weight, supported, partly)) for labelled, overlaps in sets
            ) / len(sets)
            if mean > best:
                best, constants = mean, (weight, supported, partly)
    return constants


def macro_f1(labelled: LabelledSet, given: Sequence[str]) -> float:
    """Macro-F1 without an interval: of three classes on Citation-Integrity, of two on SciFact."""
    three = {"supported": "SUPPORT", "partly": "REFUTE", "not": "NEI"}
    two = {"supported": "SUPPORT", "partly": "NOT", "not": "NOT"}
    names = three if labelled.name == "Citation-Integrity" else two
    labels = [claim.label if names is three or claim.label == "SUPPORT" else "NOT" for claim in labelled.claims]
    pairs = Counter(zip(labels, (names[verdict] for verdict in given), strict=True))
    classes = set(names.values())
    f1s = []
    for name in classes:
        has = sum(count for (label, _), count in pairs.items() if label == name)
        gets = sum(count for (_, verdict), count in pairs.items() if verdict == name)
        f1s.append(2 * pairs[name, name] / (has + gets) if has + gets else 0.0)
    return sum(f1s) / len(f1s)


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
