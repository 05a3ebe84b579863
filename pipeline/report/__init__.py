"""The report of a month and of all months: numbers from tables, and pages from numbers.

Data goes one way: tables → `month`, `tasks`, `months` (what a page shows, as `views`) → `pages` (HTML) and `plain`
(Markdown, JSON).
"""
