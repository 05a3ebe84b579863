"""What citeloom talks to, as Dagster resources: thin adapters over `pipeline`."""
