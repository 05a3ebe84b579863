"""Blind studies by people: ratings of related-work sections, or grades of answers to questions.

Export of pages and sheets, the key, import of the sheets that come back, and the results.
"""
