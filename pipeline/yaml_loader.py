"""A loader of YAML that refuses aliases: a few lines of them can stand for gigabytes."""

from __future__ import annotations

from typing import Any

import yaml


class PlainLoader(yaml.SafeLoader):  # type: ignore[misc]
    """Raises ComposerError for an alias, and else as SafeLoader does."""

    def compose_node(self, parent: Any, index: Any) -> Any:
        if self.check_event(yaml.AliasEvent):
            mark = self.get_event().start_mark
            raise yaml.composer.ComposerError(problem="aliases are not read", problem_mark=mark)
        return super().compose_node(parent, index)
