"""The time of every compiled pattern of the product grows linearly with its text."""

import importlib
import pkgutil
import re
from functools import partial
from pathlib import Path

import pytest

import pipeline
from tests.cases import cases, read_cases
from tests.slow_patterns import slow_text

METHODS = "match|fullmatch|search|findall|finditer|sub|split"
NOT_TESTED = tuple(read_cases("unit/patterns.toml")["not_tested"])


def patterns_in(value):
    if isinstance(value, re.Pattern):
        yield value
    elif isinstance(value, partial):
        yield from patterns_in(value.args)
    elif type(value) in (list, tuple, set, frozenset):
        for item in value:
            yield from patterns_in(item)
    elif type(value) is dict:
        yield from patterns_in([*value, *value.values()])


def all_patterns(root):
    """Each pattern of a package → its name, and the methods that modules call by this name."""
    patterns = {}
    package = "".join(file.read_text() for file in Path(root.__path__[0]).rglob("*.py"))
    for found in pkgutil.walk_packages(root.__path__, f"{root.__name__}."):
        module = importlib.import_module(found.name)
        own = Path(str(module.__file__)).read_text()
        for name, value in vars(module).items():
            source = own if name.startswith("_") else package
            is_class = isinstance(value, type) and value.__module__ == found.name
            for pattern in patterns_in([*vars(value).values()] if is_class else value):
                _, methods = patterns.setdefault(pattern, (f"{found.name}.{name}", set()))
                methods.update(re.findall(rf"\b{name}\.({METHODS})\b", source))
    return patterns


def slow_patterns(root):
    """The patterns of a package whose time does not grow linearly, each with a text that shows it;
    a package without patterns is a fault of the test.
    """
    patterns = all_patterns(root)
    assert patterns
    return {
        name: (pattern.pattern, text)
        for pattern, (name, methods) in patterns.items()
        if not name.startswith(NOT_TESTED) and (text := slow_text(pattern, methods))
    }


@pytest.mark.slow
def test_the_time_of_every_pattern_grows_linearly():
    assert slow_patterns(pipeline) == {}


@cases("unit/patterns.toml", "slow", "pattern")
def test_a_pattern_that_was_slow_is_found(pattern):
    assert slow_text(re.compile(pattern), {"search"})


@cases("unit/patterns.toml", "linear", "pattern")
def test_a_pattern_that_takes_linear_time_passes(pattern):
    assert slow_text(re.compile(pattern), {"search"}) == ""
