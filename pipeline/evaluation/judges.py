"""Which models judge: settings whose `llm_*` are a judge's."""

from __future__ import annotations

from pydantic import SecretStr

from pipeline.llm.budget import prices_of
from pipeline.llm.messages import Prices
from pipeline.settings import Settings


def first_judge(settings: Settings) -> Settings:
    """The settings with the judge in place of the LLM; the LLM itself where no judge is named."""
    return _as_llm(settings, settings.judge_model, settings.judge_url, settings.judge_api_key)


def judges(settings: Settings) -> list[Settings]:
    """The settings of each judge: the first, and a second where one is named that is another model."""
    first = first_judge(settings)
    if settings.second_judge_model in ("", first.llm_model):
        return [first]
    second = _as_llm(settings, settings.second_judge_model, settings.second_judge_url, settings.second_judge_api_key)
    return [first, second]


def prices_by_model(settings: Settings) -> dict[str, Prices]:
    """The prices of the writer and of each judge, by model."""
    return {each.llm_model: prices_of(each) for each in (*judges(settings), settings)}


def _as_llm(settings: Settings, model: str, url: str | None, key: SecretStr | None) -> Settings:
    """The settings with this model as the LLM; where it has no name, no address or no context, the LLM's own."""
    changed: dict[str, object] = {}
    if model:
        changed["llm_model"] = model
    if url:
        changed |= {"llm_url": url, "llm_api_key": key}
    if settings.judge_context:
        changed["llm_context"] = settings.judge_context
    return settings.model_copy(update=changed)
