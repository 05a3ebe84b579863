"""An OpenAI-compatible endpoint of fixed latency with scripted answers, in a process of its own.

    python -m benchmarks.scripted_endpoint --latency 1.0 [--one]

It prints its base URL. Answers depend on the prompt and the seed alone, and are as long as a real
model's: drafts of some 35 words for each reference, votes that argue before they decide, seven
elements of two sentences; every other form is filled so that it can be used. `GET /recorded` tells
what was asked, with the share of tokens that prompts had in common; `GET /bodies` gives the
requests themselves.
Never a measure of any model: every request takes the same time, whatever it reads and writes.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import itertools
import json
import random
import re
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

MODEL = "scripted"
# As vLLM's prefix cache: a prompt's tokens in blocks of 16, and whole blocks alone are taken over.
BLOCK = 16
# Pieces by which the project estimates tokens, see pipeline/llm/context.py.
_PIECE = re.compile(r"[A-Za-z]{1,7}|\S")
_REFERENCE = re.compile(r"\[Reference (\d{1,4})\]")
_RANKED = re.compile(r"^Rank the (\d+) passages above", re.MULTILINE)
_CHOICE = re.compile(r"^Choice (\d+):", re.MULTILINE)
_WORDS_PER_REFERENCE, _WORDS_OF_A_VOTE, _WORDS_OF_AN_ELEMENT, _WORDS_OF_A_SUMMARY = 35, 60, 30, 120
_SYLLABLES = (
    "re",
    "ta",
    "con",
    "mo",
    "del",
    "gra",
    "ph",
    "ness",
    "ing",
    "ver",
    "li",
    "sor",
    "an",
    "qui",
    "em",
    "bed",
)
VOCABULARY = tuple(
    "".join(parts) for size in (1, 2, 3) for parts in itertools.product(_SYLLABLES, repeat=size)
)
"""4,368 words that mean nothing, of 2 to 12 letters."""

Body = Mapping[str, Any]
Scope = Mapping[str, Any]
Receive = Callable[[], Awaitable[Mapping[str, Any]]]
Send = Callable[[Mapping[str, Any]], Awaitable[None]]


def prose(chance: random.Random, words: int) -> str:
    """So many words that mean nothing, in sentences of sixteen."""
    chosen = chance.choices(VOCABULARY, k=words)
    return " ".join(f"{' '.join(chosen[i : i + 16])}." for i in range(0, words, 16))


def answer(body: Body, seed: int) -> str:
    """What the endpoint answers to a request with this seed."""
    prompt = body["messages"][-1]["content"]
    chance = random.Random(hashlib.sha256(f"{seed}\0{prompt}".encode()).digest())
    if "response_format" in body:
        schema = body["response_format"]["json_schema"]["schema"]
        return json.dumps(filled(chance, schema, schema.get("$defs", {})))
    ranked = _RANKED.search(prompt)
    if ranked:
        order = chance.sample(range(1, int(ranked[1]) + 1), int(ranked[1]))
        return " > ".join(f"[{number}]" for number in order)
    choices = _CHOICE.findall(prompt)
    if choices:
        return f"{prose(chance, _WORDS_OF_A_VOTE)}\nThe best choice is {chance.choice(choices)}"
    numbers = sorted({int(number) for number in _REFERENCE.findall(prompt)})
    told = [
        f"{prose(chance, _WORDS_PER_REFERENCE)[:-1]} [Reference {number}]." for number in numbers
    ]
    return " ".join(told) or prose(chance, _WORDS_OF_A_SUMMARY)


def filled(chance: random.Random, schema: Any, definitions: Mapping[str, Any]) -> Any:
    """A value that fits a JSON schema as pydantic writes them: two members of a list, the first of
    some words, the number one, so that what is cited is there; of truth values either.
    """
    if "$ref" in schema:
        return filled(chance, definitions[schema["$ref"].rsplit("/", 1)[1]], definitions)
    if "const" in schema or "enum" in schema:
        return schema.get("enum", [schema.get("const")])[0]
    kind = schema.get("type")
    if kind == "object":
        return {
            name: filled(chance, part, definitions) for name, part in schema["properties"].items()
        }
    if kind == "array":
        return [
            filled(chance, schema["items"], definitions)
            for _ in range(min(2, schema.get("maxItems", 2)))
        ]
    if kind == "integer":
        return schema.get("minimum", 1)
    if kind == "boolean":
        return chance.random() < 0.5
    return prose(chance, _WORDS_OF_AN_ELEMENT)


def completion(body: Body) -> dict[str, Any]:
    """The endpoint's answer to one request, its tokens by the project's pieces of a text."""
    texts = [answer(body, body.get("seed", 0) + place) for place in range(body.get("n", 1))]
    read = sum(len(_PIECE.findall(message["content"])) for message in body["messages"])
    written = sum(len(_PIECE.findall(text)) for text in texts)
    choices = [
        {"index": place, "finish_reason": "stop", "message": {"role": "assistant", "content": text}}
        for place, text in enumerate(texts)
    ]
    usage = {"prompt_tokens": read, "completion_tokens": written, "total_tokens": read + written}
    named = {"id": "scripted", "object": "chat.completion", "created": 0, "model": body["model"]}
    return {**named, "choices": choices, "usage": usage}


def shared_tokens(bodies: Iterable[Body]) -> tuple[int, int]:
    """Tokens that all completions of these requests read, and how many of them an earlier prompt
    began with as well.

    As in vLLM's prefix cache, without a limit to what it holds: a prompt's tokens in blocks, each
    known by itself and all before it; what counts are the blocks up to the first that was never
    seen. Of a request for n samples, n - 1 read what the first has read; without n they come one by
    one and are counted alike.
    """
    seen: set[bytes] = set()
    total = shared = 0
    for body in bodies:
        samples = body.get("n", 1)
        blocks, tokens = _blocks(body)
        known = sum(1 for _ in itertools.takewhile(seen.__contains__, blocks))
        seen.update(blocks)
        total += samples * tokens
        shared += BLOCK * (known + (samples - 1) * len(blocks))
    return total, shared


def _blocks(body: Body) -> tuple[list[bytes], int]:
    """A prompt's whole blocks, each as the digest up to its end, and the prompt's tokens."""
    text = "\n".join(f"<{message['role']}> {message['content']}" for message in body["messages"])
    pieces = _PIECE.findall(text)
    digest = hashlib.sha256()
    found = []
    for start in range(0, len(pieces) - BLOCK + 1, BLOCK):
        digest.update("\0".join(pieces[start : start + BLOCK]).encode())
        found.append(digest.digest()[:8])
    return found, len(pieces)


@dataclass(slots=True)
class Endpoint:
    """The endpoint. latency: seconds of every request. one: whether it refuses `n`."""

    latency: float
    one: bool = False
    bodies: list[dict[str, Any]] = field(default_factory=list)
    """Requests that were answered, in order of arrival."""
    refused: int = 0
    at_once: int = 0
    _now: int = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, as an ASGI server hands it over."""
        if scope["type"] != "http":
            return
        if scope["method"] == "GET":
            status, content = 200, self._record(scope["path"])
        else:
            status, content = await self._chat(json.loads(await _read_body(receive)))
        data = json.dumps(content).encode()
        headers = [
            (b"content-type", b"application/json"),
            (b"content-length", str(len(data)).encode()),
        ]
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": data})

    async def _chat(self, body: dict[str, Any]) -> tuple[int, Any]:
        samples = body.get("n", 1)
        if self.one and samples > 1:
            self.refused += 1
            return 400, {"error": {"message": "'n' must be 1"}}
        self.bodies.append(body)
        self._now += samples
        self.at_once = max(self.at_once, self._now)
        ready = asyncio.get_running_loop().time() + self.latency
        content = completion(body)
        await asyncio.sleep(ready - asyncio.get_running_loop().time())
        self._now -= samples
        return 200, content

    def _record(self, path: str) -> Any:
        """The requests themselves under `/bodies`, else figures on them."""
        if path == "/bodies":
            return self.bodies
        total, shared = shared_tokens(self.bodies)
        searched = [body for body in self.bodies if "response_format" not in body]
        search_total, search_shared = shared_tokens(searched)
        return {
            "requests": len(self.bodies),
            "refused": self.refused,
            "completions": sum(body.get("n", 1) for body in self.bodies),
            "at_once": self.at_once,
            "prompt_tokens": total,
            "shared_tokens": shared,
            "search_prompt_tokens": search_total,
            "search_shared_tokens": search_shared,
        }


async def _read_body(receive: Receive) -> bytes:
    data = b""
    while True:
        message = await receive()
        data += bytes(message.get("body", b""))
        if not message.get("more_body"):
            return data


def serve(endpoint: Endpoint) -> None:
    """Serve on a free port of loopback until the process is ended; prints the base URL first."""
    import uvicorn

    listening = socket.socket()
    listening.bind(("127.0.0.1", 0))
    sys.stdout.write(f"http://127.0.0.1:{listening.getsockname()[1]}/v1\n")
    sys.stdout.flush()
    config = uvicorn.Config(endpoint, log_level="warning", access_log=False, lifespan="off")
    uvicorn.Server(config).run(sockets=[listening])


@contextmanager
def serving(latency: float, *, one: bool = False) -> Iterator[str]:
    """The base URL of an endpoint in a process of its own, which ends with the context."""
    command: Sequence[str] = [
        sys.executable,
        "-m",
        __name__,
        "--latency",
        str(latency),
        *(["--one"] if one else []),
    ]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        yield process.stdout.readline().strip()
    finally:
        process.terminate()
        process.wait()


def ask(url: str, path: str) -> Any:
    """What the endpoint at a base URL tells under `/recorded` or `/bodies`."""
    with urllib.request.urlopen(url.removesuffix("/v1") + path) as response:
        return json.load(response)


def main() -> None:
    """Serve as the command line asks."""
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument(
        "--latency", type=float, default=1.0, help="seconds that every request takes"
    )
    arguments.add_argument("--one", action="store_true", help="refuse requests for several samples")
    given = arguments.parse_args()
    serve(Endpoint(given.latency, given.one))


if __name__ == "__main__":
    main()
