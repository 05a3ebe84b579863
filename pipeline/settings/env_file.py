"""The `.env` file: which one counts, and its lines, whose values are taken as they are."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import NamedTuple

from pipeline.errors import SettingError
from pipeline.settings.fields import PROJECT
from pipeline.text import visible

PREFIX = "CITELOOM_"
ENV_FILE = "CITELOOM_ENV_FILE"

_log = logging.getLogger(__name__)


class EnvLine(NamedTuple):
    """What a line of the file sets a name to. place: such as ".env line 3"."""

    value: str
    place: str


def find_env_file() -> Path | None:
    """The file that CITELOOM_ENV_FILE names, else `.env` of the working folder if that is the
    user's (`in_users_folder`). Any other `.env` there is named in a warning: the author of a draft
    may have written it.

    Raises SettingError where CITELOOM_ENV_FILE names no file by its whole path.
    """
    named = os.environ.get(ENV_FILE)
    if named == "":
        return None
    if named is not None:
        file = Path(named)
        if not (file.is_absolute() and file.is_file()):
            raise SettingError(f"{ENV_FILE}: must be the whole path of a file (it is {named!r})")
        return file
    file = Path(".env")
    if not file.is_file():
        return None
    file = file.absolute()
    if in_users_folder():
        return file
    _warn_ignored(file)
    return None


def in_users_folder() -> bool:
    """Whether settings in the working folder are the user's: it is the checkout or the data root.
    The environment must name that by its whole path, since the rest of a relative one may lie in
    any folder.
    """
    data = Path(os.environ.get("CITELOOM_DATA", ""))
    return Path.cwd() == PROJECT or (data.is_absolute() and Path.cwd() == data.resolve())


def read_env_file(file: Path | None) -> Mapping[str, EnvLine]:
    """The lines of a `.env` file by their names; without a file none.

    Raises SettingError with one line for each line that cannot be read.
    """
    if file is None:
        return {}
    # dotenv's own reader of whole files puts variables of the environment for ${NAME}.
    from dotenv.parser import parse_stream

    try:
        with file.open(encoding="utf-8") as stream:
            bindings = list(parse_stream(stream))
    except UnicodeDecodeError as error:
        raise SettingError(f"{file}: not UTF-8 text ({error}); save it as UTF-8") from error
    except OSError as error:
        raise SettingError(f"{file}: cannot be read ({error.strerror})") from error
    lines, wrong = {}, []
    for binding in bindings:
        # What is before a statement belongs to it: blank lines first.
        text = binding.original.string
        line = binding.original.line + len(text) - len(text.lstrip("\r\n"))
        place = f"{file} line {line}"
        key, value = binding.key or "", binding.value
        if binding.error or (value is None and key.upper().startswith(PREFIX)):
            wrong.append(f"{place}: not of the form NAME=value")
        elif value is not None:
            lines[key] = EnvLine(value, place)
    if wrong:
        raise SettingError("\n".join(wrong))
    return lines


@cache
def _warn_ignored(file: Path) -> None:
    _log.warning(
        "citeloom does not read %s: if it is yours, set %s to its path",
        visible(str(file)),
        ENV_FILE,
    )
