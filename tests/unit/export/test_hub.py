"""Uploads to a hub on loopback: one commit, private, nothing of others replaced, no token shown.

A real hub was not tried, nor Xet, by which it takes Parquet files.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from huggingface_hub import HfApi

from pipeline.errors import PermanentFailure, SettingError, TransientFailure
from pipeline.ops.export.hub import check_repository, repository_of, upload
from tests.unit.export.corpus import WORD, make_workspace
from tests.unit.export.hub import TOKEN, Hub, serving

NAME = "owner/name"


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_DISABLE_XET", True)
    with serving(Hub()) as served:
        yield served


@pytest.fixture
def api(hub: Hub) -> HfApi:
    return HfApi(endpoint=hub.url, token=TOKEN)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, content in {
        "README.md": "---\nlicense: other\n---\n", "citeloom-export.json": "{}", "passages/2024-03.parquet": "PAR1",
    }.items():  # fmt: skip
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(content)
    return tmp_path


def test_a_new_repository_is_private_and_holds_the_folder(hub: Hub, api: HfApi, folder: Path) -> None:
    assert upload(folder, NAME, api) == f"{hub.url}/datasets/owner/name/commit/{hub.head}"
    assert hub.private
    assert hub.commits == 1
    assert hub.files == {
        ".gitattributes": b"", "README.md": b"---\nlicense: other\n---\n", "citeloom-export.json": b"{}",
        "passages/2024-03.parquet": b"PAR1",
    }  # fmt: skip


def test_what_has_not_changed_makes_no_commit(hub: Hub, api: HfApi, folder: Path) -> None:
    upload(folder, NAME, api)
    upload(folder, NAME, api)
    assert hub.commits == 1


def test_one_commit_replaces_an_earlier_export(hub: Hub, api: HfApi, folder: Path) -> None:
    hub.files = {
        "citeloom-export.json": b"old", "passages/2024-03.parquet": b"old", "passages/2023-01.parquet": b"gone",
        "notes/2023-01.parquet": b"of another",
    }  # fmt: skip
    before = hub.head
    upload(folder, NAME, api)
    assert hub.commits == 1
    assert hub.parents == [before]
    assert sorted(hub.files) == [
        "README.md", "citeloom-export.json", "notes/2023-01.parquet", "passages/2024-03.parquet",
    ]  # fmt: skip
    assert hub.files["passages/2024-03.parquet"] == b"PAR1"


def test_a_repository_of_other_things_is_left_as_it_is(hub: Hub, api: HfApi, folder: Path) -> None:
    hub.files = {".gitattributes": b"", "train.csv": b"mine"}
    for act in (lambda: check_repository(NAME, api), lambda: upload(folder, NAME, api)):
        with pytest.raises(SettingError, match=r"train\.csv"):
            act()
    assert hub.files == {".gitattributes": b"", "train.csv": b"mine"}
    assert hub.commits == 0


def test_a_token_that_may_not_is_told_without_showing_it(hub: Hub, folder: Path) -> None:
    wrong = "hf_wrong0token"
    with pytest.raises(PermanentFailure, match="HF_TOKEN") as raised:
        upload(folder, NAME, HfApi(endpoint=hub.url, token=wrong))
    assert wrong not in str(raised.value)
    assert hub.files is None


def test_a_commit_that_somebody_else_made_meanwhile_is_worth_another_try(hub: Hub, api: HfApi, folder: Path) -> None:
    hub.files, hub.refuse = {}, (412, "A commit has happened since. Please refresh and try again.")
    with pytest.raises(TransientFailure, match="A commit has happened since"):
        upload(folder, NAME, api)
    assert hub.files == {}


def test_a_hub_that_is_down_is_told(hub: Hub, folder: Path) -> None:
    with pytest.raises(TransientFailure, match="cannot be reached"):
        upload(folder, NAME, HfApi(endpoint="http://127.0.0.1:9", token=TOKEN))


def test_an_address_names_one_data_set() -> None:
    assert repository_of("hf://datasets/owner/name") == repository_of("hf://datasets/owner/name/") == NAME
    for wrong in ("hf://owner/name", "hf://datasets/name", "hf://datasets/../name", "hf://datasets/a/b/c", "s3://a/b"):
        with pytest.raises(SettingError, match="hf://datasets/OWNER/NAME"):
            repository_of(wrong)


def test_the_command_uploads_ids_and_numbers_alone(hub: Hub, tmp_path: Path) -> None:
    """As a user calls it, who has the hub's address and a token in the environment."""
    workspace = make_workspace(tmp_path / "corpus")
    settings = {
        "DATA": workspace.root.path,
        "DUMP_DIR": tmp_path,
        "METADATA_SNAPSHOT": tmp_path / "corpus/snapshot.jsonl",
    }
    done = subprocess.run(
        [str(Path(sys.executable).with_name("citeloom")), "export", "--to", f"hf://datasets/{NAME}"],
        env=os.environ | {
            **{f"CITELOOM_{name}": str(value) for name, value in settings.items()},
            "HF_ENDPOINT": hub.url, "HF_TOKEN": TOKEN, "HF_HOME": str(tmp_path / "home"), "NO_COLOR": "1",
            "HF_HUB_DISABLE_XET": "1",
        },
        cwd=tmp_path, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip().endswith(f"/commit/{hub.head}")
    assert "bars republishing" in " ".join(done.stderr.split())
    assert TOKEN not in done.stdout + done.stderr
    assert hub.files is not None
    assert {name.split("/")[0] for name in hub.files} == {
        ".gitattributes", "README.md", "citeloom-export.json", "ledger", "metadata", "papers", "passages", "references",
    }  # fmt: skip
    assert 'load_dataset("owner/name", "passages"' in hub.files["README.md"].decode()
    assert not any(WORD.encode() in content for content in hub.files.values())
    assert not any((workspace.root.path / "cache" / "export").iterdir())
