"""The dump as it lies: zips and loose pages, on a disk or an object store, and the bytes of one
page of them.
"""
