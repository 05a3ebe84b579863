"""The command `citeloom`, run in this process."""

from typer.testing import CliRunner

from pipeline.doors.cli.app import app


def invoke(*arguments, **options):
    """What became of the command with these arguments; options as for `CliRunner.invoke`."""
    return CliRunner().invoke(app, list(arguments), **options)
