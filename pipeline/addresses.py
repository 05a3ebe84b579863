"""Addresses of servers as settings give them: what cannot be one, or would send a key in the clear, is refused.

Not here: which server a setting means, and whether anything listens there.
"""

from __future__ import annotations

import ipaddress
import re
from urllib.parse import SplitResult, urlsplit

from pipeline.errors import SettingError


def split_url(setting: str, url: str, example: str) -> SplitResult:
    """The parts of an http(s) URL. Raises SettingError that names the setting for whatever is none."""
    shown = repr(re.sub(r"[^/\s]*@", "…@", url))
    try:
        parts = urlsplit(url)
        _ = parts.port  # raises ValueError where it is no number
    except ValueError as error:
        raise SettingError(f"{setting}: {shown} is no address ({error}): write it as {example}") from None
    if parts.scheme not in ("http", "https") or not parts.hostname or re.search(r"\s", url):
        raise SettingError(f"{setting}: {shown} is no address: write it as {example}")
    return parts


def refuse_key_in_the_clear(setting: str, parts: SplitResult, key_setting: str) -> None:
    """Raise SettingError where a key would go over plain http to another host."""
    if parts.scheme == "http" and not is_loopback(parts.hostname or ""):
        raise SettingError(
            f"{setting}: http://{parts.hostname} would carry {key_setting} unencrypted to another host: use https"
        )


def is_loopback(host: str) -> bool:
    """Whether a host's name or address is this machine's own."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
