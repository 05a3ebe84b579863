"""Secrets that can be told wherever they turn up, and the search for them."""

import base64
import hashlib
from typing import get_args

from pydantic import SecretStr

from pipeline.settings import Settings
from tests.file_contents import contents

# Of every sentinel, so that one search finds all; even of a message that is cut short, no more is
# needed.
_MARK = "5e971e1a0c57"
# Signs before and after it that quoting for a URL, HTML or JSON changes; what is between them comes
# through all of it.
_FORM = 'sk-/+"{}"&=%'
# For a setting that is an address; nobody listens there.
_ADDRESS = "http://127.0.0.1:9/services/{}"


def is_secret(field):
    """Whether a setting is read as a secret."""
    kind = Settings.model_fields[field].annotation
    return SecretStr in (kind, *get_args(kind))


def sentinel(name):
    """A secret for a setting or a variable, which no other has; a header can carry it."""
    return (_ADDRESS if name.endswith("_URL") else _FORM).format(_core(name))


def _core(name):
    return _MARK + hashlib.sha256(name.encode()).hexdigest()[:8]


def _forms():
    """Each way in which a sentinel may be written, and the bytes that would show it."""
    mark = _MARK.encode()
    forms = {"plain": mark, "hexadecimal": mark.hex().encode(), "UTF-16": _MARK.encode("utf-16-le")}
    for shift in range(3):  # as base64 writes it after any number of other bytes, such as "user:"
        whole = base64.b64encode(b"x" * shift + mark + b"xx")
        forms[f"base64 at {shift}"] = whole[4 : len(mark) * 4 // 3 - 1]
    return forms


class Search:
    """A search for the secrets of some names; `looked_at` counts the contents that were
    searched.
    """

    def __init__(self, names):
        self._whose = {_core(name).encode(): name for name in names}
        self._forms = _forms()
        self.looked_at = 0

    def in_text(self, *texts):
        """What of the secrets stands in texts."""
        return [told for text in texts for told in self._in(text.encode("utf-8", "surrogatepass"))]

    def in_folder(self, folder):
        """What of the secrets stands in any file below a folder, packed or not, with the place."""
        return [
            f"{place}: {told}" for place, content in contents(folder) for told in self._in(content)
        ]

    def _in(self, content):
        self.looked_at += 1
        found = [form for form, shape in self._forms.items() if shape in content]
        whose = " and ".join(
            name for core, name in self._whose.items() if found and core in content
        )
        return [f"{whose or 'a secret'} ({form})" for form in found]
