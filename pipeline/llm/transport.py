"""Requests to an OpenAI-compatible endpoint, its answers, its refusals of parameters, and its
errors."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from typing import TYPE_CHECKING, Any

from pipeline.engine.redaction import redact, secret_forms
from pipeline.errors import PermanentFailure, SettingError, TransientFailure
from pipeline.llm.completion import EndpointReply, filtered_reply, read_reply
from pipeline.llm.models import Model, shown_url
from pipeline.retries import read_retry_after
from pipeline.storage.json_reader import parse_json, short
from pipeline.text import one_line, visible

if TYPE_CHECKING:
    from ssl import SSLContext

    from openai import APIConnectionError, APIStatusError

# Statuses of a refusal that may be of a form of the request.
_REFUSALS = (400, 422, 500)
# As Gemma's and older templates say it.
_NO_SYSTEM = re.compile(
    r"\bsystem\b.{0,40}\brole\b|\broles?\b.{0,40}\bsystem\b|roles must alternate", re.IGNORECASE
)
# Statuses that may pass.
_TRANSIENT = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 529})
# JSON schema keywords that OpenAI's strict mode has refused
# (platform.openai.com/docs/guides/structured-outputs).
_BOUNDS = frozenset({"maxLength", "minLength", "maxItems", "minItems", "title", "default"})
_FILTER_CODES = frozenset({"content_filter", "content_policy_violation"})
_FILTERED = re.compile(
    r"content (?:management|usage) polic|content[ _]filter|content[ _]policy", re.IGNORECASE
)
_TOO_LONG = re.compile(
    r"context.{0,12}(size|length)|maximum context|too many tokens", re.IGNORECASE
)
_NO_MODEL = re.compile(r"model.{0,80}(not exist|not found)|not a valid model", re.IGNORECASE)
# Characters of an answer that cannot be read, in the message about it.
_SHOWN_CHARS = 200


class PaidInVain(TransientFailure):
    """A request without a whole answer in time. It may have been paid for."""


class UnusableAnswer(PaidInVain):
    """An answer that is no chat completion."""


@dataclass(slots=True)
class Dialect:
    """Parameters that an endpoint refuses. A refusal costs one request per run, not per call."""

    refused: set[str] = field(default_factory=set)

    def adapt(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """The request as this endpoint takes it."""
        adapted = dict(body)
        if "max_tokens" in self.refused and "max_tokens" in adapted:
            adapted["max_completion_tokens"] = adapted.pop("max_tokens")
        for name in ("seed", "temperature", "n"):
            if name in self.refused:
                adapted.pop(name, None)
        if "system" in self.refused:
            # What the system says stands before what the user says.
            system = [each["content"] for each in body["messages"] if each["role"] == "system"]
            first, *others = [each for each in body["messages"] if each["role"] != "system"]
            text = "\n\n".join([*system, first["content"]])
            adapted["messages"] = [{**first, "content": text}, *others]
        if "response_format" in self.refused:
            adapted.pop("response_format", None)
        elif "bounds" in self.refused and "response_format" in adapted:
            adapted["response_format"] = _without_bounds(adapted["response_format"])
        return adapted

    def learn(self, body: Mapping[str, Any], complaint: str, status: int) -> bool:
        """Record what a refusal complains about; True if the request can be sent in another form.

        With 422 or 500 some servers refuse a schema in words of their own.
        """
        if "response_format" in body and re.search(
            r"response_format|schema|grammar", complaint, re.IGNORECASE
        ):
            return self._refuse("bounds") or self._refuse("response_format")
        for name in ("max_tokens", "seed", "temperature"):
            if name in body and re.search(rf"\b{name}\b", complaint):
                return self._refuse(name)
        if body.get("n", 1) > 1 and re.search(
            r"['\"`]n['\"`]|\bn\b *(>|must|is not|not|=)", complaint
        ):
            return self._refuse("n")
        if body["messages"][0]["role"] == "system" and _NO_SYSTEM.search(complaint):
            return self._refuse("system")
        return status != 400 and "response_format" in body and self._refuse("response_format")

    def _refuse(self, name: str) -> bool:
        if name in self.refused:
            return False
        self.refused.add(name)
        return True


def _without_bounds(schema: Any) -> Any:
    if isinstance(schema, dict):
        return {
            key: _without_bounds(value)
            for key, value in schema.items()
            if key not in _BOUNDS or not isinstance(value, str | int | float)
        }
    if isinstance(schema, list):
        return [_without_bounds(item) for item in schema]
    return schema


class Transport:
    """Sends requests to a model's endpoint by OpenAI's SDK. Belongs to one event loop.

    url: the base URL, which the model itself does not have if it is the bundled one. http: options
    of the HTTP client, such as another transport.
    """

    def __init__(self, model: Model, url: str, **http: Any) -> None:
        import openai

        from pipeline.llm.endpoint_client import (
            FIRST_PATIENCE,
            MAX_RETRIES,
            PATIENCE,
            EndpointClient,
        )

        self.dialect = Dialect()
        self._model, self._url = model, shown_url(url)
        # The bundled model's server is not restarted if it dies: nothing is worth waiting for. And
        # a proxy from the environment must not be asked for it on our own loopback.
        remote = model.url is not None
        options = {
            "verify": _certificates(),
            "trust_env": remote,
            "follow_redirects": False,
            "limits": openai.DEFAULT_CONNECTION_LIMITS,
            **http,
        }
        patience = PATIENCE if remote else FIRST_PATIENCE
        self._http = EndpointClient(model.timeout, patience, **options)
        key = model.api_key.get_secret_value() if model.api_key else ""
        self._secrets = secret_forms(key)
        self._client = openai.AsyncOpenAI(
            base_url=url,
            api_key=key or "none",
            timeout=model.timeout,
            max_retries=MAX_RETRIES,
            http_client=self._http,
        )

    @property
    def down(self) -> bool:
        """Whether a request was given up because the endpoint answers none."""
        return self._http.down

    def stop(self) -> None:
        """Retry nothing from now on; requests in flight may still be answered."""
        self._http.stopped = True

    async def aclose(self) -> None:
        """Close the connections."""
        await self._client.close()

    async def list_models(self) -> list[str] | None:
        """The names of the models that the endpoint lists, by one request; None where it has no
        list. Raises SettingError (key), UnusableAnswer, TransientFailure (unreachable).
        """
        import openai

        content = b""
        try:
            once = self._client.with_options(max_retries=0)
            raw = await once.models.with_raw_response.list()
            content = raw.http_response.content
            return [str(item["id"]) for item in parse_json(content)["data"]]
        except openai.APIStatusError as error:
            if error.status_code in (401, 403):
                raise self._status_error(error) from None
            return None
        except openai.APIConnectionError as error:
            raise self._connection_error(error) from None
        except (ValueError, KeyError, TypeError) as error:
            raise self._unusable(str(error), content) from None

    async def send(self, body: Mapping[str, Any], most: int) -> EndpointReply:
        """The endpoint's answer to a chat completion request.

        most: tokens that it may write, thoughts included; the body's own `max_tokens` is what the
        caller allows its text.

        Raises SettingError (key, model, URL, context), UnusableAnswer, PaidInVain (no whole answer
        in time), TransientFailure (unreachable, overloaded, down), PermanentFailure (refused for
        another reason).
        """
        import openai

        retries = 0
        while True:  # in as many forms as it takes until the endpoint understands it
            adapted = self.dialect.adapt({**body, "max_tokens": most})
            try:
                reply = await self._request(adapted, body.get("max_tokens"))
                return replace(reply, retries=reply.retries + retries)
            except openai.APIStatusError as error:
                complaint = _complaint(error)
                if error.status_code not in _REFUSALS:
                    raise self._status_error(error) from None
                if error.code in _FILTER_CODES or _FILTERED.search(complaint):
                    return filtered_reply(body.get("n", 1), self._clean(complaint))
                # Another request may have changed the dialect meanwhile.
                is_known = self.dialect.adapt({**body, "max_tokens": most}) == adapted
                if is_known and not self.dialect.learn(adapted, complaint, error.status_code):
                    raise self._status_error(error) from None
                retries += 1
            except openai.APIConnectionError as error:
                raise self._connection_error(error) from None

    async def _request(self, body: Mapping[str, Any], limit: int | None) -> EndpointReply:
        completions = self._client.chat.completions.with_raw_response
        # Parameters named one by one are converted field by field: 2 ms a request with the schema
        # of an answer.
        rest = {name: value for name, value in body.items() if name not in ("model", "messages")}
        started = time.perf_counter()
        raw = await completions.create(
            model=body["model"], messages=body["messages"], extra_body=rest
        )
        received, content = time.perf_counter(), raw.http_response.content
        try:
            # Not parsed by the SDK, which does not validate.
            reply = read_reply(content, body.get("n", 1), limit, self._secrets)
            seconds = raw.elapsed.total_seconds() + time.perf_counter() - received
            if seconds > self._model.timeout:
                raise ValueError("it was not read within CITELOOM_LLM_TIMEOUT")
        except ValueError as error:
            raise self._unusable(short(error), content) from None
        waited = time.perf_counter() - started - seconds if raw.retries_taken else 0.0
        return replace(reply, seconds=seconds, retries=raw.retries_taken, waited=waited)

    def _connection_error(self, error: APIConnectionError) -> Exception:
        """The exception of a request without a whole answer."""
        import openai

        from pipeline.llm.endpoint_client import BadAnswer

        if isinstance(error, openai.APITimeoutError):
            return PaidInVain(
                f"the LLM endpoint {self._url} gave no answer within {self._model.timeout:g} s:"
                " raise CITELOOM_LLM_TIMEOUT, or lower CITELOOM_LLM_CONCURRENCY; answers so far"
                " are kept"
            )
        if isinstance(error.__cause__, BadAnswer):
            return self._unusable(str(error.__cause__))
        hint = "" if self._model.table else "; empty, it means the bundled model"
        return TransientFailure(
            f"the LLM endpoint {self._url} cannot be reached"
            f" ({self._clean(str(error.__cause__ or error))}): start it, or correct"
            f" {self._model.setting('url')}{hint}"
        )

    def _status_error(self, error: APIStatusError) -> Exception:
        """The exception of an error status, which the SDK has tried again where that could help."""
        from pipeline.llm.endpoint_client import QUOTA_CODE

        status, setting = error.status_code, self._model.setting
        message = self._clean(_complaint(error))
        if status == 402 or QUOTA_CODE in error.response.content:
            return SettingError(
                f"the LLM endpoint {self._url} has no quota left for this key ({status},"
                f" {message}): pay for more at the service, or set {setting('api_key')} to the key"
                " of another account"
            )
        if status in _TRANSIENT:
            wait = read_retry_after(error.response.headers.get("retry-after"))
            pause = f" and asks to wait {wait:.0f} s" if wait else ""
            return TransientFailure(
                f"the LLM endpoint {self._url} answers {status} ({message}){pause}: run again"
                " later, or lower CITELOOM_LLM_CONCURRENCY; answers so far are kept"
            )
        if 300 <= status < 400:
            target = self._clean(shown_url(error.response.headers.get("location", "")))
            return SettingError(
                f"the LLM endpoint {self._url} redirects to {target or 'nowhere'} ({status}), where"
                f" no prompt is sent: set {setting('url')} to the address that answers"
            )
        if status in (401, 403):
            return SettingError(
                f"the LLM endpoint {self._url} refuses the key ({status}): set"
                f" {setting('api_key')} to a key that it accepts, or correct {setting('url')} if"
                " that is another service's"
            )
        if "model" in message.lower() and (status == 404 or _NO_MODEL.search(message)):
            return SettingError(
                f"the LLM endpoint {self._url} has no model {self._model.requested!r} ({message}):"
                f" set {setting('model')} to one it serves"
            )
        if status == 404:
            return SettingError(
                f"{self._url}/chat/completions is not there (404): set {setting('url')} to an"
                " OpenAI-compatible base URL, which mostly ends in /v1, and see that it serves"
                f" {setting('model')}, {self._model.requested!r}"
            )
        if _TOO_LONG.search(message):
            return SettingError(
                f"a prompt is longer than the model at {self._url} reads ({message}): lower"
                f" {setting('context')} to what it serves"
            )
        return PermanentFailure(
            f"the LLM endpoint {self._url} refuses a request ({status}): {message}"
        )

    def _unusable(self, reason: str, body: bytes = b"") -> UnusableAnswer:
        beginning = self._clean(body[:65536].decode(errors="replace"))[:_SHOWN_CHARS]
        return UnusableAnswer(
            f"{self._url} does not answer as an OpenAI-compatible endpoint"
            f" ({self._clean(reason)}; its answer begins {beginning!r}): run again, or correct"
            f" {self._model.setting('url')}"
        )

    def _clean(self, text: str) -> str:
        """An endpoint's message, short, without the key, which some servers repeat, and without
        characters that steer a terminal.
        """
        return visible(one_line(redact(text, self._secrets)))[:300]


@cache
def _certificates() -> SSLContext:
    """The certificates that this machine trusts. Reading them takes 30 ms, and each month of a
    stage opens a client.
    """
    import httpx2

    return httpx2.create_ssl_context()


def _complaint(error: APIStatusError) -> str:
    body = error.body
    if isinstance(body, dict):
        return str(body.get("message") or body.get("detail") or body)
    return str(body or error.message)
