"""Numbers, negations and directions of a claim beside sentences of the cited paper."""

import pytest

from pipeline.evaluation.citation_support.claim_comparison import (
    Sentence,
    compare,
    states,
)
from pipeline.evaluation.citation_support.claim_facts import Facts, facts_of_passage, numbers_of

TABLE = """Table 2: Results on the test part.
| System | Recall | Seconds |
| --- | --- | --- |
| BM25 | 0.52 | 3 |
| Lanternfish | 0.69 | 41 |"""


def compared(claim, passage):
    sentences = [Sentence(facts) for facts in facts_of_passage(passage)]
    return compare(claim, sentences, numbers_of(passage))


@pytest.mark.parametrize(
    ("claim", "passage", "ours", "theirs"),
    [
        (
            "The set has 1,400 questions by students.",
            "The set has 1,200 questions by students.",
            "1,400",
            "1,200",
        ),
        (
            "Judges reached a Sharpe ratio of 3.21 on the held stocks.",
            "On held stocks we reach a Sharpe ratio of 5.60 after costs.",
            "3.21",
            "5.60",
        ),
        (
            "Training took 3.5 days on sixteen GPUs.",
            "Training took 3.5 days on 8 P100 GPUs.",
            "sixteen",
            "8",
        ),
        (
            "It has over 520,000 questions by students.",
            "It has over 500,000 questions by students.",
            "520,000",
            "500,000",
        ),
        (
            "It shortens a sequence to a quarter of HTML on average.",
            "It shortens a sequence to half of HTML on average.",
            "quarter",
            "half",
        ),
        (
            "A step takes 3.5 ms of the whole second.",
            r"A step takes $4.5$\,ms of the whole second.",
            "3.5 ms",
            "4.5ms",
        ),
        (
            "We train on 2e6 pages of old novels.",
            r"We train on $2 \times 10^{5}$ pages of old novels.",
            "2e6",
            "2 × 10^5",
        ),
        (
            "The first summary wins 9 percent more often than chance.",
            "The first summary wins 9 points more often than chance.",
            "9 percent",
            "9 points",
        ),
        (
            "Randomly replaying old pages yields satisfactory scores.",
            "Randomly replaying old pages yields unsatisfactory scores and costs time.",
            "satisfactory",
            "unsatisfactory",
        ),
        (
            "More votes improve the final score.",
            "More votes do not improve the final score.",
            "improve",
            "not improve",
        ),
        (
            "Reordering does not change the grades of the judge.",
            "Reordering changes the grades that the judge gives.",
            "not change",
            "changes",
        ),
        (
            "Binary codes need fewer candidates than int8 codes.",
            "Binary codes need more candidates than int8 codes.",
            "fewer",
            "more",
        ),
        (
            "Lanternfish outperforms BM25 on short questions.",
            "Lanternfish underperforms BM25 on short questions.",
            "outperforms",
            "underperforms",
        ),
        (
            "Reranking costs three points on short questions.",
            "Reranking gains three points on short questions.",
            "costs",
            "gains",
        ),
        (
            "A shuffled order degrades the agreement of judges.",
            "A shuffled order improves the agreement of judges.",
            "degrades",
            "improves",
        ),
        (
            "On short questions, BM25 outperforms Lanternfish.",
            "Lanternfish outperforms BM25 on short questions.",
            "BM25 outperforms Lanternfish",
            "Lanternfish outperforms BM25",
        ),
        (
            "T3A clearly outperforms FOA on short questions.",
            "FOA outperforms T3A significantly on short questions, and is the best of all.",
            "T3A clearly outperforms FOA",
            "FOA outperforms T3A significantly",
        ),
        (
            "Grouped queries slow inference down for long texts.",
            "Grouped queries make inference faster for long texts.",
            "slow",
            "faster",
        ),
        (
            "BM25 is more accurate than Lanternfish on short questions.",
            "Lanternfish is more accurate than BM25 on short questions.",
            "BM25 is more accurate than Lanternfish",
            "Lanternfish is more accurate than BM25",
        ),
        (
            "Lanternfish is outperformed by BM25 on short questions.",
            "Lanternfish outperforms BM25 on short questions.",
            "Lanternfish is outperformed by BM25",
            "Lanternfish outperforms BM25",
        ),
    ],
)
def test_a_fact_that_a_close_sentence_states_otherwise_is_a_clash(claim, passage, ours, theirs):
    clash = compared(claim, passage).clash
    assert clash
    assert (clash.ours, clash.theirs) == (ours, theirs)
    assert clash.sentence == passage


@pytest.mark.parametrize(
    ("claim", "passage"),
    [
        ("The set has 1,200 questions by students.", "The set has 1,200 questions by students."),
        ("About 5,000 pages were read.", "In all, 5,036 pages were read."),
        ("It reads 94 % of the pages.", "It reads 94.1% of the pages."),
        ("A third needs 3 million pages.", "A third needs 3,000,000 pages."),
        (
            "More votes do not improve the final score.",
            "More votes never improve the final score.",
        ),
        ("It reaches a recall of 0.52.", "It reaches a recall of 0.53, and of 0.52 elsewhere."),
        (
            "Bf16 does not increase the error of cosines.",
            "Bf16 decreases the error of cosines.",
        ),
        (
            "Headings raise recall of long passages.",
            "Headings raise recall of long passages, with no harm to others.",
        ),
        (
            "Lanternfish outperforms BM25 on short questions.",
            "BM25 is outperformed by Lanternfish on short questions.",
        ),
        (
            "Lanternfish is faster than BM25 on short questions.",
            "BM25 is slower than Lanternfish on short questions.",
        ),
        (r"It has $2 \times 10^{6}$ pages of novels.", "It has 2 million pages of novels."),
        ("A step costs 1e-3 seconds of a day.", r"A step costs $10^{-3}$ seconds of a day."),
        ("It halves the cost to half of HTML.", "It cuts the cost to 50% of HTML."),
        ("Ferries carry 12 seeds to islands, on 12 days.", "The ferries of 12 islands rest."),
    ],
)
def test_the_same_fact_in_other_words_is_no_clash(claim, passage):
    comparison = compared(claim, passage)
    assert comparison.clash is None
    assert not comparison.missing


def test_a_number_that_is_nowhere_is_named_with_the_nearest():
    comparison = compared(
        "A fund earned a Sharpe ratio of 3.21.", "Costs are low. The portfolio ends at 5.60."
    )
    (missing,) = comparison.missing
    assert (missing.number, missing.nearest) == ("3.21", "5.60")
    assert not comparison.all_stated


@pytest.mark.parametrize(
    ("claim", "stated"),
    [
        ("The set has 1,200 questions.", True),
        ("The set has 1,200 answers.", False),
        ("The set has questions.", False),
        ("The set has 1,200 questions and beats all others.", False),
    ],
)
def test_facts_are_stated_where_all_of_them_are_and_there_is_one(claim, stated):
    assert compared(claim, "The set has 1,200 questions of students.").all_stated is stated


def test_a_comparison_is_stated_only_between_the_same_things():
    passage = "Lanternfish outperforms BM25 on short questions."
    assert compared("Lanternfish beats BM25 on short questions.", passage).all_stated
    for claim in ("Kites outperform BM25 on short questions.", "BM25 beats kites on questions."):
        assert not compared(claim, passage).all_stated


def test_years_names_and_items_are_no_numbers():
    text = "In 2019, GPT-4 and p53 reached recall@10 on CIFAR-10: (1) first, (2) second [3.1.2]."
    assert numbers_of(text) == []


def test_a_table_is_evidence_by_its_cells():
    assert "Lanternfish, Recall: 0.69" in [facts.text for facts in facts_of_passage(TABLE)]
    comparison = compared("Lanternfish reaches a recall of 0.69 in the test.", TABLE)
    assert comparison.all_stated
    assert compared("Lanternfish reaches a recall of 0.71.", TABLE).missing


def test_the_numbers_of_the_rest_of_the_work_count():
    sentences = [Sentence(Facts("The set is large."))]
    everywhere = numbers_of("It has 1,200 questions.")
    assert not compare("The set has 1,200 questions.", sentences, everywhere).missing


SENTENCES = {
    "size": "Otter requires only about 65% of model size or training tokens to match others.",
    "returns": "Otter achieves at least a 23.21% cumulative return and 24.90% annual return on stocks.",
    "experts": "Otter is a set of 1.4K expert-written scientific claims paired with abstracts.",
    "dash": "On ABC and XYZ it has Sharpe ratios of at least 5.60—surpassing others by 2.07 points.",
    "days": "It reaches a score of 41.8 after training for 3.5 days on eight GPUs.",
    "license": "Otter 7B is released under the Apache 2.0 license.",
    "bleu": "Otter reaches 41.8 BLEU on English-to-French news after 3.5 days.",
    "most": "Otter surpasses Beaver on all tests, and outperforms Kite 34B on most tasks.",
    "hedge": "Otter may reduce the error of long answers.",
    "other": "As the corpus of Beaver is not publicly available, Otter is a good choice.",
    "weights": "Learned weights reach a recall of 0.64, against 0.52 for the ranking of BM25.",
    "cell": "Papers with full text, 81.1M: 8.1M",
    "ranges": r"Speed-ups were between $1.5\times$ and $2.3\,\times$ for heat, $10^{5}$ cells at most.",
    "year": "Otter reaches 28.4 BLEU on WMT 2014 news.",
    "share": "We find evidence for 23 / 36 claims on long English-language papers.",
}


@pytest.mark.parametrize(
    ("passage", "claim", "stated"),
    [
        ("license", "Otter 7B is released under the Apache license.", True),
        ("license", "Otter 7B is released under the MIT license.", False),
        ("bleu", "Lee et al. reach 41.8 BLEU on English-to-French news.", True),
        ("bleu", "Otter reaches 41.8 BLEU on English-to-German news.", False),
        ("most", "Otter surpasses Beaver on all tests.", True),
        ("most", "Otter outperforms Kite 34B on all tasks.", False),
        ("hedge", "Otter reduces the error of long answers.", False),
        ("other", "The corpus of Beaver is not publicly available.", True),
        ("other", "Otter is not publicly available.", False),
        (
            "weights",
            "The ranking of BM25 has a recall of 0.52, against 0.64 for learned weights.",
            True,
        ),
        (
            "weights",
            "The ranking of BM25 has a recall of 0.64, against 0.52 for learned weights.",
            False,
        ),
        ("cell", "8.1M papers have full text.", True),
        ("cell", "81.1M papers have full text.", False),
        ("ranges", "For heat, speed-ups were between 1.5x and 2.3x.", True),
        ("ranges", "For heat, speed-ups were between 1.5x and 3.3x.", False),
        ("year", "Otter reaches 28.4 BLEU on WMT 2014 news.", True),
        ("year", "Otter reaches 28.4 BLEU on WMT 2016 news.", False),
        ("dash", "Otter has Sharpe ratios of at least 5.60 on ABC and XYZ.", True),
        ("dash", "Otter has Sharpe ratios of at least 2.07 on ABC and XYZ.", False),
        ("returns", "Otter achieves at least a 24.90% annual return on the stocks.", True),
        ("returns", "Otter achieves at least a 24.90% cumulative return on the stocks.", False),
        ("experts", "Otter has 1.4K scientific claims written by experts.", True),
        ("experts", "Otter has 1.4K abstracts written by experts.", False),
        ("size", "Otter needs only about 65% of the model size or the training tokens.", True),
        ("days", "Otter reaches a score of 41.8 after 3.5 days of training on eight GPUs.", True),
        ("days", "Otter reaches a score of 41.8 after 3.5 hours of training on eight GPUs.", False),
        ("share", "Evidence is found for 23 of the 36 claims on long papers.", True),
    ],
)
def test_a_sentence_states_a_claim_with_its_names_and_limits(passage, claim, stated):
    (facts,) = facts_of_passage(SENTENCES[passage])
    sentence = Sentence(Facts(facts.text, is_cell=passage == "cell"))
    assert states(claim, sentence, "Otter for all. Ada Lee") is stated


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("In this paper we propose a simple network, the Otter, in place of Weasel nets.", "Otter"),
        ("We introduce Otter 7B, a model of 7 billion parameters.", "Otter 7B"),
        ("We present an analysis of Weasel, which is older.", ""),
        ("We propose a Weasel-based network, the Otter.", ""),
        ("The Otter was proposed by Lee.", ""),
    ],
)
def test_the_name_that_a_paper_gives_its_own_work(text, name):
    assert Facts(text).introduced_name == name
