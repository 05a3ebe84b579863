"""A data root on an object store, asked as S3 is: what it reads, writes, asks for and says."""

import pickle
import random
from typing import Any, ClassVar

import fsspec
import pytest
from fsspec.implementations.memory import MemoryFileSystem

from pipeline.engine.digests import digest_of
from pipeline.engine.failures import record_failure
from pipeline.errors import MissingInput, PermanentFailure, SettingError, TransientFailure
from pipeline.ops.preflight import check_data_root
from pipeline.settings import load_settings
from pipeline.storage.data_root import DataRoot
from pipeline.storage.provenance import read_provenance
from pipeline.storage.read_cache import read_cache
from pipeline.storage.store import StorePath
from pipeline.storage.writing import write_whole
from pipeline.tables import LEDGER, ROWS_PER_GROUP
from tests.cases import cases_beside
from tests.month_tables import write_table
from tests.object_store import BUCKET, ObjectStore
from tests.workspaces import make_workspace

pytestmark = pytest.mark.slow

MONTH = "2024-03"


@pytest.fixture
def store(monkeypatch):
    """A store of one's own, which this process asks."""
    with ObjectStore() as found:
        for name, value in found.variables.items():
            monkeypatch.setenv(name, value)
        yield found


@pytest.fixture
def root(store, tmp_path):
    """A data root on it, with nothing in it."""
    return DataRoot(StorePath(f"s3://{BUCKET}/root", tmp_path))


@pytest.fixture
def workspace(store, tmp_path):
    """A workspace on the same data root."""
    return make_workspace(f"s3://{BUCKET}/root", local=tmp_path)


def write(root, count, month=MONTH, **about):
    rows = [{"subject": str(number), "stage": "papers"} for number in range(count)]
    write_table(root, LEDGER, month, rows, **about)


def test_a_month_on_a_store_is_the_one_that_a_disk_would_have(root, store, tmp_path):
    disk = DataRoot(tmp_path / "disk")
    for each in (root, disk):
        write(each, ROWS_PER_GROUP + 1)
    there = store.objects()[f"root/ledger/{MONTH}.parquet"]
    assert there.content == disk.file(LEDGER, MONTH).read_bytes()
    given = pickle.loads(pickle.dumps(root))  # as a worker is given it
    for read in (
        lambda root: root.months(LEDGER),
        lambda root: root.provenance(LEDGER, MONTH),
        lambda root: root.rows(LEDGER, MONTH),
        lambda root: root.read(LEDGER, MONTH, ["subject"]),
        lambda root: list(root.iterate(LEDGER, MONTH)),
        lambda root: root.group_sizes(LEDGER, MONTH),
        lambda root: root.group(LEDGER, MONTH, 1),
    ):
        assert read(given) == read(disk)
    assert not list((tmp_path / "staging").iterdir())


def test_what_is_not_there_is_absent_and_no_error_of_the_store(root):
    assert root.provenance(LEDGER, MONTH) is None
    assert root.months(LEDGER) == []
    with pytest.raises(MissingInput, match=r"s3://corpus/root/ledger/2024-03\.parquet"):
        root.read(LEDGER, MONTH)
    assert not (root.path / "holds-the-demo").exists()
    with pytest.raises(FileNotFoundError):
        (root.path / "holds-the-demo").read_text()


def test_a_damaged_object_is_named_and_said_to_be_damaged(root):
    write(root, 10)
    file = root.file(LEDGER, MONTH)
    whole = file.read_bytes()
    write_whole(file, whole[:4] + bytes(60) + whole[64:])
    with pytest.raises(PermanentFailure, match=r"2024-03\.parquet is damaged"):
        root.read(LEDGER, MONTH)
    write_whole(file, whole[:-1])
    with pytest.raises(PermanentFailure, match="is not a table that citeloom wrote"):
        read_provenance(file)


def test_a_footer_longer_than_the_end_that_is_fetched_is_read_whole(root):
    notes = {"words": random.Random(1).randbytes(100_000).hex()}
    write(root, 3, notes=notes)
    assert root.provenance(LEDGER, MONTH).notes == notes
    assert len(root.rows(LEDGER, MONTH)) == 3


def test_a_large_file_is_seen_only_when_its_last_part_is_there(root, store, tmp_path):
    content = random.Random(1).randbytes(17 << 20)
    (tmp_path / "large").write_bytes(content)
    seen_early = []

    def look(method, path, query):
        seen_early.extend(name for name in store.objects() if name.endswith("large"))

    store.before = look
    (root.path / "large").upload(tmp_path / "large")
    assert store.counted() == {"POST": 2, "PUT": 3}  # begun, three parts of 8 MB, completed
    assert seen_early == []
    assert store.objects()["root/large"].content == content
    assert store.unfinished() == 0


def test_looking_once_lists_a_folder_once_and_asks_for_nothing_that_is_not_there(root, store):
    months = [f"{year}-{month:02}" for year in (2023, 2024) for month in range(1, 13)]
    for month in months[::2]:
        write(root, 1, month=month)
    store.counted()
    for seen in (0, 12):  # the second time, footers of the same marks are known
        with read_cache():
            found = [root.provenance(LEDGER, month) is not None for month in months]
            assert root.months(LEDGER) == months[::2]
            assert not root.file(LEDGER, "2025-01").exists()
        assert found == [month in months[::2] for month in months]
        assert store.counted() == {"GET": 1 + 12 - seen}
    with read_cache():
        assert not root.file(LEDGER, months[1]).exists()
        write(root, 2, month=months[1])
        assert root.provenance(LEDGER, months[1]).rows == 2  # what it writes itself, it sees


def test_a_month_that_is_written_anew_has_another_digest(workspace):
    absent = digest_of(workspace, LEDGER, [MONTH])
    write(workspace.root, 1)
    one = digest_of(workspace, LEDGER, [MONTH])
    write(workspace.root, 2)
    assert len({absent, one, digest_of(workspace, LEDGER, [MONTH])}) == 3


def test_a_store_that_does_not_answer_is_named_and_the_first_error_is_the_one_told(
    workspace, store, monkeypatch
):
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")  # else botocore tries for some seconds
    write(workspace.root, 1)
    store.vanish()
    named = r"CITELOOM_DATA: s3://corpus/root/\S+ cannot be reached"
    for ask in (
        lambda: workspace.root.rows(LEDGER, MONTH),
        lambda: workspace.root.months(LEDGER),
        lambda: write(workspace.root, 2),
        lambda: check_data_root(workspace),
    ):
        with pytest.raises(TransientFailure, match=named):
            ask()
    told = record_failure(workspace, "papers", MONTH, PermanentFailure("a zip is broken"))
    assert told == "a zip is broken"
    assert list(store.objects("root/")) == [f"ledger/{MONTH}.parquet"]


def test_what_a_store_refuses_says_what_to_do(store, tmp_path, monkeypatch):
    elsewhere = make_workspace("s3://no-such-bucket/root", local=tmp_path)
    with pytest.raises(SettingError, match="s3://no-such-bucket/root/"):
        check_data_root(elsewhere)
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    for name in ("AWS_SHARED_CREDENTIALS_FILE", "AWS_CONFIG_FILE"):
        monkeypatch.setenv(name, str(tmp_path / "none"))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    store.forget()
    with pytest.raises(SettingError, match="Unable to locate credentials"):
        write_whole(StorePath(f"s3://{BUCKET}/root/x", tmp_path), b"x")
    with pytest.raises(SettingError, match="CITELOOM_DATA: nowhere://x/y cannot be reached"):
        StorePath("nowhere://x/y", tmp_path).exists()


class Plain(MemoryFileSystem):
    """A file system whose uploads can be seen while they go on."""

    protocol = "plain"
    store: ClassVar[dict[str, Any]] = {}
    pseudo_dirs: ClassVar[list[str]] = [""]
    put_as: ClassVar[list[str]] = []

    @classmethod
    def _strip_protocol(cls, path):
        return "/" + path.removeprefix("plain://").strip("/")

    def put_file(self, lpath, rpath, **options):
        self.put_as.append(rpath)
        super().put_file(lpath, rpath, **options)


def test_where_an_upload_can_be_seen_half_done_it_has_another_name_until_it_is_whole(tmp_path):
    fsspec.register_implementation("plain", Plain, clobber=True)
    root = DataRoot(StorePath("plain://host/root", tmp_path))
    orphan = root.file(LEDGER, MONTH).parent / f".{MONTH}.parquet.999.tmp"
    Plain().pipe_file(str(orphan), b"of a run that was killed")
    write(root, 3)
    assert len(root.rows(LEDGER, MONTH)) == 3
    assert all(name.rpartition("/")[2].startswith(f".{MONTH}.parquet.") for name in Plain.put_as)
    assert Plain.put_as
    assert list(Plain.store) == [f"/host/root/ledger/{MONTH}.parquet"]


@cases_beside("address", "told")
def test_an_address_that_cannot_do_is_refused_and_no_key_in_it_is_shown(address, told):
    with pytest.raises(SettingError, match=told) as refused:
        load_settings(data=address, _env_file=None)
    assert "password" not in str(refused.value).replace("name or password", "")


def test_what_needs_a_disk_lies_on_one(tmp_path, monkeypatch):
    def settings(**given):
        return load_settings(_env_file=None, **given)

    assert settings(data=tmp_path).local_root == tmp_path
    assert settings(data=f"file://{tmp_path}").data_root == tmp_path
    assert settings(data=tmp_path, local=tmp_path / "own").local_root == tmp_path / "own"
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    places = [settings(data=f"s3://bucket/{name}").local_root for name in ("one", "one/", "two")]
    assert places[0] == places[1] != places[2]
    assert {place.parent for place in places} == {tmp_path / "state" / "citeloom"}
    assert str(settings(data="s3://bucket/one/").data_root) == "s3://bucket/one"
