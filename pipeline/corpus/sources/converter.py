"""Convert the LaTeX of a paper to HTML by the user's program, confined.

Papers are strangers' programs: LaTeX reads any path by `\\input`, and LaTeXML has no option against
that. So the program runs in a sandbox of bubblewrap, within limits.
"""

from __future__ import annotations

import hashlib
import re
import shutil
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from pipeline.corpus.dump.loose_pages import fault_of_page
from pipeline.corpus.dump.member import LARGEST_PAGE
from pipeline.corpus.sources.archives import SourceError
from pipeline.engine import shutdown
from pipeline.errors import SettingError
from pipeline.settings import Settings
from pipeline.text import one_line

# arXiv's own limits of time and memory. Linux does not limit the number of root's processes.
_SECONDS = 540.0
_LIMITS = f"prlimit --as={6 * 1024**3} --fsize={LARGEST_PAGE} --nproc=64 --core=0 --"
# No network, no environment, and of the files /usr and what TeX's search for files needs.
_SANDBOX = (
    "bwrap --unshare-all --die-with-parent --new-session --dev /dev --tmpfs /tmp"
    " --ro-bind /usr /usr --symlink usr/bin /bin --symlink usr/lib /lib --symlink usr/lib64 /lib64"
    " --ro-bind-try /etc/texmf /etc/texmf --ro-bind-try /var/lib/texmf /var/lib/texmf"
)
# The seed, so that a source gives the same page each time.
_ENVIRONMENT = {
    "PATH": "/usr/bin:/bin",
    "HOME": "/nonexistent",
    "LC_ALL": "C.UTF-8",
    "PERL_HASH_SEED": "0",
}
_POLL_SECONDS = 0.1
_LONGEST_ERROR = 300

_COMMON = "--format=html5 --pmml --mathtex --nodefaultresources"
# Command → the option that prints its version, and options of a conversion.
_PROGRAMS = {
    # As arXiv calls it. Its bindings are within it, and prefer a bibliography as it was printed.
    "latexml_oxide": (
        "--version",
        f"{_COMMON} --noinvisibletimes --timeout=540 --max-memory=6144 --preload=ar5iv.sty",
    ),
    # With the options of ar5iv.sty, which needs LaTeX loaded before it. Images would be made by
    # ImageMagick and Ghostscript.
    "latexmlc": (
        "--VERSION",
        f"{_COMMON} --timestamp=0 --nographicimages --nopictureimages --preload=LaTeX.pool"
        " --preload=[bibtex,ids,rawstyles,nobreakuntex,tokenlimit=249999999,iflimit=3999999,"
        "absorblimit=1299999,pushbacklimit=599999]latexml.sty",
    ),
}

_SEVERITIES = {"0": "no_problem", "1": "warning", "2": "error"}  # 3 is fatal
_STATUS = re.compile(r"^Status:conversion:(\d)", re.MULTILINE)
_ERROR = re.compile(r"^(?:Error|Fatal):.*", re.MULTILINE)
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")


class Conversion(NamedTuple):
    """A page, its severity, and the last error in the converter's log, or nothing."""

    page: bytes
    severity: str
    last_error: str


@dataclass(frozen=True, slots=True)
class LatexmlConverter:
    """LaTeXML or latexml-oxide.

    path: of the executable. name: the program, its version, its bindings. bindings: a folder with
    ar5iv.sty.ltxml, or None. confined: whether it runs in a sandbox. seconds: of wall time.
    """

    path: str
    name: str
    bindings: Path | None
    confined: bool
    seconds: float = _SECONDS

    def convert(self, paper: Path, main_file: str, out: Path) -> Conversion:
        """Convert the main file, a path below the folder `paper`; `out` is an empty folder for what
        the converter writes.

        Raises SourceError where no whole page comes of it: too_slow, conversion_failed.
        """
        options = _PROGRAMS[Path(self.path).name][1]
        if (paper / main_file).with_suffix(".bbl").exists():
            options = options.replace("[bibtex", "[nobibtex")
        # A name that begins with a dash would be an option.
        command = [*_LIMITS.split(), self.path, *options.split()]
        if self.bindings:
            command += [f"--path={self.bindings}", "--preload=ar5iv.sty"]
        command += [f"--dest={out}/page.html", f"--log={out}/log", f"./{main_file}"]
        if self.confined:
            sandbox = [*_SANDBOX.split(), "--bind", str(out), str(out)]
            for path in filter(None, (self.path, paper, self.bindings)):
                sandbox += ["--ro-bind", str(path), str(path)]
            command = [*sandbox, *command]
        exit_code = _run(command, paper, out / "stderr", self.seconds)
        if exit_code is None:
            raise SourceError("too_slow", f"the conversion took more than {self.seconds:g} s")
        return _read_result(out, exit_code)


def find_converter(settings: Settings) -> LatexmlConverter:
    """latexml-oxide if it is on the path, else LaTeXML, as the settings confine it.

    Raises SettingError where there is neither, or it does not run, as where there is no sandbox.
    """
    path = next(filter(None, map(shutil.which, _PROGRAMS)), None)
    if path is None:
        raise SettingError(
            "CITELOOM_SOURCES: no LaTeXML is on the path to convert them: install Debian's package"
            " latexml, or latexml_oxide"
        )
    confined, bindings = not settings.convert_unsafe, settings.bindings
    name = _read_version(path, _SANDBOX if confined else "")
    if bindings:
        bindings = bindings.resolve()
        name += f", bindings {_digest_of(bindings)}"
    return LatexmlConverter(path, name, bindings, confined)


@lru_cache(maxsize=4)
def _read_version(path: str, sandbox: str) -> str:
    """The version that a program states in the sandbox."""
    command = [*sandbox.split(), *["--ro-bind", path, path] * bool(sandbox)]
    command += [path, _PROGRAMS[Path(path).name][0]]
    try:
        answer = subprocess.run(
            command, env=_ENVIRONMENT, capture_output=True, text=True, check=False
        )
        failed, output = answer.returncode, answer.stdout + answer.stderr
    except OSError as error:
        failed, output = 1, str(error)
    output = one_line(output)[:_LONGEST_ERROR]
    if failed:
        raise SettingError(
            f"papers cannot be converted here, {' '.join(command)} fails ({output}): install"
            " Debian's packages latexml and bubblewrap, and allow user namespaces; or set"
            " CITELOOM_CONVERT_UNSAFE=true, by which papers can read your files into their pages"
        )
    return output


@lru_cache(maxsize=4)
def _digest_of(bindings: Path) -> str:
    if not (bindings / "ar5iv.sty.ltxml").is_file():
        raise SettingError(
            f"CITELOOM_BINDINGS: {bindings} has no ar5iv.sty.ltxml: set it to the folder of"
            " ar5iv's bindings, or to nothing"
        )
    content = b"".join(file.read_bytes() for file in sorted(bindings.glob("*.ltxml")))
    return hashlib.sha256(content).hexdigest()[:16]


def _run(command: Sequence[str], folder: Path, stderr: Path, seconds: float) -> int | None:
    """The exit code of a command; None where it was killed for its time.

    Raises Interrupted, once it is killed, where this process is asked to end.
    """
    deadline = time.monotonic() + seconds
    with stderr.open("wb") as errors:
        process = subprocess.Popen(
            command,
            cwd=folder,
            env=_ENVIRONMENT,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=errors,
        )
    try:
        while process.poll() is None and time.monotonic() < deadline:
            shutdown.end_if_asked()
            time.sleep(_POLL_SECONDS)
        return process.returncode
    finally:
        process.kill()
        process.wait()


def _read_result(out: Path, exit_code: int) -> Conversion:
    """The page and the severity. Raises SourceError where the log or the page tells of failure."""
    # A converter that a paper has taken over may leave a link or a pipe.
    page, log, stderr = (
        file.read_bytes() if file.is_file() and not file.is_symlink() else b""
        for file in (out / "page.html", out / "log", out / "stderr")
    )
    text = _COLOUR.sub("", log.decode("utf-8", "replace"))
    severity = _SEVERITIES.get((_STATUS.findall(text) or [""])[-1])
    errors = _ERROR.findall(text)
    fault = fault_of_page(page)
    if fault or severity is None:
        errors = errors or stderr.decode("utf-8", "replace").splitlines() or [str(fault)]
        detail = one_line(errors[-1])[:_LONGEST_ERROR]
        raise SourceError("conversion_failed", f"exit code {exit_code}: {detail}")
    return Conversion(page, severity, one_line(errors[-1])[:_LONGEST_ERROR] if errors else "")
