"""Findings: one scale of levels, and codes that make them."""

from __future__ import annotations

from webhook.model.finding import LEVELS, Code, Finding, Location, severity

_CODE = Code("PortDown", "A port is down.", "Check the cable.")


def test_levels_ascend() -> None:
    """The order of the scale decides which finding is the worst."""
    assert LEVELS == ("ok", "info", "warning", "unsure", "error")
    assert [severity(level) for level in LEVELS] == [0, 1, 2, 3, 4]


def test_a_code_makes_findings_with_its_remedy() -> None:
    """Without a remedy of its own, a finding has the code's; "" is a remedy of its own."""
    location = Location(device="mlx5_0")
    assert _CODE.finding("error", "mlx5_0 is down.", location=location) == Finding(
        "error", "PortDown", "mlx5_0 is down.", "Check the cable.", location
    )
    assert not _CODE.finding("info", "mlx5_0 is down.", "").remedy
    assert _CODE.finding("error", "mlx5_0 is down.", "Replace it.").remedy == "Replace it."
