from __future__ import annotations

from typing import Any

import pytest

from tests.builders import container, pod
from tests.case_names import case_name
from webhook.model.pod import Pod


@pytest.mark.parametrize(
    ("context", "pod_context", "user"),
    [
        (None, None, "image"),
        ({}, {}, "image"),
        ({"runAsUser": 0}, None, "root"),
        (None, {"runAsUser": 0}, "root"),
        ({"runAsUser": 1000}, None, "other"),
        (None, {"runAsUser": 1000}, "other"),
        ({"runAsUser": 0}, {"runAsUser": 1000}, "root"),
        ({"runAsUser": 1000}, {"runAsUser": 0}, "other"),
        ({"runAsNonRoot": True}, None, "other"),
        (None, {"runAsNonRoot": True}, "other"),
        ({"runAsNonRoot": False}, {"runAsNonRoot": True}, "image"),
        ({"runAsNonRoot": False}, None, "image"),
        ({"runAsUser": 0, "runAsNonRoot": True}, None, "root"),
        ({"privileged": True}, None, "image"),
        ("x", [], "image"),
    ],
    ids=case_name,
)
def test_the_user_is_that_of_the_manifest_or_of_the_image(
    context: Any, pod_context: Any, user: str
) -> None:
    """The container's securityContext overrides the pod's; the image's user is not known."""
    view = Pod(pod(container(securityContext=context), securityContext=pod_context))
    assert view.user_of(view.containers[0]) == user
