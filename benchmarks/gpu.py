"""Benchmark BGE-M3 on one GPU in seven minutes: parity, speed, memory, peers, and 100,000 passages.

    make bench-gpu [GPU_OUT=FOLDER]
    python -m benchmarks.gpu --out FOLDER [--seconds 480] [--device cuda|cpu] [--tiny]
        [--parts NAME …]

For a machine with CUDA, torch and transformers, and without a network: packages that it lacks come
from the folder .gpu-wheels, which `make gpu-wheels` fills on another machine
(`benchmarks.gpu_wheels`). Weights are random and of the true size, which is enough for speed and
parity, but not for retrieval. Texts are variations of the sample corpus (`benchmarks.gpu_corpus`),
the same for all contenders.

Each part (`benchmarks.gpu_parts`) is a process with a time limit; one that is killed keeps the
figures that it had. FOLDER gets gpu.json, gpu.md and gpu.log. `--tiny --device cpu` is a dry run.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.gpu_wheels import FOLDER, PROJECT
from benchmarks.harness import Claim, report

# Seconds that each part may take of the remaining time. The months are last: they take what the
# others leave.
LIMITS: Mapping[str, float] = {
    "prepare": 90,
    "parity": 70,
    "packs": 130,
    "flagembedding": 110,
    "vllm": 90,
    "months": 300,
}


@dataclass(slots=True)
class PartResult:
    """A part's figures and claims, its seconds, and how it ended."""

    seconds: float
    ended: str
    figures: dict[str, Any] = field(default_factory=dict)
    claims: list[Claim] = field(default_factory=list)


def install_wheels(folder: Path, site: Path) -> None:
    """Install a folder's wheels into another one without a network; no-op without wheels."""
    wheels = sorted(map(str, folder.glob("*.whl")))
    if wheels:
        options = [
            "--quiet",
            "--no-index",
            "--no-deps",
            "--no-compile",
            "--no-cache-dir",
            "--target",
        ]
        command = [sys.executable, "-m", "pip", "install", *options, str(site), *wheels]
        subprocess.run(command, check=True)


def run_part(
    name: str, arguments: Sequence[str], scratch: Path, log: Path, seconds: float
) -> PartResult:
    """Run a part in a process, which is killed with its children after `seconds`."""
    figures = scratch / f"{name}.json"
    command = [sys.executable, "-m", "benchmarks.gpu_parts", name, "--folder", str(scratch)]
    command += ["--figures", str(figures), "--seconds", f"{seconds:.0f}", *arguments]
    paths = [str(scratch / "site"), str(PROJECT), os.environ.get("PYTHONPATH", "")]
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join(filter(None, paths)),
        "PYTHONUNBUFFERED": "1",
        "HF_HUB_OFFLINE": "1",
        "VLLM_NO_USAGE_STATS": "1",
    }
    started = time.perf_counter()
    with log.open("ab") as stream:
        stream.write(f"== {name}\n".encode())
        stream.flush()
        process = subprocess.Popen(
            command,
            env=environment,
            stdout=stream,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            code = process.wait(timeout=seconds)
            ended = "complete" if code == 0 else f"failed with exit code {code}: {_last_line(log)}"
        except subprocess.TimeoutExpired:
            ended = f"ended after its {seconds:.0f} s"
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
    result = PartResult(round(time.perf_counter() - started, 1), ended)
    if figures.is_file():
        content = json.loads(figures.read_text())
        result.figures = content["figures"]
        result.claims = [Claim(**claim) for claim in content["claims"]]
    return result


def _last_line(log: Path) -> str:
    lines = log.read_text(errors="replace").strip().splitlines()
    return lines[-1][:300] if lines else ""


def run_parts(
    names: Sequence[str], arguments: Sequence[str], wheels: Path, log: Path, seconds: float
) -> dict[str, PartResult]:
    """Run the parts in turn while time remains, and only if `prepare` is complete."""
    end = time.monotonic() + seconds
    results: dict[str, PartResult] = {}
    with tempfile.TemporaryDirectory() as folder:
        scratch = Path(folder)
        install_wheels(wheels, scratch / "site")
        for name in names:
            limit = min(LIMITS[name], end - time.monotonic())
            if limit < 5:
                results[name] = PartResult(0.0, "not begun: no time was left")
                continue
            results[name] = run_part(name, arguments, scratch, log, limit)
            sys.stdout.write(f"{name}: {results[name].ended}, {results[name].seconds} s\n")
            sys.stdout.flush()
            if name == "prepare" and results[name].ended != "complete":
                break
    return results


def summary(results: Mapping[str, PartResult], accelerator: str) -> str:
    """The results as Markdown."""
    lines = [
        "# BGE-M3 on a GPU",
        "",
        f"Machine: {accelerator}. Weights are random: figures of speed, not of search.",
    ]
    lines += ["", "| part | seconds | |", "|---|---|---|"]
    lines += [f"| {name} | {result.seconds} | {result.ended} |" for name, result in results.items()]
    lines += ["", "| claim | value | bound | |", "|---|---|---|---|"]
    for result in results.values():
        for claim in result.claims:
            bound = "at most" if claim.at_most else "at least"
            verdict = "holds" if claim.holds else "fails"
            lines.append(f"| {claim.claim} | {claim.value} | {bound} {claim.target} | {verdict} |")
    for name, result in results.items():
        lines += ["", f"## {name}", "", "| | |", "|---|---|"]
        for figure, value in result.figures.items():
            text = f"{value:,}" if isinstance(value, int) else str(value)
            lines.append(f"| {figure} | {text} |")
    return "\n".join([*lines, ""])


def main() -> None:
    """Run the parts; write the figures and the summary."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--out", type=Path, required=True, help="folder for gpu.json, gpu.md and gpu.log"
    )
    parser.add_argument("--seconds", type=float, default=480, help="for all parts together")
    parser.add_argument("--device", choices=["cuda", "cpu"], default="cuda")
    parser.add_argument(
        "--tiny", action="store_true", help="a tiny model and few texts, to try the command"
    )
    parser.add_argument(
        "--wheels", type=Path, default=FOLDER, help="folder of the wheels that are carried"
    )
    parser.add_argument("--parts", nargs="+", choices=list(LIMITS), default=list(LIMITS))
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    log = options.out / "gpu.log"
    log.unlink(missing_ok=True)
    size = "tiny" if options.tiny else "full"
    arguments = ["--device", options.device, "--size", size]
    results = run_parts(options.parts, arguments, options.wheels, log, options.seconds)
    accelerator = str(results[options.parts[0]].figures.get("GPU", "no GPU used"))
    (options.out / "gpu.md").write_text(summary(results, accelerator))
    figures: dict[str, object] = {}
    for name, result in results.items():
        figures |= {f"{name}: {figure}": value for figure, value in result.figures.items()}
    figures |= {
        f"{name}: ended": f"{result.ended}, {result.seconds} s" for name, result in results.items()
    }
    claims = [claim for result in results.values() for claim in result.claims]
    content = report("gpu", figures, claims, accelerator)
    (options.out / "gpu.json").write_text(json.dumps(content, indent=1) + "\n")


if __name__ == "__main__":
    main()
