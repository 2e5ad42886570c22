from __future__ import annotations

from typing import Any

import pytest

from webhook.pod.runtime_class import runs_in_gvisor, runs_in_kata


@pytest.mark.parametrize(
    ("name", "runtime"),
    [
        *((name, "gvisor") for name in ("gvisor", "runsc", "gvisor-kvm", "runsc.v2")),
        *((name, "kata") for name in ("kata", "kata-qemu-nvidia-gpu", "kata-cc-isolation")),
        *((name, "") for name in (None, "", "nvidia", "runc", "katamaran", "my-kata", "gvisors")),
        *((name, "") for name in (1, ["kata"], "kata-" + "x" * 249, "kata-\n")),
    ],
)
def test_the_name_says_which_runtime(name: Any, runtime: str) -> None:
    """Installers' names count, with their suffixes; a site's other names say nothing."""
    pod = {"spec": {"runtimeClassName": name}}
    assert runs_in_gvisor(pod) is (runtime == "gvisor")
    assert runs_in_kata(pod) is (runtime == "kata")


def test_most_pods_name_none() -> None:
    """Such a pod runs in the node's default runtime."""
    assert not runs_in_gvisor({"spec": {}})
    assert not runs_in_kata({})
