"""Tests of the forms that names must have."""

from __future__ import annotations

import pytest

from webhook.config import names


@pytest.mark.parametrize(
    ("check", "valid", "invalid"),
    [
        (names.is_dns_label, ["a", "v100-ib", "a" * 63], ["", "A", "-a", "a-", "a.b", "a" * 64]),
        (names.is_dns_subdomain, ["a.b-c", "a" * 253], ["", "a..b", ".a", "A.b", "a" * 254]),
        (
            names.is_extended_resource,
            ["rdma/ib", "nvidia.com/mig-1g.5gb", "a" * 244 + "/x"],
            [
                "gpu",
                "rdma/",
                "/ib",
                "kubernetes.io/x",
                "a.kubernetes.io/x",
                "requests.a/b/c",
                "Nvidia.com/gpu",
                "rdma/-x",
                "a" * 245 + "/x",
                "rdma/" + "x" * 64,
            ],
        ),
        (names.is_plugin_resource, ["rdma_v100", "A1"], ["", "a-b", "a/b", "a.b", "é"]),
        (names.is_label_key, ["zone", "a.io/Zone_1"], ["", "/a", "a/", "A.io/x", "a b", "a/b/c"]),
        (names.is_label_value, ["", "V100", "a.b_c-d"], ["-a", "a-", "a b", "x" * 64, "a/b"]),
        (names.is_label_glob, ["*", "A[14]0?-*"], ["", "a b", "a/b", "é"]),
        (names.is_env_name, ["A", "_a.b-C", ".a"], ["", "1A", "A B", "A=B", ".", ".."]),
        (
            names.is_interface,
            ["eth0", "enp1s0f0np0v123", "ib0.8001"],
            [
                "",
                ".",
                "..",
                "enp1s0f0np0v1234",
                "a b",
                "=eth0",
                "^lo",
                "eth0,eth1",
                "a/b",
                "éééééééé",
            ],
        ),
        (
            names.is_network,
            ["net", "lab/net", "lab/net.a@net1", "net@x"],
            [
                "",
                "lab/",
                "/net",
                "Net",
                "lab/net@",
                "a/b/c",
                "lab.x/net",
                "net@" + "x" * 16,
                'net@a"',
                "net@[a",
            ],
        ),
        (names.is_hca_prefix, ["ibp", "mlx5_", "mlx5_bond_"], ["", "ibp*", "mlx5:1", "^mlx5"][1:]),
    ],
)
def test_forms_of_names(check: object, valid: list[str], invalid: list[str]) -> None:
    """Each form accepts exactly the names that its system accepts, byte for byte."""
    assert callable(check)
    assert [name for name in valid if not check(name)] == []
    assert [name for name in invalid if check(name)] == []


@pytest.mark.parametrize(
    ("written", "split"),
    [
        ("mlx5_0", ("mlx5_0", None)),
        ("rdmaP23800p0s2:2", ("rdmaP23800p0s2", 2)),
        ("mlx5_0:1:0", ("mlx5_0", 1)),
        ("mlx5_0:2:0:1", ("mlx5_0", 2)),
        ("mlx5_0:1:0:1:1", None),
        ("mlx5_0::0", None),
        ("mlx5_0:0", None),
        ("mlx5_0:255", None),
        ("mlx5_0:", None),
        ("=mlx5_0", None),
        ("mlx5 0", None),
        ("x" * 64, None),
        ("", None),
    ],
)
def test_a_device_is_split_from_its_port(
    written: str, split: tuple[str, int | None] | None
) -> None:
    """The form is `name[:port[:rail[:plane]]]`, with InfiniBand's port numbers, 1 to 254."""
    assert names.split_hca(written) == split
