"""What drafts imports of the pipeline."""

import ast
from pathlib import Path


def test_drafts_asks_the_pipeline_for_a_dozen_functions_and_the_types_beside_them():
    names = {
        alias.name
        for file in Path("drafts").glob("*.py")
        for node in ast.walk(ast.parse(file.read_text()))
        if isinstance(node, ast.ImportFrom) and str(node.module).startswith("pipeline")
        for alias in node.names
    }
    assert len([name for name in names if name.islower()]) <= 12
    assert len(names) <= 34
