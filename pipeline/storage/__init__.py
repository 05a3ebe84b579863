"""The data root on a disk or an object store: months of tables, whole or absent."""
