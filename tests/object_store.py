"""An S3-compatible store on loopback, moto's, that writes down what it is asked and can be made to
end.
"""

import threading
from collections import Counter
from dataclasses import dataclass
from typing import Any

from tests.sentinels import sentinel

BUCKET = "corpus"


@dataclass
class Object:
    """What lies under a name: its content, and when it was put there."""

    content: bytes
    written: Any


def _nothing(method, path, query):
    """Let every request be answered."""


class ObjectStore:
    """A context manager. `variables`: the environment of those who are to ask it. `asked`: (method,
    path) so far.

    before: is called with method, path and query of every request; where it says True, the request
    is refused, as by a store that is out of order.
    """

    def __init__(self):
        self.before = _nothing
        self.asked = []

    def __enter__(self):
        from moto.backends import get_backend
        from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
        from werkzeug.serving import WSGIRequestHandler, make_server

        class Quiet(WSGIRequestHandler):
            def log_request(self, *_):
                """Say nothing of it."""

        self._app = DomainDispatcherApplication(create_backend_app)
        self._backend = get_backend("s3")["123456789012"]["aws"]
        self._backend.reset()
        self._backend.create_bucket(BUCKET, "us-east-1")
        self._server = make_server(
            "127.0.0.1", 0, self._answer, threaded=True, request_handler=Quiet
        )
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        self.forget()
        return self

    def __exit__(self, kind, error, trace):
        self.vanish()
        self.forget()

    def vanish(self):
        """Answer no more; what it holds stays."""
        self._server.shutdown()
        self._server.server_close()

    def forget(self):
        """Have this process read the environment again: fsspec keeps a store's client as long as
        the process lives.
        """
        from s3fs import S3FileSystem

        S3FileSystem.clear_instance_cache()

    def _answer(self, environ, start):
        method, path = environ["REQUEST_METHOD"], environ["PATH_INFO"]
        self.asked.append((method, path))
        if self.before(method, path, environ["QUERY_STRING"]):
            environ["wsgi.input"].read(
                int(environ.get("CONTENT_LENGTH") or 0)
            )  # else it passes for the next request
            start("503 Service Unavailable", [("Content-Length", "0")])
            return []
        return self._app(environ, start)

    @property
    def variables(self):
        return {
            "AWS_ENDPOINT_URL": f"http://127.0.0.1:{self._server.server_port}",
            "AWS_ACCESS_KEY_ID": "a-key-id",
            "AWS_SECRET_ACCESS_KEY": sentinel("AWS_SECRET_ACCESS_KEY"),
            "AWS_DEFAULT_REGION": "us-east-1",
        }

    def objects(self, below=""):
        """Everything that can be read, by name; of a name that begins with `below`, what follows
        it.
        """
        return {
            name.removeprefix(below): Object(key.value, key.last_modified)
            for name, key in self._backend.buckets[BUCKET].keys.items()
            if name.startswith(below)
        }

    def unfinished(self):
        """Uploads in parts that were begun and neither completed nor given up."""
        return len(self._backend.buckets[BUCKET].multiparts)

    def counted(self):
        """Requests by method, since it was last asked."""
        asked, self.asked = self.asked, []
        return Counter(method for method, _ in asked)
