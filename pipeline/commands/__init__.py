"""The commands of citeloom beside its main ones, a topic a module, and what they show in the terminal.

Each module has one `add_…` function that `pipeline.cli` calls. Not here: what a command does beyond reading its options
and telling what came of them.
"""
