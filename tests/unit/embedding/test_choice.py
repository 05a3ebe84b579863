"""Which embedder the settings name, and what is said where it is not there. No model is loaded
here.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import httpx2
import pytest
from huggingface_hub.errors import LocalEntryNotFoundError

from pipeline.embedding.choice import make_embedder, model_name
from pipeline.embedding.model_files import find_folder
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
        raise LocalEntryNotFoundError("not there") if local_files_only else httpx2.ReadTimeout("")

    monkeypatch.setattr("huggingface_hub.snapshot_download", silent)
    with pytest.raises(SettingError, match=r"nobody/model is neither a folder nor .*ReadTimeout"):
        find_folder("nobody/model", "CITELOOM_RERANKER", "leave it empty")


@pytest.mark.parametrize(
    ("path", "revision"), [("nobody/model@5617a9f", "5617a9f"), ("nobody/model", None)]
)
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


def _run(code: str, **environment: str) -> str:
    """The errors of a process of its own, since huggingface_hub reads its environment when it is
    imported.
    """
    command = [sys.executable, "-c", code]
    ended = subprocess.run(
        command, env=os.environ | environment, capture_output=True, text=True, check=False
    )
    return ended.stderr


class BrokenHub(BaseHTTPRequestHandler):
    """A hub that describes a model with one file, and breaks off while it sends that file."""

    def do_HEAD(self) -> None:
        self._answer(b"", length=1000)

    def do_GET(self) -> None:
        file = {"type": "file", "path": "model.bin", "size": 1000, "oid": "1"}
        model = {"id": "nobody/bge-m3", "sha": "0" * 40, "siblings": [{"rfilename": "model.bin"}]}
        if self.path.startswith("/api/models/"):
            content = json.dumps([file] if "/tree/" in self.path else model).encode()
            self._answer(content, length=len(content))
        else:
            self._answer(b"half of it", length=1000)

    def _answer(self, content: bytes, length: int) -> None:
        self.send_response(200)
        self.send_header("Content-Length", str(length))
        self.send_header("Content-Type", "application/json")
        self.send_header("X-Repo-Commit", "0" * 40)
        self.send_header("ETag", '"1"')
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        """Nothing, so that pytest's output stays readable."""


def test_a_hub_that_cannot_be_reached_or_breaks_off_is_named(tmp_path: Path) -> None:
    code = (
        "from pipeline.embedding.choice import make_embedder\nfrom pipeline.settings import"
        " load_settings\nmake_embedder(load_settings(_env_file=None, embedder='bge-m3',"
        " embedder_path='nobody/bge-m3'))"
    )
    refused = "pipeline.errors.SettingError: CITELOOM_EMBEDDER_PATH: nobody/bge-m3 is neither"
    offline = _run(code, HF_HUB_OFFLINE="1", HF_HUB_CACHE=str(tmp_path))
    assert refused in offline
    assert "or CITELOOM_EMBEDDER to minilm" in offline
    with ThreadingHTTPServer(("127.0.0.1", 0), BrokenHub) as hub:
        threading.Thread(target=hub.serve_forever, daemon=True).start()
        errors = _run(
            code,
            HF_ENDPOINT=f"http://127.0.0.1:{hub.server_port}",
            HF_HUB_CACHE=str(tmp_path),
            HF_HUB_OFFLINE="0",
            HF_HUB_DOWNLOAD_TIMEOUT="2",
            HF_HUB_DISABLE_XET="1",
        )
        hub.shutdown()
    assert refused in errors
    assert not list(tmp_path.rglob("snapshots/*/model.bin"))


def test_settings_of_bge_m3_do_not_touch_what_minilm_made() -> None:
    assert model_name(_settings(embedder="bge-m3")) == "BAAI/bge-m3", (
        "its hub name, without a network"
    )
    plain, other = (
        EMBEDDINGS.inputs(Workspace(settings), "2024-03")
        for settings in (_settings(), _settings(embedder_path="/elsewhere", embedder_colbert=True))
    )
    assert plain == other
    with_colbert = EMBEDDINGS.inputs(
        Workspace(_settings(embedder="bge-m3", embedder_colbert=True)), "2024-03"
    )
    assert with_colbert != EMBEDDINGS.inputs(Workspace(_settings(embedder="bge-m3")), "2024-03")
