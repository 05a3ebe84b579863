"""Load the settings; refuse unknown names and wrong values, all in one message."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from difflib import get_close_matches

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from pipeline.errors import SettingError
from pipeline.settings.env_file import (
    ENV_FILE,
    PREFIX,
    find_env_file,
    in_users_folder,
    read_env_file,
)
from pipeline.settings.settings import Settings, is_secret
from pipeline.settings.validators import WITH_PASSWORD

# Names with these beginnings belong to the project's own tests.
TEST_PREFIXES = ("CITELOOM_TEST_", "CITELOOM_FAULTS_", "CITELOOM_REQUIRE_TOOLS")

# A setting that was removed → what to do instead.
_REMOVED = {
    "CITELOOM_EMBEDDED_FORM": "an index of another form than sections needs citeloom reindex",
    "CITELOOM_EMBEDDER_COLBERT": "an index with ColBERT vectors needs citeloom reindex",
    "CITELOOM_RERANKER": "no search ranks again",
    "CITELOOM_RETRIEVAL_QUERIES": "see docs/methods/retrieval.md",
    "CITELOOM_WATCHES": "see docs/how-to/new-papers.md",
    "CITELOOM_WEBHOOK_URL": "see docs/how-to/backfill.md#notifications",
}
# What Kubernetes puts into every container for a service named citeloom or citeloom-…
_KUBERNETES_SERVICE = re.compile(
    r"_SERVICE_HOST$|_SERVICE_PORT(_[A-Z0-9_]{1,100})?$|_PORT(_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)?$"
)
# A value that may hold a secret: user:password@, or a query, in which some services take keys.
_MAY_HOLD_SECRET = re.compile(rf"{WITH_PASSWORD.pattern}|(?>[^?]*?://)[^?]*\?")


def load_settings(**overrides: object) -> Settings:
    """Settings from overrides, the environment and `.env`, in this order of precedence.

    _env_file: None to read no `.env`. Raises SettingError with one line for each thing that is
    wrong: a line of `.env`, an unknown name, a value.
    """
    in_file = {} if "_env_file" in overrides else read_env_file(find_env_file())
    places = {name: line.place for name, line in in_file.items()}
    wrong = list(
        check_names({**places, **dict.fromkeys(os.environ.keys() - {ENV_FILE}, "the environment")})
    )
    environment = {name.upper() for name in os.environ}
    values = {name.upper(): line.value for name, line in in_file.items()}
    from_file = {
        field: values[name]
        for field in Settings.model_fields
        if (name := f"{PREFIX}{field.upper()}") in values and name not in environment
    }
    try:
        settings = Settings(**{**from_file, **overrides, "_env_file": None})  # type: ignore[arg-type]
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
    # A relative path may lead to a file of a draft's author, and that file names where keys go.
    models = settings.models
    if models and not models.is_absolute() and not in_users_folder():
        wrong.append(f"CITELOOM_MODELS: must be a whole path in this folder (it is {models})")
    if wrong:
        raise SettingError("\n".join(wrong))
    return settings


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
        if name in _REMOVED:
            yield f"{name} is no longer a setting: remove it; {_REMOVED[name]} (set in {place})"
            continue
        hint = "docs/reference/settings.md lists all settings"
        near = get_close_matches(name, names, n=1, cutoff=0.7)
        if near:
            hint = f"did you mean {near[0]}?"
        yield f"{name} is not a setting: {hint} (set in {place})"


def _is_ours(name: str) -> bool:
    return name.upper().startswith(PREFIX)


def _describe(error: ErrorDetails) -> str:
    field = str(error["loc"][0]) if error["loc"] else "*"
    value = str(error["input"])
    value_note = f" (it is {value!r})"
    if is_secret(field) or _MAY_HOLD_SECRET.match(value):
        value_note = ""
    return f"{PREFIX}{field.upper()}: {error['msg'].removeprefix('Value error, ')}{value_note}"
