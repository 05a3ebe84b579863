"""What a command fixed, given to the code location."""

from __future__ import annotations

import os

from pipeline.settings import Settings


def share(settings: Settings) -> None:
    """Give the settings that a command fixed to the code location, which reads them from the environment."""
    os.environ["CITELOOM_DUMP_DIR"] = str(settings.dump_dir)
    os.environ["CITELOOM_METADATA_SNAPSHOT"] = str(settings.metadata_snapshot or "")
    os.environ["CITELOOM_DATA"] = str(settings.data_root)
    os.environ["CITELOOM_LOCAL"] = str(settings.local_root)
    os.environ["CITELOOM_QDRANT_URL"] = settings.qdrant_url or ""
    # Matplotlib wants a folder that it may write; a home may be none.
    os.environ.setdefault("MPLCONFIGDIR", str(settings.local_root / "cache" / "matplotlib"))
