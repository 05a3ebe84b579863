"""arXiv's rate limit as the machine's runs keep it, and whether arXiv answers, which is asked only with `--online`."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

from pipeline.engine.progress import duration
from pipeline.engine.stage import Workspace
from pipeline.errors import PermanentFailure, TransientFailure
from pipeline.metadata.asking import Answer, Asker, Service
from pipeline.metadata.pace import WAIT_WORTH_TELLING_SECONDS, Pace, Patience
from pipeline.ops.doctor.findings import Finding, not_asked, ok, problem, warning
from pipeline.settings import SAMPLE_DUMP, Settings

# One try, and no rest for the other runs of the machine beyond what arXiv asks for.
_ONCE = Patience(tries=1, first_back_off=0.0, silence=8.0)
# A paper that will stay: "Attention Is All You Need".
_PAPER = "1706.03762"


def rate_limit(pace: Pace | None = None, now: Callable[[], float] = time.time) -> Callable[[Workspace], list[Finding]]:
    """The check of when arXiv may be asked next."""

    def look(workspace: Workspace) -> list[Finding]:
        rest = (pace or Pace()).rest(now())
        if rest > WAIT_WORTH_TELLING_SECONDS:
            seen = f"arXiv asked for rest: no request before {duration(rest)} from now"
            return [warning("arxiv rate", seen, "wait; runs on this machine wait by themselves")]
        return [ok("arxiv rate", "arXiv may be asked, once in 3 s by all runs of this machine together")]

    return look


def user_agent(workspace: Workspace) -> Iterator[Finding]:
    """Whether arXiv is told whom to write to."""
    settings = workspace.settings
    nobody = settings.arxiv_user_agent == Settings.model_fields["arxiv_user_agent"].default
    if nobody and settings.arxiv_api and settings.dump_dir != SAMPLE_DUMP:
        seen = "CITELOOM_ARXIV_USER_AGENT names nobody whom arXiv could write to"
        yield warning("arxiv contact", seen, "set it to a name and an address, before many papers are asked for")


def reach(pace: Pace | None = None, *, online: bool) -> Callable[[Workspace], Iterator[Finding]]:
    """The check of whether arXiv's API and OAI-PMH answer; without `online` nothing is sent."""

    def look(workspace: Workspace) -> Iterator[Finding]:
        if not online:
            yield not_asked("arxiv", "whether arXiv answers is asked with --online")
        elif (pace or Pace()).rest(time.time()) > WAIT_WORTH_TELLING_SECONDS:
            yield not_asked("arxiv", "arXiv asked for rest, and is left alone")
        else:
            yield _ask(workspace.settings, "CITELOOM_ARXIV_API_URL", f"?id_list={_PAPER}&max_results=1", b"<feed", pace)
            yield _ask(workspace.settings, "CITELOOM_OAI_URL", "?verb=Identify", b"OAI-PMH", pace)

    return look


def _ask(settings: Settings, setting: str, query: str, mark: bytes, pace: Pace | None) -> Finding:
    """One request; `mark` is in every answer of the service."""
    url = str(getattr(settings, setting.removeprefix("CITELOOM_").lower()))
    way_out = f"see the network and {setting}; a snapshot and kept answers do without"
    asker = Asker(Service("arXiv", url, setting, way_out), settings, pace=pace, patience=_ONCE)

    def read(answer: Answer) -> Finding:
        if answer.status == 200 and mark in answer.body:
            return ok("arxiv", f"{url} answers")
        return problem("arxiv", f"{url} answers with status {answer.status}, and not as arXiv does", way_out)

    try:
        return asker.ask(url + query, read)
    except (TransientFailure, PermanentFailure) as error:
        return problem("arxiv", str(error).removesuffix(f": {way_out}"), way_out)
    finally:
        asker.close()
