"""`citeloom ask` and `citeloom chat`: answers with their sources and steps, and a conversation."""

import json
import os
import pty
import threading

import pytest

from pipeline.answering.answer import ABSTAINED
from pipeline.index.opening import close_indexes
from tests.cases import cases_beside
from tests.command import invoke
from tests.processes import COMMAND, PATIENCE, environment_without_settings
from tests.scripted_llm import Refusal, ScriptedLlm
from tests.unit.answering.scripted_answers import form_of

pytestmark = pytest.mark.slow

QUESTION = "What does reciprocal rank fusion merge?"
ANSWER = r"It merges \[bold\]lists\[/\]. \[1\]"
TESTED = threading.Event()
"""The model is needed no more."""


def reader(asked):
    """A model that says what the first passage says; nothing of races, and of broken things it
    breaks.
    """
    words = asked.prompt.rpartition("<question>")[2].partition("</question>")[0].strip()
    if "broken" in words:
        return Refusal(400, "no such thing")
    if "slow" in words:  # the user thinks better of it
        TESTED.wait()
    claims = (
        [] if "race" in words else [{"passage": 1, "claim": "So says [red]it[/] \x1b[2J:key:."}]
    )
    given = {
        "Query": {"query": words},
        "FollowUp": {"question": f"{words} (of fusion)", "query": "fusion ranks"},
        "Claims": {"relevant": [1] if claims else [], "claims": claims},
        "Thought": {"reasoning": "It is there.", "enough": True, "query": ""},
        "GroundedAnswer": {
            "answered": "yes",
            "sentences": [{"text": "It merges [bold]lists[/].", "claims": [1]}],
        },
    }
    name = form_of(asked)
    return json.dumps(given[name]) if name in given else None


@pytest.fixture(scope="module")
def variables(corpus):
    """The settings of the small corpus and of a model, as environment variables."""
    with ScriptedLlm(reader, models=("reader",)) as model:
        settings = {"data": corpus.root.path, "llm_url": model.url, "llm_model": model.model}
        yield {f"CITELOOM_{name.upper()}": str(value) for name, value in settings.items()}
        TESTED.set()


def test_an_answer_comes_with_its_sources_its_steps_and_its_cost(variables):
    told = json.loads(invoke("ask", QUESTION, "--json", "--show-work", env=variables).stdout)
    assert (told["text"], told["abstained"]) == ("It merges [bold]lists[/].", False)
    assert told["trace"]["steps"][-1]["stage"] == "answer"
    link = told["claims"][0]["url"]
    done = invoke("ask", QUESTION, "--show-work", env=variables)
    # Markup of a model is text, and what would steer a terminal is a sign.
    lines = done.stdout.splitlines()
    claim = "\\[1\\] So says \\[red\\]it\\[/\\] \ufffd\\[2J:key:.\\"
    assert lines[:-1] == [ANSWER, "", "Sources:", "", claim]
    assert lines[-1].endswith(f"]({link})")
    assert {
        f"query: question {QUESTION}; query {QUESTION}; made model",
        "  texts: So says [red]it[/] \ufffd[2J:key:.",
        f"    {link}",
    } <= set(done.stderr.splitlines())
    assert "arxivbot_fused · reader · 5 calls" in done.stderr


def test_what_the_corpus_does_not_hold_is_said_plainly(variables):
    done = invoke("ask", "Who won the race?", env=variables)
    assert (done.exit_code, done.stdout) == (0, f"{ABSTAINED}\n")
    assert "searched for: Who won the race?" in done.stderr


def test_months_and_systems_are_chosen(variables):
    done = invoke("ask", QUESTION, "--months", "2024-03", "--json", env=variables)
    shown = json.loads(done.stdout)["shown"]
    assert {passage["month"] for hop in shown for passage in hop} == {"2024-03"}
    alone = invoke("ask", QUESTION, "--system", "direct", env=variables)
    assert "this is what reader says" in alone.stderr


@cases_beside("arguments", "changes", "code", "named")
def test_what_cannot_be_asked_says_why(variables, arguments, changes, code, named):
    for words in (["ask", QUESTION], ["chat"]):
        done = invoke(*words, *arguments, env=variables | changes)
        assert (done.exit_code, done.stdout) == (code, ""), done.output
        assert named in done.stderr
        assert "error: " in done.stderr


def test_a_piped_conversation_answers_line_by_line_and_obeys_commands(variables):
    typed = f"\ufeff{QUESTION}\r\n\n/work\n  And of scores?\n/work\n/dance\n/help\n/quit\nNever?\n"
    done = invoke("chat", input=typed.encode(), env=variables)
    lines = done.stdout.splitlines()
    assert [line for line in lines if line.startswith("> ")] == [
        f"> {QUESTION}",
        "> And of scores?",
    ]
    assert lines.count(ANSWER) == 2
    assert done.stderr.count("search: ") == done.stderr.count("steps are shown\n") == 1
    assert "/dance is not a command: " in done.stderr
    assert done.exit_code == 2
    assert invoke("chat", input="", env=variables).exit_code == 0


def test_a_follow_up_leans_on_what_was_said_and_a_question_that_failed_ends_nothing(variables):
    typed = f"{QUESTION}\nAnd of scores?\n/reset\nWhat is broken?\nAnd of scores?\n"
    done = invoke("chat", "--json", input=typed.encode() + b"caf\xe9?\n", env=variables)
    first, second, broken, alone, torn = map(json.loads, done.stdout.splitlines())
    queries = [answer["queries"] for answer in (first, second, alone)]
    assert queries == [[QUESTION], ["fusion ranks"], ["And of scores?"]]
    assert "no such thing" in broken["message"]
    assert torn["error"] == "SettingError"
    assert "not valid UTF-8" in torn["message"]
    assert done.exit_code == 2


class Terminal:
    """`citeloom chat` on a terminal of its own, which hangs up when this process ends."""

    def __init__(self, variables):
        self.process, self.end = pty.fork()
        if self.process == 0:
            environment = environment_without_settings() | {"TERM": "xterm"} | variables
            os.execve(COMMAND, [COMMAND, "chat"], environment)
        self.shown = ""

    def type(self, keys, until):
        """Type something and wait for what it brings."""
        start = len(self.shown)
        os.write(self.end, keys.encode())
        while until not in self.shown[start:]:
            self.shown += os.read(self.end, 65_536).decode(errors="replace")


@pytest.mark.timeout(PATIENCE)
def test_a_conversation_on_a_terminal_outlives_an_interrupted_answer(variables):
    close_indexes()
    terminal = Terminal(variables)
    terminal.type("", until="> ")
    terminal.type(f"{QUESTION}\n", until=" s\r\n\r\n> ")
    terminal.type("What is slow?\n", until="answering with")
    terminal.type("\x03", until="\r\n> ")
    assert "interrupted; " in terminal.shown
    terminal.type("And of scores?\n", until=" s\r\n\r\n> ")
    assert terminal.shown.count("arxivbot_fused · reader") == 2  # below each whole answer
    # While it waits for its user, another process may hold the index.
    assert invoke("search", "ranks", "--limit", "1", env=variables).exit_code == 0
    os.write(terminal.end, b"\x04")
    _, status = os.waitpid(terminal.process, 0)
    os.close(terminal.end)
    assert os.waitstatus_to_exitcode(status) == 0
