"""The asset of the report's pages."""

from assets.stage_asset import month_asset
from pipeline.report.stages import REPORT

report = month_asset(REPORT)
