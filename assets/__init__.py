"""What exists: one thin module per stage, which says what its table is to a reader of the Dagster UI."""
