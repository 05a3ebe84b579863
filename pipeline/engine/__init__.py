"""Compute a month of a table: `run.run_stage`, for the command line and for Dagster."""
