"""Titles and texts that a page must show and not obey: those of `hostile.toml`, and long ones."""

import tomllib
from pathlib import Path

HOSTILE = (
    *tomllib.loads(Path(__file__).with_suffix(".toml").read_text())["texts"],
    "X" * 3_000,
    "Donaudampfschifffahrts" * 60 + " " + "\u0301" * 40,
)
