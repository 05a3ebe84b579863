"""citeloom: what we know. Domain code that turns ar5iv pages into a searchable corpus and writes
from it.

Belongs here: everything that is true without an orchestrator. Only `definitions`, `partitions` and
`jobs` may import Dagster; `assets/`, `resources/` and `sensors/` hold the rest of what Dagster
sees.
"""

__version__ = "0.1.0"
