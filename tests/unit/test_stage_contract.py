"""What holds for every stage of `pipeline.stages`; a new stage is held to it without being named.

One month of the sample corpus, with a few broken pages added, on which every stage has run once.
Each test leaves it as it was.
"""

import shutil
import zipfile
from collections import Counter
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import get_args

import pyarrow as pa
import pytest

from pipeline import tables
from pipeline.engine.progress import Outcome
from pipeline.engine.run import State, fingerprint, run_stage, state
from pipeline.engine.stage import Workspace
from pipeline.errors import CiteloomError, PermanentFailure
from pipeline.index.opening import close_indexes
from pipeline.settings import SAMPLE_DUMP, SAMPLE_QUESTIONS, SAMPLE_SNAPSHOT, Settings
from pipeline.stage_names import ANSWERING_SYSTEMS, RELATED_WORK_SYSTEMS
from pipeline.stages import LLM_STAGES, STAGES, lookup_stage
from pipeline.storage.provenance import read_provenance
from pipeline.storage.reading import read_table
from tests.cases import read_cases
from tests.folders import copy_folder
from tests.models_file import write_models
from tests.scripted_llm import ScriptedLlm
from tests.unit.corpus import fake_latexml
from tests.workspaces import altered, changed

pytestmark = pytest.mark.slow

MONTH = "2024-03"
ERRORS = "ar5iv-04-2024-errors.zip"
NO_PAGE, NOT_HTML, NO_TEXT, TORN, WITHOUT_METADATA, CONVERTED = (
    f"2403.9910{number}" for number in range(6)
)

_DATA = read_cases("unit/stage_contract.toml")
KEYS, NO_ROW = _DATA["keys"], set(_DATA["no_row"])

# Settings that name a file, of which the contents count.
FILES = {
    name for name, field in Settings.model_fields.items() if Path in get_args(field.annotation)
}

INTERNAL = {"cache", "qdrant-edge", "timings", "unfinished"}
"""Folders of a data root that hold no table and no page."""

for_every_stage = pytest.mark.parametrize("stage", STAGES, ids=lambda stage: stage.name)


class RecordingSettings(Settings):
    """Settings that record which of them were read."""

    def __getattribute__(self, name):
        if name in Settings.model_fields:
            READ.add(name)
        return super().__getattribute__(name)


READ = set()
"""The fields of `RecordingSettings` that were read since it was cleared."""


@dataclass
class Corpus:
    """The month on which every stage has run."""

    workspace: Workspace
    llm: ScriptedLlm
    outcomes: dict[str, Outcome]
    read: dict[str, set[str]]
    """Settings that the run of a stage read."""

    def file(self, stage):
        return self.workspace.root.file(stage.table, MONTH)

    def rows(self, stage):
        return self.workspace.root.rows(stage.table, MONTH)

    def provenance(self, stage):
        return read_provenance(self.file(stage))

    def ledger(self, stage):
        return read_table(self.workspace.root.ledger_file(stage.name, MONTH))

    def contents(self):
        """Everything that a user has below the data root, by its path: no caches, no index, and not
        how long runs took.
        """
        root = self.workspace.root.path
        return {
            str(file.relative_to(root)): file.read_bytes()
            for entry in root.iterdir()
            if entry.name not in INTERNAL
            for file in (entry, *entry.rglob("*"))
            if file.is_file()
        }

    def changed(self, **settings):
        return changed(self.workspace, **settings)


def write_sources(folder):
    """The sample corpus with a file that is no page, and pages without HTML, without text, torn,
    and without metadata; and the source of one more paper.
    """
    dump = Path(shutil.copytree(SAMPLE_DUMP, folder / "dump"))
    with zipfile.ZipFile(dump / ERRORS, "a", zipfile.ZIP_DEFLATED) as pages:
        pages.writestr(f"errors/2403/{NO_PAGE}.txt", b"notes")
        pages.writestr(f"errors/2403/{NO_TEXT}.html", b"<!DOCTYPE html><html><body></body></html>")
        for identifier in (NOT_HTML, TORN, WITHOUT_METADATA):
            pages.writestr(f"errors/2403/{identifier}.html", b"%PDF-1.4" + bytes(range(256)))
        torn = pages.getinfo(f"errors/2403/{TORN}.html").header_offset
    with (dump / ERRORS).open("r+b") as file:
        file.seek(torn + 60)
        file.write(b"\xff" * 20)
    lines = SAMPLE_SNAPSHOT.read_text().splitlines()
    described = next(line for line in lines if '"2403.90001"' in line)
    lines += [
        described.replace("2403.90001", identifier)
        for identifier in (NOT_HTML, NO_TEXT, TORN, CONVERTED)
    ]
    snapshot = folder / "metadata.jsonl"
    snapshot.write_text("\n".join([*lines, "{broken"]))
    sources = folder / "sources"
    sources.mkdir()
    (sources / f"{CONVERTED}.gz").write_bytes(
        fake_latexml.eprint({"a.tex": fake_latexml.document("We read margins of books. " * 5)})
    )
    return {
        "dump_dir": dump,
        "metadata_snapshot": snapshot,
        "sources": sources,
        "convert_unsafe": True,
    }


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    """Every stage of the month, run in order."""
    folder = tmp_path_factory.mktemp("contract")
    with ScriptedLlm(models=("scripted", "first")) as llm, pytest.MonkeyPatch.context() as patch:
        fake_latexml.install(folder / "bin", patch)
        settings = RecordingSettings(
            _env_file=None,
            data=folder / "data",
            **write_sources(folder),
            **_DATA["settings"],
            llm_url=llm.url,
            models=write_models(folder, llm.url, "first"),
            systems=",".join(RELATED_WORK_SYSTEMS),
            answer_systems=",".join(ANSWERING_SYSTEMS),
            questions=SAMPLE_QUESTIONS,
        )
        corpus = Corpus(Workspace(settings), llm, {}, {})
        for stage in STAGES:
            READ.clear()
            corpus.outcomes[stage.name] = run_stage(stage, corpus.workspace, MONTH)
            corpus.read[stage.name] = set(READ)
        yield corpus
        close_indexes()


@pytest.fixture(autouse=True)
def _leaves_all_as_it_was(corpus):
    """No test changes a byte, or asks a model what it has answered before."""
    before, requests = corpus.contents(), len(corpus.llm.requests)
    yield
    assert differences(before, corpus.contents()) == set()
    assert len(corpus.llm.requests) == requests


def differences(before, after):
    """The files that one has and the other lacks or has otherwise."""
    return {name for name in before | after if before.get(name) != after.get(name)}


# ---- rows ----


@for_every_stage
def test_rows_are_as_the_table_says_and_each_is_there_once(corpus, stage):
    assert read_table(corpus.file(stage)).schema.equals(stage.table.schema)
    rows = corpus.rows(stage)
    assert len(rows) == corpus.outcomes[stage.name].rows == corpus.provenance(stage).rows > 0
    key = KEYS.get(stage.name, stage.table.schema.names[:1])
    keys = [tuple(str(row[name]) for name in key) for row in rows]
    assert [repeated for repeated, count in Counter(keys).items() if count > 1] == []
    assert all(row[key[0]] for row in rows)


@for_every_stage
def test_the_ledger_names_what_was_left_out_and_why(corpus, stage):
    ledger = corpus.ledger(stage)
    assert ledger.schema.equals(tables.LEDGER.schema)
    rows = ledger.to_pylist()
    assert all(row["subject"] and row["reason"] and row["stage"] == stage.name for row in rows)
    reasons = Counter(row["reason"] for row in rows)
    assert reasons == corpus.provenance(stage).left_out == corpus.outcomes[stage.name].left_out


# ---- settings ----


@for_every_stage
def test_a_setting_that_the_stage_declares_makes_its_month_out_of_date_and_no_other(corpus, stage):
    now = fingerprint(stage, corpus.workspace, MONTH).fingerprint
    for name in stage.settings:
        assert fingerprint_with_another(name, stage, corpus) != now, name
    for name in ("llm_url", "llm_concurrency", "llm_budget_calls", "workers", "serve_url"):
        assert fingerprint_with_another(name, stage, corpus) == now, name


@for_every_stage
def test_a_setting_that_changes_a_part_makes_its_month_out_of_date(corpus, stage):
    """Dagster compares the settings of all parts, the engine their fingerprints."""
    now = fingerprint(stage, corpus.workspace, MONTH).fingerprint
    READ.clear()
    parts = dict(stage.part_settings(corpus.workspace.settings))
    for name in READ - NO_ROW - FILES:
        changed = corpus.changed(**{name: another_value(name, corpus.workspace.settings)})
        if dict(stage.part_settings(changed.settings)) != parts:
            assert fingerprint(stage, changed, MONTH).fingerprint != now, name


@for_every_stage
def test_every_setting_that_a_stage_reads_can_make_it_or_its_upstream_out_of_date(corpus, stage):
    READ.clear()
    for each in with_upstream(stage):
        fingerprint(each, corpus.workspace, MONTH)
    assert corpus.read[stage.name] - READ - NO_ROW == set()


def with_upstream(stage):
    """The stage, and every stage whose rows come to it."""
    return {stage}.union(*(with_upstream(lookup_stage(table.name)) for table in stage.upstream))


def fingerprint_with_another(name, stage, corpus):
    changed = corpus.changed(**{name: another_value(name, corpus.workspace.settings)})
    try:
        return fingerprint(stage, changed, MONTH).fingerprint
    except CiteloomError:  # such as a server that does not answer; `state` says out of date then
        return None


def another_value(name, settings):
    """Another value of a setting, of the same type."""
    value = getattr(settings, name)
    choices = get_args(Settings.model_fields[name].annotation)
    if isinstance(value, bool):
        return not value
    if isinstance(value, int | float):
        return value + 1
    if isinstance(value, tuple):
        return value[:-1] if len(value) > 1 else (*value, "cs.CL")
    if value in choices:
        return next(choice for choice in choices if choice != value)
    return "http://127.0.0.1:9/other"


# ---- interrupted ----


class Killed(BaseException):
    """The end of a run in the middle of a month."""


def killed_after(rows, stage):
    """The stage, whose run ends once it has built so many rows."""

    def build(job):
        left = rows
        with closing(iter(stage.build(job))) as items:
            for item in items:
                batch = isinstance(item, pa.RecordBatch)
                size = item.num_rows if batch else 1
                if size > left:
                    yield from [item.slice(0, left)] if batch else []
                    raise Killed
                left -= size
                yield item
        raise Killed

    return altered(stage, build=build)


@pytest.mark.parametrize(
    "former", [True, False], ids=["beside a former file", "for the first time"]
)
@for_every_stage
def test_a_month_that_was_killed_in_the_middle_is_not_seen_and_comes_out_the_same(
    corpus, stage, former
):
    whole = corpus.contents()
    if not former:
        corpus.file(stage).unlink()
    before = corpus.contents()
    half = corpus.outcomes[stage.name].rows // 2
    with pytest.raises(Killed):
        run_stage(killed_after(half, stage), corpus.workspace, MONTH, force=former)
    assert differences(before, corpus.contents()) == set()
    assert not run_stage(stage, corpus.workspace, MONTH, force=former).skipped
    assert differences(whole, corpus.contents()) == set()


# ---- broken inputs ----


@for_every_stage
def test_a_damaged_input_is_named_and_a_second_run_changes_nothing(corpus, stage):
    refusals = {}
    for table in stage.upstream:
        damaged = corpus.workspace.root.file(table, MONTH)
        whole = damaged.read_bytes()
        damaged.write_bytes(without_rows(whole))
        try:
            run_stage(stage, corpus.workspace, MONTH, force=True)
        except PermanentFailure as error:
            refusals[str(damaged)] = str(error)
        finally:
            damaged.write_bytes(whole)
    assert bool(refusals) == bool(stage.upstream)
    assert all(f"{name} is damaged" in refusal for name, refusal in refusals.items())
    file, ledger = corpus.file(stage), corpus.workspace.root.ledger_file(stage.name, MONTH)
    written = [path.stat().st_mtime_ns for path in (file, ledger)]
    assert state(stage, corpus.workspace, MONTH) is State.DONE
    outcome, first = run_stage(stage, corpus.workspace, MONTH), corpus.outcomes[stage.name]
    assert (outcome.skipped, outcome.rows, outcome.left_out) == (True, first.rows, first.left_out)
    assert [path.stat().st_mtime_ns for path in (file, ledger)] == written


def without_rows(parquet):
    """A Parquet file whose footer is whole and whose rows are zeros."""
    footer = int.from_bytes(parquet[-8:-4], "little") + 8
    return parquet[:4] + bytes(len(parquet) - footer - 4) + parquet[-footer:]


@pytest.mark.parametrize("stage", LLM_STAGES, ids=lambda stage: stage.name)
def test_an_answer_that_cannot_be_read_is_in_the_ledger_and_the_others_are_rows(
    corpus, stage, tmp_path
):
    root = copy_folder(corpus.workspace.root.path, tmp_path / "data")
    shutil.rmtree(root / "cache" / "llm")
    models = ("scripted", "first")
    with ScriptedLlm(mumbling, models=models) as llm:
        file = write_models(tmp_path, llm.url, *models[1:])
        workspace = corpus.changed(data=root, llm_url=llm.url, models=file)
        outcome = run_stage(stage, workspace, MONTH, force=True)
        close_indexes()
    assert outcome.rows > 0
    assert {reason.partition("_")[0] for reason in outcome.left_out} <= {"unreadable"}
    assert outcome.rows + sum(outcome.left_out.values()) >= corpus.outcomes[stage.name].rows


def mumbling(asked):
    """Half of all answers have nothing of the form that was asked for."""
    return "I would rather not say." if asked.digest % 2 else None
