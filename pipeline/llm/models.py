"""The language models that the settings name: the default model, those of the file of CITELOOM_MODELS, the judges."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

from pydantic import SecretStr

from pipeline.errors import SettingError
from pipeline.llm.messages import Prices
from pipeline.settings import Settings
from pipeline.settings.models_file import ModelEntry, read_key, read_models_file
from pipeline.settings.settings import EMBEDDED_CONTEXT, EMBEDDED_LLM
from pipeline.settings.urls import refuse_key_over_http, refuse_unsendable_key, split_url
from pipeline.settings.validators import OVERLAP_JUDGE, parse_price

EMBEDDED_MODEL = "smollm2-135m-instruct"
# llama.context_length in the embedded model's file: what it was trained to read.
TRAINED_CONTEXT = 8192
# As endpoints print its name too: SmolLM2-135M-Instruct-Q4_K_M.gguf.
_SMALL_MODEL = "smollm2-135m"


@dataclass(frozen=True, slots=True)
class SettingNames:
    """Where the user defined a model, as messages name it."""

    url: str = "CITELOOM_LLM_URL"
    key: str = "CITELOOM_LLM_API_KEY"
    model: str = "CITELOOM_LLM_MODEL"
    context: str = "CITELOOM_LLM_CONTEXT"
    price: str = "CITELOOM_LLM_PRICE"


@dataclass(frozen=True, slots=True)
class Model:
    """A language model: its name, where it is, and how it may be called."""

    name: str
    url: str | None
    """Base URL of its endpoint; None for the embedded model."""
    api_key: SecretStr | None
    context: int
    """Tokens that it reads and writes in one call."""
    concurrency: int
    """Calls in flight at the same time."""
    prices: Prices
    timeout: float
    """Time limit of one call, in seconds."""
    max_tokens: int | None = None
    """Longest answer where the caller sets no limit; None for the endpoint's own."""
    key_variable: str | None = None
    """The environment variable that must hold its key."""
    setting_names: SettingNames = SettingNames()

    @property
    def fingerprint(self) -> str:
        """What of the model changes an answer or the prompt before it; its address, key and price do not."""
        return f"{self.name}, {self.context} tokens" + (f", {self.max_tokens} written" if self.max_tokens else "")

    def check(self) -> None:
        """Raise SettingError for a URL that is no address, a key that is not set, cannot be sent or would go
        unencrypted to another host, and a context that the embedded model does not have."""
        names = self.setting_names
        if self.key_variable and self.api_key is None:
            raise SettingError(f"{self.key_variable} is not set, the api_key_env of {self.name} in CITELOOM_MODELS")
        if self.url is None:
            if self.context > TRAINED_CONTEXT:
                raise SettingError(
                    f"{names.context} is {self.context}, but the embedded {self.name} reads {TRAINED_CONTEXT} tokens "
                    "at most"
                )
            return
        parts = split_url(names.url, self.url, "http://localhost:8000/v1")
        refuse_unsendable_key(names.key, self.api_key)
        if self.api_key is not None:
            refuse_key_over_http(names.url, parts, names.key)


@dataclass(frozen=True, slots=True)
class Models:
    """The models of the settings, by name."""

    settings: Settings
    entries: Mapping[str, ModelEntry]

    @classmethod
    def of(cls, settings: Settings) -> Models:
        """Raises SettingError where the file of CITELOOM_MODELS cannot be read or is wrong."""
        return cls(settings, read_models_file(settings.models) if settings.models else {})

    @property
    def default(self) -> Model:
        """The model that is used where none is named. Raises as `get` does."""
        return self.get(self.settings.llm_model, "CITELOOM_LLM_MODEL")

    @property
    def judges(self) -> list[Model]:
        """The models that judge, one or two; the default model where none is named. Raises as `get` does."""
        names = [name for name in self.settings.judges if name != OVERLAP_JUDGE]
        return [self.get(name, "CITELOOM_JUDGES") for name in names] or [self.default]

    @property
    def names(self) -> list[str]:
        """The names of all models, the default first."""
        return list(dict.fromkeys((self.settings.llm_model, *self.entries, EMBEDDED_MODEL)))

    def get(self, name: str, setting: str) -> Model:
        """The model of this name, which `setting` holds.

        Raises SettingError that names the setting where there is no such model.
        """
        settings = self.settings
        if name == settings.llm_model and settings.llm_url is not None and not self._is_default_in_file:
            return self._from_settings(name)
        if name in self.entries:
            return self._from_file(name, self.entries[name])
        if name == EMBEDDED_MODEL:
            return self._embedded()
        known = ", ".join(other for other in self.names if other != name)
        raise SettingError(
            f"{setting} names the model {name}, which is not defined: the known ones are {known}; give {name} a table "
            "in the file of CITELOOM_MODELS"
            + (", or set CITELOOM_LLM_URL to an endpoint that serves it" if name == settings.llm_model else "")
        )

    def prices(self) -> dict[str, Prices]:
        """The known prices of all models, by name."""
        default = {self.settings.llm_model: _prices(self.settings.llm_price)}
        prices = default | {name: _prices(entry.price) for name, entry in self.entries.items()}
        return {name: price for name, price in sorted(prices.items()) if price.known}

    @property
    def _is_default_in_file(self) -> bool:
        entry = self.entries.get(self.settings.llm_model)
        return entry is not None and entry.url == self.settings.llm_url

    def _from_settings(self, name: str) -> Model:
        settings = self.settings
        return Model(
            name=name,
            url=settings.llm_url,
            api_key=settings.llm_api_key,
            context=settings.llm_context,
            concurrency=settings.llm_concurrency,
            prices=_prices(settings.llm_price),
            timeout=settings.llm_timeout,
        )

    def _embedded(self) -> Model:
        if self.settings.embedded_llm:
            return replace(self._from_settings(EMBEDDED_MODEL), url=None, api_key=None)
        return Model(
            name=EMBEDDED_MODEL,
            url=None,
            api_key=None,
            context=EMBEDDED_CONTEXT,
            concurrency=Settings.model_fields["llm_concurrency"].default,
            prices=Prices(),
            timeout=self.settings.llm_timeout,
        )

    def _from_file(self, name: str, entry: ModelEntry) -> Model:
        where = f"[{name}] in {self.settings.models}"
        return Model(
            name=name,
            url=entry.url,
            api_key=read_key(entry.api_key_env) if entry.api_key_env else None,
            context=entry.context,
            concurrency=entry.concurrency,
            prices=_prices(entry.price),
            timeout=self.settings.llm_timeout,
            max_tokens=entry.max_tokens,
            key_variable=entry.api_key_env,
            setting_names=SettingNames(
                url=f"the url of {where}",
                key=entry.api_key_env or f"the api_key_env of {where}",
                model=f"the name of {where}",
                context=f"the context of {where}",
                price=f"the price of {where}",
            ),
        )


def judges_fingerprint(settings: Settings) -> str:
    """What of the judges changes a judgement: the fingerprints of their models."""
    return "; ".join(model.fingerprint for model in Models.of(settings).judges)


def settings_for(settings: Settings, model: str | None, setting: str = "CITELOOM_MODELS") -> Settings:
    """The settings with the name and the context of this model in place of the default model's; None: as they are.

    The embedded model has its own longest drafts and key elements where the settings have no limit.
    Raises SettingError that names `setting` where there is no such model.
    """
    if model is None:
        return settings
    chosen = Models.of(settings).get(model, setting)
    update: dict[str, object] = {"llm_model": chosen.name, "llm_context": chosen.context}
    if chosen.url is None:
        limits = ("draft_tokens", "element_tokens")
        update |= {name: getattr(settings, name) or EMBEDDED_LLM[name] for name in limits}
    return settings.model_copy(update=update)


def is_small_model(name: str | None) -> bool:
    """Whether a model's name is that of the embedded one, whose texts show that the path works, and no more."""
    return _SMALL_MODEL in (name or "").lower()


def small_model_note(name: str | None) -> str:
    """What a user must know of a text by this model; empty if it is not the embedded one."""
    if not is_small_model(name):
        return ""
    return f"{name} is the small model that citeloom carries: its texts only show that the path works"


def shown_url(url: str) -> str:
    """The URL as messages may show it: without user, password and query."""
    return re.sub(r"//[^/@]*@", "//", url).partition("?")[0]


def _prices(text: str) -> Prices:
    return Prices(*parse_price(text)) if text else Prices()
