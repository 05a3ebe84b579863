"""Profiles: the settings of a paper's tables under one name, a TOML file each."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

_FOLDER = Path(__file__).parent / "profiles"
_MODELS = Path(__file__).parent / "profile_models.toml"


def profile_names() -> list[str]:
    """The names of all profiles."""
    return sorted(file.stem for file in _FOLDER.glob("*.toml"))


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
    content = (_FOLDER / f"{name}.toml").read_text(encoding="utf-8")
    return {"models": _MODELS, **tomllib.loads(content)}
