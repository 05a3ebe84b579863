"""Change of layout: load a second collection completely, audit it, and only then let searches use
it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from pipeline import tables
from pipeline.embedding.choice import make_embedder, model_name
from pipeline.errors import SettingError
from pipeline.index.audit import IndexAudit, audit_months, remove_outside
from pipeline.index.opening import (
    is_layout_of_settings,
    layout_mismatch,
    missing_index,
    newest_layout,
    open_collections,
)
from pipeline.index.passage_index import Layout
from pipeline.index.stages import INDEX_RECEIPTS
from pipeline.text import number_of

if TYPE_CHECKING:
    from pipeline.engine.stage import Workspace

# (stage, month, message)
Failure = tuple[str, str, str]
# Runs STAGES on months.
RunStages = Callable[[Sequence[str]], Sequence[Failure]]

# Stages whose tables change with the model, the embedded text or the compression.
STAGES = ("passages", "embeddings", "index_receipts")


@dataclass(frozen=True, slots=True)
class Reindexed:
    """Result of `reindex`.

    collection: the one of the settings' layout. before, live: the live collection before and after;
    None without one. failures: what prevented the change. audit: of the new collection, if it was
    loaded. dropped: collections that were deleted. kept: the alias's other collections, which take
    room and can be dropped.
    """

    collection: str
    before: str | None
    live: str | None
    failures: tuple[Failure, ...] = ()
    audit: IndexAudit | None = None
    dropped: tuple[str, ...] = ()
    kept: tuple[str, ...] = ()

    @property
    def done(self) -> bool:
        """Whether searches use the collection of the settings."""
        return self.live == self.collection


def reindex(
    workspace: Workspace,
    run_stages: RunStages,
    *,
    drop_old: bool = False,
    on_step: Callable[[str], None] = lambda step: None,
) -> Reindexed:
    """Load every month into the collection of the settings' layout, audit it, and make it live.

    If it is live already, nothing is loaded. After any failure the old collection stays live; the
    next call continues, since loaded months are up to date. So it also moves the index to a new
    server. on_step: receives each step in words. Raises MissingInput if there is neither an index
    nor an embedded month, and the errors of opening it.
    """
    before = open_collections(workspace).live()
    if before is None and not workspace.root.months(tables.EMBEDDINGS):
        raise missing_index(workspace)
    layout = layout_of_settings(workspace)
    name = layout.collection(open_collections(workspace).alias)
    failures: tuple[Failure, ...] = ()
    audit = None
    if before != name:
        collections = open_collections(workspace)
        collections.held_back = name
        try:
            failures, audit = _load(workspace, name, layout, run_stages, on_step)
        finally:
            collections.held_back = None
    collections = open_collections(workspace)
    if audit is not None and audit.clean and not failures:
        on_step(f"letting searches use {name}")
        collections.make_live(name)
    result = Reindexed(name, before, collections.live(), failures, audit)
    others = tuple(other for other in collections.names() if other != result.live)
    if not (drop_old and result.done):
        return replace(result, kept=others)
    for other in others:
        collections.drop(other)
    return replace(result, dropped=others)


def layout_of_settings(workspace: Workspace) -> Layout:
    """The newest layout for vectors made with the current settings; loads no weights.

    Raises SettingError if the model is not installed.
    """
    settings = workspace.settings
    embedder = make_embedder(settings)
    return newest_layout(workspace, model_name(settings), embedder.dimensions, embedder.has_sparse)


def check_layout(workspace: Workspace) -> None:
    """Raise SettingError if a run would embed passages for a collection that no search uses.

    That is so if the live collection has another layout than the settings. A second collection with
    the layout of the settings changes nothing: it may be an old one, into which a run would load
    what no search finds.
    """
    collections = open_collections(workspace)
    live = collections.live()
    layout = None if live is None else collections.collection(live).layout()
    if live is not None and layout is not None and not is_layout_of_settings(workspace, layout):
        raise SettingError(layout_mismatch(collections, live, layout_of_settings(workspace)))


def _load(
    workspace: Workspace,
    name: str,
    layout: Layout,
    run_stages: RunStages,
    on_step: Callable[[str], None],
) -> tuple[tuple[Failure, ...], IndexAudit | None]:
    """Load the collection and audit it; no audit if a month could not be loaded."""
    root = workspace.root
    months = sorted(
        {
            *root.months(tables.PASSAGES),
            *root.months(tables.EMBEDDINGS),
            *root.months(tables.INDEX_RECEIPTS),
        }
    )
    index = open_collections(workspace).collection(name)
    index.create(layout)
    index.defer_indexing()
    on_step(f"loading {number_of(len(months), 'month')} into {name}")
    failures = tuple(run_stages(months))
    if failures:
        return failures, None
    index = open_collections(workspace).collection(name)
    # Months that an earlier attempt loaded and that are gone from the data root.
    remove_outside(workspace, index)
    on_step(f"waiting until {name} is indexed")
    index.build_graph(wait=True)
    on_step(f"auditing {name}")
    audit = audit_months(workspace)
    # A run under other settings may have embedded a month again, or added one.
    failures = tuple(
        (
            INDEX_RECEIPTS.name,
            month.month,
            (
                f"its vectors are for {month.collection} and not {name}: end other runs, then"
                " reindex again"
            ),
        )
        for month in audit.months
        if month.collection != name
    )
    for _, month, message in failures:
        on_step(f"{month}: {message}")
    return failures, audit
