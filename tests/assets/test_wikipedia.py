"""`citeloom import-wikipedia` as a user meets it: a dump in, then search and ask on what came of it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from pipeline.ops.services import release_services
from tests.assets.conftest import Place
from tests.unit.wikipedia.pages import FILE, LANTERN, MONTH, lantern, orchard, write_dump

STAGES = ["metadata", "papers", "passages", "embeddings", "index_receipts"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("wikipedia")


@pytest.fixture(scope="module")
def place(folder: Path) -> Iterator[Place]:
    """A data root of Wikipedia's, filled by the command."""
    made = Place(folder / "data", {"CITELOOM_DATA": str(folder / "data"), "CITELOOM_WORKERS": "1"})
    made.root.mkdir()
    file = write_dump(folder, [orchard(), lantern(), b"{torn"])
    done = made.invoke("import-wikipedia", str(file), "--json")
    assert done.exit_code == 0, done.output
    told = json.loads(done.stdout)
    assert [(each["stage"], each["month"]) for each in told["outcomes"]] == [(name, MONTH) for name in STAGES]
    assert told["outcomes"][1]["left_out"] == {"broken_line": 1}
    yield made
    release_services()


def test_a_second_import_finds_everything_done(place: Place, folder: Path) -> None:
    done = place.invoke("import-wikipedia", str(folder / FILE), "--json")
    assert done.exit_code == 0
    assert [each["skipped"] for each in json.loads(done.stdout)["outcomes"]] == [True] * 5


def test_searches_and_audits_need_to_know_nothing_of_it(place: Place) -> None:
    done = place.invoke("search", "which oil is burnt in lanterns?", "--category", "wikipedia", "--json")
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)[0]["arxiv_id"] == LANTERN
    assert place.invoke("audit").exit_code == 0


def test_the_projects_stages_run_on_it_by_their_names(place: Place) -> None:
    done = place.invoke("run", "--select", "passages,embeddings,index_receipts", "--json")
    assert done.exit_code == 0, done.output
    assert [each["skipped"] for each in json.loads(done.stdout)["outcomes"]] == [True] * 3
    told = place.invoke("status")
    assert told.exit_code == 0, told.output
    assert [name for name in STAGES if name in told.output] == STAGES[2:]
    refused = place.invoke("run")
    assert refused.exit_code == 2


def test_a_dump_that_breaks_off_ends_with_1_and_is_named_once(place: Place, tmp_path: Path) -> None:
    file = write_dump(tmp_path, [lantern(), orchard()] * 30)
    file.write_bytes(file.read_bytes()[:-2000])
    done = place.with_settings(data=tmp_path / "data").citeloom("import-wikipedia", str(file))
    assert done.returncode == 1
    assert done.stderr.count("breaks off") == 1
    assert "Traceback" not in done.stderr
    assert not list(tmp_path.glob("data/*/*.parquet"))


def test_a_wrong_month_is_named(place: Place, folder: Path) -> None:
    done = place.citeloom("import-wikipedia", str(folder / FILE), "--month", "2024-13")
    assert done.returncode == 2
    assert "2024-13" in done.stderr
