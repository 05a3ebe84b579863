"""What a cluster demands of the settings, and which of them travel to its nodes.

Secrets never travel: a Ray cluster keeps what a job is given in its own store and logs. Each node has them in its own
environment, or in a `.env` in the folder in which `ray start` was called.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from pipeline.errors import SettingError
from pipeline.settings import Settings, is_secret
from pipeline.stages import LLM_STAGES

LLM_STAGE_NAMES = frozenset(stage.name for stage in LLM_STAGES)
_BUDGETS = ("llm_budget_calls", "llm_budget_tokens", "llm_budget_money")


def check_cluster(settings: Settings, stages: Collection[str]) -> None:
    """Raise SettingError, a line for each setting, where a run that starts here could not have its steps elsewhere.

    stages: names of those that are to run. Without effect where steps work in the run's own process.
    """
    wrong = list(unfit(settings, stages)) if settings.on_cluster else []
    if wrong:
        raise SettingError("\n".join(f"CITELOOM_EXECUTOR={settings.executor} {each}" for each in wrong))


def unfit(settings: Settings, stages: Collection[str]) -> Iterator[str]:
    """What of the settings does not go with a cluster, a line each. stages: names of those that are to run."""
    if settings.executor == "k8s":
        yield "is for runs that Dagster starts as pods: materialize on its page, or give this command another executor"
        return
    if settings.qdrant_url is None:
        yield "needs CITELOOM_QDRANT_URL: the embedded index belongs to one process of one machine"
    if settings.dagster_pg_url is None:
        yield "needs CITELOOM_DAGSTER_PG_URL: nodes tell of their steps there, and SQLite is for one machine"
    if LLM_STAGE_NAMES.isdisjoint(stages):
        return
    if settings.llm_url is None:
        yield "needs CITELOOM_LLM_URL: the embedded model belongs to one process of one machine"
    budgets = [f"CITELOOM_{name.upper()}" for name in _BUDGETS if getattr(settings, name)]
    if budgets and not settings.llm_budget_name:
        yield (
            f"and {', '.join(budgets)} need CITELOOM_LLM_BUDGET_NAME: each step is a process of its own, and only a "
            "budget with a name is shared"
        )


def node_environment(settings: Settings) -> Mapping[str, str]:
    """The environment of a step on a node: every setting but the secrets, so that no node's own can differ.

    `workers` is what the step was given of the node, not its number of cores; `data` and `local` are absolute, as every
    node must see both in the same place.
    """
    told = {name: getattr(settings, name) for name in Settings.model_fields if not is_secret(name)}
    told |= {"data": settings.data_root, "local": settings.local_root, "workers": settings.step_cpus}
    return {f"CITELOOM_{name.upper()}": _written(value) for name, value in told.items()}


def _written(value: object) -> str:
    """A setting as the environment holds it."""
    if value is None:
        return ""
    if isinstance(value, tuple):
        return ",".join(map(str, value))
    return str(value).lower() if isinstance(value, bool) else str(value)
