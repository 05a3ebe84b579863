"""The index: passages' vectors in Qdrant, in process (Edge) or on a server, behind one protocol;
load, audit, search.
"""
