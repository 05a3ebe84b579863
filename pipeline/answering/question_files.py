"""Questions as a set's file holds them: written as one entry, read from one, and added to a file whole
or not at all.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pipeline.answering.questions import Question, read_questions
from pipeline.errors import SettingError
from pipeline.storage.writing import write_whole

_YAML = (".yaml", ".yml")
_LINE_CHARS = 110


def entry_of(question: Question) -> dict[str, Any]:
    """The entry of a set that reads as this question; what is not known is left out."""
    claims = [
        {"claim": each.claim, "paper": each.paper} | ({"evidence": list(each.evidence)} if each.evidence else {})
        for each in question.claims
    ]
    date = {"date": question.date} if question.date else {}
    told = {"id": question.id, "question": question.question, "kind": question.kind, "papers": list(question.papers)}
    return told | date | {"reviewed": question.reviewed, "claims": claims}


def as_yaml(entry: Mapping[str, Any]) -> str:
    """An entry as one member of a YAML list; ids and days are in quotes, since YAML would read them as numbers."""
    import yaml

    return str(yaml.safe_dump([dict(entry)], sort_keys=False, allow_unicode=True, width=_LINE_CHARS))


def read_entry(text: str) -> Question:
    """The one question of a YAML list, such as an editor gives back.

    Raises SettingError with line and field where it is none, or where there are several.
    """
    with tempfile.TemporaryDirectory(prefix="citeloom-") as folder:
        file = Path(folder) / "question.yaml"
        try:
            file.write_text(text, encoding="utf-8")
            found = read_questions(file)
        except UnicodeEncodeError as error:
            raise SettingError(f"the question holds what is no Unicode (place {error.start}): take it out") from None
        except SettingError as error:
            raise SettingError(str(error).replace(str(file), "the question")) from None
    if len(found) != 1:
        raise SettingError(f"the text holds {len(found)} questions: leave one")
    return found[0]


def add_to_file(file: Path, questions: Sequence[Question]) -> None:
    """Add questions at the end of a set, which is made where it is not there; what it holds stays as it is.

    The new file is read before it takes the old one's place. Raises SettingError where the set as it is cannot be
    read, or cannot be added to: a YAML list that is not written entry by entry, or an id that it has already.
    """
    if not questions:
        return
    place = file.resolve()  # the file that a link leads to, not the link
    before, known = _content(place), len(read_set(place))
    entries = [entry_of(question) for question in questions]
    added = _yaml_lines(before, entries) if place.suffix.lower() in _YAML else _json_lines(entries)
    after = (before if not before or before.endswith("\n") else f"{before}\n") + added
    try:
        _check(after, place, known + len(entries))
        write_whole(place, after.encode("utf-8"))
    except OSError as error:
        raise SettingError(f"{file} cannot be written ({error.strerror}): give a file that can, by --into") from error


def _content(file: Path) -> str:
    try:
        return file.read_bytes().decode("utf-8") if file.exists() else ""
    except (OSError, UnicodeDecodeError) as error:
        raise SettingError(f"{file} cannot be read ({error}): give a question set in UTF-8 by --into") from error


def read_set(file: Path) -> tuple[Question, ...]:
    """The questions of a set that may not be there yet. Raises SettingError where it is there and is none."""
    return read_questions(file) if file.exists() and _content(file).strip("\ufeff \n\r\t") else ()


def _json_lines(entries: Sequence[Mapping[str, Any]]) -> str:
    return "".join(f"{json.dumps(entry, ensure_ascii=False)}\n" for entry in entries)


def _yaml_lines(before: str, entries: Sequence[Mapping[str, Any]]) -> str:
    """The entries as members of the list that the text holds, at its own indent."""
    import yaml

    node = yaml.compose(before, Loader=yaml.SafeLoader) if before.strip() else None
    if isinstance(node, yaml.SequenceNode) and node.flow_style:
        raise SettingError("the set is a YAML list in brackets, to which nothing can be added: write an entry a line")
    indent = " " * node.start_mark.column if node else ""
    lines = "".join(map(as_yaml, entries)).splitlines(keepends=True)
    return "".join(f"{indent}{line}" if line.strip() else line for line in lines)


def _check(text: str, file: Path, count: int) -> None:
    """Read the text as the file that it is to be; SettingError where it would be faulty."""
    with tempfile.TemporaryDirectory(prefix="citeloom-") as folder:
        trial = Path(folder) / f"set{file.suffix}"
        trial.write_text(text, encoding="utf-8")
        try:
            found = len(read_questions(trial))
        except SettingError as error:
            raise SettingError(f"with the new questions, {str(error).replace(str(trial), str(file))}") from None
    if found != count:
        raise SettingError(f"{file} would hold {found} questions in place of {count}: give a .jsonl file by --into")
