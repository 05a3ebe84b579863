"""Changing over to another layout: a collection beside the live one, loaded whole, audited, and only then live."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pipeline import tables
from pipeline.embedding.choice import make_embedder, makes_colbert, model_name
from pipeline.errors import MissingInput, SettingError
from pipeline.index.layout import Layout
from pipeline.index.opening import close_indexes, is_layout_of_settings, open_collections, refusal
from pipeline.index.stages import INDEX_RECEIPTS
from pipeline.index.upkeep import Audit, audit_months, remove_outside

if TYPE_CHECKING:
    from pipeline.engine.stage import Workspace
    from pipeline.index.passage_index import Collections

# (stage, month, message) of what failed.
Failure = tuple[str, str, str]
# Runs STAGES on months.
Run = Callable[[Sequence[str]], Sequence[Failure]]

# What a month's points are made of, where the model, the embedded text or the compression changes.
STAGES = ("passages", "embeddings", "index_receipts")


@dataclass(frozen=True, slots=True)
class Reindexed:
    """What came of changing over.

    collection: of the layout that the settings ask for. before: what was live. live: what is live now. failures:
    what hindered it. audit: of the new collection, where it came to that. dropped: collections that were deleted.
    kept: others of the alias, which take room and may be dropped.
    """

    collection: str
    before: str
    live: str
    failures: tuple[Failure, ...] = ()
    audit: Audit | None = None
    dropped: tuple[str, ...] = ()
    kept: tuple[str, ...] = ()

    @property
    def done(self) -> bool:
        """Whether searches ask the collection of the settings now."""
        return self.live == self.collection


def reindex(
    workspace: Workspace, run: Run, *, drop_old: bool = False, told: Callable[[str], None] = lambda step: None
) -> Reindexed:
    """Load every month into the collection of the settings' layout, and let searches ask it once it is whole.

    Where it is live already, nothing is loaded. Whatever fails, what was live stays so; run again, it goes on where
    it was, since months that are loaded are found done. told: is given each step in words. Raises MissingInput where
    there is no index yet, and what opening it may raise.
    """
    try:
        before = _live(open_collections(workspace))
        layout = layout_of_settings(workspace)
        wanted = layout.collection(open_collections(workspace).alias)
        failures: tuple[Failure, ...] = ()
        audit = None
        if before != wanted:
            failures, audit = _load(workspace, wanted, layout, run, told)
        collections = open_collections(workspace)
        if audit is not None and audit.clean and not failures:
            told(f"letting searches ask {wanted}")
            collections.make_live(wanted)
        live = _live(collections)
        dropped = _drop_others(collections, wanted) if drop_old and live == wanted else ()
        kept = tuple(name for name in collections.names() if name != live)
    finally:
        close_indexes()
    return Reindexed(wanted, before, live, failures, audit, dropped, kept)


def layout_of_settings(workspace: Workspace) -> Layout:
    """The layout that vectors made by today's settings need. Loads no weights.

    Raises SettingError where the model is not there.
    """
    settings = workspace.settings
    embedder = make_embedder(settings)
    return Layout(
        model_name(settings),
        embedder.dimensions,
        embedder.has_sparse,
        settings.embedded_form,
        makes_colbert(settings),
        settings.qdrant_quantization,
    )


def check_layout(workspace: Workspace) -> None:
    """Raise SettingError where a run would embed for hours what searches do not ask.

    That is where the live collection has another layout than the settings ask for. A collection of theirs beside it
    makes no difference: it may as well be an old one, into which a run would quietly load what nobody finds.
    """
    collections = open_collections(workspace)
    live = collections.live()
    layout = None if live is None else collections.collection(live).layout()
    if live is not None and layout is not None and not is_layout_of_settings(workspace, layout):
        raise SettingError(refusal(collections, live, layout_of_settings(workspace)))


def _live(collections: Collections) -> str:
    live = collections.live()
    if live is None:
        raise MissingInput(
            f"there is no index {collections.alias} yet, so there is nothing to change over from: "
            f"run citeloom run --months all --until index_receipts"
        )
    return live


def _load(
    workspace: Workspace, wanted: str, layout: Layout, run: Run, told: Callable[[str], None]
) -> tuple[tuple[Failure, ...], Audit | None]:
    """Make the collection whole, and audit it; without an audit where a month could not be loaded."""
    months = _months(workspace)
    index = open_collections(workspace).collection(wanted)
    index.create(layout)
    index.defer_indexing()
    close_indexes()  # the stages open it themselves, and may be other processes
    told(f"loading {len(months)} months into {wanted}")
    failures = tuple(run(months))
    if failures:
        return failures, None
    index = open_collections(workspace).collection(wanted)
    remove_outside(workspace, index)  # of months that an earlier attempt loaded and the data root has no more
    told(f"waiting until {wanted} is indexed")
    index.settle(wait=True)
    told(f"auditing {wanted}")
    audit = audit_months(workspace)
    failures = tuple(_elsewhere(audit, wanted))
    for _, month, message in failures:
        told(f"{month}: {message}")
    return failures, audit


def _months(workspace: Workspace) -> list[str]:
    """Every month that has passages, or is in the index already."""
    root = workspace.root
    wanted = (tables.PASSAGES, tables.EMBEDDINGS, tables.INDEX_RECEIPTS)
    return sorted({month for table in wanted for month in root.months(table)})


def _elsewhere(audit: Audit, wanted: str) -> Iterator[Failure]:
    """Months, also new ones, whose vectors belong into another collection: a run under other settings came between."""
    for month in audit.months:
        if month.collection != wanted:
            message = f"its vectors are for {month.collection} and not {wanted}: end other runs, then reindex again"
            yield INDEX_RECEIPTS.name, month.month, message


def _drop_others(collections: Collections, kept: str) -> tuple[str, ...]:
    """Delete every collection of the alias but one."""
    others = tuple(name for name in collections.names() if name != kept)
    for name in others:
        collections.drop(name)
    return others
