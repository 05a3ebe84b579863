"""A scripted OpenAI-compatible server on loopback, for every tier of tests.

Its answers are a pure function of the messages and the seed, so that a run that was killed and
resumed must end with the same tables.

    with ScriptedLlm() as llm:
        settings = load_settings(llm_url=llm.url, llm_model=llm.model, …)
        …
        assert llm.generations == 12

An answer is the first one that a rule in `rules` gives (a function from `Asked` to text, the fields
of a choice, a `Refusal`, or None to let the next rule have it); after them comes `default_script`: JSON that fits
a `json_schema`, a vote where the prompt asks for "The best choice is", else prose that cites every
[Reference i] of the prompt.
"""

import hashlib
import json
import re
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

MODEL = "scripted"


@dataclass
class Asked:
    """One text that is asked for: request, its seed (that of the request, plus its place among
    `n`), its prompt.
    """

    body: Mapping[str, Any]
    seed: int

    @property
    def prompt(self):
        return "\n\n".join(message["content"] for message in self.body["messages"])

    @property
    def schema(self):
        form = self.body.get("response_format") or {}
        return form.get("json_schema", {}).get("schema")

    @property
    def digest(self):
        """A number that depends on messages, schema and seed alone."""
        basis = json.dumps([self.body["messages"], self.schema, self.seed], sort_keys=True)
        return int.from_bytes(hashlib.sha256(basis.encode()).digest()[:8], "big")


@dataclass
class Refusal:
    """An error status in place of an answer."""

    status: int
    message: str = "refused by the script"
    headers: Mapping[str, str] = field(default_factory=dict)


Rule = Callable[[Asked], "str | Mapping[str, Any] | Refusal | None"]


def default_script(asked):
    """An answer of the right form for every prompt of citeloom."""
    if asked.schema is not None:
        return json.dumps(fill(asked.schema, asked.schema.get("$defs", {}), asked.digest))
    if "The best choice is" in asked.prompt:
        choices = re.findall(r"^Choice (\d+):", asked.prompt, re.MULTILINE) or ["1"]
        return f"Each was read in full.\nThe best choice is {choices[asked.digest % len(choices)]}"
    numbers = sorted({int(number) for number in re.findall(r"\[Reference (\d+)\]", asked.prompt)})
    cited = " ".join(
        f"Work {asked.digest % 997} is close to [Reference {number}]." for number in numbers
    )
    return cited or f"A summary, number {asked.digest % 9973}."


def fill(schema, definitions, number):
    """A value that fits a JSON schema as pydantic writes them; `number` decides what is left
    open.
    """
    if "$ref" in schema:
        return fill(definitions[schema["$ref"].rsplit("/", 1)[1]], definitions, number)
    for choice in ("anyOf", "oneOf"):
        if choice in schema:
            return fill(schema[choice][0], definitions, number)
    if "const" in schema or "enum" in schema:
        options = schema.get("enum") or [schema["const"]]
        return options[number % len(options)]
    return _fill_type(schema, definitions, number)


def _fill_type(schema, definitions, number):
    kind = schema.get("type")
    if kind == "object":
        properties = schema.get("properties", {})
        return {
            name: fill(part, definitions, number // (i + 2))
            for i, (name, part) in enumerate(properties.items())
        }
    if kind == "array":
        length = max(schema.get("minItems", 1), min(2, schema.get("maxItems", 2)))
        return [fill(schema["items"], definitions, number // (i + 3)) for i in range(length)]
    if kind in {"integer", "number"}:
        low, high = schema.get("minimum", 1), schema.get("maximum", 5)
        return int(low) + number % (int(high) - int(low) + 1)
    if kind == "boolean":
        return number % 2 == 0
    return (
        None
        if kind == "null"
        else f"scripted answer {number % 9973}"[: schema.get("maxLength", 80)]
    )


class ScriptedLlm:
    """The server. A context manager; `url` is its base URL.

    key: where given, requests must bear it. models: names that it serves. most: largest `n` that it
    takes. latency: seconds that every request takes.
    """

    def __init__(
        self,
        *rules,
        key=None,
        models=(MODEL,),
        most=128,
        latency=0.0,
        port=0,
    ):
        self.rules, self.key, self.models = list(rules), key, models
        self.most, self.latency = most, latency
        self.requests = []
        """Bodies of all requests, refused ones too, in order of arrival."""
        self.headers = {}
        """Sent with every answer, such as those that tell a rate limit."""
        self.changes = {}
        """Fields that every answer has in place of its own."""
        self.generations = 0
        """Texts given: what a caller pays for."""
        self.at_once = 0
        """Most texts that were in the making at the same time."""
        self._now = 0
        self._lock = threading.Lock()
        self._server = ThreadingHTTPServer(("127.0.0.1", port), _handler(self))
        self._server.daemon_threads = True

    @property
    def url(self):
        return f"http://127.0.0.1:{self._server.server_address[1]}/v1"

    @property
    def model(self):
        return self.models[0]

    def __enter__(self):
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def __exit__(self, kind, error, trace):
        self._server.shutdown()
        self._server.server_close()

    def requested_texts(self):
        """How often each text was requested: one sample of one request, whose seed is its
        number.
        """
        counts = Counter()
        for body in self.requests:
            call = {name: value for name, value in body.items() if name not in ("n", "seed")}
            counts.update(
                json.dumps([call, body["seed"] + place], sort_keys=True)
                for place in range(body.get("n", 1))
            )
        return counts

    def respond(self, body, key):
        """The answer to one request."""
        count = body.get("n", 1)
        with self._lock:
            self.requests.append(body)
            self._now += count
            self.at_once = max(self.at_once, self._now)
        try:
            time.sleep(self.latency)
            return self._refusal(body, key) or self._texts(body, count)
        finally:
            with self._lock:
                self._now -= count

    def _refusal(self, body, key):
        if self.key is not None and key != self.key:
            return Refusal(401, f"Incorrect API key provided: {key}")
        if body["model"] not in self.models:
            return Refusal(404, f"The model `{body['model']}` does not exist")
        if body.get("n", 1) > self.most:
            return Refusal(400, f"Field 'n': Value must be between 1 <= value <= {self.most}")
        return None

    def _texts(self, body, count):
        texts = [self._text(Asked(body, body.get("seed", 0) + place)) for place in range(count)]
        refusals = [text for text in texts if isinstance(text, Refusal)]
        if refusals:
            return refusals[0]
        with self._lock:
            self.generations += count
        return _completion(body, texts) | self.changes

    def _text(self, asked):
        for rule in self.rules:
            given = rule(asked)
            if given is not None:
                return given
        return default_script(asked)


def _completion(body, texts):
    choices = [
        text
        if isinstance(text, Mapping)
        else {"finish_reason": "stop", "message": {"role": "assistant", "content": text}}
        for text in texts
    ]
    read = sum(len(message["content"]) for message in body["messages"]) // 4
    written = sum(len(str(text)) for text in texts) // 4
    return {
        "id": "scripted",
        "object": "chat.completion",
        "created": 0,
        "model": body["model"],
        "choices": [{"index": place, **choice} for place, choice in enumerate(choices)],
        "usage": {
            "prompt_tokens": read,
            "completion_tokens": written,
            "total_tokens": read + written,
        },
    }


def _handler(llm):
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        wbufsize = (
            1 << 16
        )  # head and body in one packet; in two, the second waits 40 ms for the first one's receipt

        def do_GET(self):
            self._send(200, {"object": "list", "data": [{"id": name} for name in llm.models]}, {})

        def do_POST(self):
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            if self.path != "/v1/chat/completions":
                self._send(404, {"error": {"message": f"no such path: {self.path}"}}, {})
                return
            answer = llm.respond(
                body, self.headers.get("Authorization", "").removeprefix("Bearer ")
            )
            if isinstance(answer, Refusal):
                self._send(answer.status, {"error": {"message": answer.message}}, answer.headers)
            else:
                self._send(200, answer, llm.headers)

        def _send(self, status, content, headers):
            data = json.dumps(content).encode()
            try:
                self.send_response(status)
                for name, value in {"Content-Type": "application/json", **headers}.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)
            except OSError:
                self.close_connection = True  # the caller was killed, as some tests intend

        def log_message(self, *_):
            pass

    return Handler
