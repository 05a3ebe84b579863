"""`citeloom check` on works and related-work sections that nobody here wrote: what it finds of
seeded faults.

    python -m benchmarks.draft_check [--quick]

The works that DeepScholar's targets cite and that are on arXiv make a snapshot. Bibliography
entries made from them get
a fault each: precision and recall by kind of fault. The 63 related-work sections are read as
drafts: are all keys found, and the sentences that the data set has cut by itself? Every fault is
drawn with a fixed seed. What the check says of sentences: `benchmarks.evidence`.

Last, the time of a check of 60 references and 120 sentences, on abstracts, and on full texts that
are made of abstracts.
"""

from __future__ import annotations

import gzip
import json
import os
import random
import re
import resource
import statistics
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from rapidfuzz import fuzz

from benchmarks.harness import Claim, argument_parser, compile_modules, percent, report
from drafts.bibliography import read_names
from drafts.reading import read_draft
from drafts.references import check_references
from pipeline import tables
from pipeline.embedding.choice import make_embedder
from pipeline.engine.stage import Workspace
from pipeline.identity.identifiers import month_of
from pipeline.index.known_papers import KnownPapers
from pipeline.settings import load_settings
from tests.month_tables import passage_row, write_table

DATA = Path(__file__).resolve().parents[2] / "shared" / "data" / "labelled" / "deepscholar"
SEED = 22
# Of a paper: real ones have 64 on average.
PASSAGES = 64
# Papers that the draft does not cite.
OTHERS = 60
EXPECTED = {
    "none": ("verified",),
    "wrong year": ("differs",),
    "changed title word": ("differs",),
    "swapped authors": ("suspicious",),
    "id of another paper": ("suspicious",),
    "impossible DOI": ("suspicious",),
    "invented work": ("not_found",),
}
_COMMENT = re.compile(r"(?<!\\)%.*")
_DEAD = re.compile(r"\\iffalse\b.*?(?:\\fi\b|\Z)", re.DOTALL)


def rows(name: str) -> list[dict[str, Any]]:
    """The rows of a file of the data set."""
    with gzip.open(DATA / f"{name}.jsonl.gz", "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def arxiv_id(work: Mapping[str, Any]) -> str:
    """The identifier without address and version."""
    return re.sub(r"v\d+$", "", str(work["arxiv"]).rstrip("/").split("/abs/")[-1])


def write_snapshot(file: Path, works: Sequence[Mapping[str, Any]]) -> None:
    """The works in the form of arXiv's snapshot, dated to the middle of their year."""
    with file.open("w", encoding="utf-8") as lines:
        for work in works:
            created = f"Mon, 1 Jul {work['year']} 12:00:00 GMT"
            line = {
                "id": arxiv_id(work),
                "title": work["title"],
                "authors": ", ".join(work["authors"]),
                "abstract": work["abstract"],
                "categories": "cs.CL",
                "update_date": f"{work['year']}-07-01",
                "versions": [{"version": "v1", "created": created}],
            }
            lines.write(json.dumps(line) + "\n")


def seeded_entries(works: Sequence[dict[str, Any]], of_each: int) -> Iterator[tuple[str, str, str]]:
    """(key, fault, BibTeX) of entries; every second names its arXiv id, the others a venue."""
    chance = random.Random(SEED)
    drawn = chance.sample(list(works), min(len(works), of_each * (len(EXPECTED) - 1) * 2))
    faults = [
        fault for fault in EXPECTED for _ in range(of_each if fault != "none" else of_each * 6)
    ]
    for number, (work, fault) in enumerate(zip(drawn, faults, strict=False)):
        other = chance.choice(
            [each for each in works if set(each["authors"]).isdisjoint(work["authors"])]
        )
        title, authors, year, identifier = (
            work["title"],
            work["authors"],
            work["year"],
            arxiv_id(work),
        )
        doi = ""
        if fault == "wrong year":
            year += chance.choice([-5, -4, -3, -2, -1, 1, 2, 3, 4, 5])
        elif fault == "changed title word":
            words = title.split()
            words[chance.randrange(len(words))] = chance.choice(
                ["Neural", "Robust", "Sparse", "Unified", "Deep"]
            )
            title = " ".join(words)
        elif fault == "swapped authors":
            authors = other["authors"]
        elif fault == "id of another paper":
            identifier = arxiv_id(other)
        elif fault == "impossible DOI":
            doi = f"doi = {{11.{number}/x}}, "
        elif fault == "invented work":
            words = f"{title} {other['title']}".split()
            title, authors = (
                " ".join(chance.sample(words, len(words))),
                ["Ada Nobody", "Bela Noone"],
            )
        with_id = (number % 2 == 0 and fault != "invented work") or fault == "id of another paper"
        where = (
            f"journal = {{arXiv preprint arXiv:{identifier}}}"
            if with_id
            else "booktitle = {Proceedings}"
        )
        names = " and ".join(authors)
        yield (
            f"k{number}",
            fault,
            (
                f"@article{{k{number}, title = {{{title}}}, author = {{{names}}}, year ="
                f" {{{year}}}, {doi}{where}}}"
            ),
        )


def check_entries(
    workspace: Workspace, works: Sequence[dict[str, Any]], folder: Path, of_each: int
) -> dict[str, Any]:
    """Recall by kind of fault, precision of alarms, and false alarms on entries without a fault."""
    seeded = list(seeded_entries(works, of_each))
    (folder / "seeded.bib").write_text("\n".join(entry for _, _, entry in seeded), encoding="utf-8")
    (folder / "seeded.md").write_text("Nothing is cited.", encoding="utf-8")
    checks = {
        check.key: check
        for check in check_references(
            read_draft(folder / "seeded.md", folder / "seeded.bib"), KnownPapers(workspace)
        )
    }
    total, found = Counter[str](), Counter[str]()
    right_alarms = alarms = 0
    for key, fault, _ in seeded:
        status = checks[key].status if key in checks else "unread"
        total[fault] += 1
        found[fault] += status in EXPECTED[fault]
        alarms += status != "verified"
        right_alarms += status != "verified" and fault != "none"
    figures = {
        f"{fault}: {'verified' if fault == 'none' else 'found'}, %": percent(
            found[fault], total[fault]
        )
        for fault in EXPECTED
    }
    return {
        "entries": len(seeded),
        **figures,
        "alarms that are right, %": percent(right_alarms, alarms),
    }


def read_sections(folder: Path) -> dict[str, Any]:
    """How completely the related-work sections are read as drafts."""
    targets = rows("targets")
    keys = found = 0
    sentences = {target["arxiv"]: [] for target in rows("targets")}
    for row in rows("citing_sentences"):
        sentences.setdefault(row["paper"], []).append(" ".join(row["query"].split()))
    placed = sought = 0
    for number, target in enumerate(targets):
        file = folder / f"section{number}.tex"
        file.write_text(target["related_work_latex"], encoding="utf-8")
        draft = read_draft(file)
        printed = _DEAD.sub("", _COMMENT.sub("", target["related_work_latex"]))
        cited = {key for key in target["cites"] if key in printed}
        keys += len(cited)
        found += len(cited & set(draft.cited_keys))
        claims = [sentence.claim("") for sentence in draft.sentences]
        for query in sentences.get(target["arxiv"], ()):
            sought += 1
            placed += any(fuzz.ratio(query, claim) >= 85 or query in claim for claim in claims)
    return {
        "sections, keys": f"{len(targets)}, {keys}",
        "keys found, %": percent(found, keys),
        "sentences of the data set found among ours, %": percent(placed, sought),
    }


def write_full_texts(workspace: Workspace, works: Sequence[Mapping[str, Any]]) -> None:
    """A full text of each work, as long as a real paper's: its abstract, then paragraphs that are
    abstracts of these works, with their vectors.
    """
    chance = random.Random(SEED)
    texts = [work["abstract"] for work in works]
    embedder = make_embedder(workspace.settings)
    encoded = list(zip(texts, embedder.encode(texts), strict=True))
    papers, passages, embeddings = defaultdict(list), defaultdict(list), defaultdict(list)
    for work in works:
        paper = arxiv_id(work)
        month = str(month_of(paper))
        paragraphs = chance.choices(encoded, k=PASSAGES - 1)
        row = passage_row(paper, 0, work["title"], [], work["abstract"], kind="abstract")
        papers[month].append({"arxiv_id": paper, "paragraphs": PASSAGES, "truncated": False})
        passages[month].append(row)
        for place, (text, vectors) in enumerate(paragraphs, 1):
            row = passage_row(paper, place, work["title"], ["Results"], text)
            passages[month].append(row)
            embeddings[month].append(
                {
                    "passage_id": row["passage_id"],
                    "arxiv_id": paper,
                    "text_sha256": row["text_sha256"],
                    "model": embedder.name,
                    "dense": vectors.dense.astype("float16"),
                    "sparse_ids": [],
                    "sparse_weights": [],
                    "colbert": None,
                    "truncated": False,
                }
            )
    for month, rows_of_month in passages.items():
        write_table(workspace.root, tables.PAPERS, month, papers[month])
        write_table(workspace.root, tables.PASSAGES, month, rows_of_month)
        write_table(workspace.root, tables.EMBEDDINGS, month, embeddings[month])


def write_draft(works: Sequence[Mapping[str, Any]], folder: Path) -> Path:
    """A draft of 60 references and 120 citing sentences."""
    entries = [entry for _, fault, entry in seeded_entries(list(works), 60) if fault == "none"][:60]
    (folder / "draft.bib").write_text("\n".join(entries), encoding="utf-8")
    sentences = [row["query"] for row in rows("citing_sentences")][:120]
    keys = [re.match(r"@\w+\{(\w+)", entry)[1] for entry in entries]  # type: ignore[index]
    text = "\n\n".join(
        f"{sentence} [@{keys[number % 60]}]." for number, sentence in enumerate(sentences)
    )
    draft = folder / "draft.md"
    draft.write_text(text, encoding="utf-8")
    return draft


def seconds_of_check(workspace: Workspace, draft: Path) -> float:
    """Processor seconds of a whole process `citeloom check`, median of three, on one thread."""
    command = [
        sys.executable,
        "-c",
        "from pipeline.doors.cli import main; main()",
        "check",
        str(draft),
    ]
    environment = os.environ | {
        "CITELOOM_DATA": str(workspace.root.path),
        "CITELOOM_METADATA_SNAPSHOT": str(workspace.settings.metadata_snapshot),
        "OMP_NUM_THREADS": "1",
    }
    seconds = []
    for _ in range(4):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(
            [*command, "--bib", str(draft.with_suffix(".bib")), "--json"],
            env=environment,
            stdout=subprocess.DEVNULL,
            check=True,
        )
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        user, system = after.ru_utime - before.ru_utime, after.ru_stime - before.ru_stime
        seconds.append(user + system)
    # The first one makes the index of the snapshot's titles.
    return statistics.median(seconds[1:])


def main() -> None:
    """Measure, print the figures and the claims."""
    arguments = argument_parser(__doc__, quick="10 faults of each kind in place of 50")
    of_each = 10 if arguments.parse_args().quick else 50
    if not DATA.is_dir():
        sys.exit("the labelled data (../shared/data/labelled) are not on this machine")
    works = [
        work | {"authors": list(read_names(work["authors"])), "year": int(work["year"])}
        for work in rows("cited")
        if work["arxiv"] and work["authors"] and str(work["year"]).isdecimal()
    ]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_snapshot(folder / "snapshot.jsonl", works)
        workspace = Workspace(
            load_settings(
                data=folder / "data",
                metadata_snapshot=folder / "snapshot.jsonl",
                _env_file=None,
            )
        )
        entries = check_entries(workspace, works, folder, of_each)
        reading = read_sections(folder)
        compile_modules()
        draft = write_draft(works, folder)
        on_abstracts = seconds_of_check(workspace, draft)
        bibliography = draft.with_suffix(".bib").read_text(encoding="utf-8")
        cited = [work for work in works if f"title = {{{work['title']}}}" in bibliography]
        others = [work for work in works if work not in cited][:OTHERS]
        write_full_texts(workspace, [*cited, *others])
        on_full_texts = seconds_of_check(workspace, draft)
    figures = {
        "works on arXiv": len(works),
        **entries,
        **reading,
        "processor seconds, 60 references and 120 sentences, abstracts": round(on_abstracts, 2),
        "processor seconds, the same, full texts": round(on_full_texts, 2),
    }
    claims = [
        Claim(
            "citation keys of real related-work sections found, %", reading["keys found, %"], 100
        ),
        Claim(
            "processor seconds to check 60 references and 120 sentences, cited papers as abstracts",
            round(on_abstracts, 2),
            4,
            at_most=True,
        ),
        Claim("the same, cited papers as full texts", round(on_full_texts, 2), 4, at_most=True),
    ]
    report("draft_check", figures, claims)


if __name__ == "__main__":
    main()
