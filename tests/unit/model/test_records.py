from __future__ import annotations

from webhook.model.fabric import (
    CompiledConfiguration,
    Defaults,
    Fabric,
    Globs,
    RdmaResource,
    build_configuration,
)

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
    """A cluster starts with an empty configuration."""
    assert build_configuration(()) == CompiledConfiguration(
        fabrics={}, defaults=Defaults(), config_hash=""
    )


def test_fabrics_are_indexed_by_name_and_by_rdma_resource() -> None:
    """Several fabrics may have the same GPU resource; an alias leads to the real name."""
    configuration = build_configuration(
        (NORTH, SOUTH), nvlink_namespaces=frozenset({"lab"}), config_hash="abc"
    )
    assert configuration == CompiledConfiguration(
        fabrics={"north": NORTH, "south": SOUTH},
        nvlink_namespaces=frozenset({"lab"}),
        config_hash="abc",
        by_gpu={
            "nvidia.com/gpu": frozenset({"north", "south"}),
            "nvidia.com/v100": frozenset({"north"}),
        },
        by_rdma_resource={
            "rdma/north": frozenset({"north"}),
            "rdma/hca": frozenset({"north"}),
            "rdma/south": frozenset({"south"}),
            "rdma/shared": frozenset({"south"}),
        },
        unique_rdma_resources={
            "north": frozenset({"rdma/north"}),
            "south": frozenset({"rdma/south", "rdma/shared"}),
        },
    )


def test_a_resource_that_another_fabric_has_is_not_unique() -> None:
    """Neither as its resource nor as its alias; an alias of the fabric itself does not count."""
    other = Fabric(
        name="other",
        resources=(RdmaResource(name="rdma/south", aliases=("rdma/north", "rdma/mine")),),
    )
    assert build_configuration((NORTH, SOUTH, other)).unique_rdma_resources == {
        "north": frozenset(),
        "south": frozenset({"rdma/shared"}),
        "other": frozenset(),
    }


def test_what_a_site_configures_besides_its_fabrics_is_kept() -> None:
    """Defaults, and the resources and annotations of networks other than RDMA."""
    defaults = Defaults(fabric="north")
    configuration = build_configuration(
        (), defaults=defaults, foreign_resources=("efa*",), foreign_annotations=("tcpx*",)
    )
    assert configuration == CompiledConfiguration(
        defaults=defaults,
        foreign_resources=Globs(("efa*",)),
        foreign_annotations=Globs(("tcpx*",)),
    )


def test_fabrics_are_indexed_by_the_labels_of_their_nodes() -> None:
    """Several may list the same key, each with its own values."""
    zone, rack = "site.lab/zone", "site.lab/rack"
    north = Fabric(name="north", node_labels={zone: ("n*",), rack: ("1", "2")})
    south = Fabric(name="south", node_labels={zone: ("s*",)})
    assert build_configuration((north, south)).by_label == {
        zone: {"north": Globs(("n*",)), "south": Globs(("s*",))},
        rack: {"north": Globs(("1", "2"))},
    }
