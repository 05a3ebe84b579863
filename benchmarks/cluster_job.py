"""The code location of `benchmarks.cluster`: the product's assets and checks, and a job of the stages it measures."""

from __future__ import annotations

import dagster as dg

from pipeline.definitions import defs as product

JOB = "papers_to_embeddings"
STAGES = ("papers", "passages", "embeddings")

# Without the product's sensors and schedules, which the daemon would run beside the backfill.
defs = dg.Definitions(
    assets=product.assets,
    asset_checks=product.asset_checks,
    resources=product.resources,
    executor=product.executor,
    jobs=[dg.define_asset_job(JOB, selection=dg.AssetSelection.assets(*STAGES))],
)
