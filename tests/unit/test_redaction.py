"""Errors that repeat a secret: what is told of them, of what led to them, and in a crash log."""

import json
import tempfile
import traceback
from urllib.parse import quote

import pytest

from pipeline.doors.cli.exit_codes import run_command
from pipeline.engine.redaction import (
    LIBRARY_SECRETS,
    MIN_SECRET_LENGTH,
    collect_secrets,
    redact,
    redact_error,
)
from pipeline.errors import CiteloomError, PermanentFailure, TransientFailure
from pipeline.settings import Settings, load_settings
from tests.sentinels import Search, is_secret, sentinel

NAMES = [f"CITELOOM_{name.upper()}" for name in Settings.model_fields if is_secret(name)]
KEY = sentinel("CITELOOM_LLM_API_KEY")


class _Busy(TransientFailure):
    """A kind of failure that a module keeps to itself, made of more than words."""

    def __init__(self, words, seconds):
        super().__init__(words)
        self.seconds = seconds


@pytest.fixture(autouse=True)
def _sentinels(monkeypatch, tmp_path):
    """Every secret is set, in the environment."""
    for name in (*NAMES, *LIBRARY_SECRETS):
        monkeypatch.setenv(name, sentinel(name))
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def secrets():
    return collect_secrets(load_settings())


def caught(words, kind=PermanentFailure):
    """An error of our own about one of a library about one of a socket, the last two of which hold
    the words.
    """
    try:
        try:
            try:
                raise OSError(words)
            except OSError:
                raise ValueError(f"answer: {words}")  # noqa: B904
        except ValueError as error:
            raise kind("the server refuses: mend it") from error
    except kind as error:
        return error


@pytest.mark.parametrize("name", [*NAMES, *LIBRARY_SECRETS])
def test_every_secret_is_taken_out_however_it_is_written(name, secrets):
    said = f"{sentinel(name)} {quote(sentinel(name), safe='')} {quote(sentinel(name))}"
    assert redact(said, secrets) == "*** *** ***"


def test_an_error_without_a_secret_stays_what_it_is(secrets):
    error = caught("no key here")
    assert redact_error(error, secrets) is error


def test_what_led_to_an_error_is_told_without_the_secret(secrets):
    error = redact_error(caught(f"bad key {KEY}"), secrets)
    whole = "".join(traceback.format_exception(error))
    assert Search(NAMES).in_text(whole) == []
    assert type(error) is PermanentFailure
    assert str(error) == "the server refuses: mend it"
    assert "RuntimeError: ValueError: answer: bad key ***" in whole
    assert "RuntimeError: OSError: bad key ***" in whole
    assert whole.count(", in caught") == 3, "places in the code are kept"


def test_an_error_of_our_own_keeps_its_kind(secrets):
    error = redact_error(_Busy(f"{KEY} is busy", 3.0), secrets)
    assert (type(error), str(error)) == (TransientFailure, "*** is busy")


def test_errors_in_a_group_are_told_of_without_their_words(secrets):
    error = redact_error(
        ExceptionGroup("two failed", [OSError(KEY), CiteloomError("fine")]), secrets
    )
    assert Search(NAMES).in_text("".join(traceback.format_exception(error))) == []


def test_the_password_of_an_address_is_a_secret_of_its_own(monkeypatch):
    monkeypatch.setenv(
        "CITELOOM_DAGSTER_PG_URL", "postgresql://me:sesame-sentinel@db.example.org/dagster"
    )
    said = 'password authentication failed for "me" with sesame-sentinel'
    assert (
        redact(said, collect_secrets(load_settings()))
        == 'password authentication failed for "me" with ***'
    )


def test_a_short_word_is_no_secret(monkeypatch):
    monkeypatch.setenv("CITELOOM_LLM_API_KEY", "none")
    assert not {"none", ""} & collect_secrets(load_settings())
    assert len("none") < MIN_SECRET_LENGTH


@pytest.fixture
def crash_logs(monkeypatch, tmp_path):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


@pytest.mark.parametrize("kind", [PermanentFailure, RuntimeError])
def test_neither_a_message_nor_a_crash_log_holds_a_secret(kind, crash_logs, capsys):
    def fail(*, as_json):
        raise kind(f"refused: {KEY}") from caught(f"at {KEY}")

    assert run_command(fail, as_json=True) == 1
    out, err = capsys.readouterr()
    assert Search(NAMES).in_text(out, err) == []
    assert Search(NAMES).in_folder(crash_logs) == []
    assert "refused: ***" in json.loads(out)["message"]
    assert len([*crash_logs.glob("citeloom-*.log")]) == (kind is RuntimeError)
