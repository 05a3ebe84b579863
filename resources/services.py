"""Dagster resources: the data root, Qdrant, the language model, arXiv; and the workspace."""

from __future__ import annotations

from typing import Any

import dagster as dg

from pipeline.engine.stage import Workspace
from pipeline.ops.services import release_services
from pipeline.settings import load_settings

LLM_TOKENS_TAG = "citeloom/llm_tokens"
"""Tag of a run: the most tokens that it may pay for; it overrides the setting."""
LLM_BUDGET_TAG = "citeloom/llm_budget"
"""Tag of a run: the name of the budget that it shares with other runs."""


# Fields of services are settings of the same names, and None leaves a setting as the environment
# has it. Secrets are no fields: Dagster shows the configuration of resources on its pages.


class DataRootResource(dg.ConfigurableResource[None]):
    """The data root, and the folder of this machine for locks, caches and Dagster's state."""

    data: str | None = None
    local: str | None = None


class QdrantResource(dg.ConfigurableResource[None]):
    """The Qdrant server; without one, Qdrant Edge in the data root."""

    qdrant_url: str | None = None
    qdrant_collection: str | None = None


class LlmResource(dg.ConfigurableResource[None]):
    """The language model's OpenAI-compatible endpoint."""

    llm_url: str | None = None
    llm_model: str | None = None


class ArxivResource(dg.ConfigurableResource[None]):
    """arXiv: its snapshot, whether its API is asked for what that lacks, and its OAI-PMH server."""

    metadata_snapshot: str | None = None
    arxiv_api: bool | None = None
    oai_url: str | None = None


class WorkspaceResource(dg.ConfigurableResource[Workspace]):
    """Gives assets a `Workspace`; stops at the run's end what the run has started."""

    data_root: DataRootResource
    qdrant: QdrantResource
    llm: LlmResource
    arxiv: ArxivResource

    def create_resource(self, context: dg.InitResourceContext) -> Workspace:
        tags = context.run.tags if context.run else {}
        budget = {"llm_budget_tokens": LLM_TOKENS_TAG, "llm_budget_name": LLM_BUDGET_TAG}
        overrides = {name: tags[tag] for name, tag in budget.items() if tag in tags}
        for service in (self.data_root, self.qdrant, self.llm, self.arxiv):
            overrides |= service.model_dump(exclude_none=True)
        return Workspace(load_settings(**overrides))

    def teardown_after_execution(self, context: dg.InitResourceContext) -> None:
        release_services()


def build_resources(**overrides: Any) -> dict[str, Any]:
    """Every resource by name. overrides: services to build the workspace of, or the workspace
    itself.
    """
    services: dict[str, Any] = {
        "data_root": DataRootResource(),
        "qdrant": QdrantResource(),
        "llm": LlmResource(),
        "arxiv": ArxivResource(),
    }
    services |= {name: overrides[name] for name in services.keys() & overrides.keys()}
    return {**services, "workspace": WorkspaceResource(**services), **overrides}
