"""Write the archive of data roots that tests of later code run on: see test_earlier_roots.py.

    cd CHECKOUT_OF_THE_EARLIER_COMMIT && PYTHONPATH=$PWD python tests/earlier/make.py ARCHIVE.tar.xz

Two roots of the sample corpus: `demo` by the default settings, and `models` with a random model of BGE-M3's architecture,
a Qdrant server and a scripted endpoint. Beside them the server's storage and the model.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.qdrant_server import running
from benchmarks.scripted_endpoint import serving
from tests.unit.embedding.tiny_m3 import make_tiny_m3

# What every run writes again, and Dagster's runs, are no part of it.
LEFT_OUT = ("reports", "dagster", "timings", "locks", "unfinished")
SETTINGS_OF_MODELS = {
    "CITELOOM_EMBEDDER": "bge-m3",
    "CITELOOM_EMBEDDER_PRECISION": "fp32",
    "CITELOOM_LLM_MODEL": "scripted",
    "CITELOOM_SYSTEMS": "chatcite,zero_shot,lead",
    "CITELOOM_ANSWER_SYSTEMS": "arxivbot,direct,wikichat",
    "CITELOOM_MAX_TASKS": "2",
    "CITELOOM_MAX_QUESTIONS": "4",
}


def run_pipeline(root, **settings):
    command = [Path(sys.executable).with_name("citeloom"), "run", "--months", "all"]
    subprocess.run(command, check=True, env=os.environ | settings | {"CITELOOM_DATA": str(root)})


def fill(folder):
    run_pipeline(folder / "demo")
    model = make_tiny_m3(folder / "tiny-m3", positions=514, scale=8.0)
    with running(folder / "qdrant") as server, serving(0.0) as url:
        addresses = {"CITELOOM_QDRANT_URL": server.url, "CITELOOM_LLM_URL": url}
        settings = SETTINGS_OF_MODELS | addresses | {"CITELOOM_EMBEDDER_PATH": str(model)}
        settings["CITELOOM_QDRANT_GRPC_PORT"] = str(server.grpc_port)
        run_pipeline(folder / "models", **settings)


def pack(folder, archive):
    left_out = [f"--exclude={name}" for name in LEFT_OUT]
    parts = ["demo", "models", "qdrant/storage", "tiny-m3"]
    # Sparse: the stores' files of 32 MB are nearly empty.
    subprocess.run(
        ["tar", "-cJSf", "--hole-detection=raw", archive, "-C", folder, *left_out, *parts],
        check=True,
    )


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as temporary:
        fill(Path(temporary))
        pack(Path(temporary), sys.argv[1])
