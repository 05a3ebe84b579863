"""The commands that keep the index in order, as a user meets them: audit and reindex; and the guide
to new papers.
"""

import json
import re
import subprocess
from pathlib import Path

import dagster as dg

from pipeline import tables
from pipeline.definitions import defs
from pipeline.index.opening import live_index
from tests.documents import DOCS
from tests.processes import COMMAND


def lose_points(place, month, count):
    """Delete points of a month behind everybody's back; their ids, in order."""
    with place.entered():
        workspace = place.workspace()
        ids = sorted(
            row["passage_id"] for row in workspace.root.rows(tables.PASSAGES, month, ["passage_id"])
        )
        live_index(workspace).delete(ids[:count])
    return ids[:count]


def test_an_audit_names_what_is_missing_and_repair_brings_it_back(own):
    gone = lose_points(own, "2024-04", 7)
    done = own.invoke("audit")
    assert done.exit_code == 1
    assert "differs from the tables" in done.stdout
    assert f"2024-04 missing: {', '.join(gone[:5])} and 2 more" in done.stderr
    assert own.told("audit", "--months", "2024-04", exit_code=1)["months"][0]["missing"] == gone
    assert own.told("audit", "--months", "2024-03")["clean"]
    mended = own.told("audit", "--repair")
    assert (mended["clean"], mended["found"]["clean"]) == (True, False)
    assert all(
        outcome["skipped"] for outcome in own.told("run", "--until", "index_receipts")["outcomes"]
    )


def test_the_check_of_the_index_asks_the_index_itself(own):
    (gone,) = lose_points(own, "2024-03", 1)
    key = dg.AssetCheckKey(dg.AssetKey("index_receipts"), "index_holds_the_embeddings")
    job = defs.resolve_job_def("refresh_corpus").get_subset(
        asset_selection=set(), asset_check_selection={key}
    )
    with own.dagster() as instance:
        run = job.execute_in_process(
            instance=instance, partition_key="2024-03", raise_on_error=False
        )
        (found,) = run.get_asset_check_evaluations()
    assert not found.passed
    assert found.metadata["missing"].value == [gone]


def test_settings_of_another_layout_are_refused_before_anything_runs(own):
    changed = own.with_settings(qdrant_quantization="none")
    done = changed.invoke("run", "--months", "2024-03", "--until", "index_receipts")
    assert done.exit_code == 2
    assert "run citeloom reindex" in done.stderr
    assert "2024-03" not in done.stderr + done.stdout


def test_reindex_changes_over_and_drops_the_old_collection_where_it_is_told_to(own):
    changed = own.with_settings(qdrant_quantization="none")
    first = changed.told("reindex")
    assert (first["done"], first["audit"]["clean"], first["kept"]) == (
        True,
        True,
        [first["before"]],
    )
    assert changed.told("audit")["clean"]
    assert changed.told("search", "beam search", "--limit", "1")["hits"]
    assert changed.told("reindex", "--drop-old")["dropped"] == [first["before"]]
    assert "nothing was loaded" in changed.invoke("reindex").stdout


def test_the_script_of_the_guide_lists_the_papers_of_a_month(own, tmp_path):
    page = (DOCS / "how-to" / "new-months.md").read_text()
    (script,) = re.findall(r"^```bash\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    folder = tmp_path / "corpus"
    folder.mkdir()
    (folder / "new-papers.sh").write_text(script)
    (folder / "queries.txt").write_text("beam search\nreciprocal rank fusion\n")
    path = f"{Path(COMMAND).parent}:/usr/bin:/bin"
    environment = own.with_settings(refresh_harvest=False).environment | {"PATH": path}
    subprocess.run(["bash", folder / "new-papers.sh", "2024-04"], env=environment, check=True)
    listed = json.loads((folder / "new-2024-04.json").read_text())
    assert [answer["query"] for answer in listed] == ["beam search", "reciprocal rank fusion"]
    hits = [hit for answer in listed for hit in answer["hits"]]
    assert {hit["paper"]["month"] for hit in hits} == {"2024-04"}
    assert {"note", "hits"} <= listed[0].keys()
