"""The commands of citeloom, a topic a module, and what they show in the terminal.

Each command is a function that `pipeline.cli.app` names.
"""
