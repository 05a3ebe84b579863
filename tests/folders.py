"""Copies of folders for tests to write into."""

import os
import shutil
from pathlib import Path


def copy_folder(source, target):
    """A copy of a folder, into one that may exist. Holes stay holes: an index of 1 MB has files of
    250 MB.
    """
    return Path(shutil.copytree(source, target, copy_function=_copy_file, dirs_exist_ok=True))


def _copy_file(source, target):
    with Path(source).open("rb") as reader, Path(target).open("wb") as writer:
        size = os.fstat(reader.fileno()).st_size
        writer.truncate(size)
        end = 0
        while end < size:
            try:
                start = os.lseek(reader.fileno(), end, os.SEEK_DATA)
            except OSError:  # a hole to the end
                break
            end = os.lseek(reader.fileno(), start, os.SEEK_HOLE)
            reader.seek(start)
            writer.seek(start)
            writer.write(reader.read(end - start))
    shutil.copystat(source, target)
    return target
