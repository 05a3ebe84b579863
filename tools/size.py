"""Weigh the code by one count, beside the budgets of pyproject.toml.

    python -m tools.size

A token of Python counts one; comments, docstrings and layout count nothing. A string counts one
more for every six characters beyond its first 24, so that text, SQL and patterns have weight. A
data file beside the code counts one for each word, below `prompts` and `results` nothing, and below
`tests`, `benchmarks` and `experiments` half. Counted on Python 3.11: later versions split f-strings
into tokens.
"""

from __future__ import annotations

import ast
import io
import tokenize
import tomllib
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

PROJECT = Path(__file__).resolve().parent.parent
GROUPS = {
    "product": ("pipeline", "assets", "resources", "sensors", "citeloom"),
    "drafts": ("drafts",),
    "tests": ("tests",),
    "benchmarks": ("benchmarks", "experiments"),
}
_LAYOUT = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENCODING,
}
_DATA = {".toml", ".tsv", ".csv", ".json", ".jsonl", ".j2"}
_WEIGHTLESS = {"prompts", "results"}
_AT_HALF = GROUPS["tests"] + GROUPS["benchmarks"]


@dataclass(frozen=True, slots=True)
class Size:
    """Python files and their lines, and the weight of these and of data files."""

    files: int = 0
    lines: int = 0
    weight: int = 0

    def __add__(self, other: Size) -> Size:
        return Size(self.files + other.files, self.lines + other.lines, self.weight + other.weight)


@dataclass(frozen=True, slots=True)
class Budgets:
    """The table `tool.citeloom.budgets` of pyproject.toml.

    groups: group → weight. packages: package of the product → weight.
    """

    groups: dict[str, int]
    product_files: int
    packages: dict[str, int]


def read_budgets() -> Budgets:
    """The budgets of this checkout."""
    pyproject = tomllib.loads((PROJECT / "pyproject.toml").read_text(encoding="utf-8"))
    table = pyproject["tool"]["citeloom"]["budgets"]
    return Budgets({name: table[name] for name in GROUPS}, table["files"], table["packages"])


def measure(root: Path) -> tuple[dict[str, Size], dict[str, Size]]:
    """(size by group, size by package of the product) of a checkout."""
    groups = dict.fromkeys(GROUPS, Size())
    packages: dict[str, Size] = defaultdict(Size)
    for group, folders in GROUPS.items():
        for folder in folders:
            for file in sorted((root / folder).rglob("*")):
                path = file.relative_to(root)
                size = _size_of(file, path)
                groups[group] += size
                if group == "product" and size != Size():
                    packages[_package(path)] += size
    return groups, dict(packages)


def python_weight(source: str) -> int:
    """The weight of a Python file."""
    docstring_lines = set(_docstring_lines(source))
    weight = 0
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        is_string = token.type == tokenize.STRING
        is_docstring = is_string and token.start[0] in docstring_lines
        if token.type in _LAYOUT or is_docstring:
            continue
        weight += 1
        if is_string:
            weight += max(0, len(token.string) - 24) // 6
    return weight


def _docstring_lines(source: str) -> Iterator[int]:
    """The line on which each docstring begins."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            match node.body:
                case [ast.Expr(value=ast.Constant(value=str()), lineno=line), *_]:
                    yield line


def _size_of(file: Path, path: Path) -> Size:
    """path: of the file below the checkout."""
    if file.suffix == ".py":
        source = file.read_text(encoding="utf-8")
        return Size(1, source.count("\n"), python_weight(source))
    if file.suffix in _DATA and file.is_file() and _WEIGHTLESS.isdisjoint(path.parts):
        words = len(file.read_text(encoding="utf-8", errors="replace").split())
        return Size(weight=words // 2 if path.parts[0] in _AT_HALF else words)
    return Size()


def _package(path: Path) -> str:
    """The package of a product's file: those within `pipeline` have lines of their own."""
    is_in_subpackage = path.parts[0] == "pipeline" and len(path.parts) > 2
    return "/".join(path.parts[:2]) if is_in_subpackage else path.parts[0]


def main() -> None:
    """Print files, lines, weight and budget of each package and group."""
    groups, packages = measure(PROJECT)
    budgets = read_budgets()
    print(f"{'':24} {'files':>6} {'lines':>8} {'weight':>9} {'budget':>9}")
    for sizes, weights in ((packages, budgets.packages), (groups, budgets.groups)):
        for name, size in sorted(sizes.items()):
            budget = weights.get(name, 0)
            print(f"{name:24} {size.files:6,} {size.lines:8,} {size.weight:9,} {budget:9,}")
    print(f"The product may have {budgets.product_files:,} files.")


if __name__ == "__main__":
    main()
