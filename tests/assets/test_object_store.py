"""Commands on a data root on an object store: nothing written twice, no table and no secret on the disk.

Up to the index, since what a request costs is the same further down; all stages, with the tables
that a disk would have, are in tests/faults.
"""

from dataclasses import replace

import pytest

from tests.object_store import BUCKET, ObjectStore
from tests.sentinels import Search

pytestmark = pytest.mark.faults

MONTHS = ("2024-03", "2024-04")
STAGES = ("dump_members", "metadata", "papers", "passages", "embeddings", "index_receipts")
RUN = ("run", "--months", f"{MONTHS[0]}..{MONTHS[1]}", "--until", STAGES[-1])


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


def test_a_second_run_writes_nothing_and_asks_little(there, store):
    def written():
        names = store.objects().items()
        return {name: each.written for name, each in names if not name.endswith(".writable")}

    before = written()
    store.counted()
    outcomes = there.told(*RUN)["outcomes"]
    asked = store.counted()
    assert all(outcome["skipped"] for outcome in outcomes)
    assert written() == before
    assert asked["PUT"] == 1  # whether the data root can be written
    assert asked.total() < 60 * len(MONTHS), asked
    assert not [file for file in there.root.rglob("*.parquet") if "cache" not in file.parts]


def test_status_asks_for_each_folder_once(there, store):
    store.counted()
    one = there.told("status", "--months", MONTHS[0])["stages"]
    of_one = store.counted().total()
    two = there.told("status", "--months", f"{MONTHS[0]}..{MONTHS[1]}")["stages"]
    of_two = store.counted().total()
    assert {row["state"] for row in two if row["stage"] in STAGES} == {"done"}
    assert len(two) == 2 * len(one)
    assert of_two - of_one <= 25, (of_one, of_two)  # of each month more
    assert of_one <= 120


def test_an_export_reads_its_tables_there_and_the_doctor_its_data_root(there, tmp_path):
    exported = there.told("export", "--to", str(tmp_path / "export"), "--tables", "passages,ledger")
    assert {file["table"] for file in exported["files"] if file["rows"]} == {"passages", "ledger"}
    assert f"s3://{BUCKET}/root can be written" in there.invoke("doctor", "--json").stdout


def test_no_secret_is_on_the_store_or_on_the_disk(there, store, tmp_path):
    for name, each in store.objects().items():
        file = tmp_path / "objects" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(each.content)
    search = Search(["AWS_SECRET_ACCESS_KEY"])
    assert search.in_folder(there.root) == []
    assert search.in_folder(tmp_path / "objects") == []
    assert search.looked_at > 100
