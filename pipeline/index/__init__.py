"""The index: passages' vectors in Qdrant, embedded (Edge) or on a server, behind one protocol; load, audit, search.

Not here: how vectors are made (`pipeline.embedding`), and the passages' text, which stays in its table.
"""

from pipeline.index.opening import close_indexes

__all__ = ["close_indexes"]
