"""Runs side by side: two of the same months, by either door, and four of the same 24 months, with
both stores.
"""

import os
import shutil
from collections import Counter
from contextlib import contextmanager, nullcontext

import dagster as dg
import pytest

from tests.assets.conftest import MONTHS
from tests.faults.accounts import Watch, count_wrong
from tests.postgres import postgres
from tests.small_months import write_small_months

# As often as this is the target of the table of failures 10; one time is what fits beside the
# others.
REPEATS = int(os.environ.get("CITELOOM_FAULTS_REPEATS", "1"))
MANY = [f"{year}-{month:02}" for year in (2022, 2023) for month in range(1, 13)]
RUNS = 4


@pytest.mark.parametrize("doors", [("command", "command"), ("command", "dagster")], ids="-".join)
def test_two_runs_of_the_same_months_make_them_once(
    zygote, other_zygote, calm, make, tmp_path, tell, doors
):
    place = make(tmp_path / "data")
    for each, door in zip((zygote, other_zygote), doors, strict=True):
        each.start(place, MONTHS, door=door)
    ends = [each.end() for each in (zygote, other_zygote)]
    watch = Watch(place.root)
    watch.look()
    made = [*ends[0].made, *ends[1].made]
    wrong = count_wrong(calm, watch)
    wrong["made_twice"] = len(made) - len(set(made))
    tell(made=len(made), **wrong)
    assert all(end.done for end in ends), ends
    assert not any(wrong.values())


@contextmanager
def _store(kind):
    """The settings of where Dagster keeps its runs."""
    with postgres() if kind == "postgres" else nullcontext("") as url:
        yield {"dagster_pg_url": url} if url else {}


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
def test_four_runs_of_the_same_24_months_make_them_once_and_meet_no_lock(
    kind, make, tmp_path, tell
):
    settings = write_small_months(tmp_path / "dump", MANY)
    serial = make(tmp_path / "serial", **settings)
    assert (
        serial.citeloom("run", "--months", "all", "--until", "metadata", "--json").returncode == 0
    )
    wrong = Counter()
    with _store(kind) as store:
        for number in range(REPEATS):
            place = make(tmp_path / f"{number}", **settings, **store)
            runs = [
                place.start("run", "--months", "all", "--until", "metadata") for _ in range(RUNS)
            ]
            said = "".join(run.communicate()[1] for run in runs)
            wrong.update(
                failed=sum(run.returncode != 0 for run in runs),
                lock_errors=said.count("locked") + said.count("deadlock"),
                reported_twice=_reported(place, "metadata") - len(MANY),
            )
            wrong.update(count_wrong(serial, Watch(place.root)))
            shutil.rmtree(place.root)
    tell(repeats=REPEATS, months=len(MANY), **wrong)
    assert not any(wrong.values())


def _reported(place, stage):
    """Materializations of a stage in Dagster's store."""
    with place.dagster() as instance:
        wanted = dg.AssetRecordsFilter(dg.AssetKey(stage), asset_partitions=MANY)
        return len(instance.fetch_materializations(wanted, limit=1000).records)
