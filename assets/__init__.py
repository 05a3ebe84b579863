"""What exists: one thin module per stage, which says what its table is to a reader of the Dagster UI.

Not here: how a table comes about (`pipeline`), when (`sensors`), and what it talks to (`resources`).
"""
