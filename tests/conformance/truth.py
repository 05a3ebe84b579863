"""What the pages of the conformance suite and of the second real dump are known to say."""

import json
import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[2]
STYLES = PROJECT / "examples" / "styles"
TRUTH = STYLES / "truth.toml"


@dataclass(frozen=True, slots=True)
class TrueAuthor:
    """One author of a byline: the whole name, every institution as one string, an address or none.

    `affiliations` is None where the page does not tell whose they are.
    """

    name: str
    affiliations: tuple[str, ...] | None = ()
    email: str | None = None


@dataclass(frozen=True, slots=True)
class TrueReference:
    """One work of the bibliography. `authors` are "Family, Given" or "Family, Given, Suffix";
    truth.toml explains `venue` and `organization`.
    """

    key: str
    title: str
    authors: tuple[str, ...]
    venue: tuple[str, ...]
    year: int | None = None
    doi: str | None = None
    arxiv_id: str | None = None
    organization: str | None = None


@cache
def _read(file=TRUTH):
    return tomllib.loads(file.read_text(encoding="utf-8"))


def style_names(file=TRUTH):
    """The styles of the suite, or of another file of its form, in the order of the alphabet."""
    return sorted(_read(file)["styles"])


def true_title():
    """The title of the paper."""
    return str(_read()["title"])


def full_names(file=TRUTH):
    """The names of the authors, as arXiv's metadata would have them."""
    return [author["name"] for author in _read(file)["authors"]]


def true_authors(style, file=TRUTH):
    """The byline as a style prints it."""
    truth = _read(file)
    parts = truth["styles"][style]
    names = truth.get("names", {}).get(style) or [author["name"] for author in truth["authors"]]
    authors = []
    for name, author in zip(names, truth["authors"], strict=True):
        institutions = [truth["institutions"][key] for key in author["institutions"]]
        printed = (
            [", ".join(institution[part] for part in parts) for institution in institutions]
            if parts
            else []
        )
        authors.append(
            TrueAuthor(name, None if parts is False else tuple(printed), author["email"])
        )
    return authors


def true_references():
    """The bibliography, whole."""
    return [
        TrueReference(
            key,
            **{
                name: tuple(value) if isinstance(value, list) else value
                for name, value in row.items()
            },
        )
        for key, row in _read()["references"].items()
    ]


def real_bylines(dump):
    """The bylines of the second real dump, by paper."""
    rows = map(json.loads, (dump / "authors.jsonl").read_text(encoding="utf-8").splitlines())
    return {
        row["id"]: [
            TrueAuthor(author["name"], tuple(author["affiliations"])) for author in row["authors"]
        ]
        for row in rows
    }
