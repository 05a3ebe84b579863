"""Load the settings; refuse unknown names and wrong values, all in one message."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from pathlib import Path

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from pipeline.errors import SettingError
from pipeline.settings.fields import PROJECT
from pipeline.settings.models_file import read_models_file
from pipeline.settings.settings import PREFIX, Settings, is_secret
from pipeline.settings.validators import WITH_PASSWORD

# Names with these beginnings belong to the project's own tests.
TEST_PREFIXES = ("CITELOOM_TEST_", "CITELOOM_FAULTS_", "CITELOOM_REQUIRE_TOOLS")

# A key → the address that it is sent to.
_ADDRESSES = {
    "CITELOOM_LLM_API_KEY": "CITELOOM_LLM_URL",
    "CITELOOM_QDRANT_API_KEY": "CITELOOM_QDRANT_URL",
}
# What Kubernetes puts into every container for a service named citeloom or citeloom-…
_KUBERNETES_SERVICE = re.compile(
    r"_SERVICE_HOST$|_SERVICE_PORT(_[A-Z0-9_]{1,100})?$|_PORT(_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)?$"
)
# A value that may hold a secret: user:password@, or a query, in which some services take keys.
_MAY_HOLD_SECRET = re.compile(rf"{WITH_PASSWORD.pattern}|[^?]*://[^?]*\?")


def load_settings(**overrides: object) -> Settings:
    """Settings from overrides, the environment and `.env`, in this order of precedence.

    Raises SettingError with one line for each thing that is wrong: a line of `.env`, an unknown
    name, a value.
    """
    file = overrides.get("_env_file", Settings.model_config.get("env_file"))
    in_file = read_env_file(Path(str(file))) if file else {}
    wrong = list(check_names({**in_file, **dict.fromkeys(os.environ, "the environment")}))
    try:
        settings = Settings(**overrides)  # type: ignore[arg-type]
    except ValidationError as error:
        wrong += map(_describe, error.errors())
        raise SettingError("\n".join(wrong)) from None
    names_model = settings.llm_model and "llm_model" in settings.model_fields_set
    if settings.llm_url and not names_model:
        wrong.append("CITELOOM_LLM_MODEL: must name the model at CITELOOM_LLM_URL, and is not set")
    if settings.embedder_engine == "flagembedding" and settings.embedder != "bge-m3":
        wrong.append(
            "CITELOOM_EMBEDDER_ENGINE: flagembedding computes BGE-M3 alone, and CITELOOM_EMBEDDER"
            f" is {settings.embedder}: set that to bge-m3, or the engine to citeloom"
        )
    if wrong:
        raise SettingError("\n".join(wrong))
    return settings


def refuse_foreign_addresses(settings: Settings, file: Path = Path(".env")) -> None:
    """Raise SettingError, a line for each key, where a key of the environment would go to an
    address that a file of the working folder names.

    For commands that read other people's files: the author of a draft may have put a `.env` or a
    file of models beside it. A checkout's own `.env` is the user's.
    """
    if file.resolve().parent == PROJECT:
        return
    environment = {name.upper() for name, value in os.environ.items() if value}
    in_file = {name.upper() for name in read_env_file(file)} - environment
    pairs = [(key, url) for key, url in _ADDRESSES.items() if url in in_file]
    models = settings.models
    if models is not None and ("CITELOOM_MODELS" in in_file or not models.is_absolute()):
        entries = read_models_file(models).values()
        pairs += [(entry.api_key_env, str(models)) for entry in entries if entry.api_key_env]
    wrong = [
        f"{key} is set in the environment, and its address in the working folder ({place}), where"
        " the author of a draft may have written it: set both in the environment, or both in .env"
        for key, place in pairs
        if key.upper() in environment
    ]
    if wrong:
        raise SettingError("\n".join(wrong))


def read_env_file(file: Path) -> dict[str, str]:
    """The names that a `.env` file sets, each with its place, such as ".env line 3", if any.

    Raises SettingError with one line for each line that cannot be read.
    """
    if not file.is_file():
        return {}
    from dotenv.parser import parse_stream

    try:
        with file.open(encoding="utf-8") as stream:
            bindings = list(parse_stream(stream))
    except UnicodeDecodeError as error:
        raise SettingError(f"{file}: not UTF-8 text ({error}); save it as UTF-8") from error
    except OSError as error:
        raise SettingError(f"{file}: cannot be read ({error.strerror})") from error
    names, wrong = {}, []
    for binding in bindings:
        # What is before a statement belongs to it: blank lines first.
        text = binding.original.string
        line = binding.original.line + len(text) - len(text.lstrip("\r\n"))
        if binding.error or (_is_ours(binding.key) and binding.value is None):
            wrong.append(f"{file} line {line}: not of the form NAME=value")
        elif binding.key is not None:
            names[binding.key] = f"{file} line {line}"
    if wrong:
        raise SettingError("\n".join(wrong))
    return names


def check_names(places: Mapping[str, str]) -> Iterator[str]:
    """A message for each CITELOOM_ name that is no setting. places: where each name is set."""
    names = {f"{PREFIX}{name.upper()}" for name in Settings.model_fields}
    in_kubernetes = "KUBERNETES_SERVICE_HOST" in places
    ours = {name.upper(): place for name, place in places.items() if _is_ours(name)}
    for name, place in sorted(ours.items()):
        if name in names or name.startswith(TEST_PREFIXES):
            continue
        if in_kubernetes and _KUBERNETES_SERVICE.search(name):
            continue
        hint = "docs/reference/settings.md lists all settings"
        near = get_close_matches(name, names, n=1, cutoff=0.7)
        if near:
            hint = f"did you mean {near[0]}?"
        yield f"{name} is not a setting: {hint} (set in {place})"


def _is_ours(name: str | None) -> bool:
    return name is not None and name.upper().startswith(PREFIX)


def _describe(error: ErrorDetails) -> str:
    field = str(error["loc"][0]) if error["loc"] else "*"
    value = str(error["input"])
    value_note = f" (it is {value!r})"
    if is_secret(field) or _MAY_HOLD_SECRET.match(value):
        value_note = ""
    return f"{PREFIX}{field.upper()}: {error['msg'].removeprefix('Value error, ')}{value_note}"
