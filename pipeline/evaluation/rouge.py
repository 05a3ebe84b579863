"""ROUGE-1, -2 and -L between a text and its gold text, and the floor that any section of the field
reaches.

rouge-score, Google's port of ROUGE-1.5.5, computes them with Porter stemming on (`-m` of the
original): lower case, every sign that is not a-z or 0-9 parts words, and words of four letters or
more are stemmed. `[Reference 3]` counts as the two words "reference" and "3", in both texts alike.

There are two ROUGE-L. `rougeL` takes the whole text as one sequence. `rougeLsum` takes it sentence
by sentence: for each gold sentence it counts the words that lie in a longest common subsequence
with any sentence of the text, as ROUGE-1.5.5 does for summaries (Lin 2004, section 3.2). On
related-work sections `rougeL` is 0.43 of ROUGE-1, and `rougeLsum` 0.95. ChatCite (arXiv 2403.02574,
section 5.1) reports the F1 of R-1, R-2 and R-L and says neither package nor stemming; its R-L is
0.91 to 0.93 of R-1 in all rows of its tables, which only the ROUGE-L by sentence gives. So the
paper's column is beside `rougeLsum`.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from pipeline.related_work.summary import split_sentences
from pipeline.text import text_digest

FLOOR = "random_section"
"""The name in `scores` of the system for which another task's gold section stands."""
METRICS = ("rouge1", "rouge2", "rougeL", "rougeLsum")


def rouge(gold: str, text: str) -> dict[str, float]:
    """F1 in percent of `text` against `gold` for each of METRICS; 0 where nothing is shared."""
    by_line = ("\n".join(split_sentences(each)) for each in (gold, text))
    scores = _scorer().score(*by_line)
    return {metric: 100.0 * scores[metric].fmeasure for metric in METRICS}


@cache
def _scorer() -> Any:
    # Only the stage `scores` loads it: nltk, which has the stemmer, takes 1.4 s.
    from rouge_score.rouge_scorer import RougeScorer

    return RougeScorer(METRICS, use_stemmer=True)


def floor_task(task_id: str, golds: Mapping[str, str]) -> str | None:
    """The task whose gold section stands for a section on anything, as the floor beside this task's
    scores.

    golds: task → its gold section, those of one month. Which one it is follows from the ids alone,
    as a draw would: the least digest of the pair. None where no other task has a gold section.
    """
    others = [other for other, gold in golds.items() if other != task_id and gold.strip()]
    return min(
        others,
        key=lambda other: text_digest(f"{task_id} {other}"),
        default=None,
    )
