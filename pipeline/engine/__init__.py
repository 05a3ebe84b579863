"""Compute a month of a table by one function that both doors call, `run.run_stage`."""
