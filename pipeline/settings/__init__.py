"""Every setting of citeloom, once: typed, documented, read from `CITELOOM_*` and `.env`."""

from pipeline.settings.fields import PROJECT, SAMPLE_DUMP, SAMPLE_QUESTIONS, SAMPLE_SNAPSHOT
from pipeline.settings.settings import BUNDLED_LLM, Settings, is_secret, load_settings
from pipeline.settings.validators import SUBSETS

__all__ = [
    "BUNDLED_LLM",
    "PROJECT",
    "SAMPLE_DUMP",
    "SAMPLE_QUESTIONS",
    "SAMPLE_SNAPSHOT",
    "SUBSETS",
    "Settings",
    "is_secret",
    "load_settings",
]
