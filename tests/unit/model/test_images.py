from __future__ import annotations

from typing import Any

import pytest

from tests.builders import container
from tests.case_names import case_name
from webhook.model.fabric import Defaults, Globs
from webhook.model.images import NON_ROOT_IMAGES, image_name_forms, non_root_user
from webhook.model.pod import Container

DIGEST = "sha256:" + "0" * 64


@pytest.mark.parametrize(
    ("image", "spellings"),
    [
        ("lab/ray", {"lab/ray", "docker.io/lab/ray"}),
        ("lab/ray:2", {"lab/ray:2", "lab/ray", "docker.io/lab/ray:2", "docker.io/lab/ray"}),
        ("ubuntu", {"ubuntu", "docker.io/ubuntu"}),
        ("docker.io/library/ubuntu", {"docker.io/library/ubuntu", "ubuntu", "docker.io/ubuntu"}),
        (
            "reg.lab:5000/a/b:1",
            {"reg.lab:5000/a/b:1", "reg.lab:5000/a/b", "a/b:1", "a/b"},
        ),
        ("localhost/b", {"localhost/b", "b"}),
        (f"reg.lab/b@{DIGEST}", {f"reg.lab/b@{DIGEST}", "reg.lab/b", "b"}),
        (
            f"b:1@{DIGEST}",
            {f"b:1@{DIGEST}", "b:1", "b", "docker.io/b:1", "docker.io/b"},
        ),
    ],
    ids=case_name,
)
def test_an_image_is_known_by_each_of_its_spellings(image: str, spellings: set[str]) -> None:
    """The registry, the tag and the digest may be left out; without a registry it is Docker Hub."""
    assert set(image_name_forms(image)) == spellings


@pytest.mark.parametrize(("written", "read"), [("a", "a"), (None, ""), (7, "")], ids=case_name)
def test_an_image_may_be_missing(written: Any, read: str) -> None:
    """Another webhook may set it; the API server rejects other types."""
    assert Container(("spec", "containers", 0), container(image=written)).image == read


@pytest.mark.parametrize(
    ("image", "user"),
    [
        ("rayproject/ray", "uid 1000"),
        ("rayproject/ray-llm:2.40-py311", "uid 1000"),
        (f"reg.lab/rayproject/ray@{DIGEST}", "uid 1000"),
        ("reg.lab/proxy/hub/rayproject/ray", "uid 1000"),
        ("rayproject/kuberay-operator", ""),
        ("myrayproject/ray", ""),
        ("ray", ""),
        ("rayproject/ray/tools", "uid 1000"),
        ("quay.io/jupyter/base-notebook", "uid 1000"),
        ("jupyter/docker-stacks-foundation", "uid 1000"),
        ("jupyter/nbviewer", ""),
        ("kubeflownotebookswg/jupyter-pytorch-cuda-full:v1.9", "uid 1000"),
        ("kubeflownotebookswg/jupyter-tensorflow", "uid 1000"),
        ("kubeflownotebookswg/codeserver-python", "uid 1000"),
        ("kubeflownotebookswg/jupyter-web-app", ""),
        ("ghcr.io/kubeflow/kubeflow/notebook-servers/jupyter-pytorch-cuda", "uid 1000"),
        ("bitnami/pytorch", "uid 1001"),
        ("bitnamilegacy/deepspeed:0", "uid 1001"),
        ("bitnami/minideb", ""),
        ("nvcr.io/nvidia/ai-dynamo/sglang-runtime:1", "uid 1000"),
        ("nvcr.io/nvidia/pytorch:25.06-py3", ""),
        ("ghcr.io/llm-d/llm-d-cuda:v0.4", "uid 2000"),
        ("vllm/vllm-openai", ""),
        ("/" * 400, ""),
        ("", ""),
    ],
    ids=case_name,
)
def test_images_whose_user_is_known(image: str, user: str) -> None:
    """The name counts without registry and tag, and below a mirror's folders."""
    assert non_root_user(image, Defaults()) == user


def test_the_sites_list_comes_first() -> None:
    """It knows no user; what it does not list is looked up."""
    site = Defaults(non_root_images=Globs(("lab/*", "rayproject/ray:2*")))
    users = [
        non_root_user(image, site)
        for image in ("lab/a", "rayproject/ray:2.9", "rayproject/ray:1", "lab2/a")
    ]
    assert users == ["a non-root user", "a non-root user", "uid 1000", ""]


def test_each_known_image_is_searched_for() -> None:
    """Its name has a text that is looked for first."""
    globs = [glob for images in NON_ROOT_IMAGES for glob in images.globs.texts]
    assert all(non_root_user(glob.replace("*", "x"), Defaults()) for glob in globs)


def test_each_known_image_has_its_source() -> None:
    """It is a Dockerfile of the project that publishes the image."""
    assert all("Dockerfile" in known.source and known.uid for known in NON_ROOT_IMAGES)
