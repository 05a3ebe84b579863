"""The class `Settings`: all groups together, read from `CITELOOM_*` and `.env`, with all that is
wrong in one message."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from functools import cached_property
from pathlib import Path
from typing import get_args

from pydantic import (
    PrivateAttr,
    SecretStr,
    ValidationError,
    ValidationInfo,
    field_validator,
    model_validator,
)
from pydantic_core import ErrorDetails
from pydantic_settings import BaseSettings, SettingsConfigDict

from pipeline.errors import SettingError
from pipeline.settings.embedder_choice import NAMED, choose_embedder
from pipeline.settings.env_file import (
    ENV_FILE,
    PREFIX,
    find_env_file,
    in_users_folder,
    read_env_file,
)
from pipeline.settings.fields import (
    SAMPLE_DUMP,
    SAMPLE_QUESTIONS,
    AnsweringSettings,
    ArxivSettings,
    ClusterSettings,
    CorpusSettings,
    EmbeddingSettings,
    IndexSettings,
    JudgeSettings,
    LanguageModelSettings,
    OperationsSettings,
    ProfileSettings,
    RelatedWorkSettings,
)
from pipeline.settings.models_file import default_model_values
from pipeline.settings.validators import WITH_PASSWORD, profile_values
from pipeline.storage.store import DataPath, StorePath
from pipeline.text import text_digest

# Defaults for the bundled model, if no endpoint is set: what 135 M weights on two cores do in
# minutes, at about 600 tokens read and 150 written per second.
BUNDLED_CONTEXT = 4096
BUNDLED_LLM = {
    "llm_context": BUNDLED_CONTEXT,
    "chatcite_samples": 2,
    "chatcite_votes": 3,
    "chatcite_kept": 1,
    "draft_tokens": 128,
    "element_tokens": 48,
    "judge_repeats": 1,
    "support_passages": 1,
    # The bundled model writes only where a system that calls it is named.
    "systems": ("lead", "lexrank"),
    "answer_systems": ("passages",),
    "answer_tokens": 128,
}
# Names with these beginnings belong to the project's own tests.
TEST_PREFIXES = ("CITELOOM_TEST_", "CITELOOM_FAULTS_", "CITELOOM_REQUIRE_TOOLS")

# A value that may hold a secret: user:password@, or a query, in which some services take keys.
_MAY_HOLD_SECRET = re.compile(rf"{WITH_PASSWORD.pattern}|(?>[^?]*?://)[^?]*\?")


class Settings(
    ProfileSettings,
    CorpusSettings,
    ArxivSettings,
    EmbeddingSettings,
    IndexSettings,
    LanguageModelSettings,
    JudgeSettings,
    RelatedWorkSettings,
    AnsweringSettings,
    OperationsSettings,
    ClusterSettings,
    BaseSettings,
):
    """Settings of the pipeline: each field is the variable `CITELOOM_` + its name in capitals."""

    model_config = SettingsConfigDict(env_prefix=PREFIX, extra="ignore", frozen=True)
    _embedder_reason: str = PrivateAttr(NAMED)

    @model_validator(mode="before")
    @classmethod
    def _fill_defaults(cls, values: Mapping[str, object]) -> Mapping[str, object]:
        """Defaults that depend on other settings: those of the profile and of the default model."""
        values = {**profile_values(values.get("profile")), **values}
        values = {**values, **default_model_values(values)}
        return values if values.get("llm_url") else {**BUNDLED_LLM, **values}

    @model_validator(mode="before")
    @classmethod
    def _split_embedder(cls, values: Mapping[str, object]) -> Mapping[str, object]:
        """Read a folder or a hub's name as the model's kind and its path.

        The kind alone is in a month's fingerprint, so that machines with one model in different
        folders agree.
        """
        model = values.get("embedder")
        kinds = get_args(cls.model_fields["embedder"].annotation)
        if isinstance(model, str) and model not in kinds and ("/" in model or Path(model).is_dir()):
            return {**values, "embedder": "sentence-transformers", "embedder_path": model}
        return values

    @field_validator("*", mode="before")
    @classmethod
    def _read_raw_value(cls, value: object, info: ValidationInfo) -> object:
        """Refuse a password in an address; read an empty text as none if the setting can be none.

        An address goes into messages, tables and Dagster's stores; secrets have other settings.
        """
        name = info.field_name or ""
        if isinstance(value, str) and WITH_PASSWORD.match(value) and not is_secret(name):
            raise ValueError(
                "holds a name or password, which messages would show: leave it out of the address"
            )
        if value == "" and type(None) in get_args(cls.model_fields[name].annotation):
            return None
        return value

    def with_embedder_of_root(self) -> Settings:
        """The settings with the embedder that `auto` stands for in this data root."""
        choice = choose_embedder(self.data_root, self.embedder_path, self.embedder_device)
        chosen = self.model_copy(update={"embedder": choice.kind, "embedder_path": choice.path})
        chosen._embedder_reason = choice.reason
        return chosen

    @property
    def embedder_reason(self) -> str:
        """Why the embedder is this one."""
        return self._embedder_reason

    @property
    def bundled_llm(self) -> bool:
        """Whether the default model is the bundled one, as no endpoint is set."""
        return self.llm_url is None

    @property
    def on_cluster(self) -> bool:
        """Whether steps run on other machines than the run that they belong to."""
        return self.executor != "in_process"

    @property
    def step_cpus(self) -> int:
        """Processors that one step asks of a cluster's node."""
        return self.workers or 1

    @property
    def question_set(self) -> Path | None:
        """The file of questions. The sample's questions go with the sample corpus only."""
        return self.questions or (SAMPLE_QUESTIONS if self.dump_dir == SAMPLE_DUMP else None)

    @cached_property
    def data_root(self) -> DataPath:
        """Absolute data root. The sample corpus and a real dump never share one by default."""
        return self._data_folder or StorePath(str(self.data).rstrip("/"), self.local_root)

    @cached_property
    def local_root(self) -> Path:
        """The local folder for locks, caches, the in-process index and Dagster's state, absolute.

        By default it is the data root if that is a folder, else one of this user's for its address.
        """
        if self.local is not None:
            return self.local.resolve()
        if self._data_folder is not None:
            return self._data_folder
        from platformdirs import user_state_path

        name = text_digest(str(self.data).rstrip("/"))[:16]
        return user_state_path("citeloom") / name

    @property
    def _data_folder(self) -> Path | None:
        """The data root, if it is a folder on a disk."""
        location: Path | str | None = self.data
        if location is None:
            return (Path("data") / ("demo" if self.dump_dir == SAMPLE_DUMP else "corpus")).resolve()
        return location.resolve() if isinstance(location, Path) else None


def is_secret(name: str) -> bool:
    """Whether a setting (name of the field) holds a secret, which no message may show."""
    field = Settings.model_fields.get(name)
    return field is not None and SecretStr in (field.annotation, *get_args(field.annotation))


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
    if settings.embedder == "auto":
        settings = settings.with_embedder_of_root()
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
    ours = {
        name.upper(): place for name, place in places.items() if name.upper().startswith(PREFIX)
    }
    for name, place in sorted(ours.items()):
        if name in names or name.startswith(TEST_PREFIXES):
            continue
        hint = "docs/reference/settings.md lists all settings"
        near = get_close_matches(name, names, n=1, cutoff=0.7)
        if near:
            hint = f"did you mean {near[0]}?"
        yield f"{name} is not a setting: {hint} (set in {place})"


def _describe(error: ErrorDetails) -> str:
    field = str(error["loc"][0]) if error["loc"] else "*"
    value = str(error["input"])
    value_note = f" (it is {value!r})"
    if is_secret(field) or _MAY_HOLD_SECRET.match(value):
        value_note = ""
    return f"{PREFIX}{field.upper()}: {error['msg'].removeprefix('Value error, ')}{value_note}"
