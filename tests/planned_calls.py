"""The calls that each system makes if no answer needs a repair, as formulas of docs/methods:
counted runs are compared with them, and so is the estimate, which knows no formula.
"""

from pipeline.answering.ranking import windows
from pipeline.answering.wikichat import MOST_CHECKED


def beam_calls(references, settings):
    """Calls of ChatCite's search, key elements not counted.

    |R|·(n_c·n_s + n_v) less (n_c - 1)·n_s at the first step, where there is one draft to continue; less still in the
    next steps where n_s < n_c, as fewer drafts than n_c exist.
    """
    calls, beam = 0, 1
    for _ in range(references):
        drafts = beam * settings.chatcite_samples
        calls += drafts + settings.chatcite_votes
        beam = min(settings.chatcite_kept, drafts)
    return calls


def writing_calls(system, references, settings, *, whole=False):
    """Calls of a section on so many references, key elements not counted. whole: whether the texts
    fit as they are.
    """
    search = beam_calls(references, settings)
    summaries = 0 if whole else references + 1
    return {
        "chatcite": search,
        "chatcite_no_elements": references + 1 + search,
        "chatcite_no_incremental": references + 2,
        "chatcite_no_reflection": references,
        "zero_shot": summaries + 1,
        "few_shot": summaries + 1,
        "litllm": summaries + 1,
        "litllm_plan": summaries + 2,
    }.get(system, 0)


def answering_calls(system, settings, *, hops=None, checked=MOST_CHECKED):
    """Calls of one question with so many hops (by default the most) and claims to check, if
    searches find enough.
    """
    hops = settings.answer_hops if hops is None else hops
    candidates, passages = settings.answer_candidates, settings.answer_passages
    ranking = len(windows(candidates)) if candidates > passages else 0
    # A query; each hop's ranking and claims; a reflection after each hop except the last possible;
    # the answer.
    arxivbot = 1 + hops * (ranking + 1) + min(hops, settings.answer_hops - 1) + 1
    # Query, ranking, bullets of each passage; the model's answer, its split, a ranking and a verdict
    # for each claim; draft and refinement.
    wikichat = 1 + ranking + min(passages, candidates) + 2 + checked * (ranking + 1) + 2
    return {
        "arxivbot": arxivbot,
        "arxivbot_fused": arxivbot,
        "wikichat": wikichat,
        "direct": 1,
    }.get(system, 0)
