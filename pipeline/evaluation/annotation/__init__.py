"""Blind annotation by people: pages to read and sheets to fill in, import of filled-in sheets,
agreement.

One mechanism for both kinds: `ratings` of related-work sections and `grades` of answers to
questions. A row class of `rows` says what is filled in on a line and into which table it goes.
"""
