"""The values file for Dagster's Helm chart agrees with the settings, the image, the code location
and step tags.
"""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from assets.placement import gpu_tags
from pipeline.settings import Settings, is_secret, load_settings

PROJECT = Path(__file__).resolve().parents[2]
KUBERNETES = PROJECT / "deploy" / "kubernetes"
VALUES = yaml.safe_load((KUBERNETES / "values.yaml").read_text())
(DEPLOYMENT,) = VALUES["dagster-user-deployments"]["deployments"]
VARIABLES = {variable["name"]: variable["value"] for variable in DEPLOYMENT["env"]}
IMAGE = (PROJECT / "deploy" / "Dockerfile").read_text()


@pytest.fixture
def settings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Settings:
    """The settings that a pod reads."""
    monkeypatch.chdir(tmp_path)
    for name, value in VARIABLES.items():
        monkeypatch.setenv(name, value)
    return load_settings()


def test_every_variable_is_a_setting_and_none_is_a_secret(settings: Settings) -> None:
    named = {name.removeprefix("CITELOOM_").lower() for name in VARIABLES}
    assert named <= set(Settings.model_fields)
    assert not [name for name in named if is_secret(name)]
    assert settings.executor == "k8s"


def test_secrets_that_the_file_mentions_are_settings() -> None:
    mentioned = re.findall(r"CITELOOM_([A-Z_]+KEY)", (KUBERNETES / "values.yaml").read_text())
    assert len(mentioned) >= 2
    assert all(is_secret(name.lower()) for name in mentioned)


def test_files_that_runs_share_are_in_the_volume(settings: Settings) -> None:
    (mount,) = DEPLOYMENT["volumeMounts"]
    (volume,) = DEPLOYMENT["volumes"]
    assert mount["name"] == volume["name"]
    shared = Path(mount["mountPath"])
    paths = [settings.data_root, settings.local_root, settings.dump_dir, settings.metadata_snapshot]
    assert all(shared in Path(str(path)).parents or shared == path for path in paths)
    assert Path(VALUES["global"]["dagsterHome"]) == settings.local_root / "dagster"


def test_the_code_server_loads_the_code_location() -> None:
    option, module = DEPLOYMENT["dagsterApiGrpcArgs"]
    assert option == "-m"
    assert importlib.util.find_spec(module) is not None


def test_pods_run_as_the_user_of_the_image_which_has_no_entry_point() -> None:
    (user,) = re.findall(r"useradd --uid (\d+)", IMAGE)
    run = VALUES["runLauncher"]["config"]["k8sRunLauncher"]["runK8sConfig"]["podSpecConfig"][
        "securityContext"
    ]
    assert {int(user)} == {*DEPLOYMENT["podSecurityContext"].values(), *run.values()}
    images = [
        VALUES[part]["image"] for part in ("dagsterWebserver", "dagsterDaemon", "pipelineRun")
    ]
    assert [image for image in images if image != DEPLOYMENT["image"]] == []
    assert re.search(r"^ENTRYPOINT \[\]$", (KUBERNETES / "Dockerfile").read_text(), re.MULTILINE)


def test_the_pod_of_a_step_has_the_variables_secrets_and_volumes_of_the_file(
    settings: Settings,
) -> None:
    embedding = _job(gpu_tags(settings))
    (container,) = embedding["spec"]["template"]["spec"]["containers"]
    assert container["resources"]["limits"] == {"nvidia.com/gpu": "1"}
    assert {"secretRef": {"name": "citeloom"}} in container["envFrom"]
    assert (
        VARIABLES.items()
        <= {variable["name"]: variable.get("value") for variable in container["env"]}.items()
    )
    assert DEPLOYMENT["volumeMounts"][0] in container["volumeMounts"]
    assert embedding["spec"]["template"]["spec"]["securityContext"]["fsGroup"] == 10001
    (other,) = _job({})["spec"]["template"]["spec"]["containers"]
    assert "nvidia.com/gpu" not in other["resources"].get("limits", {})


def _job(tags: dict[str, str]) -> dict[str, Any]:
    """The Kubernetes job that dagster-k8s makes for a step with these tags."""
    from dagster_k8s.container_context import K8sContainerContext
    from dagster_k8s.job import (
        DagsterK8sJobConfig,
        construct_dagster_k8s_job,
        get_user_defined_k8s_config,
    )
    from kubernetes.client import ApiClient

    container_context = {
        "env": DEPLOYMENT["env"],
        "env_secrets": [secret["name"] for secret in DEPLOYMENT["envSecrets"]],
        "volumes": DEPLOYMENT["volumes"],
        "volume_mounts": DEPLOYMENT["volumeMounts"],
        "resources": DEPLOYMENT["resources"],
        "run_k8s_config": {
            "pod_spec_config": VALUES["runLauncher"]["config"]["k8sRunLauncher"]["runK8sConfig"][
                "podSpecConfig"
            ]
        },
    }
    context = K8sContainerContext.create_from_config({"k8s": container_context})
    config = DagsterK8sJobConfig(
        job_image="citeloom",
        dagster_home=VALUES["global"]["dagsterHome"],
        instance_config_map="instance",
        postgres_password_secret=VALUES["global"]["postgresqlSecretName"],
    )
    merged = context.merge(
        K8sContainerContext(run_k8s_config=get_user_defined_k8s_config(dict(tags)))
    )
    job = construct_dagster_k8s_job(
        config,
        args=["dagster", "api", "execute_step"],
        job_name="step",
        user_defined_k8s_config=merged.run_k8s_config,
    )
    serialized: dict[str, Any] = ApiClient().sanitize_for_serialization(job)
    return serialized
