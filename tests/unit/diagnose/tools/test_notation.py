"""Values that the kernel writes in full are read in full, or not at all."""

from __future__ import annotations

import pytest

from tests.case_names import case_name
from webhook.diagnose.tools.readers.notation import (
    gid,
    hexadecimal,
    kernel_gid,
    kernel_port_state,
    pci_of_gpu,
)

GID = "fe80:0000:0000:0000:a088:c203:0012:3456"


@pytest.mark.parametrize("cut", [GID[:-1], GID[:-5], "fe80::1", "x" * 39, ""], ids=case_name)
def test_a_gid_of_the_kernel_is_whole(cut: str) -> None:
    """Without its last digit, it would be another GID, so it is rejected."""
    assert kernel_gid(f" {GID} ") == GID
    assert kernel_gid(cut) is None


def test_a_short_gid_is_written_in_full() -> None:
    """The name of an interface may follow; other text is not a GID."""
    assert gid("::ffff:10.0.0.4%ib0") == "0000:0000:0000:0000:0000:ffff:0a00:0004"
    assert gid("10.0.0.4.5") is None


@pytest.mark.parametrize(
    ("text", "value"),
    [("0x11", 17), (" 0x15b3\n", 0x15B3), ("0", None), ("0x", None), ("", None)],
    ids=case_name,
)
def test_ids_begin_with_0x(text: str, value: int | None) -> None:
    """A zero alone is the beginning of such a number."""
    assert hexadecimal(text) == value


@pytest.mark.parametrize(
    ("written", "state"),
    [
        ("1: DOWN", "Down"),
        ("2: INIT", "Initializing"),
        ("3: ARMED", "Armed"),
        ("4: ACTIVE", "Active"),
        ("5: ACTIVE_DEFER", None),
        ("5: ACTIVE", None),
        ("4: DOWN", None),
        ("ACTIVE", None),
    ],
)
def test_the_number_of_a_port_state_belongs_to_its_name(written: str, state: str | None) -> None:
    """A cut ACTIVE_DEFER looks like another state."""
    assert kernel_port_state(written) == state


@pytest.mark.parametrize(
    ("written", "address"),
    [
        ("00000000:3B:00.0", "0000:3b:00.0"),
        ("0000ABCD:3B:00.0", "abcd:3b:00.0"),
        ("00010000:3B:00.0", "10000:3b:00.0"),
        ("10000000:3B:00.0", "10000000:3b:00.0"),
        ("0000:3b:00.0", "0000:3b:00.0"),
        ("3b:00.0", "3b:00.0"),
        (None, None),
    ],
    ids=case_name,
)
def test_a_gpu_has_the_pci_address_that_linux_writes(
    written: str | None, address: str | None
) -> None:
    """A domain has four digits, or as many as it needs (drivers/pci/probe.c, `%04x`)."""
    assert pci_of_gpu(written) == address
