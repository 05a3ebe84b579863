"""The file of CITELOOM_MODELS: a TOML table for each language model."""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    SecretStr,
    TypeAdapter,
    ValidationError,
    model_validator,
)

from pipeline.errors import SettingError
from pipeline.settings.env_file import find_env_file, read_env_file
from pipeline.settings.urls import split_url
from pipeline.settings.validators import WITH_PASSWORD, check_month_or_day, check_price


def _check_url(value: str) -> str:
    if WITH_PASSWORD.match(value):
        raise ValueError(
            "holds a name or password: leave it out of the address, and name its variable as"
            " api_key_env"
        )
    try:
        split_url("it", value, "http://localhost:8000/v1")
    except SettingError as error:
        raise ValueError(str(error)) from None
    return value


# Environment variables of object stores and PostgreSQL, which libraries read by themselves.
STORE_SECRETS = (
    "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "FSSPEC_S3_SECRET", "FSSPEC_S3_TOKEN",
    "AZURE_STORAGE_ACCOUNT_KEY", "AZURE_STORAGE_CONNECTION_STRING", "AZURE_STORAGE_SAS_TOKEN",
    "PGPASSWORD",
)  # fmt: skip


def _check_variable(value: str) -> str:
    # The value is not shown: it may be the key itself.
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", value):
        raise ValueError(
            "must be the name of an environment variable that holds the key, not the key"
        )
    if value.startswith("CITELOOM_") and value != "CITELOOM_LLM_API_KEY":
        raise ValueError("must not begin with CITELOOM_, which is for settings")
    if value in STORE_SECRETS:
        raise ValueError("names the secret of a store or database, and must name a model's key")
    return value


LEAST_CONTEXT = 512


class ModelEntry(BaseModel):
    """One table of the file; its name is that of the model in settings, tables and reports."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    url: Annotated[str, AfterValidator(_check_url)]
    """Base URL of an OpenAI-compatible endpoint."""
    served_as: str = ""
    """Name of the model at the endpoint, where another model stands in; empty for the table's."""
    api_key_env: Annotated[str, AfterValidator(_check_variable)] | None = None
    """Name of the environment variable that holds the key."""
    context: int = Field(8192, ge=LEAST_CONTEXT)
    """Tokens that the model reads and writes in one call."""
    concurrency: int = Field(4, ge=1)
    """Calls in flight at the same time."""
    price: Annotated[str, AfterValidator(check_price)] = ""
    """Prices of a million tokens, read/written, such as 2.5/10."""
    cutoff: Annotated[str, AfterValidator(check_month_or_day)] = ""
    """Knowledge cut-off, such as 2023-12; empty for unknown."""
    max_tokens: int | None = Field(None, ge=1)
    """Longest answer where the caller sets no limit; None for the endpoint's own."""
    thinking: int | None = Field(None, ge=0)
    """Tokens of the context that it may think before each answer; None where that is not known: 0
    until an answer is cut in its thoughts, then 4,096 where prompts leave as many.
    """

    @property
    def reading_context(self) -> int:
        """Tokens of the context that are not for thoughts."""
        return self.context - (self.thinking or 0)

    @model_validator(mode="after")
    def _leaves_room(self) -> ModelEntry:
        if self.reading_context < LEAST_CONTEXT:
            raise ValueError(
                f"its context of {self.context} must be {LEAST_CONTEXT} more than its thinking"
            )
        return self


# A thousand models are some 200 KB.
_MOST_BYTES = 1_000_000
_ENTRIES = TypeAdapter(dict[str, ModelEntry])
# Kind of pydantic's error → what to do.
_MESSAGES = {
    "extra_forbidden": (
        f"is not a field; the fields are {', '.join(ModelEntry.model_fields)}. A name with a dot"
        ' needs quotes, such as ["gpt-3.5"], and a key belongs in the environment variable that'
        " api_key_env names"
    ),
    "model_type": "must be in the table of a model, such as [gpt-4o]",
}


def _read_toml(file: Path) -> dict[str, Any]:
    """The document of the file; raises SettingError where it cannot be read, or is too large."""
    try:
        with file.open("rb") as stream:
            content = stream.read(_MOST_BYTES + 1)
        if len(content) > _MOST_BYTES:
            raise ValueError(f"it has over {_MOST_BYTES:,} bytes")
        return tomllib.loads(content.decode())
    except OSError as error:
        raise SettingError(f"CITELOOM_MODELS: {file} cannot be read ({error.strerror})") from error
    except (ValueError, RecursionError) as error:
        raise SettingError(f"CITELOOM_MODELS: {file} is not TOML ({error})") from None


def with_model_values(text: str, name: str, values: Mapping[str, str | int]) -> str:
    """The text of a file of models with these values in the table of a model, added where it is
    missing; the rest stays as it is.
    """
    import tomlkit

    document = tomlkit.parse(text)
    if name not in document:
        document[name] = tomlkit.table()
    document[name].update(values)
    return tomlkit.dumps(document)


def read_models_file(file: Path) -> dict[str, ModelEntry]:
    """The models of the file by name, in its order.

    Raises SettingError with one line for each thing that is wrong, naming file, model and field.
    """
    tables = _read_toml(file)
    if not tables:
        raise SettingError(
            f'CITELOOM_MODELS: {file} names no model: add a table such as ["gpt-4o"] with a url'
        )
    try:
        return _ENTRIES.validate_python(tables)
    except ValidationError as error:
        lines = []
        for detail in error.errors():
            # The value is not shown, as it may be a key.
            name, *field = map(str, detail["loc"])
            place = f"[{name}] {'.'.join(field)}" if field else name
            message = _MESSAGES.get(detail["type"], detail["msg"].removeprefix("Value error, "))
            lines.append(f"{file}: {place}: {message}")
        raise SettingError("\n".join(lines)) from None


def default_model_values(values: Mapping[str, Any]) -> dict[str, Any]:
    """The settings `llm_…` of the default model, where the file defines it; else none.

    values: settings as they were given, before validation. The default is the model that
    CITELOOM_LLM_MODEL names; without it and CITELOOM_LLM_URL, the first of the file.
    """
    if not values.get("models"):
        return {}
    file = Path(str(values["models"]))
    entries = read_models_file(file)
    url = values.get("llm_url")
    name = values.get("llm_model") or ("" if url else next(iter(entries)))
    if name not in entries:
        return {}
    entry = entries[name]
    if url and url != entry.url:
        raise SettingError(
            f"CITELOOM_LLM_URL differs from the url of [{name}] in {file}: remove one of them"
        )
    return {
        "llm_model": name,
        "llm_url": entry.url,
        # It is another service's; `pipeline.llm.models` reads that of api_key_env
        "llm_api_key": None,
        "llm_context": entry.reading_context,
        "llm_concurrency": entry.concurrency,
        "llm_price": entry.price,
        "llm_cutoff": entry.cutoff,
    }


def read_key(variable: str) -> SecretStr | None:
    """The key that a variable of the environment or of `.env` holds."""
    line = read_env_file(find_env_file()).get(variable)
    value = os.environ.get(variable) or (line and line.value)
    return SecretStr(value) if value else None


def collect_keys(file: Path | None) -> list[str]:
    """The keys of all models of the file, to be redacted; none if the file cannot be read."""
    if file is None:
        return []
    try:
        entries = read_models_file(file)
    except SettingError:
        return []
    variables = {entry.api_key_env for entry in entries.values() if entry.api_key_env}
    keys = map(read_key, sorted(variables))
    return [key.get_secret_value() for key in keys if key is not None]
