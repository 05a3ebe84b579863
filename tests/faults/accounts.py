"""What stands in a data root after faults, held against an undisturbed one, as counts."""

import hashlib
import json
import sqlite3
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow.parquet as pq

from tests.assets.conftest import digests


@dataclass(slots=True)
class Watch:
    """Looks at a data root after each fault. `torn` files bear their names and cannot be read;
    `lost` ones were whole before and are gone or other now.
    """

    root: Path
    torn: int = 0
    lost: int = 0
    whole: dict[str, str] = field(default_factory=dict)

    def look(self):
        """See what stands now. Every table whose name or time is new is read to its end."""
        before, self.whole = self.whole, {}
        for file in [*self.root.glob("*/*.parquet"), *self.root.glob("ledger/*/*.parquet")]:
            name, mark = (
                str(file.relative_to(self.root)),
                f"{file.stat().st_mtime_ns} {file.stat().st_ino}",
            )
            if before.get(name, "").startswith(mark):
                self.whole[name] = before[name]
                continue
            try:
                pq.read_table(file)
                self.whole[name] = f"{mark} {hashlib.sha256(file.read_bytes()).hexdigest()}"
            except Exception:
                self.torn += 1
        for name, was in before.items():
            now = self.whole.get(name, "")
            self.lost += now.split()[-1:] != was.split()[-1:] and not name.startswith("ledger/")


def count_wrong(calm, watch, month=""):
    """What is wrong with a data root that was watched, held against an undisturbed one, byte by byte:
    tables, ledgers and pages, of one month or of all. Rows are counted only in files that differ.
    """
    ours, theirs = digests(watch.root), digests(calm.root)
    differing = [
        name
        for name in ours.keys() | theirs.keys()
        if ours.get(name) != theirs.get(name) and month in name
    ]
    counts = Counter(
        lost=watch.lost,
        duplicated=0,
        torn=watch.torn + len(_broken_stores(watch.root)),
        files_that_differ=len(differing),
    )
    for name in (name for name in differing if name.endswith(".parquet")):
        here, there = _rows(watch.root / name), _rows(calm.root / name)
        counts.update(lost=(there - here).total(), duplicated=(here - there).total())
    return counts


def _rows(file):
    if not file.exists():
        return Counter()
    return Counter(
        json.dumps(row, sort_keys=True, default=str) for row in pq.read_table(file).to_pylist()
    )


def _broken_stores(root):
    """SQLite files that do not pass SQLite's own check."""
    broken = []
    for file in [*root.rglob("*.sqlite"), *root.rglob("*.db")]:
        with sqlite3.connect(file) as store:
            if store.execute("PRAGMA integrity_check").fetchone() != ("ok",):
                broken.append(str(file.relative_to(root)))
    return broken


def audited(place):
    """What `citeloom audit` finds wrong in the index, over all months: points missing, duplicated,
    stale or foreign.
    """
    result = place.invoke("audit", "--json")
    found = json.loads(result.stdout)
    counts = Counter()
    for month in found["months"]:
        counts.update({kind: len(ids) for kind, ids in month.items() if isinstance(ids, list)})
    return {"points_wrong": counts.total(), "audit_code": result.exit_code}
