"""Parsers and checks of single settings; their ValueErrors continue the setting's name. Profiles:
the settings of a paper's tables under one name, a TOML file each."""

from __future__ import annotations

import json
import os
import re
import tomllib
from datetime import date
from pathlib import Path
from typing import Any, TypeVar

from pydantic import SecretStr

from pipeline.settings.categories import is_category, nearest_categories, normalize_category

SUBSETS = ("no_problem", "warning", "error", "unrated")

Address = TypeVar("Address", SecretStr | None, str | None)

# user:password@ before the host of an address.
WITH_PASSWORD = re.compile(r"\s*+[A-Za-z][\w+.-]*+://[^/?#\s]*@")
# Only the form is checked; Dagster checks the range of each field.
_CRON = re.compile(r"@(?:hourly|daily|weekly|monthly|yearly)|[\w*/,#-]+(?: +[\w*/,#-]+){4}")
_PROFILES = Path(__file__).parent / "profiles"
_PROFILE_MODELS = Path(__file__).parent / "profile_models.toml"


def split_commas(value: object) -> object:
    """A tuple of the parts of a text, without blanks around them; any other value unchanged."""
    if isinstance(value, str):
        return tuple(part.strip() for part in value.split(",") if part.strip())
    return value


def parse_candidate_sets(value: object) -> object:
    """The sets of a JSON object, name → systems; any other value than a text unchanged.

    Refuses a name or a list that is empty.
    """
    if isinstance(value, str):
        try:
            value = json.loads(value or "{}")
        except (ValueError, RecursionError) as error:
            raise ValueError(f"is not JSON ({error})") from None
    if not isinstance(value, dict) or not all(name and members for name, members in value.items()):
        raise ValueError('must name sets with their systems, such as {"main": ["chatcite"]}')
    return value


def require_some(value: tuple[str, ...]) -> tuple[str, ...]:
    """Refuse an empty list."""
    if not value:
        raise ValueError("must name at least one")
    return value


def parse_location(value: object) -> Path | str | None:
    """A folder on a disk, or the address of one on an object store, such as s3://bucket/folder."""
    if value is None or isinstance(value, Path):
        return value
    if not isinstance(value, str):
        raise ValueError("must be a folder or an address such as s3://bucket/folder")
    protocol, separator, path = value.partition("://")
    if not separator:
        return Path(value)
    return Path(path) if protocol in ("file", "local") else value


def check_data_root(value: Path | str | None) -> Path | str | None:
    """Refuse a file, and an address that keeps nothing, names no folder, or chains several file
    systems.
    """
    if value is None:
        return None
    if isinstance(value, Path):
        if os.path.isfile(value):  # noqa: PTH113 - Path.is_file raises in an unreadable folder
            raise ValueError("is a file: name a folder")
        return value
    protocol, _, path = value.partition("://")
    if protocol == "memory":
        raise ValueError("is in memory, which ends with the process")
    if not path.strip("/") or re.search(r"::|[?#]", value):
        raise ValueError(
            "must be an address such as s3://bucket/corpus, without anything after the folder"
        )
    return value


def check_subsets(value: tuple[str, ...]) -> tuple[str, ...]:
    """Refuse severities that the dump does not have, and an empty list."""
    unknown = sorted(set(value) - set(SUBSETS))
    if unknown or not value:
        raise ValueError(
            f"must name some of {', '.join(SUBSETS)}, not {', '.join(unknown) or 'nothing'}"
        )
    return value


def check_categories(value: tuple[str, ...]) -> tuple[str, ...]:
    """Categories as arXiv writes them, without repetition. Refuses what arXiv does not have."""
    for text in value:
        normalized = normalize_category(text)
        if normalized is None or not is_category(normalized):
            near = nearest_categories(text)
            hint = f"; did you mean {' or '.join(near)}?" if near else ""
            raise ValueError(
                f"arXiv has no archive or category {text!r}: name some such as cs or cs.CL{hint}"
            )
    return tuple(dict.fromkeys(normalize_category(text) or "" for text in value))


def check_embedder(value: object) -> object:
    """Refuse a model's name that is none; a folder and a hub's name were replaced by their kind."""
    if value not in ("auto", "minilm", "bge-m3", "sentence-transformers"):
        raise ValueError(
            "must be auto, minilm, bge-m3, or the folder or the hub name (owner/model) of a"
            " sentence-transformers model"
        )
    return value


def check_cron(value: str) -> str:
    """Refuse a schedule that has not the form of a cron line."""
    if not _CRON.fullmatch(value.strip()):
        raise ValueError(
            "must be five fields of cron, such as 0 4 3 * *, or one of @daily, @weekly, @monthly"
        )
    return value.strip()


def check_month_or_day(value: str) -> str:
    """Refuse a date that is neither YYYY-MM nor YYYY-MM-DD; empty is allowed."""
    if not value:
        return value
    day = f"{value}-01" if len(value) == len("2023-12") else value
    try:
        date.fromisoformat(day)
    except ValueError:
        raise ValueError("must be a month or a day, such as 2023-12") from None
    return value


def check_web_address(value: Address) -> Address:
    """Refuse an address that is not http or https."""
    text = value.get_secret_value() if isinstance(value, SecretStr) else value
    if text is not None and not text.startswith(("https://", "http://")):
        raise ValueError("must begin with https:// or http://")
    return value


def check_judges(value: tuple[str, ...]) -> tuple[str, ...]:
    """The names without repetition: one model at most."""
    names = tuple(dict.fromkeys(value))
    if "overlap" in names:
        raise ValueError(
            "names overlap, which judged citations without a model and was removed: name a model"
            " of CITELOOM_MODELS, or nothing for the default model"
        )
    if len(names) > 1:
        raise ValueError(f"names {len(names)} models, and one judges: leave one of them")
    return names


def check_price(value: str) -> str:
    """Refuse a price that is not read/written."""
    if value:
        parse_price(value)
    return value


def parse_price(text: str) -> tuple[float, float]:
    """The prices of a million tokens read and written, from read/written."""
    match = re.fullmatch(r"\s*+(\d++\.?\d*+|\.\d+)\s*+/\s*+(\d++\.?\d*+|\.\d+)\s*+", text)
    if match is None:
        raise ValueError("must be read/written, such as 2.5/10")
    return float(match[1]), float(match[2])


def profile_names() -> list[str]:
    """The names of all profiles."""
    return sorted(file.stem for file in _PROFILES.glob("*.toml"))


def check_profile(value: str) -> str:
    """Refuse a name that no profile has; empty is allowed."""
    if value and value not in profile_names():
        raise ValueError(f"must be one of {', '.join(profile_names())}, or empty")
    return value


def profile_values(name: object) -> dict[str, Any]:
    """The settings of a profile, by field; none for an empty or unknown name.

    All profiles share one file of models, in the place of CITELOOM_MODELS.
    """
    if name not in profile_names():
        return {}
    content = (_PROFILES / f"{name}.toml").read_text(encoding="utf-8")
    return {"models": _PROFILE_MODELS, **tomllib.loads(content)}
