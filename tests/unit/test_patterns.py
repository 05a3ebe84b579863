"""The time of every compiled pattern of the product grows linearly with its text."""

import importlib
import pkgutil
import re
from functools import partial
from pathlib import Path

import pytest

import pipeline
from tests.slow_patterns import slow_text

METHODS = "match|fullmatch|search|findall|finditer|sub|split"
NOT_TESTED = {
    "pipeline.corpus.parse.tree._TAGS": "`tree.grow` cuts off what follows the last tag",
    "pipeline.corpus.parse.source._CITATION": "what follows the last end of a citation is cut off",
    "pipeline.corpus.parse.byline_text._DOUBLED_MARKS": "a text of over 100 characters is not read",
    "pipeline.identity.identifiers._WHOLE": "`(?:…)?+` is left out only where it does not fit",
}

# Patterns that were quadratic or worse in the product, or the part of them that was.
SLOW = (
    r"\s*\[\s*(?:claims?\s*)?\d+\s*\]",
    r"(?<![\w.])[a-z-]+/\d{7}",
    r"\bhow many[^?]*\bcited\b",
    r"\bhow many[^?]*?\bby\s+[A-Z]",
    r"\bhow many (?:\w+ )?papers[^?]*(?:\bindex\b|\bare there\b)",
    r"\bhow much\s+(.+?)\s+does\b",
    r"reproducib\w+ statement",
    r"\bwere funded by\b[^.]*\bgrants?\b",
    r"Table [1A-Za][\w.]*(?:\s*(?:,|and)\s*[1A-Za][\w.]*)*:",
    r",\s*(?:and\s+)?|;\s*|\s+and\s+",
    r"\b(?:Senior |Life )*Member",
    r",?\s+Ph\.D",
    r"[\s,][\s,]*\(eds\)",
    r"\s*[“(][^()]{1,30}[”)]",
    r"\s*,\s*",
    r"@([^;\[\]]+)[;\]]",
    r"\A(?:section\s+)?§?\s*\d+(?:\.\d+)*\s+",
    r"\s*(?:[,;]|\s-\s|\band\b)\s*",
    r"://[^/@\s]*?:([^/@\s]+)@",
    r"\s*\(\s*(?:see|[,;\s])*\s*\)",
    r"\s+(?=[.,;)])",
    r"\A(?:\[[a-z-]+\]?|[\s\]-])*?\d{4}\.",
    r"\\{2,}(?=[A-Za-z])",
    r"\\[a-z]*cite[a-z]*\{",
    r"(?:\d|[a-z]{3,}|\))\.\s+(?=[A-Z])",
    r"[^\W\d_][\w-]+(?:\s+et\s+al)? \((?:19|20)\d\d\)",
    r"\bit\b(?=[^,]*\bwe\b)",
    r"\b(?:[A-Z][\w-]*|\w+[A-Z][\w-]*)(?: [A-Z][\w-]*)* \(",
    r"\A\[refs?\s*#?\s*\d",
    r"_PORT(_[A-Z0-9_]+)?$",
    r"\s*[A-Za-z][\w+.-]*://",
    r"\Adoi\s*:?\s*10\.",
    r"\A(?:(\d{1,2}(?:,\d{1,2}){0,5}?)\1){1,12};",
    r"\A(?:arxiv|v\d+|\d{1,2}(?!\d)|[\s.])*?\d{4}\.",
    r"[.!?]+(?=\s|\Z)",
    r"\b[\w-]+/",
    r"\A(?:(?>[a-z](?:[a-z]*:)?)|,)*;",
)
LINEAR = (
    r"(?<!\s)\s++,\s*",
    r"\A\s*+,\s*",
    r"(?<![\w-])[\w-]+/",
    r"\b\w+\b",
    r"\b\w*[A-Z]\w*[A-Z0-9]\w*\b",
    r"\[[^\[\]]*\]",
    r"\bit\b(?=[^,]{0,199}\bwe\b)",
    r"\A(?:\\(?:[a-z]*box|text[a-z]*)|[\s{}])*+",
    r"[A-Za-z][A-Za-z&*]*[A-Za-z*]",
    r"\Adoi(?:\s*+:)?+\s*+10\.",
    r"\A(?:arxiv|v\d++|\d{1,2}(?!\d)|[\s.])*?\d{4}\.",
    r"\n\s*\n|,\s*|\w+",
)


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
        if not name.startswith(tuple(NOT_TESTED)) and (text := slow_text(pattern, methods))
    }


@pytest.mark.slow
def test_the_time_of_every_pattern_grows_linearly():
    assert slow_patterns(pipeline) == {}


@pytest.mark.parametrize("pattern", SLOW)
def test_a_pattern_that_was_slow_is_found(pattern):
    assert slow_text(re.compile(pattern), {"search"})


@pytest.mark.parametrize("pattern", LINEAR)
def test_a_pattern_that_takes_linear_time_passes(pattern):
    assert slow_text(re.compile(pattern), {"search"}) == ""
