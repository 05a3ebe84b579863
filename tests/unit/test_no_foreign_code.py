"""Nothing that is read may run: no pickle, no code of a model's, no unsafe YAML, no shell, in the
product's sources.
"""

import ast
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[2]
SOURCES = [
    file
    for folder in ("pipeline", "assets", "resources", "sensors")
    for file in (PROJECT / folder).rglob("*.py")
]
# Each loads what a file or a peer made by running it.
LOADERS = {
    "pickle", "_pickle", "cPickle", "shelve", "marshal", "dill", "cloudpickle", "joblib",
    "jsonpickle", "diskcache", "runpy", "code",
}  # fmt: skip
# The pipe between a process and the workers that it starts, which nobody else has: no file, no
# socket with a name.
OWN_PIPE = ("pipeline/engine/process_pool.py", "imports pickle")
SAFE_YAML = {
    "safe_load", "safe_dump", "compose", "composer", "AliasEvent", "SafeLoader", "YAMLError",
    "SequenceNode",
}  # fmt: skip


def imported(tree):
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (node.module or "", *(f"{node.module}.{alias.name}" for alias in node.names))


def faults(tree):
    """What of a source would run what it reads."""
    yield from (f"imports {name}" for name in imported(tree) if name in LOADERS)
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            given = {keyword.arg or "": ast.unparse(keyword.value) for keyword in node.keywords}
            yield from _of_call(ast.unparse(node.func), given)
        elif (
            isinstance(node, ast.Attribute)
            and ast.unparse(node.value) == "yaml"
            and node.attr not in SAFE_YAML
        ):
            yield f"uses yaml.{node.attr}"


def _of_call(name, given):
    if name in {"eval", "exec", "compile", "__import__", "os.system", "os.popen"}:
        yield f"calls {name}"
    if name == "torch.load" and given.get("weights_only") != "True":
        yield "calls torch.load without weights_only=True"
    if given.get("shell", "False") != "False" and "subprocess" in name:
        yield f"calls {name} with a shell"
    yield from (
        f"gives {each}"
        for each in ("trust_remote_code", "allow_pickle")
        if given.get(each, "False") != "False"
    )


def test_no_source_runs_what_it_reads():
    found = {
        (file.relative_to(PROJECT).as_posix(), fault)
        for file in SOURCES
        for fault in faults(ast.parse(file.read_text()))
    }
    assert len(SOURCES) > 300
    assert found == {OWN_PIPE}
