"""A hub on loopback: the few requests of Hugging Face's hub that an upload makes, as huggingface_hub 2.4 makes them.

Parquet files come over LFS, apart from the commit.
"""

from __future__ import annotations

import base64
import hashlib
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

TOKEN = "hf_sentinel0token"


@dataclass
class Hub:
    """One repository, `owner/name`, and what was asked of it."""

    files: dict[str, bytes] | None = None
    """None where there is no repository."""
    private: bool = False
    commits: int = 0
    refuse: tuple[int, str] | None = None
    """Status and words that a commit is refused with."""
    parents: list[str] = field(default_factory=list)
    large: dict[str, bytes] = field(default_factory=dict)
    """SHA-256 → content of what came over LFS."""
    url: str = ""

    @property
    def head(self) -> str:
        return f"{self.commits:040x}"

    def answer(self, method: str, path: str, token: str, body: bytes) -> tuple[int, dict[str, Any], dict[str, str]]:
        """Status, content and headers of the answer to a request."""
        if method == "PUT":
            self.large[hashlib.sha256(body).hexdigest()] = body
            return 200, {}, {}
        if token != f"Bearer {TOKEN}":
            return 401, {"error": "Invalid username or password."}, {}
        if path == "/api/repos/create":
            self.private = json.loads(body)["visibility"] == "private"
            self.files = {".gitattributes": b""}
            return 200, {"url": f"{self.url}/datasets/owner/name"}, {}
        if path == "/api/validate-yaml":
            return 200, {"errors": [], "warnings": []}, {}
        if self.files is None:
            return 404, {"error": "Repository not found"}, {"X-Error-Code": "RepoNotFound"}
        if method == "GET" and path in ("/api/datasets/owner/name", "/api/datasets/owner/name/revision/main"):
            siblings = [{"rfilename": name} for name in sorted(self.files)]
            return 200, {"id": "owner/name", "sha": self.head, "siblings": siblings}, {}
        if path.endswith("/preupload/main"):
            asked = [entry["path"] for entry in json.loads(body)["files"]]
            return 200, {"files": [self._mode(name, self.files) for name in asked]}, {}
        if path.endswith("/objects/batch"):
            objects = [
                {**each, "actions": {"upload": {"href": f"{self.url}/put"}}} for each in json.loads(body)["objects"]
            ]
            return 200, {"transfer": "basic", "objects": objects}, {}
        if path.endswith("/commit/main"):
            return self._commit([json.loads(line) for line in body.splitlines()], self.files)
        return 404, {"error": f"no answer to {method} {path}"}, {}

    def _mode(self, name: str, files: dict[str, bytes]) -> dict[str, Any]:
        large = name.endswith(".parquet")
        told: dict[str, Any] = {"path": name, "uploadMode": "lfs" if large else "regular", "shouldIgnore": False}
        content = files.get(name)
        if content is not None:
            blob = b"blob %d\0" % len(content) + content
            told["oid"] = (hashlib.sha256(content) if large else hashlib.sha1(blob)).hexdigest()
        return told

    def _commit(
        self, lines: list[dict[str, Any]], files: dict[str, bytes]
    ) -> tuple[int, dict[str, Any], dict[str, str]]:
        if self.refuse is not None:
            return self.refuse[0], {"error": self.refuse[1]}, {}
        for line in lines:
            value = line["value"]
            if line["key"] == "header":
                self.parents.append(value["parentCommit"])
            elif line["key"] == "file":
                files[value["path"]] = base64.b64decode(value["content"])
            elif line["key"] == "lfsFile":
                files[value["path"]] = self.large[value["oid"]]
            elif line["key"] == "deletedFile":
                del files[value["path"]]
        self.commits += 1
        url = f"{self.url}/datasets/owner/name/commit/{self.head}"
        return 200, {"commitUrl": url, "commitOid": self.head, "success": True}, {}


@contextmanager
def serving(hub: Hub) -> Iterator[Hub]:
    """The hub at `hub.url`, until the block ends."""

    class Handler(BaseHTTPRequestHandler):
        def _answer(self) -> None:
            body = self._body()
            path = self.path.split("?")[0]
            status, content, headers = hub.answer(self.command, path, self.headers.get("Authorization", ""), body)
            data = json.dumps(content).encode()
            self.send_response(status)
            for name, value in {
                "Content-Type": "application/json",
                "Content-Length": str(len(data)),
                **headers,
            }.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(data)

        def _body(self) -> bytes:
            if self.headers.get("Transfer-Encoding") != "chunked":
                return self.rfile.read(int(self.headers.get("Content-Length", 0)))
            body = b""
            while size := int(self.rfile.readline(), 16):
                body += self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
            return body

        do_GET = do_POST = do_PUT = _answer  # noqa: N815 - as http.server calls them

        def log_message(self, format: str, *arguments: object) -> None:
            """Nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    hub.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield hub
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
