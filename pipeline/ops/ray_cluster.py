"""The Ray cluster of Dagster's steps: the settings it needs, what travels to its nodes.

Secrets never travel: Ray keeps what a job is given in its store and logs. Each node has them in its
own environment, or in the file that CITELOOM_ENV_FILE names at `ray start`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import TYPE_CHECKING

from pipeline.errors import SettingError, TransientFailure, require_packages
from pipeline.settings import Settings, is_secret
from pipeline.stages import LLM_STAGE_NAMES
from pipeline.text import one_line

if TYPE_CHECKING:
    from ray.job_submission import JobSubmissionClient

_BUDGETS = ("llm_budget_calls", "llm_budget_tokens", "llm_budget_money")


def check_cluster(settings: Settings, stages: Collection[str]) -> None:
    """Raise SettingError, a line per setting, if these stages cannot run on the cluster.

    Does nothing unless CITELOOM_EXECUTOR is `ray`.
    """
    problems = list(setting_problems(settings, stages)) if settings.executor == "ray" else []
    if problems:
        raise SettingError("\n".join(f"CITELOOM_EXECUTOR=ray {problem}" for problem in problems))


def setting_problems(settings: Settings, stages: Collection[str]) -> Iterator[str]:
    """The settings with which these stages cannot run on several machines, one line each."""
    if settings.qdrant_url is None:
        yield "needs CITELOOM_QDRANT_URL: the in-process index belongs to one machine"
    if settings.dagster_pg_url is None:
        yield (
            "needs CITELOOM_DAGSTER_PG_URL: nodes report their steps there, and SQLite is for one"
            " machine"
        )
    if LLM_STAGE_NAMES.isdisjoint(stages):
        return
    if settings.llm_url is None:
        yield "needs CITELOOM_LLM_URL: the bundled model belongs to one process of one machine"
    budgets = [f"CITELOOM_{name.upper()}" for name in _BUDGETS if getattr(settings, name)]
    if budgets and not settings.llm_budget_name:
        yield (
            f"and {', '.join(budgets)} need CITELOOM_LLM_BUDGET_NAME: each step is a process of its"
            " own, and only a named budget is shared"
        )


def node_environment(settings: Settings) -> Mapping[str, str]:
    """A step's environment variables: every setting but secrets, so that no node's value differs.

    `workers` is the step's share of the node, not the node's number of cores. `data`, `local` and
    `models` are absolute, as every node must see them at the same path.
    """
    values = {
        name: getattr(settings, name) for name in Settings.model_fields if not is_secret(name)
    }
    values |= {
        "data": settings.data_root,
        "local": settings.local_root,
        "workers": settings.step_cpus,
    }
    values["models"] = settings.models and settings.models.resolve()
    return {f"CITELOOM_{name.upper()}": _as_text(value) for name, value in values.items()}


def _as_text(value: object) -> str:
    """A setting as an environment variable holds it."""
    if value is None:
        return ""
    if isinstance(value, tuple):
        return ",".join(map(str, value))
    if isinstance(value, bool):
        return str(value).lower()
    return str(value)


def check_installed() -> None:
    """Raise SettingError if Ray or dagster-ray is not installed."""
    require_packages("CITELOOM_EXECUTOR=ray", "ray", "ray", "dagster_ray")


def job_client(settings: Settings) -> JobSubmissionClient:
    """A client of the cluster's job server.

    Raises SettingError if Ray is not installed, TransientFailure if no job server answers at
    CITELOOM_RAY_ADDRESS.
    """
    check_installed()
    from ray.exceptions import AuthenticationError
    from ray.job_submission import JobSubmissionClient

    try:
        return JobSubmissionClient(settings.ray_address)
    # Respectively: nobody answers, the server is not a job server, the address is malformed, the
    # token is wrong.
    except (ConnectionError, RuntimeError, ValueError, AuthenticationError) as error:
        reason = one_line(str(error))[:300]
        raise TransientFailure(
            f"CITELOOM_RAY_ADDRESS: no Ray job server at {settings.ray_address}: {reason}"
        ) from error
