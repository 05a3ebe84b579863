"""The message to a webhook, against a server on loopback."""

from __future__ import annotations

import json

import pytest
from pydantic import SecretStr
from pytest_httpserver import HTTPServer

from pipeline.engine import webhook
from pipeline.errors import SettingError
from pipeline.settings import load_settings
from tests.processes import free_port

SECRET = "T000-sEcReT"


def post(url: str, text: str) -> str:
    return webhook.post(SecretStr(url), text)


def test_a_message_is_posted_as_slack_takes_it(httpserver: HTTPServer) -> None:
    httpserver.expect_oneshot_request(f"/{SECRET}", method="POST").respond_with_data("ok")
    assert post(httpserver.url_for(f"/{SECRET}"), "papers of <b>2024-03</b> & more") == ""
    request, _ = httpserver.log[0]
    assert request.headers["Content-Type"] == "application/json"
    assert json.loads(request.data) == {"text": "papers of &lt;b&gt;2024-03&lt;/b&gt; &amp; more"}


def test_a_refusal_is_told_without_the_address(httpserver: HTTPServer) -> None:
    httpserver.expect_request(f"/{SECRET}").respond_with_data("no_service", status=404)
    assert post(httpserver.url_for(f"/{SECRET}"), "x") == "it answers 404"


def test_nobody_there_is_told_without_the_address() -> None:
    reason = post(f"http://127.0.0.1:{free_port()}/{SECRET}", "x")
    assert "does not answer" in reason
    assert SECRET not in reason


@pytest.mark.parametrize("address", ["file:///etc/passwd", "hooks.slack.com/x"])
def test_an_address_that_is_none_is_refused_without_showing_it(address: str) -> None:
    with pytest.raises(SettingError) as refused:
        load_settings(webhook_url=address)
    assert "CITELOOM_WEBHOOK_URL" in str(refused.value)
    assert address not in str(refused.value)


def test_an_address_with_a_blank_in_it_is_told_of() -> None:
    assert post(f"http://127.0.0.1/{SECRET} x", "x") == "it is not a valid address"
