from __future__ import annotations

from typing import Any

import pytest

from tests.builders import container, pod
from tests.case_names import case_name
from webhook.pod.run_as import runs_as_other_user


@pytest.mark.parametrize(
    ("own", "shared", "other"),
    [
        (None, None, False),
        ({}, {}, False),
        ({"runAsUser": 0}, None, False),
        ({"runAsUser": 1000}, None, True),
        (None, {"runAsUser": 1000}, True),
        ({"runAsUser": 0}, {"runAsUser": 1000}, False),
        ({"runAsUser": 1000}, {"runAsUser": 0}, True),
        ({"runAsNonRoot": True}, None, True),
        (None, {"runAsNonRoot": True}, True),
        ({"runAsNonRoot": False}, {"runAsNonRoot": True}, False),
        ({"runAsNonRoot": False}, None, False),
        ({"runAsUser": 0, "runAsNonRoot": True}, None, False),
        ({"privileged": True}, None, False),
        ("x", [], False),
    ],
    ids=case_name,
)
def test_a_container_surely_runs_as_another_user(own: Any, shared: Any, other: bool) -> None:
    """The container's securityContext overrides the pod's; the image's user is not known."""
    manifest = pod(container(securityContext=own), securityContext=shared)
    assert runs_as_other_user(manifest, ("spec", "containers", 0)) is other
