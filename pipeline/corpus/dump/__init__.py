"""The dump: zips and loose pages, on a disk or an object store."""
