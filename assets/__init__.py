"""What exists: the assets that Dagster shows, a module a group, and the checks of a month."""
