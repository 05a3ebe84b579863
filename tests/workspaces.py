"""Workspaces on data roots of tests, under no setting of a `.env` file; altered stages."""

from copy import copy

from pipeline.engine.stage import Workspace
from pipeline.settings import load_settings


def make_workspace(folder, **settings):
    """A workspace whose data root is a folder."""
    return Workspace(load_settings(data=folder, _env_file=None, **settings))


def changed(workspace, **settings):
    """The same data root under other settings, which are not validated."""
    return Workspace(workspace.settings.model_copy(update=settings))


def altered(stage, **changes):
    """A stage with other attributes or functions in place of some of its own."""
    other = copy(stage)
    vars(other).update(changes)
    return other
