"""HTML forms that people fill in: each is one file that works from disk.

Texts come from papers and models. Jinja2 escapes them, and a form's policy allows its own style and script by their
hashes and nothing else, not even a request (https://www.w3.org/TR/CSP3/); what depends on the study reaches the script
as attributes, so that the script is the same bytes in every form of a kind.
"""

from __future__ import annotations

import base64
import hashlib
from functools import cache
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from pipeline.evaluation.cited import printable
from pipeline.index.links import abstract_url

_TEMPLATES = Path(__file__).parent / "templates"


def render(template: str, script: str, **values: object) -> bytes:
    """A file that people get. script: the file that says what a form's rows are; `form.js` does what all forms do."""
    return _environment(script).get_template(template).render(**values).encode()


def content_digest(content: object) -> str:
    """What tells two forms of one name apart in a browser: of what is seen, and so no clue to what is not."""
    return hashlib.sha256(repr(content).encode()).hexdigest()[:16]


@cache
def _environment(script: str) -> Environment:
    environment = Environment(
        loader=FileSystemLoader(_TEMPLATES), autoescape=True, undefined=StrictUndefined,
        trim_blocks=True, lstrip_blocks=True, finalize=_finalize,
    )  # fmt: skip
    style, shared, own = ((_TEMPLATES / file).read_text(encoding="utf-8") for file in ("form.css", "form.js", script))
    whole = f"{shared}\n{own}"
    environment.globals.update(
        style=Markup(style),  # noqa: S704 - our own file, between style tags, named in the policy by its hash
        script=Markup(whole),  # noqa: S704 - our own files, between script tags, named in the policy by their hash
        policy=f"default-src 'none'; style-src {_source(style)}; script-src {_source(whole)}; "
        "base-uri 'none'; form-action 'none'",
    )
    environment.filters["abstract_url"] = abstract_url
    return environment


def _finalize(value: object) -> object:
    return printable(value) if type(value) is str else value


def _source(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
