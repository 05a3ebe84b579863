"""A program that writes months of a table into a data root, each large enough to go up to a store
in parts.

`python -m tests.uploads ADDRESS LOCAL VERSION`: every month is written with the rows of that
version.
"""

import base64
import random
import sys
from pathlib import Path

from pipeline.storage.data_root import DataRoot
from pipeline.storage.store import StorePath
from pipeline.storage.writing import write_whole
from pipeline.tables import LEDGER
from tests.month_tables import write_table

MONTHS = ("2024-03", "2024-04")
# Of texts that zstd makes no smaller than three quarters: 19 MB in the end, which is three parts.
ROWS, CHARACTERS = 1_100, 24_000


def write_months(root, version):
    """Write all months, and after each a small file."""
    for month in MONTHS:
        chance = random.Random(f"{month} {version}")
        texts = (
            base64.b64encode(chance.randbytes(CHARACTERS * 3 // 4)).decode() for _ in range(ROWS)
        )
        write_table(root, LEDGER, month, ({"reason": version, "detail": text} for text in texts))
        write_whole(root.path / "timings" / f"{month}.json", f'["{version}"]'.encode())


if __name__ == "__main__":
    write_months(DataRoot(StorePath(sys.argv[1], Path(sys.argv[2]))), sys.argv[3])
