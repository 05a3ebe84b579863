"""Changing over to another layout on Edge: whole and audited before searches ask it, whatever comes
in between.
"""

import json
from dataclasses import asdict, replace
from functools import partial

import pytest

from pipeline import tables
from pipeline.embedding.stages import EMBEDDINGS
from pipeline.engine.run import State, run_stage, state
from pipeline.errors import CiteloomError, MissingInput, PermanentFailure, SettingError
from pipeline.index.edge import LAYOUT_FILE
from pipeline.index.opening import close_indexes, live_index, open_collections
from pipeline.index.reindex import Reindexed, check_layout, layout_of_settings, reindex
from pipeline.index.search import search
from pipeline.index.stages import INDEX_RECEIPTS, layout_of
from tests.unit.index.building import (
    TEXTS,
    embed,
    in_another_form,
    load,
    make_live,
    make_workspace,
    write_month,
)

pytestmark = pytest.mark.slow

MONTHS = ["2024-03", "2024-04"]


@pytest.fixture
def loaded(workspace):
    """Two months in an index of the default layout."""
    for month in MONTHS:
        load(workspace, month)
    return workspace


@pytest.fixture
def changed(loaded):
    """The same data root under settings that ask for another layout."""
    return make_workspace(loaded.root.path, qdrant_quantization="none")


def run_stages(workspace, months):
    """Run the two stages whose inputs the tests' months have; their failures."""
    failures = []
    for month in months:
        for stage in (EMBEDDINGS, INDEX_RECEIPTS):
            try:
                run_stage(stage, workspace, month)
            except CiteloomError as error:
                failures.append((stage.name, month, str(error)))
    return failures


def change_over(workspace, **options):
    """Reindex with these stages."""
    return reindex(workspace, partial(run_stages, workspace), **options)


def is_refused(workspace):
    """Whether runs are refused, because no search would find what they load."""
    with pytest.raises(SettingError, match="citeloom reindex"):
        check_layout(workspace)
    return True


def names(workspace):
    """The live collection, and all there are."""
    collections = open_collections(workspace)
    found = collections.live(), collections.names()
    close_indexes()
    return found


def test_where_the_layout_is_live_nothing_is_loaded(loaded):
    assert layout_of(loaded, MONTHS[0])[0] == layout_of_settings(loaded)
    done = reindex(loaded, None)
    assert (done.done, done.collection, done.audit) == (True, done.before, None)


def test_another_layout_is_loaded_beside_the_live_one_and_then_live(loaded, changed):
    """Also a month without passages, whose rows are the same under any settings."""
    load(loaded, "2024-05", ())
    old, _ = names(loaded)
    steps = []
    done = change_over(changed, on_step=steps.append)
    new = done.collection
    assert done.audit.clean
    assert done == Reindexed(new, before=old, live=new, audit=done.audit, kept=(old,))
    assert names(changed) == (new, sorted([old, new]))
    assert [step.split()[0] for step in steps] == ["loading", "waiting", "auditing", "letting"]
    months = [*MONTHS, "2024-05"]
    assert {state(INDEX_RECEIPTS, changed, month) for month in months} == {State.DONE}
    assert collections_of_receipts(changed, months) == {new}
    assert live_index(changed).count() == 2 * len(TEXTS)
    later = change_over(changed, drop_old=True)
    assert later == Reindexed(new, before=new, live=new, dropped=(old,))
    assert names(changed) == (new, [new])


def collections_of_receipts(workspace, months):
    return {
        row["collection"]
        for month in months
        for row in workspace.root.rows(tables.INDEX_RECEIPTS, month)
    }


class _Killed(BaseException):
    """Stands for the end of the process."""


def killed_at(step):
    """A callback that ends the process at a step."""

    def on_step(message):
        if message.startswith(step):
            raise _Killed

    return on_step


@pytest.mark.parametrize("step", ["loading", "first month", "waiting", "auditing", "letting"])
def test_ended_at_any_step_and_run_again_it_comes_out_the_same(loaded, changed, step):
    old, _ = names(loaded)

    def run(months):
        if step == "first month":
            run_stages(changed, months[:1])
            raise _Killed
        return run_stages(changed, months)

    with pytest.raises(_Killed):
        reindex(changed, run, on_step=killed_at(step))
    assert names(loaded)[0] == old
    done = change_over(changed)
    assert done.done
    assert collections_of_receipts(changed, MONTHS) == {done.collection}
    assert live_index(changed).count() == 2 * len(TEXTS)


def test_a_collection_that_lost_a_point_does_not_become_live(loaded, changed):
    old, _ = names(loaded)

    def lossy(months):
        failures = run_stages(changed, months)
        name = layout_of_settings(changed).collection("citeloom")
        index = open_collections(changed).collection(name)
        index.delete([next(iter(dict(index.contents(MONTHS[0]))))])
        close_indexes()
        return failures

    done = reindex(changed, lossy)
    assert (done.done, done.live, len(done.audit.months[0].missing)) == (False, old, 1)
    assert change_over(changed).done


def test_what_an_earlier_attempt_loaded_of_a_month_that_is_gone_is_taken_out(changed):
    with pytest.raises(_Killed):
        change_over(changed, on_step=killed_at("auditing"))
    for table in (tables.PAPERS, tables.PASSAGES, tables.EMBEDDINGS, tables.INDEX_RECEIPTS):
        changed.root.file(table, MONTHS[0]).unlink()
    assert change_over(changed).done
    assert live_index(changed).count() == len(TEXTS)


def test_without_an_index_there_is_nothing_to_change_over_from(workspace):
    check_layout(workspace)
    with pytest.raises(MissingInput):
        change_over(workspace)
    assert not (workspace.root.path / "qdrant-edge").exists()


def test_an_index_moves_to_an_empty_store_and_is_searched_once_it_is_complete(loaded):
    # Another name stands for a new server: nothing is live there.
    moved = make_workspace(loaded.root.path, qdrant_collection="moved")
    failure = ("index_receipts", MONTHS[1], "no answer")

    def run_first_month(months):
        run_stage(INDEX_RECEIPTS, moved, months[0])
        return [failure]

    begun = reindex(moved, run_first_month)
    new = begun.collection
    assert begun == Reindexed(new, before=None, live=None, failures=(failure,), kept=(new,))
    done = change_over(moved)
    assert done == Reindexed(new, before=None, live=new, audit=done.audit)
    assert live_index(moved).count() == 2 * len(TEXTS)


def test_a_month_that_fails_leaves_the_old_collection_live_and_a_run_into_the_new_one_is_refused(
    loaded, changed
):
    """Not there yet, begun, or old and kept: nobody would find what is loaded there."""
    old, _ = names(loaded)
    failure = ("embeddings", "2024-04", "no memory")
    check_layout(loaded)
    assert is_refused(changed)
    assert names(changed) == (old, [old])
    done = reindex(changed, lambda months: [failure], drop_old=True)
    assert (done.done, done.live, done.failures, done.dropped) == (False, old, (failure,), ())
    check_layout(loaded)
    assert is_refused(changed)
    assert change_over(changed).done
    check_layout(changed)
    check_layout(loaded)  # auto: as the index has it
    assert is_refused(make_workspace(loaded.root.path, qdrant_quantization="turbo4"))


def test_a_month_that_another_version_adds_meanwhile_keeps_the_old_collection_live(loaded, changed):
    def run(months):
        failures = run_stages(changed, months)
        write_month(loaded, "2024-05")
        embed(loaded, "2024-05")
        in_another_form(loaded, "2024-05")
        return failures

    told = []
    done = reindex(changed, run, on_step=told.append)
    assert (done.done, [month for _, month, _ in done.failures]) == (False, ["2024-05"])
    assert told[-1].startswith("2024-05: ")
    assert change_over(changed).done
    assert live_index(changed).count() == 3 * len(TEXTS)


def test_a_month_of_vectors_that_another_version_made_is_not_loaded_where_nobody_searches(loaded):
    in_another_form(loaded, MONTHS[0])
    with pytest.raises(PermanentFailure, match="passage embedded"):
        run_stage(INDEX_RECEIPTS, loaded, MONTHS[0])
    assert run_stages(loaded, MONTHS) == []


def test_an_earlier_collection_is_loaded_and_searched_on_until_reindex_is_asked_for(workspace):
    write_month(workspace)
    embed(workspace)
    layout, _ = layout_of(workspace, MONTHS[0])
    assert (layout.quantization, layout.lexical) == ("turbo4", 4)
    old = make_live(workspace, replace(layout, quantization="int8", lexical=2))
    for month in MONTHS:
        load(workspace, month)
    check_layout(workspace)
    assert names(workspace) == (old, [old])
    assert search(workspace, "beam search")[0].item.text == TEXTS[0]
    done = change_over(workspace)
    assert (done.done, done.before) == (True, old)
    assert live_index(workspace).layout() == layout == layout_of(workspace, MONTHS[0])[0]


@pytest.mark.parametrize(
    ("earlier", "reason"),
    [
        ({"form": "passage"}, "passage embedded"),
        ({"quantization": "binary"}, "quantization binary"),
    ],
)
def test_a_collection_of_an_earlier_version_is_refused_until_it_is_made_again(
    workspace, earlier, reason
):
    load(workspace, MONTHS[0])
    layout, _ = layout_of(workspace, MONTHS[0])
    earlier_layout = replace(layout, **earlier)
    collections = open_collections(workspace)
    index = collections.collection(earlier_layout.collection("citeloom"))
    index.create(layout)
    index.close()
    (index.folder / LAYOUT_FILE).write_text(json.dumps({"layout": asdict(earlier_layout)}))
    collections.make_live(index.name)
    for refused in (check_layout, partial(search, query="beam search")):
        with pytest.raises(CiteloomError, match=reason):
            refused(workspace)
    assert change_over(workspace).done
    check_layout(workspace)
