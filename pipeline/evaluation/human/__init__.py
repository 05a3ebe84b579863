"""The human study: blind sheets for raters, what comes back, and how far raters agree, with each other
and the judge.
"""
