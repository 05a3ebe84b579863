"""The command `citeloom`: a module per group of commands, registered by `app`."""


def main() -> None:
    """Entry point of the command."""
    from pipeline.cli.app import main as run

    run()
