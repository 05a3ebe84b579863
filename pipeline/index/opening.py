"""Which collections the settings choose, opened once per process and let go together."""

from __future__ import annotations

import atexit
import os
from typing import TYPE_CHECKING

from pipeline.embedding.choice import makes_colbert, model_name
from pipeline.errors import MissingInput, PermanentFailure, SettingError
from pipeline.index.layout import Layout

if TYPE_CHECKING:
    from pathlib import Path

    from pipeline.engine.stage import Workspace
    from pipeline.index.passage_index import Collections, PassageIndex

# By process, and whatever else the collections were opened with: a forked child must not use its parent's handles.
_OPEN: dict[tuple[object, ...], Collections] = {}


def open_collections(workspace: Workspace) -> Collections:
    """The collections of a workspace: on the server of CITELOOM_QDRANT_URL, else Edge in `<data root>/qdrant-edge`.

    The same object for every call in a process, until `close_indexes`. Nothing is connected or locked before the
    first call that needs it. Raises SettingError for a URL or a name that cannot be.
    """
    settings = workspace.settings
    name = settings.qdrant_collection
    if not name or name.startswith(".") or any(sign in name for sign in "/\\:"):
        raise SettingError(f"CITELOOM_QDRANT_COLLECTION: {name!r} cannot name a collection: use letters, digits, - _")
    place = settings.qdrant_url or str(workspace.local)
    storage = (settings.qdrant_on_disk, settings.qdrant_shards, settings.qdrant_replicas)
    server = (hash(settings.qdrant_api_key), settings.qdrant_grpc_port, settings.qdrant_private_network)
    key = (os.getpid(), place, name, server, storage)
    if key not in _OPEN:
        _OPEN[key] = _make(workspace)
    return _OPEN[key]


def edge_folder(workspace: Workspace) -> Path:
    """Where the embedded index lies, each collection in a folder of its own."""
    return workspace.local / "qdrant-edge" / workspace.settings.qdrant_collection


def _make(workspace: Workspace) -> Collections:
    settings = workspace.settings
    if settings.qdrant_url is None:
        from pipeline.index.edge_collections import EdgeCollections

        return EdgeCollections(edge_folder(workspace), settings.qdrant_collection, on_disk=settings.qdrant_on_disk)
    from pipeline.index.server_collections import ServerCollections, Storage

    return ServerCollections(
        settings.qdrant_url,
        settings.qdrant_collection,
        settings.qdrant_api_key,
        grpc_port=settings.qdrant_grpc_port,
        private_network=settings.qdrant_private_network,
        storage=Storage(settings.qdrant_on_disk, settings.qdrant_shards, settings.qdrant_replicas),
    )


def live_index(workspace: Workspace) -> PassageIndex:
    """The collection that searches ask. Raises MissingInput where there is none yet."""
    collections = open_collections(workspace)
    name = collections.live()
    if name is None:
        raise missing_index(workspace, collections)
    return collections.collection(name)


def missing_index(workspace: Workspace, collections: Collections) -> MissingInput:
    """The error where searches have no collection, which names the data root that was looked at."""
    return MissingInput(
        f"there is no index {collections.alias} for the data root {workspace.root.path}: run citeloom run "
        f"--until index_receipts, or set CITELOOM_DATA to the data root that has one (by default a folder below the "
        f"working directory)"
    )


def index_for(workspace: Workspace, layout: Layout) -> PassageIndex:
    """The collection of a layout, made where there is none yet; the first of an alias is live at once.

    Raises PermanentFailure where searches ask a collection of another layout and nobody began to make this one
    beside it: `pipeline.index.reindex` does that, and half of a corpus must not replace the whole. Also where the
    layout is of vectors that other settings made, which would go where nobody searches.
    """
    if not is_layout_of_settings(workspace, layout):
        raise PermanentFailure(
            f"the vectors were made under other settings ({layout.describe()}): "
            f"run citeloom run --months all --until index_receipts, which makes them anew"
        )
    collections = open_collections(workspace)
    wanted, live = layout.collection(collections.alias), collections.live()
    index = collections.collection(wanted)
    if live is None:
        index.create(layout)
        collections.make_live(wanted)
    elif live != wanted and wanted not in collections.names():
        raise PermanentFailure(refusal(collections, live, layout))
    else:
        index.create(layout)
    return index


def collection_of(collections: Collections, layout: Layout) -> PassageIndex:
    """The collection of a layout, whether it is there or not."""
    return collections.collection(layout.collection(collections.alias))


def refusal(collections: Collections, live: str, wanted: Layout) -> str:
    """The message where the live collection has another layout than the settings ask for."""
    found = collections.collection(live).layout()
    return (
        f"searches ask the collection {live} ({found.describe() if found else 'of no layout'}), and the settings now "
        f"ask for {wanted.describe()}: run citeloom reindex, which loads all months beside it and then changes over, "
        f"or set CITELOOM_EMBEDDER and CITELOOM_QDRANT_QUANTIZATION and the like back"
    )


def is_layout_of_settings(workspace: Workspace, layout: Layout) -> bool:
    """Whether vectors made by today's settings would go into a collection of this layout."""
    settings = workspace.settings
    wanted = (model_name(settings), settings.embedded_form, makes_colbert(settings), settings.qdrant_quantization)
    return wanted == (layout.model, layout.form, layout.colbert, layout.quantization)


def close_indexes() -> None:
    """Close every index that this process has opened, so that another process may open them. Called at exit too."""
    for key in [key for key in _OPEN if key[0] == os.getpid()]:
        _OPEN.pop(key).close()


atexit.register(close_indexes)
