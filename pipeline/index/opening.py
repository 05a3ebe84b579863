"""Which index the settings choose, opened once per process and let go together.

Not here: what an index does (`passage_index`).
"""

from __future__ import annotations

import atexit
import os
from typing import TYPE_CHECKING

from pipeline.errors import SettingError

if TYPE_CHECKING:
    from pipeline.index.passage_index import PassageIndex
    from pipeline.stages import Workspace

# By process, place, collection and API key: a forked child must not use its parent's handles.
_OPEN: dict[tuple[int, str, str, int], PassageIndex] = {}


def open_index(workspace: Workspace) -> PassageIndex:
    """The index of a workspace: on the server of CITELOOM_QDRANT_URL, else Edge in `<data root>/qdrant-edge`.

    The same object for every call in a process, until `close_indexes`. Nothing is connected or locked before the
    first call that needs it. Raises SettingError for a URL or a collection name that cannot be.
    """
    settings = workspace.settings
    name = settings.qdrant_collection
    if not name or name.startswith(".") or any(sign in name for sign in "/\\:"):
        raise SettingError(f"CITELOOM_QDRANT_COLLECTION: {name!r} cannot name a collection: use letters, digits, - _")
    place = settings.qdrant_url or str(workspace.root.path)
    key = (os.getpid(), place, name, hash(settings.qdrant_api_key))
    if key not in _OPEN:
        _OPEN[key] = _make(workspace)
    return _OPEN[key]


def _make(workspace: Workspace) -> PassageIndex:
    settings = workspace.settings
    if settings.qdrant_url is None:
        from pipeline.index.edge import EdgeIndex

        return EdgeIndex(workspace.root.path / "qdrant-edge" / settings.qdrant_collection)
    from pipeline.index.server import ServerIndex

    return ServerIndex(
        settings.qdrant_url, settings.qdrant_collection, settings.qdrant_api_key, grpc_port=settings.qdrant_grpc_port
    )


def close_indexes() -> None:
    """Close every index that this process has opened, so that another process may open them. Called at exit too."""
    for key in [key for key in _OPEN if key[0] == os.getpid()]:
        _OPEN.pop(key).close()


atexit.register(close_indexes)
