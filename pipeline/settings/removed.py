"""Settings that were removed, and what happens now in the place of each."""

from __future__ import annotations

REMOVED = {
    "ANSWER_CLAIMS": "arXivBot keeps 3 claims of each search",
    "ANSWER_EVIDENCE": "WikiChat checks each claim by 2 passages",
    "ELEMENT_TOKENS": "a key-element answer has 96 tokens at most, 48 with the embedded model",
    "FETCH_HTML": "give citeloom fetch-html the option --accept-terms",
    "FEW_SHOT_EXAMPLES": "the system few_shot shows 2 examples",
    "GUIDELINES": "ChatCite's guidelines are those of its prompt",
    "JUDGE_ALONE": "each section is also marked by itself, except with the embedded model",
    "JUDGE_PRICE_READ": "name the judge's price in CITELOOM_LLM_PRICES",
    "JUDGE_PRICE_WRITTEN": "name the judge's price in CITELOOM_LLM_PRICES",
    "LLM_PRICE_READ": "name the model's price in CITELOOM_LLM_PRICES",
    "LLM_PRICE_WRITTEN": "name the model's price in CITELOOM_LLM_PRICES",
    "MAX_REFERENCES": "a task has 100 references at most",
    "RETRIEVAL_POOL": "retrieval is scored over 20,000 passages at most",
    "SECOND_JUDGE_PRICE_READ": "name the second judge's price in CITELOOM_LLM_PRICES",
    "SECOND_JUDGE_PRICE_WRITTEN": "name the second judge's price in CITELOOM_LLM_PRICES",
    "STABILITY_REPEATS": "each of the tasks is written 5 times",
    "STEP_CPUS": "on a cluster a step asks for CITELOOM_WORKERS processors, for one if that is 0",
    "SUPPORT_PASSAGES": "a judge reads 3 passages of a cited work, 1 with the embedded model",
    "VOTE_TOKENS": "a vote has 256 tokens at most, 48 with the embedded model",
}
