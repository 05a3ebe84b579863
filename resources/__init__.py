"""What citeloom talks to, as Dagster resources: thin adapters over objects of `pipeline` that know
no Dagster.
"""
