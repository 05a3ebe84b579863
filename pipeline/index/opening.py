"""The collections that the settings choose, opened once per process and closed together."""

from __future__ import annotations

import atexit
import os
from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from typing import TYPE_CHECKING, get_args

from pipeline.corpus.passages.text import FORM
from pipeline.embedding.choice import model_name
from pipeline.embedding.lexical import VERSIONS as LEXICAL_VERSIONS
from pipeline.errors import MissingInput, PermanentFailure, SettingError, TransientFailure
from pipeline.index.passage_index import Layout, Quantization
from pipeline.storage.read_cache import once

if TYPE_CHECKING:
    from pathlib import Path

    from pipeline.engine.stage import Workspace
    from pipeline.index.passage_index import Collections, PassageIndex

# By process and settings: a forked child must not use its parent's handles.
_OPEN: dict[tuple[object, ...], Collections] = {}


def open_collections(workspace: Workspace) -> Collections:
    """The collections of a workspace: on the server of CITELOOM_QDRANT_URL, or Edge in `<data
    root>/qdrant-edge`.

    A process gets the same object for every call until `close_indexes`. Nothing is connected or
    locked before the first use. Raises SettingError for an invalid URL or name.
    """
    settings = workspace.settings
    name = settings.qdrant_collection
    if not name or name.startswith(".") or any(sign in name for sign in "/\\:"):
        raise SettingError(
            f"CITELOOM_QDRANT_COLLECTION: {name!r} cannot name a collection: use letters,"
            " digits, - _"
        )
    place = settings.qdrant_url or str(workspace.local)
    storage = (settings.qdrant_on_disk, settings.qdrant_shards, settings.qdrant_replicas)
    server = (
        hash(settings.qdrant_api_key),
        settings.qdrant_grpc_port,
        settings.qdrant_private_network,
        settings.qdrant_parallel_upserts,
    )
    key = (os.getpid(), place, name, server, storage)
    if key not in _OPEN:
        _OPEN[key] = _make_collections(workspace)
    return _OPEN[key]


def edge_folder(workspace: Workspace) -> Path:
    """Folder of the in-process index, with a folder for each collection."""
    return workspace.local / "qdrant-edge" / workspace.settings.qdrant_collection


def _make_collections(workspace: Workspace) -> Collections:
    settings = workspace.settings
    if settings.qdrant_url is None:
        from pipeline.index.edge import EdgeCollections

        return EdgeCollections(
            edge_folder(workspace), settings.qdrant_collection, on_disk=settings.qdrant_on_disk
        )
    from pipeline.index.server import ServerCollections
    from pipeline.index.server_requests import Storage

    return ServerCollections(
        settings.qdrant_url,
        settings.qdrant_collection,
        settings.qdrant_api_key,
        grpc_port=settings.qdrant_grpc_port,
        private_network=settings.qdrant_private_network,
        storage=Storage(settings.qdrant_on_disk, settings.qdrant_shards, settings.qdrant_replicas),
        in_flight=settings.qdrant_parallel_upserts,
    )


def live_index(workspace: Workspace) -> PassageIndex:
    """The collection that searches use. Raises MissingInput if there is none yet."""
    collections = open_collections(workspace)
    name = collections.live()
    if name is None:
        raise missing_index(workspace)
    return collections.collection(name)


def missing_index(workspace: Workspace) -> MissingInput:
    """The error for a search without an index, which names the data root."""
    return MissingInput(
        f"there is no index {workspace.settings.qdrant_collection} for the data root"
        f" {workspace.root.path}: run citeloom run --months all --until index, or set"
        " CITELOOM_DATA to the data root that has one (by default a folder below the working"
        " directory)"
    )


def index_for(workspace: Workspace, layout: Layout) -> PassageIndex:
    """The collection of a layout, created if it does not exist; the first collection of an alias is
    live at once, unless it is held back.

    Raises PermanentFailure if searches use a collection of another layout and
    `pipeline.index.reindex` has not created this one: half of a corpus must not replace the whole.
    Also if the vectors were made under other settings: no search would find them.
    """
    if not is_layout_of_settings(workspace, layout):
        raise PermanentFailure(
            f"the vectors were made under other settings ({layout.describe()}): "
            "run citeloom run --months all --until index, which makes them again"
        )
    collections = open_collections(workspace)
    name, live = layout.collection(collections.alias), collections.live()
    if live not in (None, name) and name not in collections.names():
        raise PermanentFailure(layout_mismatch(collections, live, layout))
    index = collections.collection(name)
    index.create(layout)
    if live is None and name != collections.held_back:
        collections.make_live(name)
    return index


def collection_of(collections: Collections, layout: Layout) -> PassageIndex:
    """The collection of a layout, whether it exists or not."""
    return collections.collection(layout.collection(collections.alias))


def layout_mismatch(collections: Collections, live: str, layout: Layout) -> str:
    """The message for settings, or a version, that ask for another layout than that of the live
    collection.
    """
    live_layout = collections.collection(live).layout()
    return (
        "searches use the collection"
        f" {live} ({live_layout.describe() if live_layout else 'without layout'}), and the settings"
        f" or this version of citeloom now ask for {layout.describe()}: run citeloom reindex, which"
        " loads all months into a second collection and then switches to it, or set what you"
        " changed of CITELOOM_EMBEDDER, CITELOOM_QDRANT_QUANTIZATION and the like back"
    )


def newest_layout(
    workspace: Workspace, model: str, dimensions: int, sparse: bool, form: str = FORM
) -> Layout:
    """The layout of a new collection for these vectors, which `reindex` loads."""
    wanted = workspace.settings.qdrant_quantization
    default: Quantization = "int8" if workspace.settings.qdrant_url else "turbo4"
    return Layout(model, dimensions, sparse, form, default if wanted == "auto" else wanted)


def layout_for(
    workspace: Workspace, model: str, dimensions: int, sparse: bool, form: str
) -> Layout:
    """The layout for these vectors: that of the live collection if the settings allow it, else the
    newest one.

    So an earlier compression or version of lexical weights stays until `reindex` is asked for. With
    no live collection, one that exists takes its place. Raises as `Collections.live` does.
    """
    collections = open_collections(workspace)
    newest = newest_layout(workspace, model, dimensions, sparse, form)
    if collections.held_back is None:
        names = _names_in_use(collections)
        for kind, lexical in product(_quantizations(workspace), LEXICAL_VERSIONS):
            layout = replace(newest, quantization=kind, lexical=lexical)
            if layout.collection(collections.alias) in names:
                return layout
    return newest


def _quantizations(workspace: Workspace) -> Sequence[Quantization]:
    """The kinds of compression that the settings allow."""
    wanted = workspace.settings.qdrant_quantization
    return get_args(Quantization) if wanted == "auto" else (wanted,)


def _names_in_use(collections: Collections) -> Sequence[str]:
    """The name of the live collection; of all where none is live. Within `read_cache` they are
    looked up once, also if the server does not answer.
    """

    def look_up() -> Sequence[str] | TransientFailure:
        try:
            live = collections.live()
            return [live] if live is not None else collections.names()
        except TransientFailure as error:
            return error

    names = once(("collections in use", collections), look_up)
    if isinstance(names, TransientFailure):
        raise names
    return names


def is_layout_of_settings(workspace: Workspace, layout: Layout) -> bool:
    """Whether vectors made with the current settings belong into a collection of this layout."""
    current = model_name(workspace.settings), FORM
    return current == (layout.model, layout.form) and layout.quantization in _quantizations(
        workspace
    )


def close_indexes() -> None:
    """Close every index that this process has opened, so that another process may open it. Also
    called at exit.
    """
    for key in [key for key in _OPEN if key[0] == os.getpid()]:
        _OPEN.pop(key).close()


atexit.register(close_indexes)
