"""The commands of citeloom, a topic a module, and what they show in the terminal.

Each command is a function that `pipeline.cli` names. Not here: what a command does beyond reading its options and
telling what came of them.
"""
