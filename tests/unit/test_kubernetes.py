"""The values file for Dagster's Helm chart, held against what it names: settings, the image, the module, tags of
steps.
"""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from assets.placement import device_tags
from pipeline.settings import Settings, is_secret, load_settings

PROJECT = Path(__file__).resolve().parents[2]
KUBERNETES = PROJECT / "deploy" / "kubernetes"
VALUES = yaml.safe_load((KUBERNETES / "values.yaml").read_text())
(DEPLOYMENT,) = VALUES["dagster-user-deployments"]["deployments"]
GIVEN = {each["name"]: each["value"] for each in DEPLOYMENT["env"]}
IMAGE = (PROJECT / "deploy" / "Dockerfile").read_text()


@pytest.fixture
def settings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Settings:
    """Those of a pod."""
    monkeypatch.chdir(tmp_path)
    for name, value in GIVEN.items():
        monkeypatch.setenv(name, value)
    return load_settings()


def test_every_setting_is_one_and_none_is_a_secret(settings: Settings) -> None:
    named = {name.removeprefix("CITELOOM_").lower() for name in GIVEN}
    assert named <= set(Settings.model_fields)
    assert not [name for name in named if is_secret(name)]
    assert settings.executor == "k8s"


def test_secrets_that_the_file_tells_of_are_settings() -> None:
    told = re.findall(r"CITELOOM_([A-Z_]+KEY)", (KUBERNETES / "values.yaml").read_text())
    assert len(told) >= 2
    assert all(is_secret(name.lower()) for name in told)


def test_all_that_runs_share_lies_in_the_volume(settings: Settings) -> None:
    (mount,) = DEPLOYMENT["volumeMounts"]
    (volume,) = DEPLOYMENT["volumes"]
    assert mount["name"] == volume["name"]
    shared = Path(mount["mountPath"])
    paths = [settings.data_root, settings.local_root, settings.dump_dir, settings.metadata_snapshot]
    assert all(shared in Path(str(path)).parents or shared == path for path in paths)
    # Where a run's lock file lies (`pipeline.engine.liveness`).
    assert Path(VALUES["global"]["dagsterHome"]) == settings.local_root / "dagster"


def test_the_code_server_loads_the_code_location() -> None:
    option, module = DEPLOYMENT["dagsterApiGrpcArgs"]
    assert option == "-m"
    assert importlib.util.find_spec(module) is not None


def test_all_of_it_runs_as_the_user_of_the_image_from_an_image_without_an_entry_point() -> None:
    (user,) = re.findall(r"useradd --uid (\d+)", IMAGE)
    run = VALUES["runLauncher"]["config"]["k8sRunLauncher"]["runK8sConfig"]["podSpecConfig"]["securityContext"]
    assert {int(user)} == {*DEPLOYMENT["podSecurityContext"].values(), *run.values()}
    images = [VALUES[part]["image"] for part in ("dagsterWebserver", "dagsterDaemon", "pipelineRun")]
    assert [image for image in images if image != DEPLOYMENT["image"]] == []
    assert re.search(r"^ENTRYPOINT \[\]$", (KUBERNETES / "Dockerfile").read_text(), re.MULTILINE)


def test_a_step_becomes_a_pod_with_what_the_file_gives_it(settings: Settings) -> None:
    """As dagster-k8s makes it of what the chart hands on."""
    embedding = _job(device_tags(settings))
    (container,) = embedding["spec"]["template"]["spec"]["containers"]
    assert container["resources"]["limits"] == {"nvidia.com/gpu": "1"}
    assert {"secretRef": {"name": "citeloom"}} in container["envFrom"]
    assert GIVEN.items() <= {each["name"]: each.get("value") for each in container["env"]}.items()
    assert DEPLOYMENT["volumeMounts"][0] in container["volumeMounts"]
    assert embedding["spec"]["template"]["spec"]["securityContext"]["fsGroup"] == 10001
    (other,) = _job({})["spec"]["template"]["spec"]["containers"]
    assert "nvidia.com/gpu" not in other["resources"].get("limits", {})


def _job(tags: dict[str, str]) -> dict[str, Any]:
    """The Kubernetes job of a step with these tags."""
    from dagster_k8s.container_context import K8sContainerContext
    from dagster_k8s.job import DagsterK8sJobConfig, construct_dagster_k8s_job, get_user_defined_k8s_config
    from kubernetes.client import ApiClient

    given = {
        "env": DEPLOYMENT["env"],
        "env_secrets": [each["name"] for each in DEPLOYMENT["envSecrets"]],
        "volumes": DEPLOYMENT["volumes"],
        "volume_mounts": DEPLOYMENT["volumeMounts"],
        "resources": DEPLOYMENT["resources"],
        "run_k8s_config": {
            "pod_spec_config": VALUES["runLauncher"]["config"]["k8sRunLauncher"]["runK8sConfig"]["podSpecConfig"]
        },
    }
    context = K8sContainerContext.create_from_config({"k8s": given})
    config = DagsterK8sJobConfig(
        job_image="citeloom", dagster_home=VALUES["global"]["dagsterHome"], instance_config_map="instance",
        postgres_password_secret=VALUES["global"]["postgresqlSecretName"],
    )  # fmt: skip
    merged = context.merge(K8sContainerContext(run_k8s_config=get_user_defined_k8s_config(dict(tags))))
    job = construct_dagster_k8s_job(
        config, args=["dagster", "api", "execute_step"], job_name="step", user_defined_k8s_config=merged.run_k8s_config
    )
    found: dict[str, Any] = ApiClient().sanitize_for_serialization(job)
    return found
