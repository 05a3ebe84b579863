"""Upload of an export to a repository of a Hugging Face hub, in one commit.

Token and address are huggingface_hub's own: HF_TOKEN or `hf auth login`, and HF_ENDPOINT.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from pipeline.errors import PermanentFailure, SettingError, TransientFailure
from pipeline.ops.export.data_files import MANIFEST
from pipeline.tables import TABLES

if TYPE_CHECKING:
    from huggingface_hub import HfApi
    from huggingface_hub.hf_api import DatasetInfo

_ADDRESS = re.compile(r"hf://datasets/([A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*)/?")
_TABLE_FILE = re.compile(r"([a-z_]+)/\d{4}-\d\d\.parquet")


def repository_of(address: str) -> str:
    """`owner/name` of `hf://datasets/owner/name`. Raises SettingError for another form."""
    match = _ADDRESS.fullmatch(address)
    if match is None:
        raise SettingError(f"--to {address} is not a repository: write hf://datasets/OWNER/NAME, or name a folder")
    return match[1]


def check_repository(repository: str, api: HfApi | None = None) -> DatasetInfo | None:
    """The hub's description of a repository that an export may replace; None where it does not exist yet.

    Raises SettingError where it holds something else than an export, PermanentFailure where the hub refuses,
    TransientFailure where it cannot be reached.
    """
    from huggingface_hub import HfApi
    from huggingface_hub.errors import RepositoryNotFoundError

    with _hub_errors(repository):
        try:
            info = (api or HfApi(library_name="citeloom")).dataset_info(repository)
        except RepositoryNotFoundError:
            return None
    files = _files(info)
    if files and MANIFEST not in files:
        raise SettingError(
            f"hf://datasets/{repository} holds files that are not an export of citeloom ({min(files)}): name another "
            "repository"
        )
    return info


def upload(folder: Path, repository: str, api: HfApi | None = None) -> str:
    """Make the repository equal to the folder in one commit; returns the commit's address.

    A new repository is private. Months that the folder no longer has are deleted. Without any difference there is no
    new commit. Raises as `check_repository` does, and TransientFailure where somebody else commits meanwhile.
    """
    from huggingface_hub import CommitOperationAdd, CommitOperationDelete, HfApi

    api = api or HfApi(library_name="citeloom")
    info = check_repository(repository, api)
    with _hub_errors(repository):
        if info is None:
            api.create_repo(repository, repo_type="dataset", private=True, exist_ok=True)
            info = api.dataset_info(repository)
        names = sorted(str(file.relative_to(folder)) for file in folder.rglob("*") if file.is_file())
        outdated = [
            name
            for name in sorted(_files(info) - set(names))
            if (match := _TABLE_FILE.fullmatch(name)) and match[1] in TABLES
        ]
        # Not `upload_folder`: it splits a large folder into several commits, and a kill between two of them would leave
        # a data set that is neither the old nor the new one.
        commit = api.create_commit(
            repository,
            operations=[
                *(CommitOperationDelete(name) for name in outdated),
                *(CommitOperationAdd(name, folder / name) for name in names),
            ],
            commit_message="Export of citeloom",
            repo_type="dataset",
            parent_commit=info.sha,
        )
    return str(commit.commit_url)


def _files(info: DatasetInfo) -> set[str]:
    """The repository's files, without the one that the hub itself puts into every repository."""
    return {sibling.rfilename for sibling in info.siblings or ()} - {".gitattributes"}


@contextmanager
def _hub_errors(repository: str) -> Iterator[None]:
    """Turn errors of huggingface_hub into citeloom's. Its messages contain addresses but no token."""
    import httpx2
    from huggingface_hub.errors import HfHubHTTPError, LocalTokenNotFoundError, OfflineModeIsEnabled

    address = f"hf://datasets/{repository}"
    try:
        yield
    except HfHubHTTPError as error:
        status = error.response.status_code
        reason = " ".join((error.server_message or str(error)).split())
        if status in (401, 403):
            raise PermanentFailure(
                f"{address}: the hub refuses ({status}: {reason}): log in by `hf auth login` or set HF_TOKEN to a "
                "token with write access"
            ) from None
        if status in (409, 412, 429) or status >= 500:
            raise TransientFailure(
                f"{address}: the hub answers {status} ({reason}): run the same command again"
            ) from None
        raise PermanentFailure(f"{address}: the hub refuses the export ({status}: {reason})") from None
    except (LocalTokenNotFoundError, OfflineModeIsEnabled) as error:
        raise SettingError(f"{address}: {' '.join(str(error).split())}") from None
    except (httpx2.HTTPError, OSError, RuntimeError) as error:
        # The query of an upload address is a signature.
        reason = re.sub(r"\?\S+", "?…", " ".join(str(error).split()))
        raise TransientFailure(
            f"{address}: the hub cannot be reached, or the connection broke ({type(error).__name__}: {reason}): run "
            "the same command again"
        ) from None
