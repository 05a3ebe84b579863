"""What Dagster loads under the settings of the moment."""

import importlib

from pipeline import definitions


def load_definitions(**resources):
    """All definitions, made again: assets read the settings when their modules are loaded."""
    for group in definitions.GROUPS:
        importlib.reload(group)
    return definitions.build_defs(**resources)
