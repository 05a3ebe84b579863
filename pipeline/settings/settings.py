"""The class `Settings`: all groups together, read from `CITELOOM_*`."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import get_args

from pydantic import SecretStr, ValidationInfo, field_validator, model_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

from pipeline.settings.env_file import PREFIX
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
from pipeline.settings.profiles import profile_values
from pipeline.settings.validators import WITH_PASSWORD
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
    "answer_systems": ("extractive",),
    "answer_tokens": 128,
}


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
