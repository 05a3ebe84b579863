"""The human study: blind sheets for raters, what comes back, and how far raters agree, with each other and the judge.

Not here: which systems write (`pipeline/related_work`), the model that judges, and the report.
"""
