"""G-Score: six marks and a vote for related-work sections, by a language model and by people.

After ChatCite (arXiv 2403.02574, section 4): criteria from 1 to 5, the gold section as the measure,
and a vote for the best. Scores compare systems within one conversation and nowhere else.
"""
