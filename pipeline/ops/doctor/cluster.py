"""Where steps run: the settings that a Ray cluster needs, its job server, and what its nodes offer to a step."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pipeline.engine.stage import Workspace
from pipeline.ops.doctor.findings import Finding, not_asked, ok, problem, warning
from pipeline.ops.ray_cluster import LLM_STAGE_NAMES, RayNode, live_nodes, setting_problems
from pipeline.settings import Settings

NAME = "cluster"


def steps(workspace: Workspace) -> Iterator[Finding]:
    """What the configured executor needs. Raises as `live_nodes` does if Ray's job server does not answer."""
    settings = workspace.settings
    if not settings.on_cluster:
        yield not_asked(NAME, "CITELOOM_EXECUTOR is in_process: steps run on this machine")
        return
    if settings.executor == "k8s":
        yield not_asked(NAME, "CITELOOM_EXECUTOR is k8s: Dagster starts the pods, nothing is checked from here")
        return
    required = list(setting_problems(settings, ()))
    for message in setting_problems(settings, LLM_STAGE_NAMES):
        line = f"CITELOOM_EXECUTOR=ray {message}"
        if message in required:
            yield problem(NAME, line, "correct the settings")
        else:
            yield warning(NAME, line, "correct the settings before stages run that use a language model")
    yield from _capacity(settings, live_nodes(settings))


def _capacity(settings: Settings, nodes: Sequence[RayNode]) -> Iterator[Finding]:
    """What the nodes have, against what a step takes: Ray lets a step that fits no node wait without end."""
    cpus, gpus = sum(node.cpus for node in nodes), sum(node.gpus for node in nodes)
    large_enough = [node for node in nodes if node.cpus >= settings.step_cpus]
    cluster = f"{settings.ray_address}: nodes {len(nodes)}, processors {cpus:g}, GPUs {gpus:g}"
    if not large_enough:
        yield problem(
            NAME,
            f"{cluster}; no node has the {settings.step_cpus:g} processors of a step, which would never start",
            "lower CITELOOM_WORKERS, or start a larger node",
        )
    elif not any(node.gpus >= settings.embedding_gpus for node in large_enough):
        yield problem(
            NAME,
            f"{cluster}; no node has {settings.step_cpus:g} processors and {settings.embedding_gpus:g} GPUs for the "
            "step embeddings, which would never start",
            "start a node with ray start --num-gpus, or set CITELOOM_EMBEDDING_GPUS to 0",
        )
    elif gpus and not settings.embedding_gpus:
        yield warning(NAME, f"{cluster}; the step embeddings takes none", "set CITELOOM_EMBEDDING_GPUS to 1")
    else:
        yield ok(NAME, cluster)
