"""Messages to the address of CITELOOM_WEBHOOK_URL, in the format of Slack's incoming webhooks.

Mattermost and others accept it too
(https://docs.slack.dev/messaging/sending-messages-using-incoming-webhooks). The address is a
secret, because it is all that one needs to post. So it is sent with urllib: httpx2 logs every
address.
"""

from __future__ import annotations

import html
import http.client
import json
import urllib.error
import urllib.request
from collections.abc import Sequence

from pydantic import SecretStr

from pipeline.engine.progress import Notice, publish
from pipeline.settings import Settings
from pipeline.stage_names import plain_name

_TIMEOUT_SECONDS = 10.0
# Slack truncates at 40,000 characters and recommends 4,000.
_MAX_CHARACTERS = 3_000


def post(url: SecretStr, text: str) -> str:
    """Send a message; returns why it could not be sent, without the address, or an empty string."""
    if len(text) > _MAX_CHARACTERS:
        text = f"{text[:_MAX_CHARACTERS]}…"
    text = html.escape(text, quote=False)  # &, < and >: Slack's only markup characters
    body, headers = json.dumps({"text": text}).encode(), {"Content-Type": "application/json"}
    try:
        request = urllib.request.Request(url.get_secret_value(), body, headers)  # noqa: S310 - see Settings
        with urllib.request.urlopen(request, timeout=_TIMEOUT_SECONDS):  # noqa: S310 - see Settings
            return ""
    except urllib.error.HTTPError as error:
        return f"it answers {error.code}"
    except (ValueError, http.client.InvalidURL):
        return "it is not a valid address"
    except (OSError, http.client.HTTPException) as error:
        reason = error.reason if isinstance(error, urllib.error.URLError) else error
        return f"it does not answer ({type(reason).__name__})"


def notify(settings: Settings, text: str) -> None:
    """Send a message where an address is set, with a notice where it cannot be sent."""
    if settings.webhook_url is None:
        return
    reason = post(settings.webhook_url, text)
    if reason:
        publish(Notice(f"CITELOOM_WEBHOOK_URL: the message was not sent: {reason}"))


def notify_of_failures(settings: Settings, failures: Sequence[tuple[str, str, str]]) -> None:
    """Send one message for failures, each (stage, month, message), where an address is set."""
    if not failures:
        return
    lines = [
        f"citeloom: {len(failures)} failed",
        *(f"• {plain_name(stage)} of {month}: {text}" for stage, month, text in failures),
        "Once fixed: citeloom run --failed",
    ]
    notify(settings, "\n".join(lines))
