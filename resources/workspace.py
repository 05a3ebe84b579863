"""The workspace as a Dagster resource.

Nothing of a setting passes through run config: literal values there land in Dagster's run store.
"""

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
    """Gives assets a `pipeline.engine.stage.Workspace`; ends at the run's end what the run has started."""

    keep_services: bool = False
    """Leave the embedded model's server and the embedded index open after a run, for a process that runs many."""

    def create_resource(self, context: dg.InitResourceContext) -> Workspace:
        tags = context.run.tags if context.run else {}
        named = {"llm_budget_tokens": LLM_TOKENS_TAG, "llm_budget_name": LLM_BUDGET_TAG}
        return Workspace(load_settings(**{setting: tags[tag] for setting, tag in named.items() if tag in tags}))

    def teardown_after_execution(self, context: dg.InitResourceContext) -> None:
        if not self.keep_services:
            release_services()
