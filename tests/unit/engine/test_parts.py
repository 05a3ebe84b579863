"""A month of parts: a part that did not change is copied with its entries in the ledger."""

import pyarrow.parquet as pq

from pipeline.engine.parts import PartedStage
from pipeline.engine.run import run_stage
from pipeline.engine.stage import MonthPart
from pipeline.system_names import name_in_digests
from pipeline.tables import ANSWERS, DUMP_MEMBERS, LEDGER
from pipeline.tables.writers import parse_writer
from tests.month_tables import write_table
from tests.workspaces import altered, make_workspace

MONTH = "2024-03"


def run_parts(workspace, table, parts):
    """Run a stage of these parts; its outcome, and the subjects of its ledger."""
    stage = altered(PartedStage(), table=table, parts=lambda *_: parts)
    outcome = run_stage(stage, workspace, MONTH)
    return outcome, workspace.root.ledger(table.name, MONTH)["subject"].to_pylist()


def test_a_changed_part_is_built_and_the_others_are_copied_with_their_entries(tmp_path):
    workspace = make_workspace(tmp_path)
    built = []

    def part(name, version):
        def build(job):
            built.append(name)
            job.leave_out("2403.00009", "withdrawn")
            yield {"arxiv_id": "2403.00001", "subset": name}

        return MonthPart(name=name, columns={"subset": name}, build=build, version=version)

    def run(versions):
        parts = [part(*item) for item in sorted(versions.items())]
        _, left_out = run_parts(workspace, DUMP_MEMBERS, parts)
        return [row["subset"] for row in workspace.root.rows(DUMP_MEMBERS, MONTH)], left_out

    # One name is the end of the other's.
    names = ["large error", "error"]
    expected = (["error", "large error"], ["2403.00009 error", "2403.00009 large error"])
    assert run(dict.fromkeys(names, 1)) == expected
    assert run({"error": 2, "large error": 1}) == expected
    assert run({"error": 2, "large error": 3}) == expected
    assert built == ["error", "large error", "error", "large error"]
    assert run({"large error": 3}) == (["large error"], ["2403.00009 large error"])


def write_with_earlier_names(root):
    """Write the month of `answers` as a version did that had other names."""
    written = root.provenance(ANSWERS, MONTH)
    parts = {name_in_digests(name): part for name, part in written.notes["parts"].items()}
    about = {
        "fingerprint": written.fingerprint,
        "inputs": written.inputs,
        "notes": {"parts": parts},
        "earlier_names": True,
    }
    rows = [row | {"system": name_in_digests(row["system"])} for row in root.rows(ANSWERS, MONTH)]
    ledger = root.ledger(ANSWERS.name, MONTH).to_pylist()
    for row in ledger:
        item, writer = row["subject"].split()
        row["subject"] = f"{item} {name_in_digests(writer)}"
    write_table(root, ANSWERS, MONTH, rows, **about)
    file = root.ledger_file(ANSWERS.name, MONTH)
    write_table(root, LEDGER, MONTH, ledger, file=file, **about)


def test_parts_of_a_file_with_earlier_names_are_copied_under_the_present_ones(tmp_path):
    workspace = make_workspace(tmp_path)
    root = workspace.root
    built = []

    def part(name):
        def build(job):
            built.append(name)
            job.leave_out(f"{name[:10]}…", "abstained")
            yield dict.fromkeys(ANSWERS.schema.names) | {"question_id": name} | columns

        columns = parse_writer(name).columns
        return MonthPart(name=name, columns=columns, build=build)

    def run(*names):
        outcome, left_out = run_parts(workspace, ANSWERS, list(map(part, names)))
        rows = root.rows_with(ANSWERS, MONTH, "question_id", names, ["question_id", "system"])
        return outcome.skipped, [tuple(row.values()) for row in rows], left_out

    names = ["arxivbot@m", "arxivbot_fused@m"]
    skipped, rows, left_out = run(*names)
    assert [system for _, system in rows] == ["arxivbot", "arxivbot_fused"]
    write_with_earlier_names(root)
    stored = pq.read_table(root.file(ANSWERS, MONTH))["system"].to_pylist()
    assert (skipped, stored) == (False, ["arxivbot_report", "arxivbot"])
    assert run(*names) == (True, rows, left_out)
    skipped, more, _ = run(*names, "direct@m")
    assert (skipped, more[:2]) == (False, rows)
    assert built == [*names, "direct@m"]
