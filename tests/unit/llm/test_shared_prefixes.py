"""How `benchmarks.generate` counts tokens in common prefixes, since one of its claims rests on it."""

from __future__ import annotations

from typing import Any

from benchmarks.scripted_endpoint import BLOCK, shared_tokens


def body(*words: str, n: int = 1) -> dict[str, Any]:
    """A request whose prompt has as many tokens as words, and three for the mark of its role."""
    return {"messages": [{"role": "user", "content": " ".join(words)}], "n": n}


def words(count: int, word: str = "word") -> list[str]:
    return [word] * count


def test_a_prompt_shares_whole_blocks_with_those_before_up_to_where_it_departs() -> None:
    assert shared_tokens([body(*words(60))]) == (63, 0)
    assert shared_tokens([body("one", *words(99)), body("two", *words(99))])[1] == 0
    first, second = body(*words(60)), body(*words(40), *words(60, "other"))
    assert shared_tokens([first, second]) == (63 + 103, 43 // BLOCK * BLOCK)


def test_samples_of_one_request_count_as_those_asked_one_by_one() -> None:
    prompt = words(61)
    together = shared_tokens([body(*prompt, n=3)])
    assert together == shared_tokens([body(*prompt) for _ in range(3)])
    assert together == (3 * 64, 2 * 64)
