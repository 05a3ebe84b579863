"""ROUGE-1, -2 and -L between a text and its gold text.

The package is rouge-score, Google's port of ROUGE-1.5.5, with Porter stemming on (`-m` of the original). It lowers
case, drops every sign that is not a-z or 0-9, and stems words of four letters or more; the stemmer is a set of rules
in nltk, so neither a model nor a download is needed. `[Reference 3]` counts as the two words "reference" and "3", in
both texts alike. ROUGE-L takes the whole text as one sequence (rouge-score's `rougeL`, not `rougeLsum`).
ChatCite (arXiv 2403.02574, section 5.1) reports the F1 of these three and says neither package nor stemming.
"""

from __future__ import annotations

from functools import cache
from typing import Any

METRICS = ("rouge1", "rouge2", "rougeL")


def rouge(gold: str, text: str) -> dict[str, float]:
    """F1 in percent of `text` against `gold` for each of METRICS; 0 where either is empty or nothing is shared."""
    scores = _scorer().score(gold, text)
    return {metric: 100.0 * float(scores[metric].fmeasure) for metric in METRICS}


@cache
def _scorer() -> Any:
    from rouge_score.rouge_scorer import RougeScorer  # brings nltk and numpy, 0.6 s

    return RougeScorer(list(METRICS), use_stemmer=True)
