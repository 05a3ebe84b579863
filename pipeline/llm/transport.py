"""One request to an OpenAI-compatible endpoint: retries, what the endpoint's dialect lacks, and clear errors.

Not here: the cache, the limit on requests in flight, and reading structured answers (`client`).
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NoReturn

from pydantic import SecretStr

from pipeline.addresses import refuse_key_in_the_clear, split_url
from pipeline.errors import CiteloomError, PermanentFailure, SettingError, TransientFailure

if TYPE_CHECKING:
    from openai import APIStatusError, AsyncOpenAI
    from openai.types.chat import ChatCompletion

ATTEMPTS = 5
FIRST_WAIT = 0.5
# A server that asks for more than this is not waited for: the run ends with its words, and resumes where it was.
LONGEST_WAIT = 120.0
_RETRIED = frozenset({408, 409, 425, 429, 500, 502, 503, 504, 529})
# JSON schema keywords that OpenAI's strict mode has refused (platform.openai.com/docs/guides/structured-outputs).
_BOUNDS = frozenset({"maxLength", "minLength", "maxItems", "minItems", "title", "default"})


@dataclass(slots=True)
class Dialect:
    """What an endpoint was found not to understand. Each refusal costs one request in a run, not one per call."""

    refused: set[str] = field(default_factory=set)

    def adapt(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """The request as this endpoint takes it."""
        adapted = dict(body)
        if "max_tokens" in self.refused:
            adapted["max_completion_tokens"] = adapted.pop("max_tokens")
        for name in ("seed", "temperature", "top_p", "n"):
            if name in self.refused:
                adapted.pop(name, None)
        if "response_format" in self.refused:
            adapted.pop("response_format", None)
        elif "bounds" in self.refused and "response_format" in adapted:
            adapted["response_format"] = _without_bounds(adapted["response_format"])
        return adapted

    def learn(self, body: Mapping[str, Any], complaint: str) -> bool:
        """Take note of what a 400 complains about; whether the request is worth sending once more."""
        if "response_format" in body and re.search(r"response_format|schema|grammar", complaint, re.IGNORECASE):
            return self._refuse("bounds") or self._refuse("response_format")
        for name in ("max_tokens", "seed", "temperature", "top_p"):
            if name in body and re.search(rf"\b{name}\b", complaint):
                return self._refuse(name)
        if body.get("n", 1) > 1 and re.search(r"['\"`]n['\"`]|\bn\b *(>|must|is not|not|=)", complaint):
            return self._refuse("n")
        return False

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
    return [_without_bounds(item) for item in schema] if isinstance(schema, list) else schema


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where the model is, and how to speak to it."""

    url: str
    model: str
    api_key: SecretStr | None
    timeout: float
    embedded: bool = False

    @property
    def shown(self) -> str:
        """The URL as messages may show it: without user, password and query."""
        return re.sub(r"//[^/@]*@", "//", self.url).partition("?")[0]


def check_url(url: str, *, has_key: bool) -> None:
    """Raise SettingError where CITELOOM_LLM_URL is no address, or would carry the key in the clear."""
    parts = split_url("CITELOOM_LLM_URL", url, "http://localhost:8000/v1")
    if has_key:
        refuse_key_in_the_clear("CITELOOM_LLM_URL", parts, "CITELOOM_LLM_API_KEY")


class Transport:
    """Sends requests to one endpoint. Belongs to one event loop; closed by `aclose`."""

    def __init__(self, endpoint: Endpoint) -> None:
        self.endpoint = endpoint
        self.dialect = Dialect()
        self.retries = 0
        self._client = _open(endpoint)

    async def aclose(self) -> None:
        await self._client.close()

    async def send(self, body: Mapping[str, Any]) -> ChatCompletion:
        """The endpoint's answer to a chat completion request.

        Raises SettingError (key, model, URL, context), TransientFailure (unreachable, overloaded), PermanentFailure
        (the request is refused for another reason).
        """
        import openai

        for attempt in range(ATTEMPTS):
            adapted = self.dialect.adapt(body)
            try:
                answer: ChatCompletion = await self._client.chat.completions.create(**adapted)
                return answer
            except openai.APIStatusError as error:
                if error.status_code in {400, 422} and self._understands(body, adapted, _complaint(error)):
                    continue
                wait = self._wait_after_status(error, attempt)
            except openai.APITimeoutError as error:
                wait = self._wait_or_fail(attempt, None, self._timed_out(error))
            except openai.APIConnectionError as error:
                wait = self._wait_or_fail(attempt, None, self._unreachable(error))
            except openai.APIResponseValidationError as error:
                raise self._no_completion(str(error)) from error
            self.retries += 1
            await asyncio.sleep(wait)
        raise TransientFailure(f"the LLM endpoint {self.endpoint.shown} refused {ATTEMPTS} forms of one request")

    def _understands(self, body: Mapping[str, Any], sent: Mapping[str, Any], complaint: str) -> bool:
        """Whether the request now has another form than the one refused; a request beside it may have seen to that."""
        return self.dialect.adapt(body) != sent or self.dialect.learn(sent, complaint)

    def _wait_after_status(self, error: APIStatusError, attempt: int) -> float:
        if error.status_code not in _RETRIED:
            self._refuse(error)
        asked = _retry_after(error)
        said = self._clean(_complaint(error))
        failure = TransientFailure(
            f"the LLM endpoint {self.endpoint.shown} answers {error.status_code} ({said})"
            f"{f' and asks to wait {asked:.0f} s' if asked else ''}: run again later, or lower "
            "CITELOOM_LLM_CONCURRENCY; answers so far are kept"
        )
        return self._wait_or_fail(attempt, asked, failure)

    def _wait_or_fail(self, attempt: int, asked: float | None, failure: CiteloomError) -> float:
        wait = asked if asked is not None else FIRST_WAIT * 2**attempt
        if attempt + 1 >= ATTEMPTS or wait > LONGEST_WAIT:
            raise failure from None
        return wait

    def _refuse(self, error: APIStatusError) -> NoReturn:
        where, said = self.endpoint.shown, self._clean(_complaint(error))
        if error.status_code in {401, 403}:
            raise SettingError(
                f"the LLM endpoint {where} refuses the key ({error.status_code}): set CITELOOM_LLM_API_KEY to a "
                "key that it accepts, or correct CITELOOM_LLM_URL if that is another service's"
            ) from None
        if error.status_code == 404:
            raise SettingError(self._not_found(said)) from None
        if re.search(r"context.{0,12}(size|length)|maximum context|too many tokens", said, re.IGNORECASE):
            raise SettingError(
                f"a prompt is longer than the model at {where} reads ({said}): lower CITELOOM_LLM_CONTEXT to what "
                "it serves"
            ) from None
        raise PermanentFailure(f"the LLM endpoint {where} refuses a request ({error.status_code}): {said}") from None

    def _not_found(self, said: str) -> str:
        where, model = self.endpoint.shown, self.endpoint.model
        if "model" in said.lower():
            return f"the LLM endpoint {where} has no model {model!r} ({said}): set CITELOOM_LLM_MODEL to one it serves"
        return (
            f"{where}/chat/completions is not there (404): set CITELOOM_LLM_URL to an OpenAI-compatible base URL, "
            f"which mostly ends in /v1, and see that it serves CITELOOM_LLM_MODEL, {model!r}"
        )

    def _unreachable(self, error: Exception) -> TransientFailure:
        reason = self._clean(str(error.__cause__ or error))
        return TransientFailure(
            f"the LLM endpoint {self.endpoint.shown} cannot be reached ({reason}): start it, or correct "
            "CITELOOM_LLM_URL; empty, it means the embedded model"
        )

    def _timed_out(self, error: Exception) -> TransientFailure:
        return TransientFailure(
            f"the LLM endpoint {self.endpoint.shown} gave no answer within {self.endpoint.timeout:g} s: raise "
            "CITELOOM_LLM_TIMEOUT, or lower CITELOOM_LLM_CONCURRENCY; answers so far are kept"
        )

    def _no_completion(self, said: str) -> PermanentFailure:
        return PermanentFailure(
            f"{self.endpoint.shown} does not answer as an OpenAI-compatible endpoint ({self._clean(said)}): correct "
            "CITELOOM_LLM_URL"
        )

    def _clean(self, text: str) -> str:
        """An endpoint's words, short, and without the key, which some servers repeat."""
        secret = self.endpoint.api_key.get_secret_value() if self.endpoint.api_key else ""
        shown = text.replace(secret, "***") if secret else text
        return " ".join(shown.split())[:300]


def _open(endpoint: Endpoint) -> AsyncOpenAI:
    import openai

    # A proxy from the environment must not be asked for the server on our own loopback.
    http = openai.DefaultAsyncHttpxClient(trust_env=False) if endpoint.embedded else None
    key = endpoint.api_key.get_secret_value() if endpoint.api_key else "none"
    return openai.AsyncOpenAI(
        base_url=endpoint.url, api_key=key, timeout=endpoint.timeout, max_retries=0, http_client=http
    )


def _complaint(error: APIStatusError) -> str:
    body = error.body
    if isinstance(body, dict):
        return str(body.get("message") or body.get("detail") or body)
    return str(body or error.message)


def _retry_after(error: APIStatusError) -> float | None:
    """Seconds that the endpoint asks to wait (RFC 9110, 10.2.3; dates are not honoured, no LLM server sends them)."""
    try:
        seconds = float(error.response.headers.get("retry-after", ""))
    except ValueError:
        return None
    return max(seconds, 0.0)
