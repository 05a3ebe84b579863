"""The command as a user meets it: what it prints, how it ends, and one clear message for each thing
that is wrong.
"""

import json
import socket
from pathlib import Path

from pipeline.settings import SAMPLE_QUESTIONS
from pipeline.stages import STAGES
from tests.assets.conftest import MONTHS, digests


def one_message(done):
    """The message with which a command ended, being all that it wrote on standard error but what it
    was at.
    """
    lines = [
        line for line in done.stderr.strip().splitlines() if line != "loading the model, searching"
    ]
    assert len(lines) == 1, done.stderr
    assert lines[0].startswith("error: ")
    return lines[0]


def errors_about(thing, done):
    """The error messages of a run that name a thing."""
    return [
        line for line in done.stderr.splitlines() if line.startswith("error: ") and thing in line
    ]


def test_run_until_a_stage_runs_what_it_needs_and_no_more(empty):
    done = empty.citeloom("run", "--months", "2024-03", "--until", "passages")
    assert (done.returncode, "Traceback" in done.stderr) == (0, False)
    assert sorted(folder.parent.name for folder in empty.root.glob("*/*.parquet")) == [
        "dump_members", "metadata", "pages", "papers", "passages",
    ]  # fmt: skip
    assert "2 not computer science" in done.stdout
    assert "Warning" not in done.stderr
    # A slow machine gets a line every half minute too.
    assert [line.split(":")[0] for line in done.stderr.splitlines() if " rows, " in line] == [
        f"2024-03 {name}" for name in ("dump", "metadata", "papers", "passages")
    ]


def test_a_second_run_keeps_everything_and_its_json_is_one_document(own):
    before = digests(own.root)
    told = own.told("run", "--months", "2024-03..2024-05")
    assert len(told["outcomes"]) == len(MONTHS) * len(STAGES)
    assert all(outcome["skipped"] for outcome in told["outcomes"])
    assert told["failures"] == []
    assert Path(told["report"]).is_file()
    assert digests(own.root) == before


def test_run_select_runs_these_stages_alone(own):
    chosen = ("--months", "2024-03", "--select", "papers,passages", "--force")
    told = own.told("run", *chosen)["outcomes"]
    assert [(outcome["stage"], outcome["skipped"]) for outcome in told] == [
        ("papers", False),
        ("passages", False),
    ]


def test_bad_zips_beside_good_ones_are_named_and_nothing_done_is_lost(own, dump):
    bad = {"empty": b"", "text": b"this is no zip", "no-member": b"PK\5\6" + bytes(18)}
    for name, content in bad.items():
        (dump / f"ar5iv-04-2024-{name}.zip").write_bytes(content)
    before = digests(own.root)
    # The sample's questions belong to the sample's own folder, unless they are named.
    there = own.with_settings(dump_dir=dump, questions=SAMPLE_QUESTIONS)
    done = there.invoke("run", "--months", "all")
    assert done.exit_code == 1
    for name in bad:
        assert len(errors_about(f"ar5iv-04-2024-{name}.zip", done)) == 1, done.stderr
    after = digests(own.root)
    assert after.keys() == before.keys()
    assert [path for path in after if after[path] != before[path]] == []


def test_zips_that_are_all_cut_off_end_the_run(empty, dump):
    for file in dump.glob("*.zip"):
        file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])
    done = empty.with_settings(dump_dir=dump).invoke("run", "--months", "all", "--json")
    assert done.exit_code == 1
    assert "2 more zips cannot be used either" in one_message(done)
    assert json.loads(done.stdout)["error"] == "MissingInput"


def test_an_llm_that_does_not_answer_is_named_and_what_was_done_stays(own):
    asking = ["key_elements", "answers"]  # neither needs the other
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken.getsockname()[1]}/v1"
        before = digests(own.root)
        elsewhere = own.with_settings(llm_url=url, llm_model="another")
        done = elsewhere.invoke("run", "--months", "2024-04", "--select", ",".join(asking))
    assert done.exit_code == 1
    assert len(errors_about(url, done)) == 1, done.stderr
    assert "error: answers of 2024-04: as key_elements of 2024-04" in done.stderr
    assert digests(own.root) == before
    told = elsewhere.told("status")["stages"]
    assert [row["stage"] for row in told if row["state"] == "failed"] == asking
    told = own.told("status")["stages"]
    assert {row["state"] for row in told} == {"done"}, (
        "under the settings that it was made with, the month is done"
    )


def test_status_tells_every_stage_of_every_month(place):
    told = place.told("status")["stages"]
    assert {(row["month"], row["stage"]) for row in told} == {
        (m, stage.name) for m in MONTHS for stage in STAGES
    }
    assert {row["state"] for row in told} == {"done"}
    papers = next(row for row in told if (row["month"], row["stage"]) == ("2024-04", "papers"))
    assert (papers["rows"], papers["left_out"]) == (8, {"not_computer_science": 1, "withdrawn": 1})


def test_search_finds_the_paper_that_says_it(place):
    query = "reciprocal rank fusion of dense and sparse retrieval"
    hits = place.told("search", query, "--limit", "5")["hits"]
    assert len(hits) == 5
    assert hits[0]["paper"]["arxiv_id"] == "2404.90001"
    assert {"title", "authors", "abstract", "cited_by"} <= hits[0]["paper"].keys()
    assert [len(hit["passages"]) for hit in hits][:1] == [2]
