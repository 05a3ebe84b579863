"""Change the product in one place at a time, and see whether a test notices.

    python -m tools.mutations draw AREA --count 40 --seed 65   # writes tools/mutations/AREA.jsonl
    python -m tools.mutations reach AREA                       # which test reaches which line
    python -m tools.mutations run AREA                         # writes what came of each into it

`run` changes files of the checkout and puts them back: give it a worktree of its own. A mutation is
found again by its file, its function and its code, so that the list outlives changes elsewhere in
the file; one whose code has left is reported as gone. What was caught once must be caught again:
`run` ends with 1 where it is not.
"""

from __future__ import annotations

import argparse
import ast
import copy
import json
import os
import random
import signal
import subprocess
import sys
import xml.etree.ElementTree as ET
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields
from pathlib import Path

from tools.size import PROJECT

MUTATIONS = PROJECT / "tools" / "mutations"
REACH = PROJECT / ".reach"  # coverage's data and the seconds of each test; not committed
# The product's folders of an area, and the tests of these that work in their own process, which is
# what coverage sees.
AREAS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "corpus": (
        ("pipeline/corpus", "pipeline/arxiv", "pipeline/identity"),
        ("tests/unit/corpus", "tests/unit/arxiv", "tests/unit/test_people.py"),
    ),
    "index": (
        ("pipeline/index", "pipeline/embedding"),
        ("tests/unit/index", "tests/unit/embedding", "tests/server/test_congruence.py"),
    ),
    "writing": (
        ("pipeline/related_work", "pipeline/answering", "pipeline/llm"),
        ("tests/unit/related_work", "tests/unit/answering", "tests/unit/llm"),
    ),
    "evaluation": (
        ("pipeline/evaluation", "pipeline/report"),
        ("tests/unit/evaluation", "tests/unit/report"),
    ),
    "doors": (
        (
            *("pipeline/doors", "pipeline/ops", "pipeline/engine", "pipeline/storage"),
            *("pipeline/tables", "pipeline/settings"),
            *("assets", "resources", "sensors", "citeloom"),
        ),
        (
            *("tests/unit/doors", "tests/unit/engine", "tests/unit/storage", "tests/unit/doctor"),
            *("tests/unit/refresh", "tests/unit/test_*.py", "tests/assets"),
        ),
    ),
}
_MOST_SECONDS = 300  # for the tests of one mutation
# Processes that tests start, servers and browsers, are not measured.
_NOT_HERE = "not server and not ui and not faults"

_OPPOSITES: dict[type[ast.AST], type[ast.AST]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.And: ast.Or,
    ast.Or: ast.And,
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.FloorDiv,
    ast.FloorDiv: ast.Mult,
    ast.Div: ast.Mult,
}


@dataclass(frozen=True, slots=True)
class Mutation:
    """One change. function: qualified name, empty at a module's level. number: of this code among
    equal ones in the function, from 0.
    """

    path: str
    function: str
    kind: str
    before: str
    after: str
    number: int


@dataclass(frozen=True, slots=True)
class _Site:
    mutation: Mutation
    node: ast.expr | ast.stmt


def sites_of(path: str, source: str) -> list[_Site]:
    """Every place of a file that can be changed, in order."""
    sites = []
    numbers: Counter[tuple[str, str, str]] = Counter()
    for function, node in _nodes(ast.parse(source), ""):
        for kind, after in _changes(node):
            before = ast.unparse(node)
            key = (function, before, after)
            mutation = Mutation(path, function, kind, before, after, numbers[key])
            numbers[key] += 1
            sites.append(_Site(mutation, node))
    return sites


def _nodes(node: ast.AST, function: str) -> Iterator[tuple[str, ast.expr | ast.stmt]]:
    """(function, node) of all code but annotations, decorators and what only type checkers read."""
    for name, value in ast.iter_fields(node):
        if name in {"annotation", "returns", "decorator_list", "type_params"}:
            continue
        for child in value if isinstance(value, list) else [value]:
            if not isinstance(child, ast.AST) or _is_for_type_checkers(child):
                continue
            inner = function
            if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                inner = f"{function}.{child.name}".lstrip(".")
            if isinstance(child, ast.expr | ast.stmt):
                yield inner, child
            yield from _nodes(child, inner)


def _is_for_type_checkers(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"


def _changes(node: ast.expr | ast.stmt) -> Iterator[tuple[str, str]]:
    """(kind, code after the change)."""
    match node:
        case ast.Compare(ops=[op]) if type(op) in _OPPOSITES:
            yield "operator", _with(node, ops=[_OPPOSITES[type(op)]()])
        case ast.BoolOp(op=op):
            yield "operator", _with(node, op=_OPPOSITES[type(op)]())
        case ast.BinOp(op=op, left=left) if type(op) in _OPPOSITES and not _is_text(left):
            yield "operator", _with(node, op=_OPPOSITES[type(op)]())
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            yield "operator", ast.unparse(operand)
        case ast.Constant(value=int() as number) if not isinstance(number, bool):
            yield "bound", str(number + 1)
        case ast.Expr(value=ast.Call()):
            yield "missing call", "pass"
        case ast.Call(args=[first, second, *others]) if not _is_starred(first, second):
            if ast.unparse(first) != ast.unparse(second):
                yield "swapped argument", _with(node, args=[second, first, *others])


def _with(node: ast.AST, **fields: object) -> str:
    changed = copy.copy(node)
    for name, value in fields.items():
        setattr(changed, name, value)
    return ast.unparse(changed)


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.JoinedStr) or (
        isinstance(node, ast.Constant) and isinstance(node.value, str)
    )


def _is_starred(*nodes: ast.AST) -> bool:
    return any(isinstance(node, ast.Starred) for node in nodes)


def draw(area: str, count: int, seed: int) -> list[Mutation]:
    """`count` of all places of an area, each as likely as another."""
    folders, _ = AREAS[area]
    every = [
        site.mutation
        for folder in folders
        for file in sorted((PROJECT / folder).rglob("*.py"))
        for site in sites_of(str(file.relative_to(PROJECT)), file.read_text(encoding="utf-8"))
    ]
    print(f"{len(every):,} places")
    drawn = random.Random(seed).sample(every, count)  # noqa: S311 - no secret
    return sorted(drawn, key=lambda mutation: mutation.path)


def reach(area: str) -> None:
    """Run the tests of an area, and keep which test reaches which line."""
    REACH.mkdir(exist_ok=True)
    folders, patterns = AREAS[area]
    tests = [str(file) for pattern in patterns for file in sorted(PROJECT.glob(pattern))]
    command = [sys.executable, "-m", "pytest", "-q", "-n", "2", "--dist", "loadfile", *tests]
    command += ["-m", _NOT_HERE, *(f"--cov={folder}" for folder in folders)]
    command += ["--cov-context=test", "--cov-report=", f"--junitxml={_tests_file(area)}"]
    environment = {**os.environ, "COVERAGE_FILE": str(_lines_file(area)), "OMP_NUM_THREADS": "1"}
    subprocess.run(command, cwd=PROJECT, env=environment, check=False)


def _lines_file(area: str) -> Path:
    return REACH / f"{area}.coverage"


def _tests_file(area: str) -> Path:
    return REACH / f"{area}.xml"


class Reached:
    """Which tests reach a line, the fastest first."""

    def __init__(self, area: str) -> None:
        from coverage import CoverageData

        self._data = CoverageData(str(_lines_file(area)))
        self._data.read()
        self._seconds = _seconds_of_tests(_tests_file(area))

    def tests(self, path: str, first: int, last: int) -> list[str]:
        """Of any of the lines; where they run when the module is imported, of any of the file."""
        by_line = self._data.contexts_by_lineno(str(PROJECT / path))
        inside = {context for line in range(first, last + 1) for context in by_line.get(line, ())}
        if inside <= {""}:
            inside = {context for contexts in by_line.values() for context in contexts}
        tests = {context.rpartition("|")[0] for context in inside if context}
        return sorted(tests, key=lambda test: (self._seconds.get(test, 0.0), test))


def _seconds_of_tests(file: Path) -> dict[str, float]:
    seconds: dict[str, float] = {}
    for case in ET.parse(file).iter("testcase"):  # noqa: S314 - our own file
        module = case.attrib["classname"].replace(".", "/") + ".py"
        seconds[f"{module}::{case.attrib['name']}"] = float(case.attrib["time"])
    return seconds


@contextmanager
def changed(site: _Site) -> Iterator[None]:
    """The file of a place with its change, put back at the end."""
    file = PROJECT / site.mutation.path
    source = file.read_text(encoding="utf-8")
    try:
        file.write_text(_replaced(source, site), encoding="utf-8")
        yield
    finally:
        file.write_text(source, encoding="utf-8")


def _replaced(source: str, site: _Site) -> str:
    """The source with the code of a place replaced; columns count bytes."""
    lines = source.encode().splitlines(keepends=True)
    node = site.node
    before = b"".join(lines[: node.lineno - 1]) + lines[node.lineno - 1][: node.col_offset]
    last = _last_line(node)
    after = lines[last - 1][node.end_col_offset :] + b"".join(lines[last:])
    code = site.mutation.after
    if isinstance(node, ast.expr):
        code = f"({code})"
    return (before + code.encode() + after).decode()


def _last_line(node: ast.expr | ast.stmt) -> int:
    return node.end_lineno or node.lineno


def run(mutations: list[Mutation], reached: Reached) -> Iterator[dict[str, object]]:
    """Each mutation with what came of it: caught by a test, missed, reached by none, or gone."""
    for mutation in mutations:
        site = _find(mutation)
        if site is None:
            yield {**asdict(mutation), "outcome": "gone"}
            continue
        tests = reached.tests(mutation.path, site.node.lineno, _last_line(site.node))
        if not tests:
            yield {**asdict(mutation), "outcome": "not reached"}
            continue
        with changed(site):
            yield {**asdict(mutation), **_outcome(tests)}


def _find(mutation: Mutation) -> _Site | None:
    file = PROJECT / mutation.path
    if not file.exists():
        return None
    sites = sites_of(mutation.path, file.read_text(encoding="utf-8"))
    return next((site for site in sites if site.mutation == mutation), None)


def _outcome(tests: list[str]) -> dict[str, object]:
    # Of a parametrised test whose cases all reach the line, the first cases are enough.
    cases: defaultdict[str, list[str]] = defaultdict(list)
    for test in tests:
        cases[test.partition("[")[0]].append(test)
    chosen = [test for every in cases.values() for test in every[:40]]
    arguments = REACH / "arguments"
    arguments.write_text("\n".join(sorted(chosen, key=tests.index)), encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-x", "-q", "--no-header", "-p", "no:cacheprovider"]
    command += [f"@{arguments}"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1"}
    process = subprocess.Popen(
        command,
        cwd=PROJECT,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        output, _ = process.communicate(timeout=_MOST_SECONDS)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        return {"outcome": "caught", "by": "no end"}
    if process.returncode == 0:
        return {"outcome": "missed", "tests": len(chosen)}
    if process.returncode not in range(6):  # pytest's own
        return {"outcome": "caught", "by": f"exit code {process.returncode}"}
    named = [line for line in output.splitlines() if line.startswith(("FAILED ", "ERROR "))]
    if not named:
        raise RuntimeError(f"pytest could not run the tests:\n{output[-2000:]}")
    return {"outcome": "caught", "by": named[0].split(" - ")[0]}


def main() -> int:
    """Draw mutations, measure what tests reach, or run them. Returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("do", choices=["draw", "reach", "run"])
    parser.add_argument("area", choices=AREAS)
    parser.add_argument("--count", type=int, default=40)
    parser.add_argument("--seed", type=int, default=65)
    options = parser.parse_args()
    file = MUTATIONS / f"{options.area}.jsonl"
    if options.do == "draw":
        _write(file, [asdict(found) for found in draw(options.area, options.count, options.seed)])
        return 0
    if options.do == "reach":
        reach(options.area)
        return 0
    earlier = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    names = [field.name for field in fields(Mutation)]
    mutations = [Mutation(**{name: row[name] for name in names}) for row in earlier]
    results = []
    for before, result in zip(earlier, run(mutations, Reached(options.area)), strict=True):
        print(
            result["outcome"], result["path"], result["before"], "->", result["after"], flush=True
        )
        was_caught = before.get("outcome") == "caught" or before.get("lost")
        is_lost = was_caught and result["outcome"] not in {"caught", "gone"}
        results.append({**result, "lost": True} if is_lost else result)
    _write(file, results)
    print(dict(Counter(row["outcome"] for row in results)))
    return int(any(row.get("lost") for row in results))


def _write(file: Path, rows: list[dict[str, object]]) -> None:
    file.parent.mkdir(exist_ok=True)
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
