"""Tests of the values of NCCL_IB_HCA that select no device of a fabric."""

from __future__ import annotations

import pytest

from webhook.model.transport_variables import selects_none


@pytest.mark.parametrize(
    ("value", "fabrics"),
    [
        ("mlx5_9", "=mlx5_0,mlx5_1"),
        ("=mlx5", "=mlx5_0"),
        ("=mlx5_1", "=mlx5_10"),
        ("mlx5_10", "=mlx5_1"),
        ("^mlx5", "=mlx5_0,mlx5_1"),
        ("^=mlx5_0,mlx5_1", "=mlx5_0:1,mlx5_1:1"),
        ("ibp", "=mlx5_0"),
        ("=mlx5_bond_0", "^=mlx5_bond_0"),
        ("=mlx5_bond_0:1,mlx5_2", "^=mlx5_bond_0,mlx5_2"),
        ("=mlx5_0", "ibp"),
        ("=ib", "ibp"),
        ("mlx5", "ibp,rocep"),
        ("=mlx5_0:2", "=mlx5_0:1,mlx5_1:1"),
        ("mlx5:2", "=mlx5_0:1,mlx5_1:1"),
        ("mlx5_0: 02:0:1,mlx5_9:1", "=mlx5_0:1:0:1"),
        ("mlx5_1:2", "=mlx5_0:2,mlx5_1:1"),
        ("^mlx5:1", "=mlx5_0:1,mlx5_1:1"),
        ("^=mlx5_0,mlx5_1:1", "=mlx5_0:1,mlx5_1:1"),
        ("=mlx5_3:2", "^=mlx5_3:2"),
        ("=mlx5_3:2,mlx5_4", "^=mlx5_3,mlx5_4"),
        ("=mlx5_0:21", "=mlx5_0:2"),
        ("=mlx5_0:1234", "=mlx5_0:1"),
    ],
)
def test_these_select_none(value: str, fabrics: str) -> None:
    """No name or prefix of the value can match a device and port of the fabric."""
    assert selects_none(value, fabrics)


@pytest.mark.parametrize(
    ("value", "fabrics"),
    [
        ("mlx5_0", "=mlx5_0,mlx5_1"),
        ("mlx5", "=mlx5_0"),
        ("mlx5_1", "=mlx5_10"),
        ("=mlx5_1:2", "=mlx5_0,mlx5_1"),
        ("=mlx5_9,mlx5_1", "=mlx5_0,mlx5_1"),
        ("^mlx5_0", "=mlx5_0,mlx5_1"),
        ("^=mlx5", "=mlx5_0"),
        ("=mlx5_bond_0,mlx5_0", "^=mlx5_bond_0"),
        ("mlx5_bond_0", "^=mlx5_bond_0"),
        ("^mlx5", "^=mlx5_bond_0"),
        ("^ibp", "ibp"),
        ("=ibp14s0", "ibp"),
        ("ib", "ibp"),
        ("ibp14", "ibp"),
        ("mlx5,ibp3", "rocep,ibp"),
        ("", "=mlx5_0"),
        ("^", "=mlx5_0"),
        ("=", "=mlx5_0"),
        ("mlx5_0", ""),
        ("mlx5_0", "="),
        ("=mlx5_0:1", "=mlx5_0:1,mlx5_1:1"),
        ("=mlx5_0:2", "=mlx5_0,mlx5_1"),
        ("=mlx5_0", "=mlx5_0:2"),
        ("=mlx5_0:2,mlx5_0:1", "=mlx5_0:1"),
        ("=mlx5_0:2,mlx5_0", "=mlx5_0:1"),
        ("mlx5:2,mlx5_0:1", "=mlx5_0:1"),
        ("mlx5_0:+001", "=mlx5_0:1"),
        ("mlx5_0:,mlx5_0:x", "=mlx5_0:1"),
        ("mlx5_0:-1", "=mlx5_0:1"),
        ("mlx5_0:2", "=mlx5_0:1,mlx5_0:2"),
        ("^mlx5:2", "=mlx5_0:1,mlx5_1:1"),
        ("^mlx5:2", "=mlx5_0,mlx5_1"),
        ("^mlx5_0:1,mlx5_1:2", "=mlx5_0:1,mlx5_1:1"),
        ("^mlx5_0:1", "=mlx5_0:1,mlx5_0:2"),
        ("=mlx5_3", "^=mlx5_3:2"),
        ("=mlx5_3:1", "^=mlx5_3:2"),
        ("=mlx5_3:2,mlx5_3:1", "^=mlx5_3:2"),
        ("=ibp1:2", "ibp"),
    ],
)
def test_these_may_select_some(value: str, fabrics: str) -> None:
    """A name and port match, or the fabric's are not known, or NCCL takes all devices."""
    assert not selects_none(value, fabrics)


def test_only_the_beginning_of_an_endless_value_is_read() -> None:
    """A user's value of any length takes bounded time."""
    assert selects_none("x," * 2048 + "mlx5_0", "=mlx5_0")
    assert not selects_none("x," * 2000 + "mlx5_0", "=mlx5_0")
