"""Domain code of citeloom: turn ar5iv pages into a searchable corpus, and write from it.

It works without an orchestrator. Only `definitions` and the command line's reporter import Dagster;
`assets/`, `resources/` and `sensors/` hold what Dagster shows and starts.
"""

__version__ = "0.1.0"
