"""Errors as problem documents (RFC 9457), and as a page for a browser."""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus

from starlette.exceptions import HTTPException

from pipeline.engine.redaction import collect_secrets, redact_error
from pipeline.engine.stage import Workspace
from pipeline.errors import CiteloomError, MissingInput, SettingError, TransientFailure
from pipeline.serve.site import IndexInUse

MEDIA_TYPE = "application/problem+json"
_RETRY_SECONDS = 5
_OPTION = re.compile(r"(?<!\w)--(?=[a-z])")

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Problem:
    """A problem document. type: what kind of problem it is, for programs; detail: what happened, for people."""

    type: str
    title: str
    status: int
    detail: str

    @property
    def headers(self) -> Mapping[str, str]:
        return {"Retry-After": str(_RETRY_SECONDS)} if self.status == HTTPStatus.SERVICE_UNAVAILABLE else {}


def problem_of(error: Exception, workspace: Workspace) -> Problem:
    """The problem document of an error. Secrets are redacted, and the text of an unexpected error is only logged."""
    redacted = redact_error(error, collect_secrets(workspace.settings))
    # Messages name options of the command line, which are parameters here.
    detail = _OPTION.sub("", str(redacted))
    if isinstance(error, IndexInUse):
        return _problem("index-in-use", HTTPStatus.SERVICE_UNAVAILABLE, detail)
    if isinstance(error, TransientFailure):
        return _problem("temporary", HTTPStatus.SERVICE_UNAVAILABLE, detail)
    if isinstance(error, SettingError):
        return _problem("wrong-parameter", HTTPStatus.BAD_REQUEST, detail)
    if isinstance(error, MissingInput):
        return _problem("not-found", HTTPStatus.NOT_FOUND, detail)
    if isinstance(error, HTTPException):
        return _problem("request", HTTPStatus(error.status_code), str(error.detail))
    if isinstance(error, CiteloomError):
        return _problem("cannot-answer", HTTPStatus.INTERNAL_SERVER_ERROR, detail)
    _log.error("a request failed", exc_info=redacted)
    return _problem("internal", HTTPStatus.INTERNAL_SERVER_ERROR, "the server's log has the reason")


def _problem(kind: str, status: HTTPStatus, detail: str) -> Problem:
    return Problem(f"urn:citeloom:{kind}", status.phrase, int(status), detail)
