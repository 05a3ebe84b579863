"""Addresses of servers as settings give them: what cannot be one, or would send a key in the clear, is refused."""

from __future__ import annotations

import ipaddress
import re
from urllib.parse import SplitResult, urlsplit

from pydantic import SecretStr

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


def refuse_key_in_the_clear(setting: str, parts: SplitResult, key_setting: str, way_out: str = "") -> None:
    """Raise SettingError where a key would go over plain http to another host. way_out: what may be done besides."""
    if parts.scheme == "http" and not is_loopback(parts.hostname or ""):
        raise SettingError(
            f"{setting}: http://{parts.hostname} would carry {key_setting} unencrypted to another host: use https"
            f"{way_out and f', {way_out}'}"
        )


def refuse_key_that_cannot_be_sent(setting: str, key: SecretStr | None) -> None:
    """Raise SettingError for a key that no header can carry: grpc and httpx would name it in what they raise."""
    said = "" if key is None else key.get_secret_value()
    if not (said.isascii() and said.isprintable() and said == said.strip()):
        raise SettingError(
            f"{setting} holds a line break, a blank at an end, or a sign that is not ASCII, which cannot be sent: "
            f"set it to the key alone"
        )


def is_loopback(host: str) -> bool:
    """Whether a host's name or address is this machine's own."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
