"""The workspace as a Dagster resource: settings and secrets come from the environment, never through run config."""

from __future__ import annotations

import dagster as dg

from pipeline.engine.stage import Workspace
from pipeline.ops.services import release_services
from pipeline.settings import load_settings

LLM_TOKENS_TAG = "citeloom/llm_tokens"
"""Tag of a run: the tokens that it may pay for at most, whatever else the settings allow."""
LLM_BUDGET_TAG = "citeloom/llm_budget"
"""Tag of a run: the name of the budget that it shares with other runs."""


class WorkspaceResource(dg.ConfigurableResource[Workspace]):
    """Gives assets a `pipeline.engine.stage.Workspace`; stops at the run's end what the run has started."""

    def create_resource(self, context: dg.InitResourceContext) -> Workspace:
        tags = context.run.tags if context.run else {}
        settings = {"llm_budget_tokens": LLM_TOKENS_TAG, "llm_budget_name": LLM_BUDGET_TAG}
        return Workspace(load_settings(**{name: tags[tag] for name, tag in settings.items() if tag in tags}))

    def teardown_after_execution(self, context: dg.InitResourceContext) -> None:
        release_services()
