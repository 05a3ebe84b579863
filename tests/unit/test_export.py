"""An export: which columns may be in it, what is, and that it is whole or absent."""

import json
import os
import re
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipeline.errors import MissingInput, PermanentFailure, SettingError
from pipeline.ops.export import ExportRequest, export, is_open, publications
from pipeline.tables import LEDGER, METADATA, PASSAGES, TABLES
from tests.cases import cases
from tests.month_tables import write_table
from tests.small_disk import small_disk_in
from tests.workspaces import make_workspace

pytestmark = pytest.mark.slow

BY = "http://creativecommons.org/licenses/by/4.0/"
ARXIV = "http://arxiv.org/licenses/nonexclusive-distrib/1.0/"
PAPERS = {
    # id: (licence in the snapshot, source of the metadata, status)
    "2403.00001": (BY, "snapshot", "present"),
    "2403.00002": (ARXIV, "snapshot", "present"),
    "2403.00003": (BY, "oai", "present"),
    "2403.00004": (BY, "snapshot", "withdrawn"),
    "2403.00005": (None, "snapshot", "present"),
    "2404.00001": (BY, "snapshot", "present"),
}
OPEN = ("2403.00001", "2404.00001")
MONTHS = ("2024-03", "2024-04")
# In every column that is not published, and nowhere else.
WORD, NUMBER = "quokka", 0.5


def test_each_column_of_each_table_is_published_or_withheld():
    lists = {
        table: sorted(columns.published + columns.texts + columns.withheld)
        for table, columns in publications().items()
    }
    assert lists == {name: sorted(table.schema.names) for name, table in TABLES.items()}
    assert all(
        "arxiv_id" in columns.published for columns in publications().values() if columns.texts
    )


@cases("unit/cases.toml", "withheld", ("table", "names"))
def test_vectors_texts_of_models_names_and_addresses_are_withheld(table, names):
    """The lists that the test above would also accept elsewhere."""
    assert set(publications()[table].withheld) == set(names)


@pytest.fixture
def workspace(tmp_path):
    """A data root with every table in two months, and the snapshot that its metadata is from."""
    snapshot = tmp_path / "snapshot.jsonl"
    lines = [
        {"id": name, "title": "Known", "categories": "cs.CL", "license": licence}
        for name, (licence, *_) in PAPERS.items()
    ]
    snapshot.write_text("".join(json.dumps(line) + "\n" for line in lines))
    workspace = make_workspace(tmp_path / "data", metadata_snapshot=snapshot)
    for month in MONTHS:
        for table in TABLES.values():
            is_ledger = table == LEDGER
            file = workspace.root.ledger_file("papers", month) if is_ledger else None
            write_table(workspace.root, table, month, rows_of(table, month), file=file)
    return workspace


def rows_of(table, month):
    """A row for each paper of a month, whose columns that are not published hold WORD or NUMBER."""
    columns = publications()[table.name]
    hidden = {
        name: hidden_value(table.schema.field(name).type)
        for name in columns.texts + columns.withheld
    }
    rows = []
    for name, (_, source, status) in PAPERS.items():
        if name.startswith(month[2:].replace("-", "")):
            row = {"arxiv_id": name}
            if table == METADATA:
                row |= {"title": "Known", "source": source, "status": status}
            rows.append({key: row[key] for key in row if key in table.schema.names} | hidden)
    return rows


def hidden_value(kind):
    if pa.types.is_list(kind):
        return [hidden_value(kind.value_type)]
    if pa.types.is_struct(kind):
        return {field.name: hidden_value(field.type) for field in kind}
    if pa.types.is_floating(kind):
        return NUMBER
    return WORD if pa.types.is_string(kind) else None


def run(workspace, to, tables="all", months="all", open_texts=False, progress=lambda path: None):
    return export(workspace, ExportRequest(str(to), months, tables, open_texts), progress)


def rows_in(folder):
    files = folder.rglob("*.parquet")
    return [row for file in files for row in pq.ParquetFile(file).read().to_pylist()]


def test_what_is_not_published_is_in_no_file(workspace, tmp_path):
    of_earlier_version = workspace.root.ledger_file("retrieval_queries", MONTHS[0])
    write_table(workspace.root, LEDGER, MONTHS[0], [{"subject": WORD}], file=of_earlier_version)
    run(workspace, tmp_path / "out")
    readme = (tmp_path / "out" / "README.md").read_text()
    assert "2024-03, 2024-04" in readme
    assert not {"sample", "invented"} & set(readme.lower().split()), "it may be a real dump"
    rows = rows_in(tmp_path / "out")
    assert len(rows) == len(TABLES) * len(PAPERS)
    assert WORD not in str(rows)
    assert str(NUMBER) not in str(rows)
    for file in (tmp_path / "out").rglob("*.*"):
        assert WORD.encode() not in file.read_bytes(), file
    assert [row["title"] for row in rows if "title" in row] == ["Known"] * len(PAPERS)


def test_open_texts_are_those_of_papers_whose_licence_is_known_and_open(workspace, tmp_path):
    passages = rows_of(PASSAGES, "2024-03")
    with_addresses = {**passages[0], "kind": "front_matter"}
    write_table(workspace.root, PASSAGES, "2024-03", [*passages, with_addresses])
    run(workspace, tmp_path / "out", open_texts=True)
    for table, columns in publications().items():
        for row in rows_in(tmp_path / "out" / table):
            has_words = bool(columns.texts) and row["arxiv_id"] in OPEN
            has_words = has_words and row.get("kind") != "front_matter"
            assert (WORD in str(row)) == has_words, row
            assert row.get("license") == (BY if has_words else None)
            assert not set(row) & set(columns.withheld)
    assert "names the paper's licence" in (tmp_path / "out" / "README.md").read_text()


@cases("unit/cases.toml", "a_licence_is_open_if_anyone_may_redistribute", ["licence", "expected"])
def test_a_licence_is_open_if_anyone_may_redistribute_changed_text(licence, expected):
    assert is_open(licence) == expected


def test_places_tables_and_months_that_cannot_be_exported_are_refused(workspace, tmp_path):
    file, root = tmp_path / "filled" / "mine.txt", workspace.root.path
    file.parent.mkdir()
    file.write_text("mine")
    for place in (file, file.parent, root, root / "inside", "s3://bucket/x"):
        with pytest.raises(SettingError, match="--to"):
            run(workspace, place)
    with pytest.raises(SettingError, match="nothing_such"):
        run(workspace, tmp_path / "out", tables="passages,nothing_such")
    with pytest.raises(SettingError, match="no month"):
        run(workspace, tmp_path / "out", months="2020-01")
    for month in MONTHS:
        workspace.root.file(PASSAGES, month).unlink()
    with pytest.raises(MissingInput, match="no passages"):
        run(workspace, tmp_path / "out", tables="passages")
    assert file.read_text() == "mine"
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("damaged", ["passages/2024-04", "ledger/papers/2024-04"])
def test_a_damaged_table_is_named_and_nothing_is_left(workspace, tmp_path, damaged):
    file = Path(f"{workspace.root.path}/{damaged}.parquet")
    file.write_bytes(file.read_bytes().replace(file.read_bytes()[4:200], bytes(196)))
    with pytest.raises(PermanentFailure, match=rf"{damaged}\.parquet is damaged"):
        run(workspace, tmp_path / "new" / "out")
    assert list((tmp_path / "new").iterdir()) == []


def test_of_two_exports_to_one_folder_the_first_one_stays(workspace, tmp_path):
    def export_too(path):
        if not (tmp_path / "out").exists():
            run(workspace, tmp_path / "out", "metadata")

    with pytest.raises(PermanentFailure, match="name another folder"):
        run(workspace, tmp_path / "out", "passages", progress=export_too)
    assert sorted(file.name for file in (tmp_path / "out").iterdir()) == ["README.md", "metadata"]


def test_a_full_disk_is_named_and_nothing_is_left(workspace, tmp_path):
    with small_disk_in(tmp_path, 1) as disk:
        ballast = os.statvfs(disk).f_bavail * os.statvfs(disk).f_bsize - 20_000
        (disk / "ballast").write_bytes(bytes(ballast))
        with pytest.raises(PermanentFailure, match="make room"):
            run(workspace, disk / "export")
        assert [entry.name for entry in disk.iterdir()] == ["ballast"]


def test_the_command_answers_in_json_and_refuses_with_its_exit_code(
    workspace, tmp_path, monkeypatch
):
    from tests.command import invoke

    monkeypatch.chdir(workspace.settings.data_root)  # where there is no .env
    for name in ("data", "metadata_snapshot"):
        monkeypatch.setenv(f"CITELOOM_{name.upper()}", str(getattr(workspace.settings, name)))
    call = ["export", "--to", str(tmp_path / "out"), "--texts", "open", "--json"]
    document = json.loads(invoke(*call).stdout)
    rows = {file["path"]: file["rows"] for file in document["files"]}
    assert (rows["passages/2024-03.parquet"], rows["ledger/papers/2024-04.parquet"]) == (5, 1)
    assert document["columns_left_out"]["papers"] == ["authors"]
    printed = invoke("export", "--to", str(tmp_path / "printed"), "--tables", "papers").stdout
    assert re.search(r"│ papers +│ .*authors", printed)
    refused = invoke(*call)
    assert refused.exit_code == 2
    assert json.loads(refused.stdout)["error"] == "SettingError"
