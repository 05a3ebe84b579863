"""The index: passages' vectors in Qdrant, embedded (Edge) or on a server, behind one protocol; load, audit, search."""

from pipeline.index.opening import close_indexes

__all__ = ["close_indexes"]
