"""All probes of `citeloom doctor`, in the order in which they are shown."""

from __future__ import annotations

from collections.abc import Callable

from pipeline.engine.stage import Workspace
from pipeline.ops.doctor import cluster, environment, models, servers, storage
from pipeline.ops.doctor.environment import InstanceState
from pipeline.ops.doctor.findings import DATA_ROOT, Probe


def all_probes(instance_state: Callable[[Workspace], InstanceState], *, online: bool) -> list[Probe]:
    """All probes.

    instance_state: reads the state of Dagster's instance, which only the command line may open. online: whether arXiv
    is asked.
    """
    return [
        Probe("settings", environment.unread_settings, "correct .env"),
        Probe("settings", environment.refused_settings, "correct the settings"),
        Probe("python", environment.python, "make install"),
        Probe("packages", environment.packages, "make install"),
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
        Probe("arxiv contact", servers.arxiv_contact, "set CITELOOM_ARXIV_USER_AGENT"),
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
        # Ray takes a second to import, and its server some to list the nodes.
        Probe("cluster", cluster.steps, "see CITELOOM_RAY_ADDRESS, and ray status on the head", seconds=60.0),
        Probe("telemetry", servers.collector, "see CITELOOM_OTEL_ENDPOINT"),
        Probe(
            "dagster",
            lambda workspace: environment.dagster(workspace, instance_state),
            "end what holds its databases, and check the disk",
            seconds=30.0,
            writes=True,
        ),
    ]
