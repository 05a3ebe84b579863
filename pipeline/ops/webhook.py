"""One message to the address of CITELOOM_WEBHOOK_URL.

The body is that of Slack's incoming webhooks (https://docs.slack.dev/messaging/sending-messages-using-incoming-webhooks),
which Mattermost and others take too. The address is a secret: whoever has it may post.
"""

from __future__ import annotations

import http.client
import json
import time
import urllib.error
import urllib.request
from collections.abc import Sequence

from pydantic import SecretStr

from pipeline.engine import progress
from pipeline.settings import Settings

_SECONDS = 10.0
# A tick of Dagster's daemon has 60 s.
_PAUSES = (1.0, 3.0)
# Slack cuts a message at 40,000 signs and asks for 4,000 at most.
_MOST_SIGNS = 3_000


def post(url: SecretStr, text: str) -> str:
    """Send a message; why it could not be, in words that do not name the address, empty where it was sent.

    Tried three times, for whatever may pass; a refusal of the message itself (400 to 499, but 429) comes once.
    """
    body = json.dumps({"text": _plain(text)}).encode()
    reason = ""
    for pause in (*_PAUSES, 0.0):
        reason, passes = _send(url.get_secret_value(), body)
        if not reason or not passes:
            break
        time.sleep(pause)
    return reason


def notify_of_failures(settings: Settings, failures: Sequence[tuple[str, str, str]]) -> None:
    """Send one message for the failures of a command, (stage, month, message) each, where an address is set."""
    if settings.webhook_url is None or not failures:
        return
    lines = [f"citeloom: {len(failures)} failed", *(f"• {stage} of {month}: {text}" for stage, month, text in failures)]
    reason = post(settings.webhook_url, "\n".join([*lines, "Once mended: citeloom retry-failed"]))
    if reason:
        progress.noted(f"CITELOOM_WEBHOOK_URL: the message was not sent: {reason}")


def _send(url: str, body: bytes) -> tuple[str, bool]:
    """Why it was not sent, and whether that may pass."""
    try:
        asked = urllib.request.Request(url, body, {"Content-Type": "application/json"})  # noqa: S310 - see Settings
        with urllib.request.urlopen(asked, timeout=_SECONDS):  # noqa: S310
            return "", False
    except urllib.error.HTTPError as error:
        return f"it answers {error.code}", error.code == 429 or error.code >= 500
    except (ValueError, http.client.InvalidURL):
        return "it is no address", False
    except (OSError, http.client.HTTPException) as error:
        reason = error.reason if isinstance(error, urllib.error.URLError) else error
        return f"it does not answer ({type(reason).__name__})", True


def _plain(text: str) -> str:
    """The text as Slack shows it as it stands: its three signs of markup escaped, and not too long."""
    cut = text if len(text) <= _MOST_SIGNS else f"{text[:_MOST_SIGNS]}…"
    return cut.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
