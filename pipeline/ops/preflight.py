"""Checks before a run begins, so that a wrong setting is not found hours later."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from pipeline.answering.stages import check_answering
from pipeline.embedding.choice import model_name
from pipeline.engine.stage import Stage, Workspace
from pipeline.errors import SettingError, TransientFailure
from pipeline.index.reindex import check_layout
from pipeline.index.stages import INDEX_RECEIPTS
from pipeline.llm.client import check_model
from pipeline.llm.models import judge_model
from pipeline.settings import SAMPLE_DUMP, Settings
from pipeline.stages import JUDGING_STAGES, LLM_STAGE_NAMES, STAGES, writer_models
from pipeline.storage.writing import write_whole
from pipeline.tables import DUMP_MEMBERS

# Lies in a data root that `citeloom demo` has filled; another dump may not be run into it, nor the
# demo into another.
_DEMO_MARK = "holds-the-demo"


def check(workspace: Workspace, stages: Sequence[Stage]) -> None:
    """Raise SettingError for settings that do not suit these stages, or an unusable data root."""
    settings, names = workspace.settings, {stage.name for stage in stages}
    check_data_root(workspace)
    if (
        "metadata" in names
        and settings.metadata_snapshot
        and not settings.metadata_snapshot.is_file()
    ):
        raise SettingError(
            f"CITELOOM_METADATA_SNAPSHOT: {settings.metadata_snapshot} is not a file"
        )
    if "embeddings" in names:
        model_name(settings)
    if "index_receipts" in names:
        # Before hours of embedding, by whose end a server that is down now may be up.
        with suppress(TransientFailure):
            check_layout(workspace)
    if "questions" in names:
        check_answering(settings)
    if names & LLM_STAGE_NAMES:
        for model in writer_models(settings):
            check_model(settings, model)
    if names & {stage.name for stage in JUDGING_STAGES}:
        check_model(settings, judge_model(settings).name)


def check_part(settings: Settings, stages: Sequence[Stage]) -> None:
    """Raise SettingError for stages that cannot run in parts of the months."""
    names = {stage.name for stage in stages}
    allowed = {stage.name for stage in STAGES[: STAGES.index(INDEX_RECEIPTS) + 1]}
    if names - allowed:
        raise SettingError(
            "--part is for the stages up to the index: give --until embeddings, and run the others"
            " without --part once all parts are done"
        )
    if INDEX_RECEIPTS.name in names and settings.qdrant_url is None:
        raise SettingError(
            "--part: the in-process index is of one machine and has one writer: give --until"
            " embeddings, then run without --part; or set CITELOOM_QDRANT_URL"
        )


def check_data_root(workspace: Workspace) -> None:
    """Raise SettingError where the data root cannot be written, or holds the demo and the dump is
    another one.
    """
    root = workspace.root.path
    for place, setting in {workspace.local: "CITELOOM_LOCAL", root: "CITELOOM_DATA"}.items():
        try:
            write_whole(place / ".writable", b"")
        except OSError as error:
            raise SettingError(
                f"{setting}: {place} cannot be written ({error}); name a folder that can"
            ) from error
    dump = workspace.settings.dump_dir
    is_sample = isinstance(dump, Path) and dump.resolve() == SAMPLE_DUMP
    if (root / _DEMO_MARK).exists() and not is_sample:
        raise SettingError(
            f"CITELOOM_DATA: {root} holds the demo, and CITELOOM_DUMP_DIR is {dump}: "
            "give your own corpus a data root of its own"
        )


def mark_demo(workspace: Workspace) -> None:
    """Mark a data root as the demo's. Raises SettingError where it already holds a corpus."""
    check_data_root(workspace)
    root = workspace.root.path
    if not (root / _DEMO_MARK).exists():
        if workspace.root.months(DUMP_MEMBERS):
            raise SettingError(
                f"CITELOOM_DATA: {root} holds a corpus already, which the demo's papers would mix"
                " with: unset it for the demo, or name another folder"
            )
        write_whole(root / _DEMO_MARK, b"")
