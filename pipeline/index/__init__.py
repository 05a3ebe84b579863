"""The index: passages' vectors in Qdrant, embedded (Edge) or on a server, behind one protocol;
load, audit, search.
"""
