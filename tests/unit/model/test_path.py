from __future__ import annotations

import pytest

from webhook.model.pod import Path, dotted, pointer, pointer_steps


@pytest.mark.parametrize(
    ("path", "people", "rfc6901"),
    [
        ((), "", ""),
        (("spec",), "spec", "/spec"),
        (("spec", "containers", 0), "spec.containers[0]", "/spec/containers/0"),
        ((0, "a"), "[0].a", "/0/a"),
        (
            ("limits", "nvidia.com/gpu"),
            'limits["nvidia.com/gpu"]',
            "/limits/nvidia.com~1gpu",
        ),
        (("a~b",), '["a~b"]', "/a~0b"),
        (("a~b/c",), '["a~b/c"]', "/a~0b~1c"),
        (("", "ü"), '[""]["ü"]', "//ü"),
        (("env", "-"), 'env["-"]', "/env/-"),
    ],
)
def test_a_path_is_written_for_people_and_for_patches(
    path: Path, people: str, rfc6901: str
) -> None:
    """Names are joined by dots, or quoted if not plain; a pointer escapes only `~` and `/`."""
    assert (dotted(path), pointer(path)) == (people, rfc6901)
    assert pointer_steps(rfc6901) == [str(step) for step in path]
