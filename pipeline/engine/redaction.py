"""Remove secrets from errors: some servers and proxies repeat the key that they were sent.

Dagster stores the text of an error and of every error that led to it, and so do the files of
`failures` and the crash logs. So all of these are redacted, besides our own messages.
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
from pipeline.settings.models_file import STORE_SECRETS, collect_keys

# Environment variables that libraries read by themselves: the model hub's, and those of stores.
LIBRARY_SECRETS = ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN", *STORE_SECRETS)
# A shorter secret ("none", "test") is a word that messages need, and protects nothing.
MIN_SECRET_LENGTH = 8
MASK = "***"
# In an address, the text between user: and @.
_PASSWORD = re.compile(r"://[^/@\s:]*+:([^/@\s]++)@")


def collect_secrets(settings: Settings | None) -> frozenset[str]:
    """All secrets of the settings and the environment, and the passwords in addresses.

    Each is given as it is and as URLs and base64 write it.
    """
    values = [
        value.get_secret_value() for _, value in settings or () if isinstance(value, SecretStr)
    ]
    values += collect_keys(settings.models) if settings else []
    values += [os.environ.get(name, "") for name in LIBRARY_SECRETS]
    values += [password for value in values for password in _PASSWORD.findall(value)]
    return frozenset(form for value in values for form in secret_forms(value))


def secret_forms(secret: str) -> Collection[str]:
    """A secret as it is, and as URLs and base64 write it; nothing for a short one."""
    if len(secret) < MIN_SECRET_LENGTH:
        return ()
    encoded = base64.b64encode(secret.encode()).decode()
    return secret, quote(secret), quote(secret, safe=""), quote_plus(secret), encoded


def redact(text: str, secrets: Collection[str]) -> str:
    """The text with *** in place of each secret."""
    # The longest first: one may contain another.
    for secret in sorted(secrets, key=len, reverse=True):
        text = text.replace(secret, MASK)
    return text


def redact_error(error: Exception, secrets: Collection[str]) -> Exception:
    """The error itself if neither it nor a cause of it shows a secret, else a redacted copy.

    The copy keeps the traceback of each error in the chain. It has the same class if that is one of
    `pipeline.errors`, else it is a RuntimeError that names the class.
    """
    whole = "".join(traceback.format_exception(error))
    if redact(whole, secrets) == whole:
        return error
    rebuilt: Exception | None = None
    for link in reversed(list(_chain(error))):
        copy = _redacted_copy(link, secrets)
        copy.__cause__ = rebuilt
        rebuilt = copy
    return rebuilt or error


def _chain(error: BaseException) -> Iterator[BaseException]:
    """The error and those that led to it, in the order in which a traceback follows them."""
    visited: set[int] = set()
    link: BaseException | None = error
    while link is not None and id(link) not in visited:
        visited.add(id(link))
        yield link
        link = link.__cause__ or (None if link.__suppress_context__ else link.__context__)


def _redacted_copy(error: BaseException, secrets: Collection[str]) -> Exception:
    message = redact(str(error), secrets)
    for kind in type(error).__mro__:
        if kind.__module__ == errors.__name__ and issubclass(kind, errors.CiteloomError):
            return kind(message).with_traceback(error.__traceback__)
    return RuntimeError(f"{type(error).__name__}: {message}").with_traceback(error.__traceback__)
