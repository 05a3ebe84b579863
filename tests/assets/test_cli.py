"""The command as a user meets it: what it prints, how it ends, and one clear message for each thing
that is wrong.
"""

import socket

from pipeline.stages import STAGES
from tests.assets.conftest import MONTHS, digests


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


def test_an_llm_that_does_not_answer_is_named_and_what_was_done_stays(own):
    asking = ["key_elements", "answers"]  # neither needs the other
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken.getsockname()[1]}/v1"
        before = digests(own.root)
        elsewhere = own.with_settings(llm_url=url, llm_model="another")
        done = elsewhere.invoke("run", "--months", "2024-04", "--select", ",".join(asking))
    assert done.exit_code == 1
    errors = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
    assert len([error for error in errors if url in error]) == 1, done.stderr
    assert "error: answers of 2024-04: as key_elements of 2024-04" in done.stderr
    assert digests(own.root) == before
    told = elsewhere.told("status")["stages"]
    assert [row["stage"] for row in told if row["state"] == "failed"] == asking
    told = own.told("status")["stages"]
    assert {row["state"] for row in told} == {"done"}, (
        "under the settings that it was made with, the month is done"
    )


def test_status_tells_rows_and_what_was_left_out_of_every_stage_of_every_month(place):
    rows = {(row["month"], row["stage"]): row for row in place.told("status")["stages"]}
    assert list(rows) == [(month, stage.name) for month in MONTHS for stage in STAGES]
    assert {row["state"] for row in rows.values()} == {"done"}
    for month, pages in {"2024-03": 10, "2024-04": 10, "2024-05": 8}.items():
        papers = rows[month, "papers"]
        assert rows[month, "dump_members"]["rows"] == pages
        assert papers["rows"] + sum(papers["left_out"].values()) == pages
    assert rows["2024-04", "papers"]["left_out"] == {"not_computer_science": 1, "withdrawn": 1}
