"""What Dagster loads under the settings of the moment."""

import importlib

from assets.placement import definition_time_settings
from pipeline import definitions


def load_definitions(**resources):
    """All definitions, made again: assets read the settings once, when their modules are loaded."""
    definition_time_settings.cache_clear()
    for group in definitions.GROUPS:
        importlib.reload(group)
    return definitions.build_defs(**resources)
