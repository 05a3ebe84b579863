"""What a claim is judged by: passages of the question's papers, and prompts whose every word is in
their digest.
"""

from itertools import chain
from pathlib import Path

from pipeline.answering.questions import gold_passages, read_questions
from pipeline.evaluation.answers import judge
from pipeline.evaluation.answers.judge import CLAIM, GOLD
from pipeline.evaluation.answers.sample import SPLIT
from pipeline.evaluation.passages import EvidencePassage, passages_by_paper
from pipeline.settings import SAMPLE_QUESTIONS
from tests.unit.corpus.building import passages_of_sample
from tests.unit.evaluation.answers.graded import PAPER, evidence_by_words

PROMPT_FOLDER = Path(judge.__file__).parent / "prompts"


def test_a_passage_stands_under_its_title_and_sections_without_markers():
    row = {
        "passage_id": "p1",
        "arxiv_id": PAPER,
        "ordinal": 3,
        "anchor": "S1.p1",
        "kind": "paragraph",
        "title": "Boats",
        "section_path": ["Data", "Size"],
        "text": "There are twelve [@bib1]. ",
    }
    passage = EvidencePassage("There are twelve.", 3, "p1", PAPER, "S1.p1", "Boats > Data > Size")
    assert passages_by_paper([row], with_headings=True) == {PAPER: [passage]}
    bare = row | {"title": None, "section_path": None}
    (passage,) = passages_by_paper([bare], with_headings=True)[PAPER]
    assert passage.with_heading() == "\nThere are twelve."


def test_the_digest_holds_every_prompt():
    assert {file.stem for file in PROMPT_FOLDER.glob("[!_]*.j2")} == {SPLIT, CLAIM, GOLD}


def test_gold_claims_of_the_shipped_questions_find_their_passages_among_the_first_three():
    """A right claim must be shown what bears it out, else a judge cannot know: 209 of 212 by words
    alone.
    """
    questions = read_questions(SAMPLE_QUESTIONS)
    sample = passages_of_sample({paper for question in questions for paper in question.papers})
    passages = passages_by_paper(chain(*sample.values()), with_headings=True)
    found = []
    for asked in questions:
        gold = gold_passages(asked, sample)
        claims = [claim.claim for claim in asked.claims]
        evidence = evidence_by_words(asked, claims, 3, passages)
        for place, claim in enumerate(claims):
            shown = {passage.passage_id for passage in evidence[asked.id, claim]}
            found.append(not shown.isdisjoint(gold[place]))
    assert len(found) == 212
    assert sum(found) >= 0.95 * len(found)
