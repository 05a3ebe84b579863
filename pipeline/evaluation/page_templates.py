"""Jinja2 templates of HTML pages, which show texts of papers and models."""

from __future__ import annotations

import base64
import hashlib
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from pipeline.evaluation.prose import printable


def make_environment(*folders: Path) -> Environment:
    """Templates of these folders, which escape every value and show its control signs."""
    return Environment(
        loader=FileSystemLoader(folders),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=lambda value: printable(value) if type(value) is str else value,
        auto_reload=False,
    )


def policy_hash(text: str) -> str:
    """The hash of a style sheet or script within a page, as its policy has it after `sha256-`."""
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
