"""Where the key of a grading lies: in the data root, `gradings/<name>/key.json`, and never among the sheets, which are
sent to graders folder and all.
"""

from __future__ import annotations

from pydantic import ValidationError

from pipeline.errors import MissingInput, PermanentFailure, SettingError
from pipeline.evaluation.answers.sheets import Key
from pipeline.evaluation.human.study import NAME, keep_once
from pipeline.storage.data_root import DataRoot
from pipeline.storage.store import DataPath

FOLDER = "gradings"


def keep_key(root: DataRoot, key: Key) -> DataPath:
    """Write a key; where it lies.

    Raises SettingError where there is a grading of this name with another key: sheets that were given out would then be
    read with letters that are not theirs.
    """
    told = f"there is a grading {key.study} already, with other questions, systems, seed or texts"
    return keep_once(root.path / FOLDER / key.study / "key.json", key.file_bytes(), told)


def read_key(root: DataRoot, name: str) -> Key:
    """The key of a grading by its name. Raises MissingInput where there is none, PermanentFailure for a damaged one."""
    file = root.path / FOLDER / name / "key.json"
    # What a sheet says of itself must not lead out of the folder.
    if not NAME.fullmatch(name) or not file.is_file():
        known = ", ".join(sorted(each.parent.name for each in (root.path / FOLDER).glob("*/key.json"))) or "none"
        raise MissingInput(
            f"there is no grading {name[:100]!r} in {root.path / FOLDER} (there: {known}): make its sheets first, or "
            "give --key"
        )
    return read_key_file(file)


def read_key_file(file: DataPath) -> Key:
    """The key in a file. Raises SettingError where it cannot be read, PermanentFailure where it is damaged."""
    try:
        return Key.model_validate_json(file.read_bytes())
    except OSError as error:
        raise SettingError(f"{file} cannot be read ({error.strerror}): give the key of the grading") from error
    except ValidationError as error:
        raise PermanentFailure(
            f"{file} is no key, or damaged ({error.errors()[0]['msg']}): put its copy back"
        ) from None
