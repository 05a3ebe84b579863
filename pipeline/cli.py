"""The command `citeloom`. Each command reads its arguments, calls one function, and shows what came of it.

Exit codes: 0 done, 1 a stage failed or a thing is not there, 2 a setting or an argument is wrong.
Not here: the work itself; heavy imports stay inside the commands that need them.
"""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, Literal, ParamSpec

import typer

from pipeline import __version__
from pipeline.commands.ask import add_ask_commands
from pipeline.commands.backfill import add_backfill_commands
from pipeline.commands.doctor import add_doctor_command
from pipeline.commands.export import add_export_command
from pipeline.commands.fetch import add_fetch_command
from pipeline.commands.grading import grading_app
from pipeline.commands.joining import AsJson, MonthsOption
from pipeline.commands.quality import add_quality_command
from pipeline.commands.questions import questions_app
from pipeline.commands.refresh import add_refresh_command
from pipeline.commands.study import study_app
from pipeline.commands.wikipedia import add_wikipedia_command
from pipeline.errors import CiteloomError, SettingError, exit_code_of, unforeseen
from pipeline.settings import PROJECT, SAMPLE_DUMP, SAMPLE_SNAPSHOT, Settings, load_settings
from pipeline.stages import Workspace

app = typer.Typer(
    help="Turns the ar5iv dump of arXiv into a searchable corpus of computer-science papers, and writes from it.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

P = ParamSpec("P")


def main() -> None:
    """Entry point of the command. A usage error under `--json` is a JSON document too."""
    import click

    try:
        sys.exit(app(standalone_mode=False))
    except click.ClickException as error:
        if "--json" in sys.argv:
            from pipeline.commands.display import print_json

            print_json({"error": "UsageError", "message": error.format_message()})
        error.show()
        sys.exit(error.exit_code)
    except click.Abort:
        sys.exit(130)


def command(name: str) -> Callable[[Callable[P, int | None]], Callable[P, None]]:
    """Register a command: errors meant for the user end it with their message, and what was started is ended."""

    def register(function: Callable[P, int | None]) -> Callable[P, None]:
        @app.command(name)
        @wraps(function)
        def run(*arguments: P.args, **options: P.kwargs) -> None:
            raise typer.Exit(_guarded(function, *arguments, **options))

        return run

    return register


def _guarded(function: Callable[P, int | None], *arguments: P.args, **options: P.kwargs) -> int:
    from pipeline.commands.display import print_error, print_json

    try:
        return function(*arguments, **options) or 0
    except KeyboardInterrupt:
        print_error("interrupted; what was done stays, run the same command to go on")
        return 130
    except Exception as error:
        clean = _without_secrets(error)
        message = str(clean) if isinstance(clean, CiteloomError) else _unforeseen(clean)
        if options.get("as_json"):
            print_json({"error": type(clean).__name__, "message": message})
        print_error(message)
        return exit_code_of(clean)
    finally:
        _release()


def _without_secrets(error: Exception) -> Exception:
    from pipeline.redaction import secrets_of, without_secrets

    try:
        settings: Settings | None = load_settings()
    except SettingError:
        settings = None  # wrong settings are told of without their secrets
    return without_secrets(error, secrets_of(settings))


def _unforeseen(error: Exception) -> str:
    """Put the traceback of an error that nobody foresaw into a file of its own; the message for the user."""
    import tempfile
    import traceback

    with tempfile.NamedTemporaryFile("w", prefix="citeloom-", suffix=".log", delete=False) as file:
        file.write("".join(traceback.format_exception(error)))
    return unforeseen(error, file.name)


def _release() -> None:
    """End what the command may have started; a command that started nothing pays no import for it."""
    if {"pipeline.index", "pipeline.llm"} & sys.modules.keys():
        from pipeline.services import release_services

        release_services()


@app.callback(invoke_without_command=True)
def _root(version: Annotated[bool, typer.Option("--version", help="Print the version and end.")] = False) -> None:
    if version:
        typer.echo(f"citeloom {__version__}")
        raise typer.Exit


@command("run")
def run(
    months: MonthsOption = "all",
    until: Annotated[str | None, typer.Option(help="Run every stage up to this one, and stop there.")] = None,
    select: Annotated[str | None, typer.Option(help="Run these stages alone, with commas between.")] = None,
    force: Annotated[bool, typer.Option(help="Compute again what is up to date.")] = False,
    parallel: Annotated[int, typer.Option(min=1, max=64, help="Months at once, each in a process of its own.")] = 1,
    as_json: AsJson = False,
) -> int:
    """Run what is missing or out of date, from the zips to the report."""
    if until is not None and select is not None:
        raise SettingError("--until and --select exclude each other: give one of them")
    chosen = [name.strip() for name in (select or "").split(",") if name.strip()]
    if select is not None and not chosen:
        raise SettingError("--select names no stage: give one or more, with commas between")
    return _run(load_settings(), months, until, chosen, force=force, parallel=parallel, as_json=as_json)


@command("demo")
def demo(
    force: Annotated[bool, typer.Option(help="Compute again what is up to date.")] = False, as_json: AsJson = False
) -> int:
    """Run the sample corpus through every stage to the report, into the embedded index."""
    from pipeline.running.preflight import mark_demo

    settings = load_settings(dump_dir=SAMPLE_DUMP, metadata_snapshot=SAMPLE_SNAPSHOT, qdrant_url=None)
    mark_demo(Workspace(settings))
    return _run(settings, "all", None, [], force=force, as_json=as_json)


def _run(
    settings: Settings, months: str, until: str | None, select: list[str], *, force: bool, as_json: bool,
    parallel: int = 1,
) -> int:  # fmt: skip
    from pipeline import progress
    from pipeline.commands.display import RunProgress
    from pipeline.registry import choose_stages
    from pipeline.running.parallel import run_months_at_once
    from pipeline.running.preflight import check
    from pipeline.running.runs import known_months, run_months

    workspace, stages = Workspace(settings), choose_stages(until, select)
    chosen = known_months(workspace, months)
    check(workspace, stages)
    _share(settings)
    shown = RunProgress(steps=len(chosen) * len(stages))
    with shown, progress.listening(shown):
        if parallel > 1 and len(chosen) > 1:
            report = run_months_at_once(workspace, chosen, stages, parallel, force=force)
        else:
            report = run_months(workspace, chosen, stages, force=force)
    _show_run(workspace, report, as_json=as_json)
    return int(report.exit_code)


def _share(settings: Settings) -> None:
    """Give the settings that a command fixed to the code location, which reads them from the environment."""
    os.environ["CITELOOM_DUMP_DIR"] = str(settings.dump_dir)
    os.environ["CITELOOM_METADATA_SNAPSHOT"] = str(settings.metadata_snapshot or "")
    os.environ["CITELOOM_DATA"] = str(settings.data_root)
    os.environ["CITELOOM_LOCAL"] = str(settings.local_root)
    os.environ["CITELOOM_QDRANT_URL"] = settings.qdrant_url or ""
    # Matplotlib wants a folder that it may write; a home may be none.
    os.environ.setdefault("MPLCONFIGDIR", str(settings.local_root / "cache" / "matplotlib"))


def _show_run(workspace: Workspace, report: Any, *, as_json: bool) -> None:
    from pipeline.commands.display import out, print_error, print_json, run_table

    page = workspace.root.path / "reports" / "index.html"
    failures = [dict(zip(("stage", "month", "message"), failure, strict=True)) for failure in report.failures]
    if as_json:
        outcomes = [asdict(outcome) for outcome in report.outcomes]
        print_json({"outcomes": outcomes, "failures": failures, "report": str(page) if page.exists() else None})
        return
    out.print(run_table(report.outcomes))
    if failures:
        named = ", ".join(f"{failure['stage']} of {failure['month']}" for failure in failures)
        print_error(f"{len(failures)} failed, as told above: {named}; once mended, the same command goes on from there")
    if page.exists():
        out.print(f"Report: {page}", soft_wrap=True)


@command("status")
def status(months: MonthsOption = "all", as_json: AsJson = False) -> int:
    """Show months by stages: rows, age, what is out of date or failed, what was left out."""
    from pipeline.commands.display import out, print_error, print_json, status_tables
    from pipeline.running.runs import months_of_status
    from pipeline.running.runs import status as status_of

    workspace = Workspace(load_settings())
    chosen, trouble = months_of_status(workspace, months)
    rows = status_of(workspace, chosen)
    if trouble:
        print_error(trouble)
    if as_json:
        print_json(rows)
        return 0
    for table in status_tables(rows):
        out.print(table)
    out.print("rows · age · left out; done in green, stale in yellow, failed in red")
    for row in rows:
        if row["failure"]:
            print_error(f"{row['stage']} of {row['month']}: {row['failure']}")
    return 0


@command("harvest")
def harvest(
    first: Annotated[
        str | None, typer.Option("--from", help="First day (2026-11-01); else where the last harvest ended.")
    ] = None,
    as_json: AsJson = False,
) -> int:
    """Ask arXiv over OAI-PMH for the metadata that changed since the last harvest."""
    from pipeline import progress
    from pipeline.commands.display import RunProgress, out, print_json
    from pipeline.metadata.harvest import harvest as ask

    workspace = Workspace(load_settings())
    shown = RunProgress(steps=1)
    with shown, progress.listening(shown):
        report = ask(workspace.settings, workspace, since=first)
    if as_json:
        print_json(asdict(report))
    else:
        out.print(str(report), soft_wrap=True)
    return 0


QueriesOption = Annotated[
    Path | None, typer.Option(help="File of queries, one on each line, to ask at once; - for standard input.")
]
LimitOption = Annotated[int, typer.Option(min=1, max=1000, help="Results at most, for each query.")]
OffsetOption = Annotated[int, typer.Option(min=0, help="Leave out this many results that come first.")]
CategoryOption = Annotated[
    list[str] | None, typer.Option(help="Only papers of this category (cs.CL) or archive (cs); once for each.")
]
KindOption = Annotated[list[str] | None, typer.Option(help="Only passages of this kind, such as table; once for each.")]
SeverityOption = Annotated[
    list[str] | None, typer.Option(help="Only pages of this severity, such as no_problem; once for each.")
]
GradeOption = Annotated[str | None, typer.Option(help="Only pages of this grade (A, B, C or D) or better.")]
ByOption = Annotated[Literal["fused", "dense", "sparse"], typer.Option(help="Which vectors rank.")]
RerankOption = Annotated[
    Literal["none", "colbert", "cross-encoder"], typer.Option(help="What ranks the best candidates again.")
]


@command("search")
def search(
    words: Annotated[str | None, typer.Argument(help="What to look for, in words.")] = None,
    queries: QueriesOption = None,
    limit: LimitOption = 10,
    offset: OffsetOption = 0,
    category: CategoryOption = None,
    kind: KindOption = None,
    severity: SeverityOption = None,
    grade: GradeOption = None,
    first: Annotated[str | None, typer.Option("--from", help="Only papers of this month or later.")] = None,
    last: Annotated[str | None, typer.Option("--to", help="Only papers of this month or earlier.")] = None,
    by: ByOption = "fused",
    rerank: RerankOption = "none",
    per_paper: Annotated[bool, typer.Option("--per-paper", help="Only the best passage of each paper.")] = False,
    exact: Annotated[bool, typer.Option("--exact", help="Compare with every passage, uncompressed.")] = False,
    as_markdown: Annotated[bool, typer.Option("--markdown", help="Print Markdown with links to the passages.")] = False,
    as_json: AsJson = False,
) -> int:
    """Find passages: dense and sparse vectors, fused; ranked again where asked."""
    from pipeline.commands.display import waiting
    from pipeline.index.asked import Asked

    if as_json and as_markdown:
        raise SettingError("--json and --markdown exclude each other: give one of them")
    asked = Asked(
        limit=limit, offset=offset, categories=category or (), kinds=kind or (), subsets=severity or (),
        worst_grade=grade, first_month=first, last_month=last, by=by, rerank=rerank, per_paper=per_paper, exact=exact,
    ).checked()  # fmt: skip
    wanted = _queries(words, queries)
    with waiting("loading the model, searching"):
        from pipeline.index.search import ask

        answers = ask(Workspace(load_settings()), wanted, asked)
    _show_answers(None if queries is None else wanted, answers, offset + 1, as_json=as_json, as_markdown=as_markdown)
    return 0


def _queries(words: str | None, file: Path | None) -> list[str]:
    """The one query of the arguments, or those of a file."""
    from pipeline.index.asked import check_query, read_queries

    if (words is None) == (file is None):
        raise SettingError("give the words to search for, or --queries FILE, and not both")
    if words is None:
        return read_queries(sys.stdin.buffer.read() if str(file) == "-" else _content(file), str(file))
    check_query(words)
    return [words]


def _content(file: Path | None) -> bytes:
    try:
        return Path(file or "").read_bytes()
    except OSError as error:
        raise SettingError(f"--queries {file} cannot be read ({error.strerror}): give a file of queries") from error


def _show_answers(
    queries: list[str] | None, answers: list[list[Any]], first: int, *, as_json: bool, as_markdown: bool
) -> None:
    """Each query's hits, under the query where there is a file of them; first: the number of the first hit."""
    from pipeline.commands.display import out, print_json, search_table
    from pipeline.index import answers as told

    if as_json:
        print_json(told.as_rows(answers[0]) if queries is None else told.batch_rows(queries, answers))
    elif as_markdown:
        typer.echo(
            told.as_markdown(answers[0], first) if queries is None else told.batch_markdown(queries, answers, first)
        )
    else:
        for number, hits in enumerate(answers):
            out.print(search_table(hits, first, None if queries is None else queries[number]))


RepairOption = Annotated[bool, typer.Option("--repair", help="Load what is missing or changed, remove the rest.")]


@command("audit")
def audit(months: MonthsOption = "all", repair: RepairOption = False, as_json: AsJson = False) -> int:
    """Compare the tables with the index, point by point, and mend it where that is asked for."""
    from pipeline.commands.display import audit_lines, audit_table, out, print_json, print_note, waiting
    from pipeline.index.upkeep import audit_months
    from pipeline.index.upkeep import repair as mend

    workspace = Workspace(load_settings())
    with waiting("asking the index for its points") as step:
        found = audit_months(workspace, months, step)
    after = found
    if repair and not found.clean:
        print_note(f"found {found.describe()}; mending")
        after = mend(workspace, found, lambda month: print_note(f"{month}: loading it again"))
    if as_json:
        print_json({**after.as_json(), "found": found.as_json()} if repair else after.as_json())
    else:
        out.print(audit_table(after))
        for line in audit_lines(after):
            print_note(line)
    return 0 if after.clean else 1


@command("reindex")
def reindex(
    drop_old: Annotated[bool, typer.Option("--drop-old", help="Delete every collection but the new one.")] = False,
    as_json: AsJson = False,
) -> int:
    """Load all months into a collection of the settings' model and form, and let searches ask it once it is whole."""
    from pipeline.commands.display import print_json, print_note, reindex_lines
    from pipeline.index.reindex import reindex as change_over
    from pipeline.running.preflight import check_data_root

    workspace = Workspace(load_settings())
    check_data_root(workspace)
    _share(workspace.settings)
    done = change_over(workspace, lambda months: _load_again(workspace, months), drop_old=drop_old, told=print_note)
    if as_json:
        print_json({**asdict(done), "audit": done.audit.as_json() if done.audit else None, "done": done.done})
    else:
        for line in reindex_lines(done):
            typer.echo(line)
    return 0 if done.done else 1


def _load_again(workspace: Workspace, months: Sequence[str]) -> list[tuple[str, str, str]]:
    """Run on months what makes their points; what failed."""
    from pipeline import progress
    from pipeline.commands.display import RunProgress
    from pipeline.index.reindex import STAGES
    from pipeline.registry import choose_stages
    from pipeline.running.runs import run_months

    stages = choose_stages(select=STAGES)
    shown = RunProgress(steps=len(months) * len(stages))
    with shown, progress.listening(shown):
        return run_months(workspace, months, stages).failures


@command("snapshot")
def snapshot(
    output: Annotated[Path | None, typer.Option(help="Folder for the file; else the data root's snapshots.")] = None,
    restore: Annotated[Path | None, typer.Option(help="Snapshot to make the index of again.")] = None,
    as_json: AsJson = False,
) -> int:
    """Put the index of a Qdrant server into one file, or make it of such a file again."""
    from pipeline.commands.display import print_json, waiting
    from pipeline.index.upkeep import restore_snapshot, take_snapshot

    if output is not None and restore is not None:
        raise SettingError("--output and --restore exclude each other: give one of them")
    workspace = Workspace(load_settings())
    if restore is not None:
        with waiting(f"restoring {restore}"):
            made = restore_snapshot(workspace, restore)
    else:
        with waiting("taking a snapshot"):
            made = str(take_snapshot(workspace, output or workspace.local / "snapshots"))
    if as_json:
        print_json({"restored" if restore else "snapshot": made})
    else:
        typer.echo(f"searches ask {made} now" if restore else made)
    return 0


@command("verify-model")
def verify_model(
    longest: Annotated[bool, typer.Option(help="Also a text beyond what the model reads; minutes on a CPU.")] = False,
    as_json: AsJson = False,
) -> int:
    """Compare BGE-M3's vectors with those that FlagEmbedding gives."""
    from pipeline.commands.display import out, print_json, verdict_table, waiting
    from pipeline.embedding.verify import verify_model as compare

    settings = load_settings()
    with waiting("loading the model twice, encoding"):
        verdict = compare(settings, longest=longest)
    if as_json:
        print_json(verdict.as_json())
    else:
        out.print(verdict_table(verdict))
    return 0 if verdict.holds else 1


@command("relate")
def relate(
    target: Annotated[Path | None, typer.Option(help="Your draft, as Markdown or plain text.")] = None,
    reference: Annotated[
        list[str] | None, typer.Option(help="arXiv id of a paper of the corpus; once for each.")
    ] = None,
    task: Annotated[Path | None, typer.Option(help="Task file with target and references, in place of both.")] = None,
    output: Annotated[Path | None, typer.Option(help="Folder for related_work.md and references.bib.")] = None,
    system: Annotated[str, typer.Option(help="Which system writes.")] = "chatcite",
    as_json: AsJson = False,
) -> int:
    """Write a related-work section for your own draft and references."""
    from pipeline.commands.display import print_json, print_note

    if output is not None and output.exists() and not output.is_dir():
        raise SettingError(f"--output {output} is a file: name a folder")
    if task is not None and (target is not None or reference):
        raise SettingError("--task brings its own target and references: leave --target and --reference out")
    related = _relate_draft(target, reference or [], system) if task is None else _relate_task(task, system)
    for note in related.notes:
        print_note(note)
    if output is not None:
        _write_related(related, output)
    if as_json:
        print_json(asdict(related))
    elif output is None:
        typer.echo(f"{related.markdown}\n\n{related.bibtex}")
    return 0


def _relate_draft(target: Path | None, references: list[str], system: str) -> Any:
    from pipeline.commands.display import waiting
    from pipeline.related_work.relate import relate as write

    if target is None or not references:
        raise SettingError("give --target DRAFT and --reference ID (once for each), or --task FILE")
    if not target.is_file():
        raise SettingError(f"--target {target} is not a file: give the path of your draft")
    draft = target.read_text(encoding="utf-8", errors="replace")
    with waiting(f"{system} reads the draft and {len(references)} references, and writes"):
        return write(Workspace(load_settings()), draft, references, system=system)


def _relate_task(task: Path, system: str) -> Any:
    from pipeline.commands.display import waiting
    from pipeline.related_work.relate import relate_file

    with waiting(f"{system} reads the task's target and references, and writes"):
        return relate_file(Workspace(load_settings()), task, system=system)


def _write_related(related: Any, folder: Path) -> None:
    from pipeline.storage.writing import write_whole

    for name, text in (("related_work.md", related.markdown), ("references.bib", related.bibtex)):
        write_whole(folder / name, f"{text}\n".encode())
        typer.echo(str(folder / name), err=True)


@command("import-tasks")
def import_tasks(
    files: Annotated[list[Path], typer.Argument(help="Files of the data set rwsg-prv, one for each target.")],
    output: Annotated[Path, typer.Option(help="Folder for the task files.")],
    month: Annotated[
        str | None, typer.Option(help="Month of the dump that they are to be run with; none for citeloom relate.")
    ] = None,
    as_json: AsJson = False,
) -> int:
    """Make task files, as CITELOOM_TASKS_DIR and relate --task read them, of another data set's files."""
    from pipeline.commands.display import print_json, print_note
    from pipeline.months import parse_month
    from pipeline.related_work.imported import import_rwsg
    from pipeline.related_work.task_files import write_task_file

    parsed = None if month is None else parse_month(month)
    made = [(import_rwsg(file, parsed), file) for file in files]
    written = [write_task_file(each.task, output) for each, _ in made]
    for each, file in made:
        if each.uncited or each.unmatched:
            print_note(
                f"{file}: {len(each.uncited)} of {len(each.task.references)} references are not seen to be cited, "
                f"{len(each.unmatched)} citations are of no reference: {'; '.join(each.unmatched) or 'none'}"
            )
    if as_json:
        print_json([str(file) for file in written])
    else:
        typer.echo("\n".join(map(str, written)))
    return 0


@command("estimate")
def estimate(
    months: MonthsOption = "all",
    systems: Annotated[str | None, typer.Option(help="These systems, with commas between; else those set.")] = None,
    as_json: AsJson = False,
) -> int:
    """Say what the LLM stages would cost, before anything is spent: calls, tokens, money, time."""
    from pipeline.commands.display import estimate_table, out, print_json, print_note, waiting
    from pipeline.estimate import estimate as rehearse
    from pipeline.estimate import keep
    from pipeline.running.runs import months_of_status

    workspace = Workspace(load_settings(**({} if systems is None else {"systems": systems})))
    with waiting("rehearsing the calls that the months would make; nothing is asked"):
        found = rehearse(workspace, months_of_status(workspace, months)[0])
    keep(workspace, found)
    if as_json:
        print_json(found.as_json())
        return 0
    out.print(estimate_table(found))
    for note in found.notes:
        print_note(note)
    return 0


@command("ui")
def ui(
    port: Annotated[int, typer.Option(min=1, max=65535, help="Port on loopback.")] = 3000, as_json: AsJson = False
) -> int:
    """Open the Dagster UI on loopback, on the data of the settings."""
    from pipeline.commands.display import err, print_json
    from pipeline.jobs import sweep
    from pipeline.running.preflight import check_data_root
    from pipeline.running.runs import dagster_home

    workspace = Workspace(load_settings())
    check_data_root(workspace)
    _refuse_taken(port)
    _share(workspace.settings)
    home = dagster_home(workspace)
    sweep(home)
    url = f"http://127.0.0.1:{port}"
    if as_json:
        print_json({"url": url, "dagster_home": str(home)})
    err.print(f"Dagster UI: {url} (data in {workspace.root.path}); Ctrl-C ends it", soft_wrap=True)
    sys.stdout.flush()
    os.dup2(2, 1)  # what Dagster logs is no part of the command's answer
    # Dagster recommends another of its commands at every start.
    os.environ.setdefault("PYTHONWARNINGS", "ignore")
    program = [sys.executable, "-m", "dagster", "dev", "-w", str(PROJECT / "workspace.yaml")]
    os.execv(sys.executable, [*program, "-h", "127.0.0.1", "-p", str(port)])  # noqa: S606


app.add_typer(study_app(_guarded), name="study")
app.add_typer(questions_app(_guarded), name="questions")
app.add_typer(grading_app(_guarded), name="grading")
add_ask_commands(app, _guarded)
add_doctor_command(app, _guarded)
add_backfill_commands(app, _guarded)
add_quality_command(app, _guarded)
add_fetch_command(app, _guarded)
add_wikipedia_command(app, _guarded)
add_refresh_command(app, _guarded)
add_export_command(app, _guarded)


def _refuse_taken(port: int) -> None:
    """Raise SettingError where another program listens on the port: Dagster would start and show nothing."""
    with socket.socket() as probe:
        try:
            probe.bind(("127.0.0.1", port))
        except OSError as error:
            raise SettingError(f"--port {port} cannot be had ({error.strerror}): give another one") from error
