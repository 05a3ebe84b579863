"""The code location of `benchmarks.cluster`: the product's assets, and a job to measure."""

from __future__ import annotations

import dagster as dg

from pipeline import definitions

JOB = "papers_to_embeddings"
STAGES = ("papers", "passages", "references", "embeddings")

# Without the product's sensors and schedules, which the daemon would run beside the backfill.
defs = dg.Definitions(
    assets=definitions.defs.assets,
    asset_checks=definitions.defs.asset_checks,
    resources=definitions.defs.resources,
    executor=definitions.defs.executor,
    jobs=[dg.define_asset_job(JOB, selection=dg.AssetSelection.assets(*STAGES))],
)
