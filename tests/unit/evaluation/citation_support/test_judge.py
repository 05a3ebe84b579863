"""Which citations a section has, what their judge is asked, and when a quote stands in a passage."""

import pytest

from pipeline.errors import SettingError
from pipeline.evaluation.citation_support.judge import Citation, citations_of, judge_request
from pipeline.evaluation.claim_judge import ClaimFinding, ClaimJudge
from pipeline.evaluation.judged import FINDING_TOKENS
from pipeline.evaluation.passages import EvidencePassage
from pipeline.evaluation.verdicts import place_of
from pipeline.llm.client import REPAIR_TOKENS
from pipeline.llm.context import count_message_tokens
from tests.cases import cases
from tests.scripted_llm import ScriptedLlm
from tests.unit.evaluation.citation_support.building import verdict_on
from tests.workspaces import make_workspace

CASES = "unit/evaluation/cases.toml"
PASSAGES = (EvidencePassage("It weighs quartz.", 4), EvidencePassage("It is about stones.", 1))
SENTENCE = "Unlike [another work], [this work] weighs quartz."


def asked(sentence=SENTENCE, passages=PASSAGES, context=4096):
    return judge_request("Weighing stones", passages, sentence, context)


def test_passages_stand_in_the_order_of_the_work_in_a_prompt_that_two_sentences_share_before_them():
    one, other = asked("[this work] is old."), asked()
    assert one.messages[0] == other.messages[0]
    parts = (each.messages[1].content.split("<sentence>") for each in (one, other))
    (before, _), (same, sentence) = parts
    assert before == same
    assert SENTENCE in sentence
    texts = ("Weighing stones", "about stones", "weighs quartz.")
    places = [before.index(text) for text in texts]
    assert places == sorted(places)
    assert [passage.ordinal for passage in other.shown] == [4, 1]


@pytest.mark.parametrize("context", [1300, 4096])
def test_a_prompt_leaves_room_for_an_answer_and_its_repair(context):
    long = EvidencePassage("word " * 5000 + "unseen", 2)
    made = asked("It says so. " * 300, (long, *PASSAGES), context)
    assert count_message_tokens(made.messages) + FINDING_TOKENS + REPAIR_TOKENS <= context
    assert made.cut == 1
    assert [passage.text for passage in made.shown[1:]] == [passage.text for passage in PASSAGES]
    assert "unseen" not in made.shown[0].text, "what was cut is not said to have been shown"
    assert made.shown[0].text in made.messages[1].content


def test_where_many_passages_would_leave_nothing_of_each_the_best_are_shown():
    many = tuple(EvidencePassage(f"{place} " + "word " * 60, place) for place in range(200))
    made = asked(passages=many, context=1600)
    assert [passage.ordinal for passage in made.shown] == list(range(len(made.shown)))
    assert 1 < len(made.shown) < 50
    assert all(len(passage.text.split()) >= 10 for passage in made.shown)
    assert made.cut == len(many)
    with pytest.raises(SettingError, match="CITELOOM_LLM_CONTEXT"):
        asked(context=1024)


def test_claims_of_a_draft_have_their_findings_in_order(tmp_path):
    rules = (verdict_on("quartz", "supported", "about stones"), verdict_on("Kites", "not", ""))
    with ScriptedLlm(*rules) as llm:
        judge = ClaimJudge(make_workspace(tmp_path, llm_url=llm.url, llm_model=llm.model))
        findings = judge.judge(("A work", PASSAGES, words) for words in ("Kites fly.", SENTENCE))
    assert findings == [ClaimFinding("not"), ClaimFinding("supported", "about stones", 1)]


def test_a_reference_that_a_system_names_without_writing_it_is_a_citation():
    sentence = {"text": "It weighs [Reference 1].", "references": [1, 3]}
    assert [citation.number for citation in citations_of([sentence])] == [1, 3]


@cases(CASES, "claims_of_sentences", ["text", "claim"])
def test_a_search_is_asked_for_the_words_without_the_markers(text, claim):
    assert Citation(1, 1, text).claim == claim


PASSAGE = (
    "We call it “self-attention” – a layer’s output $x_{i} = \\alpha W^{2}$ depends on all"
    " positions. It scores 28.4 BLEU, not 27.3."
)


@cases(CASES, "quotes_found")
def test_a_quote_is_found_whatever_its_case_space_quotes_dashes_and_tex(case):
    assert place_of(case, ["Something else.", PASSAGE]) == 1


@cases(CASES, "quotes_absent")
def test_a_quote_with_other_words_with_some_left_out_or_with_none_is_not_found(case):
    assert place_of(case, [PASSAGE]) is None


def test_signs_that_nobody_sees_and_tags_that_a_prompt_breaks_hide_no_quote():
    shown = "A co\u00adop\u200berates \x08with <b> and <|im_end|> ﬁnally."
    assert place_of("A cooperates with < b> and < |im_end| > finally", [shown]) == 0


def test_of_two_passages_with_the_quote_the_first_is_named():
    assert place_of("weighs stones", ["It counts.", "It weighs stones.", "Who weighs stones?"]) == 1
