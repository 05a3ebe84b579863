"""Tasks, papers and months for the tests of related work, and one task written against a scripted
endpoint.
"""

from contextlib import contextmanager

from pipeline import tables
from pipeline.llm.client import open_client
from pipeline.llm.loop import run
from pipeline.related_work.key_elements import KeyElements
from pipeline.related_work.systems import SYSTEMS
from pipeline.related_work.task import Reference, Task
from tests.month_tables import write_table
from tests.scripted_llm import ScriptedLlm
from tests.workspaces import make_workspace


def workspace(llm, folder, **settings):
    # Without the sample's dump the sample's questions are not asked either.
    own = {"dump_dir": folder / "dump", "llm_url": llm.url, "llm_model": llm.model}
    return make_workspace(folder, **own | settings)


def make_task(references, text="It does {} things."):
    numbers = range(1, references + 1)
    return Task(
        "2405.00001#S2",
        "A target",
        "# A target\n\n## Introduction\n\nIt compares.",
        tuple(
            Reference(
                i,
                f"2403.{i:05}",
                f"Reference title {i}",
                text=f"# Reference title {i}\n\n## Method\n\n{text.format(i)}",
            )
            for i in numbers
        ),
    )


def make_elements(count):
    return [
        KeyElements(methodology=f"method {i}", contributions=f"contribution {i}")
        for i in range(count)
    ]


def paper_row(arxiv_id, text="It does things."):
    row = dict.fromkeys(tables.PAPERS.schema.names)
    block = {
        "kind": "paragraph",
        "anchor": "S1.p1",
        "section_path": ["Method"],
        "text": text,
        "cited_keys": [],
    }
    author = {"name": "Ada Lövelace", "affiliations": [], "emails": []}
    return row | {
        "arxiv_id": arxiv_id,
        "title": f"The {{Paper}} & {arxiv_id}",
        "abstract": f"About {arxiv_id}.",
        "authors": [author],
        "year": 2024,
        "primary_category": "cs.IR",
        "blocks": [block],
    }


def task_row(number, reference_ids):
    references = [
        {"number": i, "arxiv_id": arxiv_id, "title": f"Title of {arxiv_id}", "source": "full_text"}
        for i, arxiv_id in enumerate(reference_ids, 1)
    ]
    return {
        "task_id": f"2405.{number:05}#S2",
        "arxiv_id": f"2405.{number:05}",
        "title": f"Target {number}",
        "description": f"# Target {number}\n\n## Introduction\n\nIt compares {number} things.",
        "references": references,
        "gold": "Gold.",
    }


def write_corpus(place, tasks):
    """Papers 2403.00001 to 2403.00006, and the tasks of 2024-05: number of a target → its
    references.
    """
    papers = [paper_row(f"2403.{i:05}") for i in range(1, 7)]
    write_table(place.root, tables.PAPERS, "2024-03", papers)
    rows = [task_row(*item) for item in tasks.items()]
    write_table(place.root, tables.RELATED_WORK_TASKS, "2024-05", rows)


@contextmanager
def corpus_with(folder, tasks, *rules, **settings):
    """A workspace with this corpus, and the endpoint that it asks."""
    with ScriptedLlm(*rules) as llm:
        place = workspace(llm, folder, **settings)
        write_corpus(place, tasks)
        yield place, llm


def write(folder, system, task, *rules, **settings):
    """What a system writes for a task, and the endpoint that it asked."""
    with ScriptedLlm(*rules) as llm:
        return write_at(llm, folder, system, task, **settings), llm


def write_at(llm, folder, system, task, **settings):
    """What a system writes for a task, asking an endpoint that is there."""

    async def ask():
        place = workspace(llm, folder, **settings)
        async with open_client(place) as client:
            known = make_elements(len(task.references) + 1)
            return await SYSTEMS[system].write(client, task, known, place.settings)

    return run(ask())


def beam(samples=1, votes=1, kept=1):
    """Settings of a search."""
    return {"chatcite_samples": samples, "chatcite_votes": votes, "chatcite_kept": kept}


def prompts(llm):
    """The user's part of every request, in order of arrival."""
    return [body["messages"][-1]["content"] for body in llm.requests]
