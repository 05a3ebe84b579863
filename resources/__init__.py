"""External services as Dagster resources: thin adapters over `pipeline`."""
