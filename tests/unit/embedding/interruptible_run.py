"""Embeds a month with a slow embedder, for a test to kill. Not a test; started as a program.

python -m tests.unit.embedding.interruptible_run DATA MONTH LOG
"""

import sys
from pathlib import Path

from pipeline.engine.run import run_stage
from tests.unit.embedding.hashing_embedder import HashingEmbedder, stage_with
from tests.unit.index.building import make_workspace

if __name__ == "__main__":
    data, month, log = sys.argv[1:]
    slow = HashingEmbedder(log=Path(log), pause=0.1, window=500)
    run_stage(stage_with(slow), make_workspace(Path(data)), month)
