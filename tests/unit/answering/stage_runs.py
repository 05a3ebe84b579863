"""The answering stages on the small corpus: a question set, a copy to write into, a model. Not what
is expected.
"""

import json
import re

from pipeline.answering.stages import ANSWERS, QUESTIONS
from pipeline.engine.run import State, run_stage, state
from pipeline.evaluation.stages import ANSWER_GRADES, ANSWER_SCORES
from pipeline.index.opening import close_indexes
from pipeline.report.frames import read_ledger
from pipeline.tables.writers import parse_writer
from tests.folders import copy_folder
from tests.unit.answering.corpus import FERNS, MARCH, QUILLNET, UNSIGNED, asking
from tests.unit.answering.scripted_answers import faithful, form_of

STAGES = (QUESTIONS, ANSWERS, ANSWER_GRADES, ANSWER_SCORES)
ASKING = (ANSWERS, ANSWER_GRADES)


def entry(
    question_id,
    question,
    papers,
    claims,
    *,
    kind="summary",
):
    """A line of a question set; claims: what is claimed of the first paper → a phrase of it, or
    nothing.
    """
    named = list(papers)
    told = [
        {"claim": claim, "paper": named[0], "evidence": [found] if found else []}
        for claim, found in claims.items()
    ]
    return {
        "id": question_id,
        "question": question,
        "kind": kind,
        "papers": named,
        "claims": told,
    }


BEAM = entry(
    "beam",
    "What does beam search keep?",
    [QUILLNET],
    {
        "Beam search keeps the best partial hypotheses.": "keeps the best partial hypotheses",
        "It is old.": "",
    },
)
AUTHORS = entry(
    "authors",
    f"Who wrote the paper arXiv:{QUILLNET}?",
    [QUILLNET],
    {
        "Ada Quill wrote QuillNet.": "",
        "Coverage penalties stop the decoder.": "Coverage penalties stop the decoder",
    },
    kind="author",
)
FUSION = entry(
    "fusion",
    "How are two ranked lists merged?",
    [UNSIGNED],
    {"Reciprocal rank fusion merges two lists.": "Reciprocal rank fusion merges two ranked lists"},
)
SHADE = entry(
    "shade",
    "What limits photosynthesis in ferns, and what does beam search keep?",
    [FERNS, QUILLNET],
    {"Light limits photosynthesis in ferns.": "Photosynthesis in ferns is limited by light"},
    kind="comparison",
)
ENTRIES = (SHADE, BEAM, FUSION, AUTHORS)
"""Three of March, in this order, and one of May."""


def write_set(folder, *entries):
    """A question set in a file."""
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "set.jsonl"
    file.write_text("".join(json.dumps(entry) + "\n" for entry in entries or ENTRIES))
    return file


def staged(corpus, folder, llm, *entries, **settings):
    """A copy of the corpus below a folder, with a question set and a model to ask."""
    data = folder / "data"
    if not data.exists():
        close_indexes()
        copy_folder(corpus.root.path, data)
    given = {"data": data, "questions": write_set(folder, *entries)}
    return asking(corpus, llm, **given | settings)


def run_all(place, month=MARCH, stages=STAGES):
    """The stages, one after another."""
    return {stage.name: run_stage(stage, place, month) for stage in stages}


def stale(place, month=MARCH):
    """What would be computed again: stages, and in place of `answers` its parts as `answers
    arxivbot`.
    """
    names = {stage.name for stage in STAGES if state(stage, place, month) is not State.DONE}
    if ANSWERS.name in names:
        names.remove(ANSWERS.name)
        names |= {f"answers {parse_writer(part).system}" for part in changed_parts(place, month)}
    return names


def changed_parts(place, month=MARCH):
    """The parts of `answers` that a run would build, or leave out."""
    written = place.root.provenance(ANSWERS.table, month)
    before = {
        name: part["fingerprint"]
        for name, part in (written.notes.get("parts", {}) if written else {}).items()
    }
    now = ANSWERS.fingerprints(place, month)
    return {name for name in before.keys() | now.keys() if before.get(name) != now.get(name)}


def answers_of(place, system, month=MARCH):
    """The rows of `answers` of one system."""
    return [row for row in place.root.rows(ANSWERS.table, month) if row["system"] == system]


def contents(place, stages=STAGES):
    """The files of March, by stage."""
    return {stage.name: place.root.file(stage.table, MARCH).read_bytes() for stage in stages}


def ledger(place, stage):
    """(subject, reason) of what a stage left out in March."""
    return [(item.subject, item.reason) for item in read_ledger(place.root, MARCH, [stage.table])]


def reading(asked):
    """A model that does as it is told with passages of any text: a claim, or a bullet, of each of
    them.
    """
    shown = re.findall(r"<passage>\n(.*?)\n</passage>", asked.prompt, re.DOTALL)
    gists = [f"It says: {' '.join(text.splitlines()[-1].split()[:8])}." for text in shown]
    claims = [{"passage": place, "claim": gist} for place, gist in enumerate(gists, 1)]
    given = {
        "Claims": {"relevant": list(range(1, len(claims) + 1)), "claims": claims},
        "Bullets": {"bullets": gists},
    }
    name = form_of(asked)
    return json.dumps(given[name]) if name in given else faithful(asked)
