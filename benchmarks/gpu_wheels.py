"""Download the wheels that `make bench-gpu` needs on a CUDA machine without a network.

    python -m benchmarks.gpu_wheels [--python 3.12] [--folder .gpu-wheels]

The packages are those of gpu_wheels.txt, in the versions of constraints.txt, for x86-64 and the
Python of that machine. They may have 60 MB, and 64 MiB together with the checkout.
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
    platforms = [f"manylinux_2_{number}_x86_64" for number in _GLIBC]
    platforms += ["manylinux2014_x86_64", "manylinux1_x86_64"]
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
    command += ["--only-binary=:all:", "--implementation", "cp", "--python-version", python]
    command += ["--dest", str(folder)]
    for platform in platforms:
        command += ["--platform", platform]
    command += ["--constraint", str(PROJECT / "constraints.txt"), "--requirement", str(PACKAGES)]
    subprocess.run(command, check=True)


def checkout_bytes() -> int:
    """Bytes of the files that git tracks or does not ignore."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listing = subprocess.run(command, cwd=PROJECT, check=True, capture_output=True).stdout.decode()
    files = [PROJECT / name for name in listing.split("\0") if name]
    return sum(file.lstat().st_size for file in files if file.is_symlink() or file.is_file())


def main() -> None:
    """Download the wheels and check their size."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--python", default="3.12", help="version of the Python that will run them")
    parser.add_argument("--folder", type=Path, default=FOLDER)
    options = parser.parse_args()
    download(options.folder, options.python)
    sizes = [file.stat().st_size for file in options.folder.glob("*.whl")]
    total = sum(sizes) + checkout_bytes()
    sys.stdout.write(
        f"{len(sizes)} wheels, {sum(sizes) / 1e6:.1f} MB;"
        f" with the checkout {total / 2**20:.1f} MiB\n"
    )
    if sum(sizes) > MOST_WHEELS or total > MOST_IN_ALL:
        raise SystemExit(
            f"too large: wheels may be {MOST_WHEELS / 1e6:.0f} MB, all"
            f" {MOST_IN_ALL / 2**20:.0f} MiB"
        )


if __name__ == "__main__":
    main()
