"""How a month of a table is computed, by one function that both doors call, `run.run_stage`."""
