from __future__ import annotations

import pytest

from webhook.model.fabric import Globs
from webhook.model.names import MAX_KEY_LENGTH


@pytest.mark.parametrize(
    ("globs", "name", "fits"),
    [
        ((), "x", False),
        (("Tesla-V100-*",), "Tesla-V100-SXM2-16GB", True),
        (("Tesla-V100-*",), "tesla-v100-sxm2-16gb", False),
        (("Tesla-V100-*",), "NVIDIA-Tesla-V100-PCIE", False),
        (("p4d.*", "p5.*"), "p5.48xlarge", True),
        (("p[45].*",), "p3.16xlarge", False),
        (("",), "", True),
        (("a*b?c",), "axxbyc", True),
        (("a*b?c",), "axxbc", False),
        (("*/*sriov*",), "intel.com/sriov", True),
        (("*/*sriov*",), "sriov", False),
        (("[ab]c*",), "bc", True),
        (("x[ab]c",), "xac", True),
        (("x[ab]c",), "xc", False),
        (("x[ab]y[cd]",), "xayc", True),
        (("[!a]",), "b", True),
        (("?",), "é", True),
        (("*", "a"), "", True),
        (("a", "b"), "b", True),
        (("A",), "a", False),
        (("a",), "a\n", False),
        (("*",), "x" * MAX_KEY_LENGTH, True),
        (("*",), "x" * (MAX_KEY_LENGTH + 1), False),
    ],
)
def test_the_whole_name_counts(globs: tuple[str, ...], name: str, fits: bool) -> None:
    """Case counts too; a text longer than any Kubernetes name never matches."""
    assert Globs(globs).match(name) is fits


def test_equal_globs_are_equal() -> None:
    """Two loads of the same file give equal configurations."""
    assert Globs(("a*",)) == Globs(("a*",))
    assert Globs(("a*",)) != Globs(("b*",))
