"""The workspace that Dagster gives assets: of the settings, of services, of the tags of a run."""

from types import SimpleNamespace

import pytest

from pipeline.settings import load_settings
from resources.services import (
    LLM_BUDGET_TAG,
    LLM_TOKENS_TAG,
    ArxivResource,
    DataRootResource,
    LlmResource,
    QdrantResource,
    build_resources,
)

pytestmark = pytest.mark.usefixtures("no_settings")


def settings_of(tags=None, **services):
    """The settings of the workspace of a run with these tags."""
    context = SimpleNamespace(run=SimpleNamespace(tags=tags or {}))
    return build_resources(**services)["workspace"].create_resource(context).settings


def test_each_service_can_be_given_instead_of_its_settings(tmp_path):
    chosen = settings_of(
        data_root=DataRootResource(data=str(tmp_path / "elsewhere")),
        qdrant=QdrantResource(qdrant_url="http://127.0.0.1:1", qdrant_collection="mine"),
        llm=LlmResource(llm_url="http://127.0.0.1:2/v1", llm_model="theirs"),
        arxiv=ArxivResource(oai_url="http://127.0.0.1:3/oai"),
    )
    assert chosen.data_root == tmp_path / "elsewhere"
    assert chosen.qdrant_collection == "mine"
    assert chosen.llm_model == "theirs"
    assert chosen.oai_url == "http://127.0.0.1:3/oai"


def test_a_run_that_bears_a_budget_has_it_for_its_ceiling():
    chosen = settings_of({LLM_TOKENS_TAG: "77", LLM_BUDGET_TAG: "refresh r1"})
    assert (chosen.llm_budget_tokens, chosen.llm_budget_name) == (77, "refresh r1")
    assert settings_of() == load_settings()
