"""A month of parts: a part that did not change is copied with its entries in the ledger."""

from pipeline.engine.parts import build_parts
from pipeline.engine.run import run_stage
from pipeline.engine.stage import MonthPart, Stage
from pipeline.storage.reading import read_table
from pipeline.tables import DUMP_MEMBERS
from tests.workspaces import make_workspace

MONTH = "2024-03"


def test_a_changed_part_is_built_and_the_others_are_copied_with_their_entries(tmp_path):
    workspace = make_workspace(tmp_path)
    built = []

    def stage(versions):
        def part(name):
            def build(job):
                built.append(name)
                job.leave_out("2403.00009", "withdrawn")
                yield {"arxiv_id": "2403.00001", "subset": name}

            return MonthPart(
                name=name, columns={"subset": name}, build=build, version=versions[name]
            )

        return Stage(
            table=DUMP_MEMBERS,
            build=build_parts,
            parts=lambda *_: [part(name) for name in sorted(versions)],
        )

    def run(versions):
        run_stage(stage(versions), workspace, MONTH)
        ledger = read_table(workspace.root.ledger_file(DUMP_MEMBERS.name, MONTH))
        subsets = [row["subset"] for row in workspace.root.rows(DUMP_MEMBERS, MONTH)]
        return subsets, ledger["subject"].to_pylist()

    # One name is the end of the other's.
    names = ["large error", "error"]
    expected = (["error", "large error"], ["2403.00009 error", "2403.00009 large error"])
    assert run(dict.fromkeys(names, 1)) == expected
    assert run({"error": 2, "large error": 1}) == expected
    assert run({"error": 2, "large error": 3}) == expected
    assert built == ["error", "large error", "error", "large error"]
    assert run({"large error": 3}) == (["large error"], ["2403.00009 large error"])
