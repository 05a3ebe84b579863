"""`citeloom ask` and `citeloom chat` as a user meets them: answers with sources, the work on
demand, a conversation.
"""

import json
import threading

import pytest

from pipeline.answering.answer import ABSTAINED
from tests import command
from tests.assets.conftest import Place
from tests.cases import cases
from tests.scripted_llm import Refusal, ScriptedLlm
from tests.terminal import Terminal
from tests.unit.answering.corpus import FERNS, QUILLNET, build_corpus
from tests.unit.answering.scripted_answers import form_of

PLANTS = "How do plants get energy from light?"
TESTED = threading.Event()
"""The model is needed no more."""
LINK = f"https://arxiv.org/html/{FERNS}#S1.p1"


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
        "FollowUp": {"question": f"{words} (of ferns)", "query": "ferns light"},
        "Claims": {"relevant": [1] if claims else [], "claims": claims},
        "Thought": {"reasoning": "It is there.", "enough": True, "query": ""},
        "GroundedAnswer": {
            "answered": "yes",
            "sentences": [{"text": "By [bold]leaves[/].", "claims": [1]}],
        },
    }
    name = form_of(asked)
    return json.dumps(given[name]) if name in given else None


@pytest.fixture(scope="module")
def model():
    with ScriptedLlm(reader) as server:
        yield server
        TESTED.set()


@pytest.fixture(scope="module")
def small(tmp_path_factory, model):
    """A small corpus, indexed."""
    root = tmp_path_factory.mktemp("asked") / "data"
    place = Place(root, {"OMP_NUM_THREADS": "1"}).with_settings(
        data=root, arxiv_api="false", llm_url=model.url, llm_model=model.model
    )
    root.mkdir()
    with place.entered():
        build_corpus(root)
    return place


def invoke(place, *arguments, typed=None):
    with place.entered():
        return command.invoke(*arguments, input=typed)


def test_an_answer_comes_with_its_sources_and_what_it_cost(small):
    done = invoke(small, "ask", PLANTS)
    assert done.exit_code == 0, done.output
    # Markup of a model is text, and what would steer a terminal is a sign.
    assert done.stdout.splitlines() == [
        r"By \[bold\]leaves\[/\]. \[1\]",
        "",
        "Sources:",
        "",
        "\\[1\\] So says \\[red\\]it\\[/\\] \ufffd\\[2J:key:.\\",
        f"[On Ferns › Method (arXiv:{FERNS})]({LINK})",
    ]
    assert "arxivbot_fused · scripted · 5 calls" in done.stderr


def test_the_small_model_is_announced_before_it_is_asked(small):
    done = invoke(small.with_settings(llm_model="smollm2-135m-instruct"), "ask", PLANTS)
    notice = " ".join(done.stderr.partition("reads and answers")[0].split())
    assert "arxivbot_fused asks smollm2-135m-instruct" in notice
    assert "minutes" in notice


def test_the_work_is_shown_beside_the_answer(small):
    done = invoke(small, "ask", PLANTS, "--show-work")
    assert done.stdout.startswith(r"By \[bold\]leaves\[/\]. \[1\]")
    told = done.stderr.splitlines()
    assert f"query: question {PLANTS}; query {PLANTS}; made model" in told
    assert f"search: hop 1; query {PLANTS}; 10 passages" in told
    assert "  texts: So says [red]it[/] \ufffd[2J:key:." in told
    assert f"    {LINK}" in told
    assert [line.split(":")[0] for line in told if not line.startswith(" ")][-2:-1] == ["answer"]


def test_json_is_one_document_with_the_work_where_asked(small):
    told = json.loads(invoke(small, "ask", PLANTS, "--json").stdout)
    assert (told["text"], told["abstained"], told["hops"]) == ("By [bold]leaves[/].", False, 1)
    assert told["claims"][0]["url"] == LINK
    assert told["shown"][0][0]["arxiv_id"] == FERNS
    assert "trace" not in told
    work = json.loads(invoke(small, "ask", PLANTS, "--json", "--show-work").stdout)
    assert [step["stage"] for step in work["trace"]["steps"]] == [
        "query",
        "search",
        "rank",
        "claims",
        "reflect",
        "answer",
    ]


def test_the_second_time_an_answer_is_free(small, model):
    first = invoke(small, "ask", "What of ferns in shade?")
    paid = model.generations
    again = invoke(small, "ask", "What of ferns in shade?")
    assert (again.stdout, model.generations) == (first.stdout, paid)
    assert "5 calls, 5 of them answered by the cache · 0 tokens read, 0 written" in again.stderr


def test_what_the_corpus_does_not_hold_is_said_plainly(small):
    done = invoke(small, "ask", "Who won the race?")
    assert (done.exit_code, done.stdout) == (0, f"{ABSTAINED}\n")
    assert "searched for: Who won the race?" in done.stderr
    assert (
        json.loads(invoke(small, "ask", "Who won the race?", "--json").stdout)["abstained"] is True
    )


def test_months_and_systems_are_chosen(small):
    told = json.loads(invoke(small, "ask", PLANTS, "--months", "2024-03", "--json").stdout)
    assert {each["month"] for hop in told["shown"] for each in hop} == {"2024-03"}
    alone = invoke(small, "ask", PLANTS, "--system", "direct")
    assert alone.exit_code == 0
    assert "direct reads no paper: this is what scripted says by itself" in alone.stderr


@cases(
    "assets/cases.toml", "what_cannot_be_asked_says_why", ("arguments", "settings", "code", "named")
)
def test_what_cannot_be_asked_says_why(small, arguments, settings, code, named):
    for words in (["ask", PLANTS], ["chat"]):
        done = invoke(small.with_settings(**settings), *words, *arguments)
        assert (done.exit_code, done.stdout) == (code, ""), done.output
        assert named in done.stderr
        assert "error: " in done.stderr


def test_a_piped_conversation_answers_line_by_line(small):
    done = invoke(
        small, "chat", typed=f"\ufeff{PLANTS}\r\n\n  And in shade?\n/quit\nNever asked\n".encode()
    )
    assert done.exit_code == 0, done.output
    lines = done.stdout.splitlines()
    assert [line for line in lines if line.startswith("> ")] == [f"> {PLANTS}", "> And in shade?"]
    assert lines.count(r"By \[bold\]leaves\[/\]. \[1\]") == 2


def test_a_follow_up_leans_on_what_was_said_until_that_is_forgotten(small):
    typed = f"{PLANTS}\nAnd in shade?\n/reset\nAnd in shade?\n"
    done = invoke(small, "chat", "--json", "--show-work", typed=typed)
    told = [json.loads(line) for line in done.stdout.splitlines()]
    assert [each["queries"] for each in told] == [[PLANTS], ["ferns light"], ["And in shade?"]]
    assert told[1]["trace"]["steps"][0]["question"] == "And in shade? (of ferns)"


def test_work_is_turned_on_and_off(small):
    done = invoke(small, "chat", typed=f"/work\n{PLANTS}\n/work\n{PLANTS}\n/dance\n/help\n")
    assert done.stderr.count("search: ") == 1
    assert "steps are shown\n" in done.stderr
    assert "/dance is not a command: " in done.stderr
    assert done.exit_code == 2


def test_a_conversation_goes_on_after_a_question_that_failed(small):
    done = invoke(
        small, "chat", "--json", typed=f"What is broken?\n{PLANTS}\n".encode() + b"caf\xe9?\n"
    )
    told = [json.loads(line) for line in done.stdout.splitlines()]
    assert [("text" in each, each.get("error")) for each in told] == [
        (False, told[0]["error"]), (True, None), (False, "SettingError"),
    ]  # fmt: skip
    assert "no such thing" in told[0]["message"]
    assert "not valid UTF-8" in told[2]["message"]
    assert done.exit_code == 2


def test_nothing_piped_is_nothing_asked(small):
    assert invoke(small, "chat", typed="").exit_code == 0


PROMPT_AFTER_AN_ANSWER = " s\r\n\r\n> "


def test_a_conversation_on_a_terminal_outlives_an_interrupted_answer(small):
    with Terminal(["chat"], {"TERM": "xterm", **small.variables}, small.root) as terminal:
        terminal.wait("> ")
        terminal.type(f"{PLANTS}\n", until=PROMPT_AFTER_AN_ANSWER)
        terminal.type("What is slow?\n", until="reads and answers")
        terminal.type("\x03", until="interrupted; ")
        terminal.wait("> ", terminal.shown.index("interrupted; "))
        terminal.type(f"Who wrote {QUILLNET}?\n", until=PROMPT_AFTER_AN_ANSWER)
        assert terminal.shown.count("arxivbot_fused · scripted") == 2  # below each whole answer
        # While it waits for its user, another process may hold the index.
        assert invoke(small, "search", "light", "--limit", "1").exit_code == 0
        assert terminal.end("\x04") == 0
