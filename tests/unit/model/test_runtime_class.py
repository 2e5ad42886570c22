from __future__ import annotations

from typing import Any

import pytest

from webhook.model.pod.sandbox import is_gvisor, is_kata


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
    """Installers' names count, with their suffixes; a site's other names do not."""
    assert is_gvisor(name) is (runtime == "gvisor")
    assert is_kata(name) is (runtime == "kata")
