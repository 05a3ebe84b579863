"""Measure what is shown without a model.

    python -m benchmarks.evidence [--held] [--root FOLDER] [--json] [--quick]

held: the parts of the labels that nobody tunes on, too. root: a data root to make or reuse; by
default a temporary one, whose embeddings take some minutes. quick: eight questions of each set, and
sentences of eight papers.
"""

from __future__ import annotations

from pathlib import Path

from benchmarks.evidence import citing_sentences, questions
from benchmarks.harness import argument_parser, report
from benchmarks.real_papers import DATA

QUICK = 8


def main() -> None:
    """Print the figures."""
    parser = argument_parser(__doc__, f"{QUICK} of each kind")
    parser.add_argument("--held", action="store_true")
    parser.add_argument("--root", type=Path, default=None)
    options = parser.parse_args()
    if not DATA.is_dir():
        print(f"skipped: the real papers ({DATA}) are not on this machine")
        return
    most = QUICK if options.quick else None
    figures, claims = {}, []
    for name, module in (("questions", questions), ("citing sentences", citing_sentences)):
        figures[name], of_module = module.figures(held=options.held, most=most, root=options.root)
        claims += of_module
    report("evidence", figures, claims)


if __name__ == "__main__":
    main()
