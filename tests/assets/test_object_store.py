"""Commands on a data root on an object store: the same tables as on a disk, nothing written twice,
no secret on either.

Up to the index, since what a request costs is the same further down; all stages are in
tests/faults.
"""

import json
from dataclasses import replace

import pytest

from pipeline.tables import TABLES
from tests.object_store import BUCKET, ObjectStore
from tests.sentinels import Search

pytestmark = pytest.mark.faults

MONTHS = ("2024-03", "2024-04")
STAGES = ("dump_members", "metadata", "papers", "passages", "embeddings", "index_receipts")
RUN = ("run", "--months", f"{MONTHS[0]}..{MONTHS[1]}", "--until", STAGES[-1], "--json")


@pytest.fixture(scope="module")
def store():
    """The store, for all tests here."""
    with ObjectStore() as found:
        yield found


@pytest.fixture(scope="module")
def there(store, finished, tmp_path_factory):
    """A data root on the store, on which the months have been run."""
    folder = tmp_path_factory.mktemp("local")
    place = replace(finished.place, root=folder).with_settings(
        data=f"s3://{BUCKET}/root", local=folder
    )
    place = replace(place, variables={**place.variables, **store.variables})
    # In a process of its own: idle workers of this one may lack the store's credentials.
    done = place.citeloom(*RUN)
    assert done.returncode == 0, done.stdout
    return place


def test_the_tables_are_those_of_a_run_on_a_disk(there, finished):
    with there.entered():
        found = {
            (name, month): _rows_sha256(there, name, month) for name in STAGES for month in MONTHS
        }
    assert found == {
        (name, month): _rows_sha256(finished.place, name, month) for name, month in found
    }
    assert not [file for file in there.root.rglob("*.parquet") if "cache" not in file.parts]


def _rows_sha256(place, table, month):
    written = place.workspace().root.provenance(TABLES[table], month)
    return written.rows_sha256


def test_a_second_run_writes_nothing_and_asks_little(there, store):
    before = {name: each.written for name, each in store.objects().items()}
    store.counted()
    done = there.invoke(*RUN)
    asked = store.counted()
    assert done.exit_code == 0, done.output
    assert all(outcome["skipped"] for outcome in json.loads(done.stdout)["outcomes"])
    assert {
        name: each.written
        for name, each in store.objects().items()
        if not name.endswith(".writable")
    } == {name: written for name, written in before.items() if not name.endswith(".writable")}
    assert asked["PUT"] == 1  # whether the data root can be written
    assert asked.total() < 60 * len(MONTHS), asked


def test_status_asks_for_each_folder_once(there, store):
    shown = there.invoke("status", "--months", MONTHS[0], "--json")
    assert {
        row["state"] for row in json.loads(shown.stdout)["stages"] if row["stage"] in STAGES
    } == {"done"}
    store.counted()
    of_one = there.invoke("status", "--months", MONTHS[0], "--json"), store.counted().total()
    of_two = (
        there.invoke("status", "--months", f"{MONTHS[0]}..{MONTHS[1]}", "--json"),
        store.counted().total(),
    )
    one, two = (json.loads(done.stdout)["stages"] for done, _ in (of_one, of_two))
    assert len(two) == 2 * len(one)
    assert of_two[1] - of_one[1] <= 25, (of_one[1], of_two[1])  # of each month more
    assert of_one[1] <= 120


def test_other_commands_work_there(there, tmp_path):
    exported = there.invoke(
        "export", "--to", str(tmp_path / "export"), "--tables", "passages,ledger", "--json"
    )
    assert exported.exit_code == 0, exported.output
    files = json.loads(exported.stdout)["files"]
    assert {file["table"] for file in files if file["rows"] > 0} == {"passages", "ledger"}
    told = there.invoke("doctor", "--json")
    assert f"s3://{BUCKET}/root can be written" in told.stdout
    assert there.invoke("run", "--failed", "--json").exit_code == 0


def test_no_secret_is_on_the_store_or_on_the_disk(there, store, tmp_path):
    for name, each in store.objects().items():
        file = tmp_path / "objects" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(each.content)
    search = Search(["AWS_SECRET_ACCESS_KEY"])
    assert search.in_folder(there.root) == []
    assert search.in_folder(tmp_path / "objects") == []
    assert search.looked_at > 100
