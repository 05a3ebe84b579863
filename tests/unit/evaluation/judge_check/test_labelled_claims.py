"""Labelled sets are read as published, and what cannot be read is named."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from pipeline.errors import MissingInput, SettingError
from pipeline.evaluation.judge_check.labelled_claims import mark_citation, read_sets
from tests.unit.evaluation.judge_check.labelled import write_citation_integrity, write_rows, write_scifact


def test_citing_sentences_have_their_citation_marked_for_the_judge_and_no_marker_in_the_claim(tmp_path: Path) -> None:
    write_citation_integrity(tmp_path)
    (found,) = read_sets(tmp_path, "dev")
    assert (found.name, found.available) == ("Citation-Integrity", 4)
    assert [(claim.label, claim.marked) for claim in found.claims] == [
        ("SUPPORT", "Boats float [another work] on water [this work]."),
        ("REFUTE", "Boats sink [this work]."),
        ("NEI", "Kites are old. [this work]"),
        ("SUPPORT", "Boats have sails [this work]."),
    ]
    assert [claim.claim for claim in found.claims][:2] == ["Boats float on water .", "Boats sink ."]
    assert found.claims[1].passages == ("No boat of the study sank.", "Kites fly.")


@pytest.mark.parametrize(
    ("sentence", "marked"),
    [
        ("A <|cit|> B", "A [this work] B"),
        ("A [<|multi_cit|>, 14] B [<|other_cit|>]", "A [this work] B [another work]"),
        ("A [17]", "A [17] [this work]"),
        ("A <|other_cit|>.", "A [another work]. [this work]"),
    ],
)
def test_every_form_of_the_marker_is_known(sentence: str, marked: str) -> None:
    assert mark_citation(sentence) == marked


def test_a_claim_of_scifact_stands_with_its_abstract(tmp_path: Path) -> None:
    write_scifact(tmp_path)
    (found,) = read_sets(tmp_path, "dev")
    assert [(claim.label, claim.document) for claim in found.claims] == [
        ("SUPPORT", "d0"),
        ("REFUTE", "d1"),
        ("NEI", "d0"),
    ]
    assert {claim.passages for claim in found.claims} == {("Tea cools within an hour. It does not freeze.",)}


def test_a_limit_takes_the_same_claims_every_time(tmp_path: Path) -> None:
    write_citation_integrity(tmp_path)
    write_scifact(tmp_path)
    first, second = read_sets(tmp_path, "dev", 2), read_sets(tmp_path, "dev", 2)
    assert first == second
    assert [(len(each.claims), each.available) for each in first] == [(2, 4), (2, 3)]
    assert {claim.id for claim in first[0].claims} <= {claim.id for claim in read_sets(tmp_path, "dev", 3)[0].claims}


def test_a_folder_without_sets_and_a_damaged_file_are_named(tmp_path: Path) -> None:
    with pytest.raises(MissingInput, match=r"citation_integrity/claims_dev\.jsonl\.gz"):
        read_sets(tmp_path, "dev")
    write_scifact(tmp_path)
    with pytest.raises(MissingInput, match="claims_train"):
        read_sets(tmp_path, "train")
    write_rows(tmp_path / "scifact" / "claims_dev.jsonl.gz", [{"id": "1", "claim": "Tea."}])
    with pytest.raises(SettingError, match="SciFact cannot be read"):
        read_sets(tmp_path, "dev")
    (tmp_path / "scifact" / "claims_dev.jsonl.gz").write_bytes(b"no gzip")
    with pytest.raises(SettingError, match="SciFact cannot be read"):
        read_sets(tmp_path, "dev")


def test_the_published_sets_have_the_claims_that_their_papers_count(shared_data: Path) -> None:
    folder = shared_data / "labelled"
    if not folder.is_dir():
        pytest.skip("the labelled sets (../shared/data/labelled) are not on this machine")
    found = {each.name: Counter(claim.label for claim in each.claims) for each in read_sets(folder, "dev")}
    assert found["Citation-Integrity"] == {"SUPPORT": 191, "REFUTE": 101, "NEI": 24}
    assert found["SciFact"] == {"SUPPORT": 138, "REFUTE": 71, "NEI": 130}
