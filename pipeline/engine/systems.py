"""Systems that write sections or answers, and the writers that a setting names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Generic, TypeVar

from pipeline.engine.parts import failed_requests
from pipeline.engine.stage import CheckResult, Workspace
from pipeline.errors import SettingError
from pipeline.settings import Settings
from pipeline.tables import Table
from pipeline.tables.writers import Writer, parse_writer, writer_of


@dataclass(frozen=True, slots=True, kw_only=True)
class System:
    """The declaration of a system.

    settings, prompts: names of the settings and prompts that change what it writes.
    version: raised when its code writes something else.
    calls_model: whether it asks a language model.
    """

    name: str
    settings: tuple[str, ...] = ()
    prompts: tuple[str, ...] = ()
    version: int = 1
    calls_model: bool = True

    def settings_of(self, settings: Settings) -> dict[str, object]:
        """This system's settings and their values."""
        return {name: getattr(settings, name) for name in self.settings}


# Missing texts that a check names.
_MOST_NAMED = 20

AnySystem = TypeVar("AnySystem", bound=System)
Item = TypeVar("Item")


def lookup(items: Mapping[str, Item], name: str, option: str) -> Item:
    """The item that a setting (CITELOOM_…) or an option (--system) names.

    Raises SettingError for an unknown name, with those that are like it.
    """
    if name not in items:
        near = get_close_matches(name, items)
        hint = f"did you mean {' or '.join(near)}?" if near else f"write one of {', '.join(items)}"
        raise SettingError(f"{option} names {name}, which does not exist: {hint}")
    return items[name]


class Writers(Generic[AnySystem]):
    """The writers of one kind of text.

    systems: by name. setting: names the writers of a run, as a field of `Settings`. default: what
    writes where nothing is named; without_model: without an endpoint. former: names of systems that
    were removed → what to write instead.
    """

    def __init__(
        self,
        systems: Mapping[str, AnySystem],
        setting: str,
        default: str,
        without_model: str,
        former: Mapping[str, str] | None = None,
    ) -> None:
        self._systems, self._setting = systems, setting
        self.option = f"CITELOOM_{setting.upper()}"
        self._default, self._without_model = default, without_model
        self._former = former or {}

    def lookup_all(self, settings: Settings) -> list[tuple[Writer, AnySystem]]:
        """The writers that the setting names as `system` or `system@model`, sorted, each once.

        Raises SettingError for a system that does not exist, for a model of a system that calls
        none, and for no name.
        """
        names = getattr(settings, self._setting)
        writers = dict(self._lookup(name, settings, self.option) for name in names)
        if not writers:
            raise SettingError(
                f"{self.option} names no system: write some of {', '.join(self._systems)}"
            )
        return sorted(writers.items(), key=lambda item: item[0].name)

    def lookup(self, name: str | None, settings: Settings) -> tuple[Writer, AnySystem]:
        """The writer of the option --system, None for the default.

        Raises SettingError as `lookup_all` does.
        """
        return self._lookup(name or self.default_name(settings), settings, "--system")

    def _lookup(self, name: str, settings: Settings, option: str) -> tuple[Writer, AnySystem]:
        writer = parse_writer(name)
        if writer.system in self._former:
            instead = self._former[writer.system]
            raise SettingError(f"{option} names {writer.system}, which was removed: {instead}")
        system = lookup(self._systems, writer.system, option)
        if system.calls_model:
            return Writer(writer.system, writer.model or settings.llm_model), system
        if writer.model is not None:
            raise SettingError(
                f"{option} names {name}: {writer.system} calls no model; write {writer.system}"
            )
        return writer, system

    def check_all_wrote(
        self, workspace: Workspace, month: str, subjects: Table, texts: Table, key: str
    ) -> CheckResult:
        """Whether every writer wrote a text for every task or question of a month.

        key: the column of both tables that identifies a task or question.
        """
        expected = {
            (subject, writer.name)
            for subject in workspace.root.read(subjects, month, [key])[key].to_pylist()
            for writer, _ in self.lookup_all(workspace.settings)
        }
        written = {
            (row[key], writer_of(row).name)
            for row in workspace.root.iterate(texts, month, [key, "system", "model", "text"])
            if row["text"]
        }
        missing = sorted(f"{subject} by {name}" for subject, name in expected - written)
        provenance = workspace.root.provenance(texts, month)
        failed = failed_requests(provenance) if provenance else {}
        facts = {"expected": len(expected), "missing": missing[:_MOST_NAMED], **failed}
        return CheckResult(not missing, facts)

    def default_name(self, settings: Settings) -> str:
        """What writes where nothing is named; it calls no model without an endpoint."""
        return self._without_model if settings.bundled_llm else self._default
