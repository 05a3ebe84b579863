"""An export into a folder: what is in it, what is not, and that it is whole or absent."""

from __future__ import annotations

import json
import os
import shutil
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
import yaml
from typer.testing import CliRunner

from pipeline import tables
from pipeline.cli.export import DEFAULT_TABLES
from pipeline.engine.stage import Workspace
from pipeline.errors import MissingInput, PermanentFailure, SettingError, TransientFailure
from pipeline.ops.export.card import Contents
from pipeline.ops.export.export import ExportRequest, export, folder_lock
from pipeline.ops.export.rights import Texts
from pipeline.storage.provenance import read_provenance
from pipeline.storage.writing import MonthWriter
from pipeline.tables import ROWS_PER_GROUP
from tests.small_disk import small_disk_in
from tests.unit.export.corpus import BY, MONTHS, OPEN, PAPERS, WORD, fill, make_workspace, write

pytestmark = pytest.mark.slow


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    return make_workspace(tmp_path / "corpus")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "out" / "export"


def run(
    workspace: Workspace,
    to: Path | str,
    texts: Texts = Texts.NONE,
    names: str = DEFAULT_TABLES,
    months: str = "all",
    **more: Any,
) -> Contents:
    return export(workspace, ExportRequest(str(to), months, names, texts), **more)


def content(folder: Path) -> dict[str, bytes]:
    files = sorted(file for file in folder.rglob("*") if file.is_file())
    return {str(file.relative_to(folder)): file.read_bytes() for file in files}


def rows(folder: Path, table: str, month: str = "2024-03") -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = pq.read_table(folder / table / f"{month}.parquet").to_pylist()
    return found


def words_in(folder: Path) -> list[str]:
    """Files in which the word of the pages stands, Parquet files read as rows."""
    found = []
    for file in sorted(folder.rglob("*")):
        told = str(pq.read_table(file).to_pylist()) if file.suffix == ".parquet" else ""
        if file.is_file() and (WORD in told or WORD.encode() in file.read_bytes()):
            found.append(str(file.relative_to(folder)))
    return found


def front(folder: Path) -> dict[str, Any]:
    head: dict[str, Any] = yaml.safe_load((folder / "README.md").read_text().split("---\n")[1])
    return head


def test_it_loads_with_datasets(
    workspace: Workspace, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setenv("HF_HOME", str(tmp_path / "home"))
    import datasets

    run(workspace, folder, Texts.ALL, "metadata,papers,passages,embeddings,ledger")
    names = datasets.get_dataset_config_names(str(folder))
    assert names == ["metadata", "papers", "passages", "embeddings", "ledger"]
    for name in names:
        table = tables.TABLES[name]
        loaded = datasets.load_dataset(
            str(folder), name, split="train", cache_dir=str(tmp_path / "cache")
        )
        files = [workspace.root.file(table, month) for month in MONTHS]
        if name == "ledger":
            files = [workspace.root.ledger_file("papers", month) for month in MONTHS]
        expected = [row for file in files for row in pq.read_table(file).to_pylist()]
        found = [{column: row[column] for column in table.schema.names} for row in loaded]
        if name == "papers":  # a map is a list of pairs there
            pairs = [{"key": "paragraph", "value": 6}]
            assert [row.pop("kept") for row in found] == [pairs] * len(found)
            assert [row.pop("losses") for row in found] == [[]] * len(found)
            expected = [
                {key: row[key] for key in row if key not in ("kept", "losses")} for row in expected
            ]
        assert found == expected


def test_without_texts_no_word_of_a_page_is_in_it(workspace: Workspace, folder: Path) -> None:
    run(workspace, folder, Texts.NONE, "all")
    assert words_in(folder) == []
    assert rows(folder, "passages")[0] == {
        "passage_id": "2403.00001-0",
        "arxiv_id": "2403.00001",
        "ordinal": 0,
        "anchor": "S1.p0",
        "kind": "paragraph",
        "words": 1,
        "cited_keys": ["bib1"],
        "text_sha256": "0" * 64,
    }
    assert rows(folder, "metadata")[0]["title"] == "Known"
    assert set(rows(folder, "embeddings")[0]) == {
        "passage_id",
        "arxiv_id",
        "text_sha256",
        "model",
        "truncated",
    }


def test_open_texts_are_those_of_papers_whose_licence_is_known_and_open(
    workspace: Workspace, folder: Path
) -> None:
    made = run(workspace, folder, Texts.OPEN, "all")
    for table in ("papers", "passages", "references", "embeddings"):
        for month in MONTHS:
            for row in rows(folder, table, month):
                said = str({key: value for key, value in row.items() if key != "license"})
                has_words = WORD in said if table != "embeddings" else row["dense"] is not None
                assert has_words == (row["arxiv_id"] in OPEN), row
                assert row["license"] == (BY if row["arxiv_id"] in OPEN else row["license"])
    assert len(rows(folder, "passages")) == 15
    # Words of questions and of the ledger are nobody's whose licence is known.
    assert "question" not in rows(folder, "questions")[0]
    assert "detail" not in rows(folder, "ledger")[0]
    assert "authors" not in rows(folder, "papers")[0]
    # Of the four papers that are not open, one has another licence; what is known of the rest may
    # be outdated.
    assert made.licences == {"": 3, BY: 2, PAPERS["2403.00002"][0]: 1}
    card = (folder / "README.md").read_text()
    assert "Words are here of 2 papers, and taken out of 4." in card
    assert "settle with them" in " ".join(card.split())


def test_without_a_snapshot_no_paper_is_open(tmp_path: Path, folder: Path) -> None:
    workspace = make_workspace(tmp_path / "corpus", metadata_snapshot=None)
    run(workspace, folder, Texts.OPEN, "passages")
    assert words_in(folder) == []


def test_all_texts_are_marked_as_not_to_be_published(workspace: Workspace, folder: Path) -> None:
    made = run(workspace, folder, Texts.ALL, "all")
    assert {Path(file).parts[0] for file in words_in(folder)} == {
        "papers",
        "passages",
        "references",
        "questions",
        "ledger",
    }
    assert rows(folder, "passages")[0]["license"] == BY
    assert "DO NOT PUBLISH" in (folder / "README.md").read_text()
    assert any("DO NOT PUBLISH" in paragraph for paragraph in made.terms)


def test_mlcroissant_reads_the_rows_that_the_description_names(
    workspace: Workspace, folder: Path
) -> None:
    import mlcroissant as mlc

    run(workspace, folder, Texts.OPEN, "metadata,passages,papers,embeddings,ledger")
    dataset = mlc.Dataset(jsonld=str(folder / "croissant.json"))
    assert not dataset.metadata.issues.errors
    names = [record_set.id for record_set in dataset.metadata.record_sets]
    assert names == ["metadata", "papers", "passages", "embeddings", "ledger"]
    for name in names:
        expected = [row for month in MONTHS for row in rows(folder, name, month)]
        described = [field.id.partition("/")[2] for field in _record_set(dataset, name).fields]
        found = [
            {column: _plain(record[f"{name}/{column}"]) for column in described}
            for record in dataset.records(name)
        ]
        assert found == [{column: row[column] for column in described} for row in expected]
        nested = set(expected[0]) - set(described)
        assert nested == {
            "papers": {"sections", "blocks", "bibliography", "kept", "losses"},
            "embeddings": {"colbert"},
        }.get(name, set())
        assert all(column in _record_set(dataset, name).description for column in nested)


def _record_set(dataset: Any, name: str) -> Any:
    return next(record_set for record_set in dataset.metadata.record_sets if record_set.id == name)


def _plain(value: Any) -> Any:
    """A value of mlcroissant, whose texts are bytes."""
    if isinstance(value, list):
        return [_plain(part) for part in value]
    return value.decode() if isinstance(value, bytes) else value


RESPONSIBLE_AI = (
    "dataCollection",
    "dataCollectionMissingData",
    "dataLimitations",
    "dataBiases",
    "personalSensitiveInformation",
    "dataUseCases",
    "dataSocialImpact",
    "dataReleaseMaintenancePlan",
)


def test_the_description_has_the_responsible_ai_fields_and_the_licences(
    workspace: Workspace, folder: Path
) -> None:
    told = {}
    for texts in Texts:
        run(workspace, folder, texts, "all")
        told[texts] = json.loads((folder / "croissant.json").read_text())
        assert all(told[texts][f"rai:{name}"] for name in RESPONSIBLE_AI)
    assert "papers, withdrawn: 4" in told[Texts.NONE]["rai:dataCollectionMissingData"]
    cc0 = "https://creativecommons.org/publicdomain/zero/1.0/"
    assert told[Texts.NONE]["license"] == [cc0, "see README.md"]
    assert told[Texts.OPEN]["license"] == [cc0, BY, "see README.md"]
    assert PAPERS["2403.00002"][0] in told[Texts.ALL]["license"]
    assert "DO NOT PUBLISH" in told[Texts.ALL]["description"]
    assert "E-mail addresses" in str(told[Texts.ALL]["rai:personalSensitiveInformation"])
    assert "E-mail addresses" not in str(told[Texts.OPEN]["rai:personalSensitiveInformation"])


def test_without_mlcroissant_nothing_is_written_and_the_extra_is_named(
    workspace: Workspace, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "mlcroissant", None)
    with pytest.raises(SettingError, match=r"\.\[export\]"):
        run(workspace, folder)
    assert not folder.exists()


def test_the_card_tells_counts_losses_and_settings(workspace: Workspace, folder: Path) -> None:
    made = run(workspace, folder)
    card = (folder / "README.md").read_text()
    assert "| 2024-03 | 5 | 5 | 15 | 5 | 1 |" in card
    assert "| all | 6 | 6 | 18 | 6 | 2 |" in card
    assert "| papers | `withdrawn` | 4 |" in card
    assert "| CITELOOM_PARSER | `fast` |" in card
    assert "`bge-m3`" in card
    assert "/home/somebody" not in card
    assert "192.0.2.1" not in card
    assert made.left_out == {("papers", "withdrawn"): 4, ("papers", "not_cs"): 2}
    assert front(folder)["license"] == "other"
    assert front(folder)["size_categories"] == ["n<1K"]
    listed = json.loads((folder / "citeloom-export.json").read_text())["files"]
    assert {name: entry["rows"] for name, entry in listed.items()} == {
        file.path: file.rows for file in made.files
    }


def test_a_second_export_gives_the_same_bytes(workspace: Workspace, folder: Path) -> None:
    run(workspace, folder, Texts.OPEN, "all")
    first = content(folder)
    run(workspace, folder, Texts.OPEN, "all")
    assert content(folder) == first
    run(workspace, folder.with_name("other"), Texts.OPEN, "all")
    assert content(folder.with_name("other")) == first
    assert sorted(file.name for file in folder.parent.iterdir()) == ["export", "other"]


def test_an_export_takes_the_place_of_an_earlier_one(workspace: Workspace, folder: Path) -> None:
    run(workspace, folder, Texts.ALL, "all")
    run(workspace, folder, names="metadata", months="2024-04")
    assert sorted(content(folder)) == [
        "README.md",
        "citeloom-export.json",
        "croissant.json",
        "metadata/2024-04.parquet",
    ]


@pytest.mark.parametrize("place", ["notes.txt", "deep/notes.txt", ".git/config"])
def test_a_folder_with_other_things_is_left_as_it_is(
    workspace: Workspace, folder: Path, place: str
) -> None:
    run(workspace, folder)
    (folder / place).parent.mkdir(parents=True, exist_ok=True)
    (folder / place).write_text("mine")
    with pytest.raises(SettingError, match=place):
        run(workspace, folder)
    shutil.rmtree(folder / "metadata")
    (folder / "citeloom-export.json").unlink()
    before = content(folder)
    with pytest.raises(SettingError, match="not part of an export"):
        run(workspace, folder)
    assert content(folder) == before


def test_a_file_the_data_root_and_another_store_are_refused(
    workspace: Workspace, folder: Path, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("")
    for place in (
        tmp_path / "file",
        workspace.root.path,
        workspace.root.path / "inside",
        "s3://bucket/x",
        "hf://a/b",
    ):
        with pytest.raises(SettingError):
            run(workspace, place)
    with pytest.raises(SettingError, match="nothing_such"):
        run(workspace, folder, names="passages,nothing_such")
    with pytest.raises(SettingError, match="no month"):
        run(workspace, folder, months="2020-01")
    assert not folder.exists()


def test_what_cannot_be_read_leaves_the_earlier_export(workspace: Workspace, folder: Path) -> None:
    run(workspace, folder)
    before = content(folder)
    file = workspace.root.file(tables.PASSAGES, "2024-04")
    damaged = bytearray(file.read_bytes())
    damaged[4:200] = bytes(196)
    file.write_bytes(damaged)
    with pytest.raises(PermanentFailure, match=r"passages/2024-04\.parquet is damaged"):
        run(workspace, folder)
    assert content(folder) == before
    assert [entry.name for entry in folder.parent.iterdir()] == ["export"]


def test_a_month_that_changes_while_it_is_exported_is_told(
    workspace: Workspace, folder: Path
) -> None:
    def rewrite(step: str) -> None:
        if step == "passages of 2024-03":
            write(
                workspace.root,
                tables.PASSAGES,
                "2024-03",
                [{"passage_id": "new", "arxiv_id": "2403.00001"}],
            )

    with pytest.raises(TransientFailure, match="passages of 2024-03 changed"):
        run(workspace, folder, progress=rewrite)
    assert not folder.exists()


def test_an_export_that_was_killed_between_its_two_moves_is_found_again(
    workspace: Workspace, folder: Path
) -> None:
    run(workspace, folder)
    before = content(folder)
    os.replace(folder, folder.with_name(".export.citeloom-old"))
    folder.with_name(".export.citeloom-new").mkdir()
    file = workspace.root.file(tables.PASSAGES, "2024-04")
    file.write_bytes(file.read_bytes()[:-100])
    with pytest.raises(PermanentFailure):
        run(workspace, folder)
    assert content(folder) == before
    fill(workspace.root, "2024-04")
    run(workspace, folder)
    assert content(folder) == before
    assert [entry.name for entry in folder.parent.iterdir()] == ["export"]


def test_two_exports_to_one_folder_do_not_meet(workspace: Workspace, folder: Path) -> None:
    with (
        folder_lock(folder, workspace.cache("locks")),
        pytest.raises(TransientFailure, match="another export"),
    ):
        run(workspace, folder)
    assert not folder.exists()


def test_a_full_disk_is_told_and_leaves_the_earlier_export(
    workspace: Workspace, tmp_path: Path
) -> None:
    with small_disk_in(tmp_path, 1) as disk:
        folder = disk / "export"
        run(workspace, folder)
        before = content(folder)
        (disk / "ballast").write_bytes(
            bytes(os.statvfs(disk).f_bavail * os.statvfs(disk).f_bsize - 20_000)
        )
        with pytest.raises(PermanentFailure, match="make room"):
            run(workspace, folder, Texts.ALL, "all")
        assert content(folder) == before
        assert sorted(entry.name for entry in disk.iterdir()) == ["ballast", "export"]


def test_tables_of_different_makings_are_told_of(workspace: Workspace, folder: Path) -> None:
    file = workspace.root.file(tables.PASSAGES, "2024-03")
    made = read_provenance(file)
    assert made is not None
    with MonthWriter(tables.PASSAGES, file) as writer:
        writer.add({"passage_id": "p", "arxiv_id": "2403.00001"})
        writer.commit(
            replace(made, inputs={"papers": "rows of before", "metadata": "no digest of rows"})
        )
    exported = run(workspace, folder)
    assert [note.split(":")[0] for note in exported.notes] == [
        "passages of 2024-03 was made of other rows of papers than are there now"
    ]
    assert "other rows of papers" in (folder / "README.md").read_text()


def test_nothing_to_export_is_said(workspace: Workspace, folder: Path) -> None:
    with pytest.raises(MissingInput, match="answers"):
        run(workspace, folder, names="answers")
    run(workspace, folder, names="answers,metadata")  # months without rows make no file
    assert {config["config_name"] for config in front(folder)["configs"]} == {"metadata"}


def test_the_command_answers_in_json_and_refuses_with_its_exit_code(
    workspace: Workspace, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pipeline.cli.app import app

    monkeypatch.chdir(workspace.settings.data_root)  # where there is no .env
    for name in ("data", "dump_dir", "metadata_snapshot"):
        monkeypatch.setenv(f"CITELOOM_{name.upper()}", str(getattr(workspace.settings, name)))
    done = CliRunner().invoke(app, ["export", "--to", str(folder), "--texts", "open", "--json"])
    assert done.exit_code == 0, done.output
    told = json.loads(done.stdout)
    assert {file["path"]: file["rows"] for file in told["files"]}["passages/2024-03.parquet"] == 15
    assert told["columns_left_out"]["papers"] == ["authors"]
    assert told["licences"][BY] == 2
    assert any("SIGMathLing" in paragraph for paragraph in told["terms"])
    (folder / "mine.txt").write_text("")
    refused = CliRunner().invoke(app, ["export", "--to", str(folder), "--json"])
    assert refused.exit_code == 2
    assert json.loads(refused.stdout)["error"] == "SettingError"


def test_row_groups_stay_those_of_the_table(workspace: Workspace, folder: Path) -> None:
    many = [
        {"passage_id": str(number), "arxiv_id": "2403.00001"}
        for number in range(ROWS_PER_GROUP + 1)
    ]
    write(workspace.root, tables.PASSAGES, "2024-03", many)
    run(workspace, folder)
    assert pq.read_metadata(folder / "passages" / "2024-03.parquet").num_row_groups == 2
