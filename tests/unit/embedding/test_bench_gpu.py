"""`make bench-gpu` on a CPU and a model made here: parts report what they measured, and end when their time is over."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks.gpu import PartResult, install_wheels, run_part, summary
from benchmarks.gpu_corpus import MONTHS, read_texts, write_months
from benchmarks.gpu_parts import Record
from benchmarks.gpu_wheels import PACKAGES
from benchmarks.harness import Claim
from pipeline import tables
from pipeline.storage.data_root import DataRoot
from tests.unit.embedding.tiny_m3 import make_tiny_m3

pytestmark = pytest.mark.faults

PASSAGES = 60
ON_CPU = ["--device", "cpu", "--size", "tiny"]


@pytest.fixture(scope="module")
def scratch(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What the part `prepare` writes, but for the tokenizer, whose package the tests do not have."""
    folder = tmp_path_factory.mktemp("bench-gpu")
    make_tiny_m3(folder / "random-m3", positions=514, scale=8.0)
    write_months(DataRoot(folder / "data"), PASSAGES)
    return folder


def test_the_months_have_as_many_passages_as_asked_for_all_different(scratch: Path) -> None:
    root = DataRoot(scratch / "data")
    rows = [row for month in MONTHS for row in root.rows(tables.PASSAGES, month)]
    assert len(rows) == PASSAGES
    assert len({row["text_sha256"] for row in rows}) == len({row["passage_id"] for row in rows}) == PASSAGES
    assert len(read_texts(root, 7)) == 7


@pytest.mark.slow
def test_parity_is_measured_and_holds(scratch: Path, tmp_path: Path) -> None:
    result = run_part("parity", ON_CPU, scratch, tmp_path / "log", 250)
    assert result.ended == "complete", (tmp_path / "log").read_text()
    against = [claim for claim in result.claims if "FlagEmbedding" in claim.claim]
    assert len(against) == 2
    assert all(claim.holds and claim.target > 20 for claim in against)


@pytest.mark.slow
def test_the_months_go_into_the_index_and_a_peer_that_is_not_there_is_stated(scratch: Path, tmp_path: Path) -> None:
    result = run_part("months", ON_CPU, scratch, tmp_path / "log", 250)
    assert result.ended == "complete", (tmp_path / "log").read_text()
    assert result.figures["embeddings, passages"] == PASSAGES
    assert [claim.value for claim in result.claims] == [PASSAGES]
    peer = run_part("vllm", ON_CPU, scratch, tmp_path / "log", 250)
    assert peer.ended == "complete"
    assert str(peer.figures["vllm"]).startswith("not installable here")


def test_a_part_whose_time_is_over_is_ended_and_keeps_its_figures(scratch: Path, tmp_path: Path) -> None:
    Record(scratch / "packs.json").add("tokens", 3)
    result = run_part("packs", ON_CPU, scratch, tmp_path / "log", 0.2)
    assert result.ended.startswith("ended after")
    assert result.seconds < 20
    assert result.figures == {"tokens": 3}


@pytest.mark.slow
def test_a_part_that_fails_says_why(tmp_path: Path) -> None:
    result = run_part("packs", ON_CPU, tmp_path, tmp_path / "log", 250)
    assert result.ended.startswith("failed with exit code 1: ")
    assert "2024-01" in result.ended


def test_the_summary_has_every_part_figure_and_claim() -> None:
    claims = [Claim("share", 0.7, 0.6), Claim("seconds", 9.0, 8.0, at_most=True)]
    text = summary({"packs": PartResult(2.5, "complete", {"tokens": 12345}, claims)}, "a GPU")
    for line in (
        "| packs | 2.5 | complete |",
        "| share | 0.7 | at least 0.6 | holds |",
        "| seconds | 9.0 | at most 8.0 | fails |",
        "| tokens | 12,345 |",
    ):
        assert line in text.splitlines()


def test_figures_are_whole_on_disk_after_each_measurement(tmp_path: Path) -> None:
    record = Record(tmp_path / "part.json")
    record.add("first", 1)
    record.claim(Claim("second", 2, 3))
    content = json.loads((tmp_path / "part.json").read_text())
    assert content["figures"] == {"first": 1}
    assert [claim["claim"] for claim in content["claims"]] == ["second"]


def test_without_wheels_nothing_is_installed(tmp_path: Path) -> None:
    install_wheels(tmp_path / "none", tmp_path / "site")
    assert not (tmp_path / "site").exists()


def test_every_carried_package_has_a_pinned_version() -> None:
    pinned = {line.split("==")[0] for line in (Path(PACKAGES).parent.parent / "constraints.txt").read_text().split()}
    normalized = {name.lower().replace("_", "-") for name in pinned}
    names = [line for line in PACKAGES.read_text().splitlines() if line and not line.startswith("#")]
    assert {name.lower() for name in names} <= normalized
