"""Settings that were removed, and what happens now in the place of each."""

from __future__ import annotations

REMOVED = {
    "ANSWER_CLAIMS": "arXivBot keeps 3 claims of each search",
    "ANSWER_EVIDENCE": "WikiChat checks each claim by 2 passages",
    "FETCH_HTML": "give citeloom fetch-html the option --accept-terms",
    "FEW_SHOT_EXAMPLES": "the system few_shot shows 2 examples",
    "GUIDELINES": "ChatCite's guidelines are those of its prompt",
    "JUDGE_PRICE_READ": "name the judge's price in CITELOOM_LLM_PRICES",
    "JUDGE_PRICE_WRITTEN": "name the judge's price in CITELOOM_LLM_PRICES",
    "LLM_PRICE_READ": "name the model's price in CITELOOM_LLM_PRICES",
    "LLM_PRICE_WRITTEN": "name the model's price in CITELOOM_LLM_PRICES",
    "MAX_REFERENCES": "a task has 100 references at most",
    "SECOND_JUDGE_PRICE_READ": "name the second judge's price in CITELOOM_LLM_PRICES",
    "SECOND_JUDGE_PRICE_WRITTEN": "name the second judge's price in CITELOOM_LLM_PRICES",
    "STEP_CPUS": "on a cluster a step asks for CITELOOM_WORKERS processors, for one if that is 0",
    "VOTE_TOKENS": "a vote has half as many tokens as a draft (CITELOOM_DRAFT_TOKENS)",
}
