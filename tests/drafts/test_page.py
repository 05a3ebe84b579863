"""The page of a checked draft in headless Chromium."""

import pytest

from drafts.check import DraftCheck, MissingPaper
from drafts.citations import CitationCheck
from drafts.draft import Draft, DraftSentence
from drafts.page import write_page
from drafts.references import Difference, ReferenceCheck
from tests.ui.browser import WIDTHS, look, overflow
from tests.ui.test_report import css, requests
from tests.unit.evaluation.hostile import HOSTILE
from tests.unit.evaluation.made_up import QUOTE

pytestmark = [pytest.mark.ui, pytest.mark.slow]


@pytest.mark.parametrize("width", WIDTHS)
def test_the_page_of_a_checked_draft_holds_and_its_texts_do_nothing(chrome, tmp_path, width):
    draft = Draft(tmp_path / "paper.tex")
    citations = []
    for number, payload in enumerate(HOSTILE):
        sentence = DraftSentence(f"{payload} [@{payload}]", (payload,), payload, number, 0)
        draft.sentences.append(sentence)
        citations.append(
            CitationCheck(
                payload,
                sentence,
                "number_not_found",
                arxiv_id="2401.00001",
                quote=f"{payload} {QUOTE}",
                url="https://arxiv.org/html/2401.00001#S3.p2",
            )
        )
    references = [
        ReferenceCheck(
            payload, "differs", "2401.00001", (Difference("title", payload, payload),), (payload,)
        )
        for payload in HOSTILE
    ]
    missing = [
        MissingPaper(0, HOSTILE[0], "2401.00001", HOSTILE[0], "https://arxiv.org/abs/2401.00001")
    ]
    file = write_page(DraftCheck(draft, references, citations, missing, None), tmp_path / "check")
    look(chrome, width)
    requests(chrome)
    chrome.get(file.as_uri())
    assert chrome.execute_script("return ran") == []
    assert requests(chrome) == [file.as_uri()]
    assert overflow(chrome) <= 0
    table = css(chrome, "table")
    assert len(table.find_elements("css selector", "tbody tr")) == len(HOSTILE)
    link = table.find_element("css selector", "a")
    assert link.get_attribute("href") == "https://arxiv.org/html/2401.00001#S3.p2"
