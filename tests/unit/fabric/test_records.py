from __future__ import annotations

import pytest

from webhook.fabric.records import Defaults, Fabric, Fabrics, RdmaResource, index, matches

NORTH = Fabric(
    name="north",
    gpu_resources=frozenset({"nvidia.com/gpu", "nvidia.com/v100"}),
    resources=(RdmaResource(name="rdma/north", aliases=("rdma/hca",)),),
)
SOUTH = Fabric(
    name="south",
    gpu_resources=frozenset({"nvidia.com/gpu"}),
    resources=(RdmaResource(name="rdma/south"), RdmaResource(name="rdma/shared")),
)


def test_an_empty_configuration_has_empty_indexes() -> None:
    """It is what a cluster starts with."""
    assert index(()) == Fabrics(fabrics={}, defaults=Defaults(), config_hash="")


def test_fabrics_are_found_by_name_and_by_resource() -> None:
    """One GPU resource may belong to several; an alias leads to the real name."""
    found = index((NORTH, SOUTH), nvlink_namespaces=frozenset({"lab"}), config_hash="abc")
    assert found == Fabrics(
        fabrics={"north": NORTH, "south": SOUTH},
        nvlink_namespaces=frozenset({"lab"}),
        config_hash="abc",
        by_gpu={
            "nvidia.com/gpu": frozenset({"north", "south"}),
            "nvidia.com/v100": frozenset({"north"}),
        },
        by_resource={
            "rdma/north": frozenset({"north"}),
            "rdma/hca": frozenset({"north"}),
            "rdma/south": frozenset({"south"}),
            "rdma/shared": frozenset({"south"}),
        },
    )


@pytest.mark.parametrize(
    ("globs", "value", "fits"),
    [
        ((), "x", False),
        (("Tesla-V100-*",), "Tesla-V100-SXM2-16GB", True),
        (("Tesla-V100-*",), "tesla-v100-sxm2-16gb", False),
        (("Tesla-V100-*",), "NVIDIA-Tesla-V100-PCIE", False),
        (("p4d.*", "p5.*"), "p5.48xlarge", True),
        (("p?.48xlarge",), "p5.48xlarge", True),
        (("p[45].*",), "p3.16xlarge", False),
        (("*",), "", True),
        (("a",), "a\n", False),
        (("",), "", True),
    ],
)
def test_a_label_value_matches_one_of_the_globs(
    globs: tuple[str, ...], value: str, fits: bool
) -> None:
    """The whole value counts, and case does, as for Kubernetes."""
    assert matches(globs, value) is fits
