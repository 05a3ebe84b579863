"""Cases of a parser, kept in a TOML file."""

import tomllib
from collections.abc import Mapping
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parent


def cases(file, group=None, names="case"):
    """Run a test once for each case of a file below `tests/`, or of one group in it.

    A file or group is a table of cases by name, or a list of cases: texts, or rows that begin with
    the text. The test gets each as `case`, or the values of a row under the names that are given;
    what a row lacks at its end is None.
    """
    content = read_cases(file)
    chosen = content if group is None else content[group]
    if isinstance(chosen, list):
        named = [(case if isinstance(case, str) else str(case[0]), case) for case in chosen]
    else:
        named = list(chosen.items())
    one_value = isinstance(names, str)
    return pytest.mark.parametrize(
        names,
        [
            pytest.param(*([case] if one_value else padded(case, names)), id=name or "nothing")
            for name, case in named
        ],
    )


def cases_beside(*names):
    """Run a test once for each case of the group that is named as it, in `cases.toml` beside it.

    One name is that of a whole case; several are those of the values of a row.
    """

    def with_cases(test):
        file = Path(test.__code__.co_filename).with_name("cases.toml")
        group = test.__name__.removeprefix("test_")
        return cases(file, group, names if len(names) > 1 else names[0])(test)

    return with_cases


def read_cases(file):
    """The content of a file below `tests/`."""
    return tomllib.loads((TESTS / file).read_text())


def padded(row, names):
    """The values of a row, and None for each name without one."""
    return [*row, *[None] * (len(names) - len(row))]


def agrees(expected, read):
    """Whether what was read has every field that a case names, with its value."""
    if isinstance(expected, dict):
        get = read.get if isinstance(read, Mapping) else lambda name: getattr(read, name)
        return all(agrees(value, get(name)) for name, value in expected.items())
    if isinstance(expected, list):
        return len(expected) == len(read) and all(map(agrees, expected, read))
    return bool(expected == ("" if read is None else read))


def values_at(found, paths):
    """Path → the value that it leads to by attributes, keys and places; "" for None."""
    values = {}
    for path in paths:
        value = found
        for name in path.split("."):
            if hasattr(value, name):
                value = getattr(value, name)
            else:
                value = value[int(name) if name.isdigit() else name]
        values[path] = "" if value is None else value
    return values
