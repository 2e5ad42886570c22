"""What Ray sets in its workers decides about the pods of its objects."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.case_names import case_name
from tests.unit.preview.workloads.controllers.workloads import GPU, template, workload
from webhook.decide.settings.setting import CommandSettings
from webhook.preview.workloads.runtime_environments import runtime_environments
from webhook.preview.workloads.templates import templates_of

CLUSTER = {"workerGroupSpecs": [{"groupName": "g", "template": template(**GPU)}]}


def ray_job(text: object, version: str = "ray.io/v1") -> dict[str, Any]:
    """Make a RayJob with a runtime environment."""
    return workload(f"{version} RayJob", {"runtimeEnvYAML": text, "rayClusterSpec": CLUSTER})


def ray_service(*applications: object) -> dict[str, Any]:
    """Make a RayService with applications."""
    text = json.dumps({"applications": applications})
    spec = {"serveConfigV2": text, "rayClusterConfig": CLUSTER}
    return workload("ray.io/v1 RayService", spec)


def settings_in(value: dict[str, Any]) -> CommandSettings:
    """Return the settings of the only object."""
    (settings,) = runtime_environments(templates_of(value)).values()
    return settings


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("env_vars:\n  NCCL_NET: Socket\n  TOKEN: x\n", {"NCCL_NET": "Socket"}),
        ('{"env_vars": {"NCCL_NET": "Socket"}}', {"NCCL_NET": "Socket"}),
        ("env_vars: {NCCL_IB_DISABLE: 1}", {"NCCL_IB_DISABLE": "1"}),
        ("env_vars: {NCCL_NET: '${X}'}", {"NCCL_NET": None}),
        ("env_vars: {NCCL_NET: '${NCCL_NET}'}", {}),
        ("env_vars: [NCCL_NET]", {}),
        ("pip: [a]", {}),
        ("env_vars: {NCCL_NET: [Socket]}", {"NCCL_NET": ""}),
        ("", {}),
        ("NCCL_NET: Socket", {}),
        ("env_vars: {", {}),
        ("- env_vars", {}),
        ("\ud800", {}),
        ({"env_vars": {"NCCL_NET": "Socket"}}, {}),
        (None, {}),
    ],
    ids=case_name,
)
def test_the_environment_of_a_job(text: object, expected: dict[str, str | None]) -> None:
    """YAML or JSON in a text; anything else sets nothing."""
    for version in ("ray.io/v1", "ray.io/v1alpha1"):
        settings = settings_in(ray_job(text, version))
        assert {name: setting.value for name, setting in settings.certain.items()} == expected
        assert {setting.source for setting in settings.certain.values()} <= {"spec.runtimeEnvYAML"}
        assert settings.possible == ()


def application(network: str, *deployments: object) -> dict[str, Any]:
    """Make an application with an environment."""
    return {"runtime_env": {"env_vars": {"NCCL_NET": network}}, "deployments": deployments}


def values(settings: CommandSettings) -> tuple[list[str | None], list[str | None]]:
    """Return the values of the certain settings, and those of the possible ones."""
    certain = [setting.value for setting in settings.certain.values()]
    return certain, [setting.value for setting in settings.possible]


def test_the_environments_of_a_service() -> None:
    """All deployments get that of the only application; of several, each is possible."""
    assert values(settings_in(ray_service(application("IB")))) == (["IB"], [])
    several = ray_service(application("IB"), application("Socket"), application("IB"))
    assert values(settings_in(several)) == ([], ["IB", "Socket"])
    deployment = {"ray_actor_options": {"runtime_env": {"env_vars": {"NCCL_NET": "Socket"}}}}
    deployed = settings_in(ray_service(application("IB", deployment)))
    assert values(deployed) == (["IB"], ["Socket"])
    assert {setting.source for setting in deployed.possible} == {"spec.serveConfigV2"}
    assert {setting.source for setting in deployed.certain.values()} == {"spec.serveConfigV2"}


@pytest.mark.parametrize("applications", [[], ["x"], [{"runtime_env": []}], [[{}]]], ids=case_name)
def test_services_without_an_environment(applications: list[object]) -> None:
    """Nothing is set, whatever the shape."""
    assert values(settings_in(ray_service(*applications))) == ([], [])


def test_a_service_with_many_environments() -> None:
    """More than two values mean any value, so no more than three are kept."""
    service = ray_service(*(application(f"x{number}") for number in range(9)))
    assert len(settings_in(service).possible) == 3


def test_objects_of_others() -> None:
    """A field with the same name means nothing elsewhere, and a bare template has no object."""
    other = ray_job("env_vars: {NCCL_NET: Socket}", "example.com/v1")
    assert runtime_environments(templates_of(other)) == {}
    assert runtime_environments(templates_of(template(**GPU))) == {}
