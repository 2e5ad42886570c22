"""Network cards by their PCI ids."""

from __future__ import annotations

import pytest

from webhook.diagnose.tools.hardware import (
    CARDS,
    MELLANOX_ID,
    VENDORS,
    CardModel,
    card_model,
    firmware_version,
    pcie_rate,
    vendor_of_driver,
    verbs_vendor,
)


@pytest.mark.parametrize(
    ("ca_type", "model", "virtual"),
    [
        (4099, "ConnectX-3", False),
        (4115, "ConnectX-4", False),
        (4116, "ConnectX-4", True),
        (4117, "ConnectX-4 Lx", False),
        (4119, "ConnectX-5", False),
        (4120, "ConnectX-5", True),
        (4121, "ConnectX-5 Ex", False),
        (4123, "ConnectX-6", False),
        (4124, "ConnectX-6", True),
        (4125, "ConnectX-6 Dx", False),
        (4126, "ConnectX-6 Dx or later, or BlueField-2 or later", True),
        (4127, "ConnectX-6 Lx", False),
        (4129, "ConnectX-7", False),
        (4131, "ConnectX-8", False),
        (4133, "ConnectX-9", False),
        (41682, "BlueField", False),
        (41686, "BlueField-2", False),
        (41692, "BlueField-3", False),
    ],
)
def test_a_ca_type_is_a_device_id_in_decimal(ca_type: int, model: str, virtual: bool) -> None:
    """The number in ibstat's `CA type: MT4129` identifies the card."""
    card = card_model(MELLANOX_ID, ca_type)
    assert card is not None
    assert (card.vendor, card.model, card.virtual) == ("NVIDIA", model, virtual)


@pytest.mark.parametrize("oui", [0x02C9, 0x03BA, 0x05AD, 0x066A, 0x08F1, 0x119F, 0x1708])
def test_an_oui_of_verbs_is_a_pci_vendor(oui: int) -> None:
    """The firmware of NVIDIA's cards has the IEEE's number of the company that sold them."""
    assert verbs_vendor(oui) == MELLANOX_ID


def test_a_vendor_of_verbs_is_known_or_none() -> None:
    """PCI ids stay, QLogic's OUI is Intel, and the number of soft-RoCE is nobody's."""
    assert [verbs_vendor(number) for number in (0x1D0F, 0x1175, 0xFFFFFF)] == [0x1D0F, 0x8086, None]


def test_a_name_of_a_driver_has_a_vendor() -> None:
    """The kernel's name of a device begins with its driver's; udev's names are of any vendor."""
    assert [vendor_of_driver(name) for name in ("bnxt_re0", "rdmap85s0")] == [0x14E4, None]


def test_each_card_has_a_named_vendor() -> None:
    """The table of vendors has all vendors of cards, with the same names."""
    assert {(vendor, card.vendor) for (vendor, _), card in CARDS.items()} <= VENDORS.items()


@pytest.mark.parametrize(
    ("vendor_id", "device_id"),
    [(MELLANOX_ID, 0x9999), (0x1AF4, 0x1021), (None, 0x1021), (MELLANOX_ID, None)],
)
def test_unknown_ids_have_no_model(vendor_id: int | None, device_id: int | None) -> None:
    """Ids outside the table, or a single id, have no model."""
    assert card_model(vendor_id, device_id) is None


each_row = pytest.mark.parametrize("ids", CARDS, ids=lambda ids: f"{ids[0]:04x}:{ids[1]:04x}")


@each_row
def test_rows_are_whole(ids: tuple[int, int]) -> None:
    """Each row has a source; a virtual function has no rate of its own."""
    card: CardModel = CARDS[ids]
    assert card.source
    assert not card.virtual or (card.best_gbps, card.best_link) == (None, None)


@each_row
def test_a_card_can_feed_its_port(ids: tuple[int, int]) -> None:
    """The best link of a card carries its fastest port, or the table is wrong."""
    card = CARDS[ids]
    carried = pcie_rate(card.best_link) if card.best_link else None
    assert carried is None or card.best_gbps is None or carried >= card.best_gbps


@pytest.mark.parametrize(
    ("device_id", "infiniband"), [(0x1015, False), (0x101D, False), (0x101F, False), (0x1021, True)]
)
def test_some_cards_are_never_infiniband(device_id: int, infiniband: bool) -> None:
    """ConnectX-4 Lx, ConnectX-6 Dx and ConnectX-6 Lx are Ethernet only."""
    assert CARDS[MELLANOX_ID, device_id].infiniband == infiniband


@pytest.mark.parametrize(
    ("text", "version"),
    [("28.39.1002", "28.39.1002"), ("0.2.0", "0.2.0"), ("0.0.0.0", None), ("", None), (None, None)],
)
def test_zeros_are_no_version_of_a_firmware(text: str | None, version: str | None) -> None:
    """Drivers of cards without firmware write them."""
    assert firmware_version(text) == version
