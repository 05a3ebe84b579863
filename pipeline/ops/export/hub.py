"""An export as a repository of a Hugging Face hub: one commit holds all of it.

Token and address are huggingface_hub's own: HF_TOKEN or `hf auth login`, and HF_ENDPOINT.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from pipeline.errors import PermanentFailure, SettingError, TransientFailure
from pipeline.ops.export.folder import MANIFEST
from pipeline.tables import TABLES

if TYPE_CHECKING:
    from huggingface_hub import HfApi
    from huggingface_hub.hf_api import DatasetInfo

_ADDRESS = re.compile(r"hf://datasets/([A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*)/?")
_TABLE_FILE = re.compile(r"([a-z_]+)/\d{4}-\d\d\.parquet")
# Git's own file, which the hub puts into every repository.
_NOT_CONTENT = {".gitattributes"}
_KIND = "dataset"


def repository_of(address: str) -> str:
    """`owner/name` of `hf://datasets/owner/name`. Raises SettingError for another form."""
    match = _ADDRESS.fullmatch(address)
    if match is None:
        raise SettingError(f"--to {address} is no repository: write hf://datasets/OWNER/NAME, or name a folder")
    return match[1]


def check_repository(repository: str, api: HfApi | None = None) -> DatasetInfo | None:
    """What the hub says of a repository that an export may go into; None where there is none yet.

    Raises SettingError where it holds what is no export, PermanentFailure where the hub refuses, TransientFailure
    where it cannot be reached.
    """
    from huggingface_hub.errors import RepositoryNotFoundError

    with _told(repository):
        try:
            info = _api(api).dataset_info(repository)
        except RepositoryNotFoundError:
            return None
    there = _files(info)
    if there and MANIFEST not in there:
        raise SettingError(
            f"hf://datasets/{repository} holds what is no export of citeloom ({min(there)}): name another repository"
        )
    return info


def upload(folder: Path, repository: str, api: HfApi | None = None) -> str:
    """Make the repository what the folder is, by one commit; the commit's address.

    A new repository is private. Months that the folder no longer has are deleted. Where nothing differs there is no
    new commit. Raises as `check_repository` does, and TransientFailure where somebody else commits meanwhile.
    """
    from huggingface_hub import CommitOperationAdd, CommitOperationDelete

    info = check_repository(repository, api)
    with _told(repository):
        if info is None:
            _api(api).create_repo(repository, repo_type=_KIND, private=True, exist_ok=True)
            info = _api(api).dataset_info(repository)
        files = sorted(str(file.relative_to(folder)) for file in folder.rglob("*") if file.is_file())
        # One commit, and not `upload_folder`: that splits a large folder into several, and a kill between two of them
        # would leave a data set that is neither the old nor the new one.
        made = _api(api).create_commit(
            repository,
            operations=[
                *(CommitOperationDelete(name) for name in _outdated(_files(info), files)),
                *(CommitOperationAdd(name, folder / name) for name in files),
            ],
            commit_message="Export of citeloom",
            repo_type=_KIND,
            parent_commit=info.sha,
        )
    return str(made.commit_url)


def _api(api: HfApi | None) -> HfApi:
    from huggingface_hub import HfApi

    return api or HfApi(library_name="citeloom")


def _files(info: DatasetInfo) -> set[str]:
    return {sibling.rfilename for sibling in info.siblings or ()} - _NOT_CONTENT


def _outdated(there: Collection[str], files: Collection[str]) -> list[str]:
    """Months of tables that the repository has and the export has not."""
    months = (name for name in sorted(there) if (match := _TABLE_FILE.fullmatch(name)) and match[1] in TABLES)
    return [name for name in months if name not in files]


@contextmanager
def _told(repository: str) -> Iterator[None]:
    """Say what the hub's refusals mean. Messages of its library hold addresses and no token."""
    import httpx2
    from huggingface_hub.errors import HfHubHTTPError, LocalTokenNotFoundError, OfflineModeIsEnabled

    place = f"hf://datasets/{repository}"
    try:
        yield
    except HfHubHTTPError as error:
        status = error.response.status_code
        said = " ".join((error.server_message or str(error)).split())
        if status in (401, 403):
            raise PermanentFailure(
                f"{place}: the hub refuses ({status}: {said}): log in by `hf auth login` or set HF_TOKEN to a token "
                "that may write there"
            ) from None
        if status in (409, 412, 429) or status >= 500:
            raise TransientFailure(f"{place}: the hub says {status} ({said}): run the same command again") from None
        raise PermanentFailure(f"{place}: the hub refuses the export ({status}: {said})") from None
    except (LocalTokenNotFoundError, OfflineModeIsEnabled) as error:
        raise SettingError(f"{place}: {' '.join(str(error).split())}") from None
    except (httpx2.HTTPError, OSError, RuntimeError) as error:
        # An address that a file is sent to is signed by what follows its question mark.
        said = re.sub(r"\?\S+", "?…", " ".join(str(error).split()))
        raise TransientFailure(
            f"{place}: the hub cannot be reached, or broke off ({type(error).__name__}: {said}): run the same command "
            "again"
        ) from None
