"""The language models that the settings name: the default, the models file, the judges."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from pydantic import SecretStr

from pipeline.engine.systems import System
from pipeline.errors import SettingError
from pipeline.llm.messages import Prices
from pipeline.settings import Settings
from pipeline.settings.models_file import read_key, read_models_file
from pipeline.settings.settings import BUNDLED_CONTEXT, BUNDLED_LLM
from pipeline.settings.urls import refuse_key_over_http, refuse_unsendable_key, split_url
from pipeline.settings.validators import parse_price
from pipeline.system_names import name_in_digests
from pipeline.tables.writers import Writer
from pipeline.text import text_digest

BUNDLED_MODEL = "smollm2-135m-instruct"
# llama.context_length in the bundled model's file: what it was trained to read.
TRAINED_CONTEXT = 8192
# As endpoints print its name too: SmolLM2-135M-Instruct-Q4_K_M.gguf.
_SMALL_MODEL = "smollm2-135m"


@dataclass(frozen=True, slots=True)
class Model:
    """A language model: its name, where it is, and how it may be called."""

    name: str
    url: str | None
    """Base URL of its endpoint; None for the bundled model."""
    api_key: SecretStr | None
    context: int
    """Tokens that it reads and writes in one call, without those for its thoughts."""
    concurrency: int
    """Calls in flight at the same time."""
    prices: Prices
    timeout: float
    """Time limit of one call, in seconds."""
    cutoff: str = ""
    """Knowledge cut-off, a month or day; empty for unknown."""
    max_tokens: int | None = None
    """Longest answer where the caller sets no limit; None for the endpoint's own."""
    thinking: int | None = None
    """Tokens that it may think before each answer, beside its context; None where that is not
    known.
    """
    key_variable: str | None = None
    """The environment variable that must hold its key."""
    table: str = ""
    """Its table in the file of CITELOOM_MODELS, for messages; empty without one."""
    served_as: str = ""
    """Its name at the endpoint; empty where that is `name`."""

    @property
    def requested(self) -> str:
        """The name in requests."""
        return self.served_as or self.name

    @property
    def fingerprint(self) -> str:
        """The model's fields that change an answer or its prompt: no address, key or price."""
        written = f", {self.max_tokens} written" if self.max_tokens else ""
        served = f", served as {self.served_as}" if self.served_as else ""
        return f"{self.name}, {self.context} tokens{written}{served}"

    @property
    def table_digest(self) -> str:
        """SHA-256 of what decides whether a failed request may end otherwise."""
        return text_digest(f"{self.url} {self.context} {self.max_tokens} {self.thinking}")

    def setting(self, field: str) -> str:
        """Where the user sets a field of this model (url, api_key, model, …), for messages."""
        if not self.table:
            return f"CITELOOM_LLM_{field.upper()}"
        if field == "api_key" and self.key_variable:
            return self.key_variable
        model = "served_as" if self.served_as else "name"
        names_in_file = {"api_key": "api_key_env", "model": model}
        return f"the {names_in_file.get(field, field)} of {self.table}"

    def check(self) -> None:
        """Raise SettingError for a URL that is no address, a key that is not set, cannot be sent or
        would go unencrypted to another host, and a context that the bundled model does not have.
        """
        if self.key_variable and self.api_key is None:
            raise SettingError(
                f"{self.key_variable} is not set, the api_key_env of {self.name} in CITELOOM_MODELS"
            )
        if self.url is None:
            if self.context > TRAINED_CONTEXT:
                raise SettingError(
                    f"{self.setting('context')} is {self.context}, but the bundled"
                    f" {self.name} reads {TRAINED_CONTEXT} tokens at most"
                )
            return
        parts = split_url(self.setting("url"), self.url, "http://localhost:8000/v1")
        refuse_unsendable_key(self.setting("api_key"), self.api_key)
        if self.api_key is not None:
            refuse_key_over_http(self.setting("url"), parts, self.setting("api_key"))


def models_of(settings: Settings) -> dict[str, Model]:
    """All models by name: the one of CITELOOM_LLM_URL, those of the file, and the bundled one.

    Raises SettingError where the file of CITELOOM_MODELS cannot be read or is wrong.
    """
    default = Model(
        name=settings.llm_model,
        url=settings.llm_url,
        api_key=settings.llm_api_key,
        context=settings.llm_context,
        concurrency=settings.llm_concurrency,
        prices=_prices(settings.llm_price),
        timeout=settings.llm_timeout,
        cutoff=settings.llm_cutoff,
    )
    models = {}
    bundled = replace(default, name=BUNDLED_MODEL, url=None, api_key=None, cutoff="")
    if not settings.bundled_llm:
        models[default.name] = default
        concurrency = Settings.model_fields["llm_concurrency"].default
        bundled = replace(
            bundled, context=BUNDLED_CONTEXT, concurrency=concurrency, prices=Prices()
        )
    entries = read_models_file(settings.models) if settings.models else {}
    for name, entry in entries.items():
        models[name] = Model(
            name=name,
            url=entry.url,
            api_key=read_key(entry.api_key_env) if entry.api_key_env else None,
            context=entry.reading_context,
            concurrency=entry.concurrency,
            prices=_prices(entry.price),
            timeout=settings.llm_timeout,
            cutoff=entry.cutoff,
            max_tokens=entry.max_tokens,
            thinking=entry.thinking,
            key_variable=entry.api_key_env,
            table=f"[{name}] in {settings.models}",
            served_as=entry.served_as,
        )
    return {BUNDLED_MODEL: bundled} | models


def get_model(
    settings: Settings, name: str | None = None, setting: str = "CITELOOM_MODELS"
) -> Model:
    """The model of this name, which `setting` holds; None: the default model.

    Raises SettingError that names the setting where there is no such model.
    """
    if name is None:
        name, setting = settings.llm_model, "CITELOOM_LLM_MODEL"
    models = models_of(settings)
    if name in models:
        return models[name]
    alternative = ""
    if name == settings.llm_model:
        alternative = ", or set CITELOOM_LLM_URL to an endpoint that serves it"
    raise SettingError(
        f"{setting} names the model {name}, which is not defined: the known ones are"
        f" {', '.join(models)}; give {name} a table in the file of CITELOOM_MODELS{alternative}"
    )


def judge_model(settings: Settings) -> Model:
    """The model that judges; the default where none is named. Raises as `get_model`."""
    return get_model(settings, next(iter(settings.judges), None), "CITELOOM_JUDGES")


def known_prices(settings: Settings) -> dict[str, Prices]:
    """The prices of the models that have one, by name.

    That of the default model holds without an endpoint too: its rows may be of an earlier run.
    """
    prices = {settings.llm_model: _prices(settings.llm_price)}
    prices |= {name: model.prices for name, model in models_of(settings).items()}
    return {name: price for name, price in sorted(prices.items()) if price.known}


def known_cutoffs(settings: Settings) -> dict[str, str]:
    """The known knowledge cut-offs by model; as in `known_prices`, with the default model's also
    where no endpoint is set.
    """
    cutoffs = {settings.llm_model: settings.llm_cutoff}
    cutoffs |= {name: model.cutoff for name, model in models_of(settings).items()}
    return {name: cutoff for name, cutoff in sorted(cutoffs.items()) if cutoff}


def models_served_as(settings: Settings) -> dict[str, str]:
    """The models for which another one answers: its name at the endpoint, by the model's name."""
    models = models_of(settings).values()
    return {model.name: model.served_as for model in models if model.served_as}


def settings_for(
    settings: Settings, model: str | None, setting: str = "CITELOOM_MODELS"
) -> Settings:
    """The settings with this model in place of the default; None: as they are.

    The bundled model has its own longest drafts and key elements where the settings have no limit.
    Raises SettingError that names `setting` where there is no such model.
    """
    if model is None:
        return settings
    language_model = get_model(settings, model, setting)
    update: dict[str, object] = {
        "llm_model": language_model.name,
        "llm_context": language_model.context,
    }
    if language_model.url is None:
        limits = ("draft_tokens", "element_tokens")
        update |= {name: getattr(settings, name) or BUNDLED_LLM[name] for name in limits}
    return settings.model_copy(update=update)


def writer_settings(
    writers: Sequence[tuple[Writer, System]], settings: Settings
) -> dict[str, object]:
    """The version and the settings of each writer's system, by the writer's name in digests."""
    return {
        name_in_digests(writer.name): [
            system.version,
            system.settings_of(settings_for(settings, writer.model)),
        ]
        for writer, system in writers
    }


def is_small_model(name: str | None) -> bool:
    """Whether a name is that of the bundled model, which only shows that the path works."""
    return _SMALL_MODEL in (name or "").lower()


def small_model_among(names: Iterable[str | None]) -> str:
    """The name of the bundled model if it is among these; else empty."""
    return min((name for name in names if name and is_small_model(name)), default="")


def small_model_note(name: str | None) -> str:
    """A caution about texts by this model; empty if it is not the bundled one."""
    if not is_small_model(name):
        return ""
    return (
        f"{name} is the small model that citeloom carries: its texts only show that the path works"
    )


def shown_url(url: str) -> str:
    """The URL as messages may show it: without user, password and query."""
    return re.sub(r"//[^/@]*@", "//", url).partition("?")[0]


def _prices(text: str) -> Prices:
    return Prices(*parse_price(text)) if text else Prices()
