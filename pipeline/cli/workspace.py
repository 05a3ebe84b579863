"""Open the workspace that the settings name, and pass settings on to child processes.

Commands import settings, tables and stages only here and in their bodies, so that --help and a wrong argument cost no
import.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pipeline.engine.stage import Workspace
    from pipeline.settings import Settings


def open_workspace(**overrides: Any) -> Workspace:
    """The workspace of the settings. An override that is None leaves its setting as it is."""
    from pipeline.engine.stage import Workspace
    from pipeline.settings import load_settings

    return Workspace(load_settings(**{name: value for name, value in overrides.items() if value is not None}))


def export_settings(settings: Settings) -> None:
    """Write the settings that a command may override to the environment, from which child processes read theirs."""
    os.environ["CITELOOM_DUMP_DIR"] = str(settings.dump_dir)
    os.environ["CITELOOM_METADATA_SNAPSHOT"] = str(settings.metadata_snapshot or "")
    os.environ["CITELOOM_DATA"] = str(settings.data_root)
    os.environ["CITELOOM_LOCAL"] = str(settings.local_root)
    os.environ["CITELOOM_QDRANT_URL"] = settings.qdrant_url or ""
