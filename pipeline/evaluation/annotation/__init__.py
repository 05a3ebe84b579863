"""Blind annotation by people: sheets and forms out, filled-in files in, agreement with each other and the judge.

One mechanism for every schema. A schema says what is shown, what is filled in, which values are allowed and into which
table they go: `ratings` of related-work sections, `grades` of answers to questions.
"""
