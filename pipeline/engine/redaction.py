"""Taking secrets out of what is told of errors: some servers and proxies repeat the key that they were sent.

Dagster keeps an error's words with those of every error that led to it, and the files of `failures` and crash logs hold
the same, so that it is not enough for our own messages to leave a key out.
"""

from __future__ import annotations

import base64
import os
import re
import traceback
from collections.abc import Collection, Iterator
from urllib.parse import quote, quote_plus

from pydantic import SecretStr

from pipeline import errors
from pipeline.settings import Settings

# Read by libraries that we hand nothing: the model hub's, those of object stores, PostgreSQL's.
OTHER_SECRETS = (
    "HF_TOKEN", "HUGGING_FACE_HUB_TOKEN", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "FSSPEC_S3_SECRET",
    "FSSPEC_S3_TOKEN", "AZURE_STORAGE_ACCOUNT_KEY", "AZURE_STORAGE_CONNECTION_STRING", "AZURE_STORAGE_SAS_TOKEN",
    "PGPASSWORD",
)  # fmt: skip
# A shorter one is a word that stands in messages for other reasons; who sets such a key has none to lose.
SHORTEST = 8
SHOWN = "***"
# Of an address: what stands between user: and @.
_PASSWORD = re.compile(r"://[^/@\s]*?:([^/@\s]+)@")


def secrets_of(settings: Settings | None) -> frozenset[str]:
    """Every secret of the settings and of the environment, and the password of each that is an address: as it is, and
    as a URL or base64 writes it."""
    values = [value.get_secret_value() for _, value in settings or () if isinstance(value, SecretStr)]
    values += [os.environ.get(name, "") for name in OTHER_SECRETS]
    values += [password for value in values for password in _PASSWORD.findall(value)]
    plain = [value for value in values if len(value) >= SHORTEST]
    return frozenset(form for value in plain for form in _forms(value))


def _forms(secret: str) -> Iterator[str]:
    yield from (secret, quote(secret), quote(secret, safe=""), quote_plus(secret))
    yield base64.b64encode(secret.encode()).decode()


def redacted(text: str, secrets: Collection[str]) -> str:
    """The text with *** for each secret."""
    for secret in sorted(secrets, key=len, reverse=True):  # the longest first: one may hold another
        text = text.replace(secret, SHOWN)
    return text


def without_secrets(error: Exception, secrets: Collection[str]) -> Exception:
    """The error itself; where its words or those of what led to it hold a secret, another that says the same without.

    It keeps its kind where that is one of `pipeline.errors`, and every error's place in the code; what led to it is its
    cause.
    """
    whole = "".join(traceback.format_exception(error))
    if redacted(whole, secrets) == whole:
        return error
    rebuilt: Exception | None = None
    for link in reversed(list(_chain(error))):
        copy = _retold(link, secrets)
        copy.__cause__ = rebuilt
        rebuilt = copy
    return rebuilt or error


def _chain(error: BaseException) -> Iterator[BaseException]:
    """The error and what led to it, as a traceback shows them."""
    seen: set[int] = set()
    link: BaseException | None = error
    while link is not None and id(link) not in seen:
        seen.add(id(link))
        yield link
        link = link.__cause__ or (None if link.__suppress_context__ else link.__context__)


def _retold(error: BaseException, secrets: Collection[str]) -> Exception:
    words = redacted(str(error), secrets)
    for kind in type(error).__mro__:
        if kind.__module__ == errors.__name__ and issubclass(kind, errors.CiteloomError):
            return kind(words).with_traceback(error.__traceback__)
    return RuntimeError(f"{type(error).__name__}: {words}").with_traceback(error.__traceback__)
