"""Checks of server addresses and of the keys sent to them."""

from __future__ import annotations

import ipaddress
import re
from urllib.parse import SplitResult, urlsplit

from pydantic import SecretStr

from pipeline.errors import SettingError


def split_url(setting: str, url: str, example: str) -> SplitResult:
    """The parts of an http(s) URL. Raises SettingError that names the setting if it is not one."""
    without_user = repr(re.sub(r"(?<![^/\s])[^/\s]*@", "…@", url))
    try:
        parts = urlsplit(url)
        _ = parts.port  # raises ValueError if it is not a number
    except ValueError as error:
        raise SettingError(
            f"{setting}: {without_user} is not an address ({error}): write it as {example}"
        ) from None
    if parts.scheme not in ("http", "https") or not parts.hostname or re.search(r"\s", url):
        raise SettingError(f"{setting}: {without_user} is not an address: write it as {example}")
    return parts


def refuse_key_over_http(
    setting: str, parts: SplitResult, key_setting: str, alternative: str = ""
) -> None:
    """Raise SettingError if a key would go over plain http to another host.

    alternative: what the user can do instead of using https, for the message.
    """
    if parts.scheme == "http" and not is_loopback(parts.hostname or ""):
        raise SettingError(
            f"{setting}: http://{parts.hostname} would carry {key_setting} unencrypted to another"
            f" host: use https{alternative and f', {alternative}'}"
        )


def refuse_unsendable_key(setting: str, key: SecretStr | None) -> None:
    """Raise SettingError for a key that no HTTP header can hold; other errors would show it."""
    value = "" if key is None else key.get_secret_value()
    if not (value.isascii() and value.isprintable() and value == value.strip()):
        raise SettingError(
            f"{setting} holds a line break, a blank at an end, or a character that is not ASCII,"
            " and cannot be sent: set it to the key alone"
        )


def is_loopback(host: str) -> bool:
    """Whether a host name or address is this machine's own."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
