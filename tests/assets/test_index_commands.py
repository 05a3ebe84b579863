"""The commands that keep the index in order, as a user meets them: audit and reindex."""

from pipeline import tables
from pipeline.index.opening import live_index
from pipeline.index.stages import index_holds_the_embeddings


def test_an_audit_names_what_is_missing_and_repair_brings_it_back(own):
    with own.entered():
        workspace = own.workspace()
        rows = workspace.root.rows(tables.PASSAGES, "2024-04", ["passage_id"])
        gone = sorted(row["passage_id"] for row in rows)[:7]
        live_index(workspace).delete(gone)
        found = index_holds_the_embeddings(workspace, "2024-04")
    assert (found.passed, found.facts["missing"]) == (False, gone)
    done = own.invoke("audit")
    assert done.exit_code == 1
    assert f"2024-04 missing: {', '.join(gone[:5])} and 2 more" in done.stderr
    assert own.told("audit", "--months", "2024-04", exit_code=1)["months"][0]["missing"] == gone
    mended = own.told("audit", "--repair")
    assert (mended["clean"], mended["found"]["clean"]) == (True, False)
    again = own.told("run", "--until", "index_receipts")["outcomes"]
    assert all(outcome["skipped"] for outcome in again)


def test_another_layout_is_refused_until_reindex_has_changed_over_to_it(own):
    changed = own.with_settings(qdrant_quantization="none")
    refused = changed.invoke("run", "--months", "2024-03", "--until", "index_receipts")
    assert refused.exit_code == 2
    assert "run citeloom reindex" in refused.stderr
    assert "2024-03" not in refused.output, "nothing ran"
    first = changed.told("reindex")
    assert (first["done"], first["audit"]["clean"]) == (True, True)
    assert first["kept"] == [first["before"]]
    assert changed.told("search", "beam search", "--limit", "1")["hits"]
    assert changed.told("reindex", "--drop-old")["dropped"] == [first["before"]]
    assert "nothing was loaded" in changed.invoke("reindex").stdout
