"""The data root on a disk or an object store: months of tables, read, and written whole or not at
all.
"""
