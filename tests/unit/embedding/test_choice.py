"""Which embedder the settings name, and what is said where it is not there. No model is loaded here."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import httpx
import pytest
from huggingface_hub.errors import LocalEntryNotFoundError

from pipeline.embedding.choice import make_embedder, model_name
from pipeline.embedding.hub import find_folder
from pipeline.embedding.stages import EMBEDDINGS
from pipeline.engine.stage import Workspace
from pipeline.errors import SettingError
from pipeline.settings import Settings, load_settings


def _settings(**overrides: object) -> Settings:
    return load_settings(_env_file=None, **overrides)


@pytest.mark.parametrize("path", ["/nowhere/bge-m3", "./bge-m3", "a/b/c", "bge"])
def test_a_folder_that_is_not_there_is_named(path: str) -> None:
    with pytest.raises(SettingError, match=f"CITELOOM_EMBEDDER_PATH: there is no folder {path}"):
        make_embedder(_settings(embedder="bge-m3", embedder_path=path))


def test_a_hub_whose_failure_says_nothing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def silent(name: str, *, local_files_only: bool = False, **_: object) -> str:
        raise LocalEntryNotFoundError("not there") if local_files_only else httpx.ReadTimeout("")

    monkeypatch.setattr("huggingface_hub.snapshot_download", silent)
    with pytest.raises(SettingError, match=r"nobody/model is neither a folder nor .*ReadTimeout"):
        find_folder("nobody/model", "CITELOOM_RERANKER", "leave it empty")


@pytest.mark.parametrize(("path", "revision"), [("nobody/model@5617a9f", "5617a9f"), ("nobody/model", None)])
def test_a_revision_of_the_hub_may_be_pinned(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, path: str, revision: str | None
) -> None:
    asked = []

    def there(name: str, **wanted: object) -> str:
        asked.append((name, wanted["revision"]))
        return str(tmp_path)

    monkeypatch.setattr("huggingface_hub.snapshot_download", there)
    assert find_folder(path, "CITELOOM_RERANKER", "leave it empty") == tmp_path
    assert asked == [("nobody/model", revision)]


def test_a_hub_that_cannot_be_reached_is_named(tmp_path: Path) -> None:
    # In a process of its own, since huggingface_hub reads its environment when it is imported.
    code = (
        "from pipeline.embedding.choice import make_embedder\n"
        "from pipeline.settings import load_settings\n"
        "make_embedder(load_settings(_env_file=None, embedder='bge-m3', embedder_path='nobody/bge-m3'))"
    )
    environment = os.environ | {"HF_HUB_OFFLINE": "1", "HF_HUB_CACHE": str(tmp_path)}
    command = [sys.executable, "-c", code]
    ended = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert "pipeline.errors.SettingError: CITELOOM_EMBEDDER_PATH: nobody/bge-m3 is neither" in ended.stderr
    assert "or CITELOOM_EMBEDDER to minilm" in ended.stderr


def test_a_hub_name_names_the_model_without_a_network() -> None:
    assert model_name(_settings(embedder="bge-m3")) == "BAAI/bge-m3"


def test_settings_of_bge_m3_do_not_touch_what_minilm_made() -> None:
    plain, other = (
        EMBEDDINGS.inputs(Workspace(settings), "2024-03")
        for settings in (_settings(), _settings(embedder_path="/elsewhere", embedder_colbert=True))
    )
    assert plain == other
    with_colbert = EMBEDDINGS.inputs(Workspace(_settings(embedder="bge-m3", embedder_colbert=True)), "2024-03")
    assert with_colbert != EMBEDDINGS.inputs(Workspace(_settings(embedder="bge-m3")), "2024-03")
