"""The checks of `citeloom doctor`, in the order in which they are shown."""

from __future__ import annotations

from pipeline.ops.doctor import arxiv, cluster, collector, given, installed, models, storage, vectors
from pipeline.ops.doctor.findings import Check


def every_check(*, online: bool) -> list[Check]:
    """All checks. online: whether arXiv is asked, too."""
    network = "see the network, and the address that the settings give"
    disk = "see that the disk and its mount are well"
    return [
        Check("settings", given.unread, "correct .env"),
        Check("settings", given.refused, "correct the settings"),
        Check("python", installed.python, "make install"),
        Check("packages", installed.packages, "make install"),
        Check("data root", storage.data_root, "set CITELOOM_DATA to a folder that can be written"),
        # The directory of a zip of 1.3 million pages takes 5 s to read the first time; it is kept.
        Check("dump", storage.dump, "see CITELOOM_DUMP_DIR; a large dump is read by the first run", seconds=60.0),
        Check("disk space", storage.space, disk, seconds=30.0),
        Check("snapshot", storage.snapshot, "see CITELOOM_METADATA_SNAPSHOT", seconds=30.0),
        Check("arxiv rate", arxiv.rate_limit(), "set XDG_CACHE_HOME to a folder that can be written"),
        Check("arxiv contact", arxiv.user_agent, "set CITELOOM_ARXIV_USER_AGENT"),
        Check("arxiv", arxiv.reach(online=online), network, seconds=45.0),
        Check("qdrant", vectors.index, "see CITELOOM_QDRANT_URL; the data root's qdrant-edge without it", seconds=30.0),
        Check("llm", models.language_models, "see CITELOOM_LLM_URL and the judges' settings", seconds=20.0),
        # Imports of torch and transformers, on a slow disk.
        Check("embedder", models.embedding_model, "see CITELOOM_EMBEDDER and CITELOOM_EMBEDDER_PATH", seconds=60.0),
        Check("gpu", models.gpu, "see CITELOOM_EMBEDDER_DEVICE, and the GPU's driver", seconds=60.0),
        # Ray takes a second to import, and its server some to list the nodes.
        Check("cluster", cluster.steps, "see CITELOOM_RAY_ADDRESS, and ray status on the head", seconds=60.0),
        Check("telemetry", collector.reach, "see CITELOOM_OTEL_ENDPOINT"),
        Check("dagster", installed.dagster, "end what holds its stores, and see the disk", seconds=30.0),
    ]
