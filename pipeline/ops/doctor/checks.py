"""All probes of `citeloom doctor`, in the order in which they are shown; those of the settings and the cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial

from pipeline.answering.stages import check_answering
from pipeline.engine.stage import Workspace
from pipeline.errors import SettingError
from pipeline.llm.client import check_model
from pipeline.ops.doctor import models, servers, storage
from pipeline.ops.doctor.findings import DATA_ROOT, Finding, Probe, not_asked, ok, problem, warning
from pipeline.ops.ray_cluster import LLM_STAGE_NAMES, job_client, setting_problems
from pipeline.settings import Settings
from pipeline.settings.validators import OVERLAP_JUDGE
from pipeline.stages import writer_models


def all_probes(*, online: bool) -> list[Probe]:
    """All probes but that of Dagster's instance, which only the command line may open. online: ask arXiv too."""
    return [
        Probe("settings", refused_settings, "correct the settings"),
        Probe(DATA_ROOT, storage.data_root, "set CITELOOM_DATA to a folder that can be written"),
        # Reading the directory of a zip of 1.3 million pages takes 5 s the first time; it is cached.
        Probe(
            "dump",
            storage.dump,
            "see CITELOOM_DUMP_DIR; a large dump is read by the first run",
            seconds=60.0,
            writes=True,
        ),
        Probe("disk space", storage.space, "check the disk and its mount", seconds=30.0, writes=True),
        Probe("snapshot", storage.snapshot, "see CITELOOM_METADATA_SNAPSHOT", seconds=30.0, writes=True),
        Probe("arxiv rate", servers.arxiv_rate, "set XDG_CACHE_HOME to a folder that can be written"),
        Probe(
            "arxiv",
            lambda workspace: servers.arxiv(workspace, online=online),
            "check the network, and the addresses in the settings",
            seconds=45.0,
        ),
        Probe(
            "qdrant",
            servers.qdrant,
            "see CITELOOM_QDRANT_URL; the data root's qdrant-edge without it",
            seconds=30.0,
            writes=True,
        ),
        Probe("llm", models.language_models, "see CITELOOM_LLM_URL and the judges' settings", seconds=20.0),
        # Imports torch and transformers, perhaps from a slow disk.
        Probe("embedder", models.embedding_model, "see CITELOOM_EMBEDDER and CITELOOM_EMBEDDER_PATH", seconds=60.0),
        Probe("gpu", models.gpu, "see CITELOOM_EMBEDDER_DEVICE, and the GPU's driver", seconds=60.0),
        # Ray takes a second to import.
        Probe("cluster", cluster, "see CITELOOM_RAY_ADDRESS, and ray status on the head", seconds=60.0),
    ]


def refused_settings(workspace: Workspace) -> Iterator[Finding]:
    """Settings that a stage would refuse when it starts."""
    settings = workspace.settings
    checks: Sequence[Callable[[], object]] = (
        partial(_check_writers, settings),
        partial(check_answering, settings),
        *(partial(check_model, settings, name) for name in (None, *settings.judges) if name != OVERLAP_JUDGE),
    )
    messages = []
    for check in checks:
        try:
            check()
        except SettingError as error:
            messages.append(str(error))
    for message in dict.fromkeys(messages):  # the writer and a judge may be refused for the same reason
        yield problem("settings", message, "correct this setting")
    if not messages:
        yield ok("settings", "no stage refuses them")


def _check_writers(settings: Settings) -> None:
    """Raise SettingError for an unknown system, and for a model of a writer that cannot be used."""
    for model in writer_models(settings):
        check_model(settings, model)


def invalid_settings(error: SettingError) -> list[Finding]:
    """Settings that cannot be read at all, one finding for each line of the error."""
    return [problem("settings", line, "correct it, in the environment or in .env") for line in str(error).splitlines()]


def cluster(workspace: Workspace) -> Iterator[Finding]:
    """The settings that the configured executor needs, and whether Ray's job server answers.

    Raises as `job_client` does if it does not.
    """
    settings = workspace.settings
    if not settings.on_cluster:
        yield not_asked("cluster", "CITELOOM_EXECUTOR is in_process: steps run on this machine")
        return
    if settings.executor == "k8s":
        yield not_asked("cluster", "CITELOOM_EXECUTOR is k8s: Dagster starts the pods, nothing is checked from here")
        return
    required = list(setting_problems(settings, ()))
    for message in setting_problems(settings, LLM_STAGE_NAMES):
        line = f"CITELOOM_EXECUTOR=ray {message}"
        if message in required:
            yield problem("cluster", line, "correct the settings")
        else:
            yield warning("cluster", line, "correct the settings before stages run that use a language model")
    job_client(settings)
    yield ok("cluster", f"{settings.ray_address} answers; ray status shows the nodes")
