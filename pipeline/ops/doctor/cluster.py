"""Where steps run: the settings that a cluster demands, its job server, and what its nodes can give to a step."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pipeline.engine.stage import Workspace
from pipeline.ops.doctor.findings import Finding, not_asked, ok, problem, warning
from pipeline.running.ray_jobs import RayNode, nodes_of
from pipeline.settings import Settings
from resources.cluster import LLM_STAGE_NAMES, unfit

NAME = "cluster"


def steps(workspace: Workspace) -> Iterator[Finding]:
    """What the executor of the settings needs. Raises as `nodes_of` does where Ray's job server does not answer."""
    settings = workspace.settings
    if not settings.on_cluster:
        yield not_asked(NAME, "CITELOOM_EXECUTOR is in_process: steps work on this machine")
        return
    if settings.executor == "k8s":
        yield not_asked(NAME, "CITELOOM_EXECUTOR is k8s: Dagster starts the pods, and nothing is asked from here")
        return
    wrong = list(unfit(settings, ()))
    for each in unfit(settings, LLM_STAGE_NAMES):
        told = f"CITELOOM_EXECUTOR=ray {each}"
        if each in wrong:
            yield problem(NAME, told, "correct the settings")
        else:
            yield warning(NAME, told, "correct the settings before stages run that ask a model")
    yield from _offered(settings, nodes_of(settings))


def _offered(settings: Settings, nodes: Sequence[RayNode]) -> Iterator[Finding]:
    """What the nodes have, against what steps ask for: Ray lets a step wait for ever that no node can take."""
    cpus, gpus = sum(node.cpus for node in nodes), sum(node.gpus for node in nodes)
    seen = f"{settings.ray_address}: nodes {len(nodes)}, processors {cpus:g}, GPUs {gpus:g}"
    if not any(node.cpus >= settings.step_cpus for node in nodes):
        yield problem(
            NAME, f"{seen}; no node has the {settings.step_cpus:g} processors of a step, which would wait for ever",
            "lower CITELOOM_WORKERS, or start a larger node",
        )  # fmt: skip
    elif settings.embedding_gpus and not any(_embeds(settings, node) for node in nodes):
        yield problem(
            NAME,
            f"{seen}; no node has {settings.step_cpus:g} processors and {settings.embedding_gpus:g} GPUs for the step "
            "embeddings, which would wait for ever",
            "start a node with ray start --num-gpus, or set CITELOOM_EMBEDDING_GPUS to 0",
        )
    elif gpus and not settings.embedding_gpus:
        yield warning(NAME, f"{seen}; the step embeddings asks for none", "set CITELOOM_EMBEDDING_GPUS to 1")
    else:
        yield ok(NAME, seen)


def _embeds(settings: Settings, node: RayNode) -> bool:
    return node.cpus >= settings.step_cpus and node.gpus >= settings.embedding_gpus
