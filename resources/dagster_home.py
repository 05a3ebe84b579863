"""What Dagster's instance of a data root is told: the project's dagster.yaml, and Postgres in place of SQLite where
CITELOOM_DAGSTER_PG_URL is set.

The URL holds a password, so the file names the variable and never its value, and no message shows it.
"""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path

from pipeline.errors import SettingError
from pipeline.settings import PROJECT, Settings
from pipeline.storage.writing import write_whole

_VARIABLE = "CITELOOM_DAGSTER_PG_URL"
_SCHEME = "postgresql://"
_POSTGRES = f"""
# {_VARIABLE} is set:
storage:
  postgres:
    postgres_url:
      env: {_VARIABLE}
"""


def write_instance_config(settings: Settings, home: Path) -> None:
    """Put dagster.yaml into the folder of the instance, where it differs from what is there.

    Raises SettingError where CITELOOM_DAGSTER_PG_URL is no address of Postgres, or its package is not installed.
    """
    content = (PROJECT / "dagster.yaml").read_bytes()
    if settings.dagster_pg_url is not None:
        share_postgres(settings)
        content += _POSTGRES.encode()
    file = home / "dagster.yaml"
    if not file.exists() or file.read_bytes() != content:
        write_whole(file, content)


def share_postgres(settings: Settings) -> None:
    """Put the address of Postgres, where one is set, where Dagster reads it: into the environment; it may have come
    from .env. Raises SettingError as `write_instance_config` does."""
    if settings.dagster_pg_url is not None:
        os.environ[_VARIABLE] = _checked(settings.dagster_pg_url.get_secret_value())


def _checked(url: str) -> str:
    if not url.startswith((_SCHEME, "postgresql+psycopg2://")):
        raise SettingError(f"{_VARIABLE} is no address of Postgres: give postgresql://user:password@host:5432/database")
    if importlib.util.find_spec("dagster_postgres") is None:
        raise SettingError(f"{_VARIABLE} needs dagster-postgres: pip install 'citeloom[postgres]', or unset it")
    # SQLAlchemy 2.1 takes a plain address to be psycopg 3's; dagster-postgres is written for psycopg2, and brings it.
    return url.replace(_SCHEME, "postgresql+psycopg2://")
