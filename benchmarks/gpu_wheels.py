"""The wheels that `make bench-gpu` needs on a CUDA machine without a network, downloaded into one
folder.

    python -m benchmarks.gpu_wheels [--python 3.12] [--folder .gpu-wheels]

The packages are those of gpu_wheels.txt, in the versions of constraints.txt, for x86-64 and the
Python of that machine.
They are checked against the size that may be carried there: 60 MB, and 64 MiB together with the
checkout.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

PROJECT = Path(__file__).resolve().parent.parent
FOLDER = PROJECT / ".gpu-wheels"
PACKAGES = PROJECT / "benchmarks" / "gpu_wheels.txt"
MOST_WHEELS, MOST_IN_ALL = 60 * 10**6, 64 * 2**20
# pip matches the number after manylinux_2_ exactly.
_GLIBC = (39, 35, 34, 31, 28, 27, 24, 17)


def download(folder: Path, python: str) -> None:
    """Fill the folder with the wheels for a version of Python, and with no others."""
    folder.mkdir(parents=True, exist_ok=True)
    for file in folder.glob("*.whl"):
        file.unlink()
    platforms = [f"manylinux_2_{number}_x86_64" for number in _GLIBC] + [
        "manylinux2014_x86_64",
        "manylinux1_x86_64",
    ]
    command = [
        sys.executable,
        "-m",
        "pip",
        "download",
        "--quiet",
        "--no-deps",
        "--only-binary=:all:",
    ]
    command += ["--python-version", python, "--implementation", "cp", "--dest", str(folder)]
    command += [part for platform in platforms for part in ("--platform", platform)]
    command += ["--constraint", str(PROJECT / "constraints.txt"), "--requirement", str(PACKAGES)]
    subprocess.run(command, check=True)


def checkout_bytes() -> int:
    """Bytes of the files that git tracks or does not ignore."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = (
        subprocess.run(command, cwd=PROJECT, check=True, capture_output=True)
        .stdout.decode()
        .split("\0")
    )
    files = [PROJECT / name for name in names if name]
    return sum(file.lstat().st_size for file in files if file.is_symlink() or file.is_file())


def main() -> None:
    """Download the wheels and check their size."""
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument(
        "--python", default="3.12", help="version of the Python that will run them"
    )
    arguments.add_argument("--folder", type=Path, default=FOLDER)
    given = arguments.parse_args()
    download(given.folder, given.python)
    wheels = sum(file.stat().st_size for file in given.folder.glob("*.whl"))
    total = wheels + checkout_bytes()
    sys.stdout.write(f"{len(list(given.folder.glob('*.whl')))} wheels, {wheels / 1e6:.1f} MB; ")
    sys.stdout.write(f"with the checkout {total / 2**20:.1f} MiB\n")
    if wheels > MOST_WHEELS or total > MOST_IN_ALL:
        raise SystemExit(
            f"too large: wheels may be {MOST_WHEELS / 1e6:.0f} MB, all"
            f" {MOST_IN_ALL / 2**20:.0f} MiB"
        )


if __name__ == "__main__":
    main()
