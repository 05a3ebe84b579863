"""Every answer of a language model, stored in SQLite as JSON, so that no call is paid twice.

A failure is no answer: it is recorded beside them with what it cost and how often it was asked for.

The key of a call is made of model, messages, parameters and the system that makes it, never of the
endpoint; with it goes the number of the sample. The answers of one response are one transaction, so
a killed run resumes at the response that it was waiting for.
"""

from __future__ import annotations

import json
import os
import socket
import sqlite3
import time
from collections.abc import Iterable, Mapping
from dataclasses import astuple, dataclass
from functools import partial
from pathlib import Path
from typing import Any

from pipeline.engine.locks import file_lock
from pipeline.llm.messages import LASTING, LlmAnswerError, Spent
from pipeline.storage.sqlite import LOCK_SECONDS, named_errors, transaction
from pipeline.text import text_digest

# A claim of another machine's process cannot be checked by its id; after an hour its owner counts
# as dead.
CLAIM_SECONDS = 3600.0
# The kernel's clock says when a process started, the wall clock, which is adjusted at times, when
# it made a claim.
_CLOCK_SLACK = 10.0

_TABLES = """
CREATE TABLE IF NOT EXISTS answers (
    key TEXT NOT NULL, sample INTEGER NOT NULL, body TEXT NOT NULL, PRIMARY KEY (key, sample))
    WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS claims (
    key TEXT NOT NULL, sample INTEGER NOT NULL, host TEXT NOT NULL, pid INTEGER NOT NULL, since
    REAL NOT NULL,
    PRIMARY KEY (key, sample)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS paid (
    at REAL NOT NULL, model TEXT NOT NULL, max_tokens INTEGER NOT NULL, samples INTEGER NOT NULL,
    prompt_tokens INTEGER NOT NULL, completion_tokens INTEGER NOT NULL, seconds REAL NOT NULL);
CREATE TABLE IF NOT EXISTS failures (
    key TEXT NOT NULL, sample INTEGER NOT NULL, kind TEXT NOT NULL, detail TEXT NOT NULL,
    prompt_tokens INTEGER NOT NULL, completion_tokens INTEGER NOT NULL, model TEXT NOT NULL,
    asked INTEGER NOT NULL, PRIMARY KEY (key, sample)) WITHOUT ROWID;
"""
# So often a request is asked for an answer, in as many runs.
MOST_ASKED = 3
# Requests that say what an endpoint is like now; earlier ones may have met another machine.
RECENT = 2000

CachedAnswer = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Kind:
    """Averages over the latest requests with the same `max_tokens`."""

    requests: int
    written: float
    """Tokens of one answer."""
    seconds: float
    """Of one request, its samples together."""


def call_key(request: Mapping[str, Any]) -> str:
    """SHA-256 of a request without its sample number: model, messages and parameters."""
    return text_digest(_canonical(request))


def _canonical(value: Mapping[str, Any]) -> str:
    return json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"))


class CallCache:
    """The calls of one data root. An object belongs to one thread; processes may share the file.

    shared: whether processes of other machines may have it open too; the same for all its users.
    Every method raises as `named_errors` does.
    """

    def __init__(self, file: Path, *, shared: bool = False) -> None:
        self.folder = file.parent
        self.folder.mkdir(parents=True, exist_ok=True)
        self._host, self._pid = socket.gethostname(), os.getpid()
        self._errors = partial(named_errors, file, "the cache of LLM calls", "move it away")
        with self._errors():
            self._sql = sqlite3.connect(file, timeout=LOCK_SECONDS, isolation_level=None)
            # SQLite does not wait for a lock when it switches the journal, whatever the timeout: of
            # processes that opened a new file at the same moment, one in twenty was refused.
            with file_lock(Path(f"{file}.lock"), str(file)):
                # The index of a write-ahead log is memory that processes share, so they must be of
                # one machine (https://www.sqlite.org/wal.html). Without the log each commit waits
                # for the disk: 40 ms for the three of a call where each deletes its journal, 3 to
                # 12 where the journal's file stays.
                self._sql.execute(f"PRAGMA journal_mode={'PERSIST' if shared else 'WAL'}")
                if not shared:
                    # A process that is killed loses nothing with NORMAL; only a power cut may lose
                    # the last answers.
                    self._sql.execute("PRAGMA synchronous=NORMAL")
                self._sql.executescript(_TABLES)

    def close(self) -> None:
        self._sql.close()

    def read(self, key: str, samples: Iterable[int]) -> dict[int, CachedAnswer]:
        """The stored answers, by sample number."""
        numbers = set(samples)
        with self._errors():
            query = "SELECT sample, body FROM answers WHERE key = ?"
            rows = self._sql.execute(query, (key,)).fetchall()
        answers = {sample: json.loads(body) for sample, body in rows if sample in numbers}
        # Earlier versions stored empty answers too.
        return {sample: answer for sample, answer in answers.items() if answer["text"].strip()}

    def write(
        self,
        key: str,
        request: Mapping[str, Any],
        answers: Mapping[int, CachedAnswer],
        cost: Spent,
        seconds: float,
    ) -> None:
        """Store the answers of one response, all or none; an answer that is stored already stays.

        cost, seconds: of the request, waiting not counted.
        """
        rows = [(key, sample, _canonical(answer)) for sample, answer in sorted(answers.items())]
        paid = (
            time.time(),
            request["model"],
            request.get("max_tokens", 0),
            *astuple(cost),
            seconds,
        )
        with self._errors(), transaction(self._sql):
            self._sql.executemany(
                "INSERT INTO answers VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET body ="
                " excluded.body WHERE trim(json_extract(body, '$.text'), char(9, 10, 13, 32)) = ''",
                rows,
            )
            self._sql.executemany(
                "DELETE FROM failures WHERE key = ? AND sample = ?", [row[:2] for row in rows]
            )
            self._sql.execute("INSERT INTO paid VALUES (?, ?, ?, ?, ?, ?, ?)", paid)

    def write_failure(self, key: str, sample: int, error: LlmAnswerError, model: str) -> None:
        """Record that a call was asked for once more and gave no answer; one that is stored goes.

        model: how the model was called then.
        """
        cost = error.spent
        row = (key, sample, error.kind, error.detail, cost.prompt_tokens, cost.completion_tokens)
        with self._errors(), transaction(self._sql):
            self._sql.execute("DELETE FROM answers WHERE key = ? AND sample = ?", (key, sample))
            self._sql.execute(
                "INSERT INTO failures VALUES (?, ?, ?, ?, ?, ?, ?, 1) ON CONFLICT DO UPDATE SET"
                " kind = excluded.kind, detail = excluded.detail, model = excluded.model,"
                " asked = iif(model = excluded.model, asked + 1, 1),"
                " prompt_tokens = prompt_tokens + excluded.prompt_tokens,"
                " completion_tokens = completion_tokens + excluded.completion_tokens",
                (*row, model),
            )

    def kept_failure(self, key: str, sample: int, model: str) -> LlmAnswerError | None:
        """The failure of a call that is not asked for again: it was asked for MOST_ASKED times, or
        lasts; None without one. model: how the model would be called now.
        """
        query = (
            "SELECT kind, detail, prompt_tokens, completion_tokens, asked FROM failures"
            " WHERE key = ? AND sample = ? AND model = ?"
        )
        with self._errors():
            row = self._sql.execute(query, (key, sample, model)).fetchone()
        if row is None or (row[4] < MOST_ASKED and row[0] not in LASTING):
            return None
        kind, detail, read, written, asked = row
        return LlmAnswerError(kind, detail, Spent(asked, read, written), is_kept=True)

    def forget_failures(self) -> None:
        """Let every failure be asked for again."""
        with self._errors():
            self._sql.execute("DELETE FROM failures")

    def kinds(self, model: str) -> dict[int, Kind]:
        """Averages of a model's latest requests, by their `max_tokens`; 0 for those without."""
        query = (
            "SELECT max_tokens, count(*), sum(completion_tokens) * 1.0 / max(sum(samples), 1),"
            " avg(seconds) FROM (SELECT * FROM paid WHERE model = ? ORDER BY rowid DESC LIMIT ?)"
            " GROUP BY max_tokens"
        )
        with self._errors():
            rows = self._sql.execute(query, (model, RECENT)).fetchall()
        return {bound: Kind(*averages) for bound, *averages in rows}

    def claim(self, key: str, sample: int) -> bool:
        """True if this process may pay for the call; False while another living process does."""
        with self._errors():
            # Read first: a waiting process asks repeatedly, and an INSERT takes the lock even if it
            # changes nothing.
            claim_row = self._sql.execute(
                "SELECT host, pid, since FROM claims WHERE key = ? AND sample = ?", (key, sample)
            ).fetchone()
            if claim_row is None:
                insert = self._sql.execute(
                    "INSERT OR IGNORE INTO claims VALUES (?, ?, ?, ?, ?)",
                    (key, sample, self._host, self._pid, time.time()),
                )
                return insert.rowcount == 1
            if self._is_held(*claim_row):
                return False
            update = self._sql.execute(
                "UPDATE claims SET host = ?, pid = ?, since = ? WHERE key = ? AND sample = ? AND"
                " since = ?",
                (self._host, self._pid, time.time(), key, sample, claim_row[2]),
            )
            return update.rowcount == 1

    def release(self, key: str, sample: int) -> None:
        """Give up a claim of this process."""
        with self._errors():
            self._sql.execute(
                "DELETE FROM claims WHERE key = ? AND sample = ? AND host = ? AND pid = ?",
                (key, sample, self._host, self._pid),
            )

    def _is_held(self, host: str, pid: int, since: float) -> bool:
        """Whether the process that made a claim may still be paying.

        One of this machine may as long as it lives: its calls may queue for hours. A process that
        started only after the claim is another one with the same id, such as the same container
        started again. A zombie is dead: in a container whose first process reaps none, it stays
        until the container ends.
        """
        if host != self._host:
            return time.time() - since <= CLAIM_SECONDS
        import psutil

        try:
            process = psutil.Process(pid)
            return bool(
                process.create_time() <= since + _CLOCK_SLACK
                and process.status() != psutil.STATUS_ZOMBIE
            )
        except psutil.NoSuchProcess:
            return False
