from __future__ import annotations

from typing import Any

import pytest

from tests.builders import container
from tests.case_names import case_name
from webhook.model.pod import Container
from webhook.model.pod.container import image_name_forms

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
