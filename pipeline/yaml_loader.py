"""A loader of YAML from outside: no aliases, no long numbers, errors of one kind."""

from __future__ import annotations

from typing import Any

import yaml

from pipeline.text import without_lone_surrogates

_LONGEST_NUMBER = 40
_TEXT = "tag:yaml.org,2002:str"


class PlainLoader(yaml.SafeLoader):  # type: ignore[misc]
    """Raises YAMLError for an alias, since a few lines of them can stand for gigabytes, and for a
    value that does not fit its tag; else as SafeLoader does.

    A number or date of over 40 characters is text: PyYAML takes minutes for a million digits.
    """

    def compose_node(self, parent: Any, index: Any) -> Any:
        if self.check_event(yaml.AliasEvent):
            mark = self.get_event().start_mark
            raise yaml.composer.ComposerError(problem="aliases are not read", problem_mark=mark)
        return super().compose_node(parent, index)

    def construct_object(self, node: Any, deep: bool = False) -> Any:
        if isinstance(node.value, str):
            if len(node.value) > _LONGEST_NUMBER and node.tag.startswith("tag:yaml.org"):
                node.tag = _TEXT
            node.value = without_lone_surrogates(node.value)
        try:
            return super().construct_object(node, deep=deep)
        except (LookupError, AttributeError, ArithmeticError) as error:
            raise yaml.composer.ComposerError(
                problem=f"{node.tag} has another form", problem_mark=node.start_mark
            ) from error
