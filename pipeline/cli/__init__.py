"""The command `citeloom`: a module for each group of commands, which `pipeline.cli.app` registers."""
