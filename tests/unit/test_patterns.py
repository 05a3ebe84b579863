"""Every compiled pattern of the product, against pumped strings: its time grows linearly."""

import importlib
import pkgutil
import re
import signal
import time
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pipeline

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # deprecated, and the standard library has no other
    import sre_constants as c
    import sre_parse

# What sets of signs in patterns name; of each set, every sign of these that it has is repeated.
SIGNS = "a1 \n.,;:-()[]{}\\\"'$%@/|<>#=~^_*&+!?A\té一–"
CATEGORIES = {
    c.CATEGORY_DIGIT: r"\d", c.CATEGORY_SPACE: r"\s", c.CATEGORY_WORD: r"\w",
    c.CATEGORY_NOT_DIGIT: r"\D", c.CATEGORY_NOT_SPACE: r"\S", c.CATEGORY_NOT_WORD: r"\W",
}  # fmt: skip
REPEATS = (c.MAX_REPEAT, c.MIN_REPEAT, c.POSSESSIVE_REPEAT)
FEWEST_REPEATS = 200
METHODS = "match|fullmatch|search|findall|finditer|sub|split"
# `tree.grow` cuts off what follows the last tag; data sets of tasks are imported by hand.
NOT_TESTED = ("pipeline.corpus.parse.tree._TAGS", "pipeline.related_work.importers.")
SHORT, LONG = 2_000, 8_000


def patterns_in(value: Any) -> Iterator[re.Pattern[str]]:
    if isinstance(value, re.Pattern):
        yield value
    elif isinstance(value, partial):
        yield from patterns_in(value.args)
    elif type(value) in (list, tuple, set, frozenset):
        for item in value:
            yield from patterns_in(item)
    elif type(value) is dict:
        yield from patterns_in([*value, *value.values()])


def all_patterns() -> dict[re.Pattern[str], tuple[str, set[str]]]:
    """Each pattern → its name, and the methods that modules call by this name."""
    patterns: dict[re.Pattern[str], tuple[str, set[str]]] = {}
    package = "".join(file.read_text() for file in Path(pipeline.__path__[0]).rglob("*.py"))
    for found in pkgutil.walk_packages(pipeline.__path__, "pipeline."):
        module = importlib.import_module(found.name)
        own = Path(str(module.__file__)).read_text()
        for name, value in vars(module).items():
            source = own if name.startswith("_") else package
            is_class = isinstance(value, type) and value.__module__ == found.name
            for pattern in patterns_in([*vars(value).values()] if is_class else value):
                _, methods = patterns.setdefault(pattern, (f"{found.name}.{name}", set()))
                methods.update(re.findall(rf"\b{name}\.({METHODS})\b", source))
    return patterns


def fitting(items: Any) -> list[str]:
    """The signs that a set of a pattern has."""

    def has(sign: str, operation: Any, value: Any) -> bool:
        if operation is c.LITERAL:
            return ord(sign) == value
        if operation is c.RANGE:
            return value[0] <= ord(sign) <= value[1]
        return operation is c.CATEGORY and re.match(CATEGORIES[value], sign) is not None

    negated = items[0][0] is c.NEGATE
    fit = [sign for sign in SIGNS if any(has(sign, *item) for item in items) != negated]
    first = items[0][1]
    return fit or [chr(first[0] if isinstance(first, tuple) else first or 0)]


def sample(tree: Any, choice: int = 0) -> str:
    """A text that a part of a pattern accepts, or nearly; choice: of its alternatives."""
    text = ""
    for operation, value in tree:
        if operation is c.LITERAL:
            text += chr(value)
        elif operation in (c.ANY, c.NOT_LITERAL):
            text += "a" if value != ord("a") else "b"
        elif operation is c.IN:
            text += fitting(value)[0]
        elif operation is c.BRANCH:
            text += sample(value[1][choice % len(value[1])], choice)
        elif operation in REPEATS:
            text += sample(value[2], choice) * value[0]
        elif operation in (c.SUBPATTERN, c.ATOMIC_GROUP):
            text += sample(value[3] if operation is c.SUBPATTERN else value, choice)
    return text


def repeats(tree: Any, before: str = "") -> Iterator[tuple[str, str]]:
    """(text before it, a text that it repeats) of each repeated part."""
    for operation, value in tree:
        if operation in REPEATS:
            if value[1] >= FEWEST_REPEATS:
                ((kind, items), *others) = [*value[2]]
                units = fitting(items) if kind is c.IN and not others else ["", " "]
                units = [*units, *(sample(value[2], choice) for choice in range(4))]
                yield from ((before, unit) for unit in units if unit)
            yield from repeats(value[2], before)
        elif operation is c.BRANCH:
            for branch in value[1]:
                yield from repeats(branch, before)
        elif operation in (c.SUBPATTERN, c.ASSERT, c.ASSERT_NOT, c.ATOMIC_GROUP):
            yield from repeats(value if operation is c.ATOMIC_GROUP else value[-1], before)
        before += sample([(operation, value)])


def pumped(pattern: re.Pattern[str]) -> list[tuple[str, str, str]]:
    """(beginning, what is repeated, end) of texts that are hard for a pattern."""
    texts: dict[tuple[str, str], None] = {}
    for before, unit in repeats(sre_parse.parse(pattern.pattern, pattern.flags)):
        texts |= dict.fromkeys([("", unit), (before, unit), ("", before + unit)])
    return [(*text, end) for text in texts for end in ("", "\0")]


def seconds(work: Callable[[str], object], text: str, most: float) -> float:
    """Processor time, at most `most`. Of the thread: beside a timer that of the process is coarse."""
    started = time.thread_time()
    signal.setitimer(signal.ITIMER_VIRTUAL, most)
    try:
        work(text)
    except TimeoutError:
        return most
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
    return time.thread_time() - started


def slow_text(pattern: re.Pattern[str], methods: set[str]) -> str:
    """A text for which a pattern takes more than linear time; "" if there is none."""
    anchored = methods and methods <= {"match", "fullmatch"}
    names = methods if anchored else {"findall"}
    for work in (getattr(pattern, name) for name in names):
        for begin, unit, end in pumped(pattern):
            short, long = (begin + unit * (n // len(unit)) + end for n in (SHORT, LONG))
            if seconds(work, short, 1) < 0.001:
                continue
            least = min(seconds(work, short, 1) for _ in range(2))
            most = max(0.01, 9 * least)  # quadratic time is 16 times that
            # More than once: on a busy machine one measurement may be of other processes.
            if least >= 1 or all(seconds(work, long, 1) > most for _ in range(3)):
                return f"{begin!r} + {unit!r} * n + {end!r}"
    return ""


def test_the_time_of_every_pattern_grows_linearly() -> None:
    def stop(*_: object) -> None:
        raise TimeoutError

    before = signal.signal(signal.SIGVTALRM, stop)
    try:
        patterns = all_patterns()
        slow = {}
        for pattern, (name, methods) in patterns.items():
            is_tested = isinstance(pattern.pattern, str) and not name.startswith(NOT_TESTED)
            if is_tested and (text := slow_text(pattern, methods)):
                slow[name] = (pattern.pattern, text)
    finally:
        signal.signal(signal.SIGVTALRM, before)
    assert slow == {}
    assert len(patterns) > 500
