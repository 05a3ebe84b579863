"""What a request says about the page that sends it: the host name it was sent to, and its site."""

from __future__ import annotations

import re

from starlette.datastructures import Headers

from pipeline.settings.urls import is_loopback

_HOST = re.compile(r"(?P<name>[a-z0-9.]+|\[[0-9a-f:.]+\])(:[0-9]{1,5})?", re.IGNORECASE)


def names_loopback(headers: Headers) -> bool:
    """Whether the one Host header names this machine: localhost or an address of loopback."""
    hosts = headers.getlist("host")
    match = _HOST.fullmatch(hosts[0]) if len(hosts) == 1 else None
    return match is not None and is_loopback(match["name"].strip("[]").lower())


def is_cross_site(headers: Headers, public_host: str | None = None) -> bool:
    """Whether a browser sends this request because of a page of another origin.

    public_host: host, with its port if it has one, of a proxy that replaces the header Host.
    Programs that are no browsers send neither Origin nor Sec-Fetch-Site.
    """
    own_hosts = (headers.get("host"), public_host)
    own_origins = [f"{scheme}://{host}" for host in own_hosts for scheme in ("http", "https")]
    if headers.get("origin", own_origins[0]) not in own_origins:
        return True
    return headers.get("sec-fetch-site", "none") not in ("none", "same-origin")


def opens_page(method: str, headers: Headers) -> bool:
    """Whether a browser opens a page in a window of its own, as after a click on a link."""
    return (
        method == "GET"
        and headers.get("sec-fetch-mode") == "navigate"
        and headers.get("sec-fetch-dest") == "document"
    )
