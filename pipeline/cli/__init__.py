"""The command `citeloom`: a module for each group of commands, which `pipeline.cli.app`
registers.
"""


def main() -> None:
    """Entry point of the command."""
    from pipeline.cli.app import main as run

    run()
