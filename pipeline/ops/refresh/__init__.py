"""Keeping a corpus up to date: what has changed, what is run for it, and what became of it.

Data goes one way: `plan` says which months and stages are due; whoever runs them (`refreshing`, or a sensor) then has
`stages` compare the month with what it was (`compare`), and `page` shows it.
"""
