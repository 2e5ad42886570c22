"""The fabric that is measured, by its name, and the rate that is expected of its ports."""

from __future__ import annotations

import argparse
from difflib import get_close_matches

from webhook.diagnose.verify.expectation import PortRate
from webhook.errors import ConfigError
from webhook.model.fabric import Fabric, Fabrics

_HIGHEST = 10_000


def fabric_named(name: str, fabrics: Fabrics, source: str) -> Fabric:
    """Return the fabric with a name; ConfigError if there is none in what was read at `source`."""
    known = fabrics.fabrics
    if name not in known:
        near = get_close_matches(name[:80], list(known), n=1)
        meant = f" (did you mean {near[0]}?)" if near else ""
        raise ConfigError(f"{source}: no fabric {name!r:.80}{meant}")
    return known[name]


def given_rate(given: str) -> float:
    """Parse a rate; argparse's error if it is not one."""
    try:
        rate = float(given)
    except ValueError:
        rate = 0.0
    if not 0 < rate <= _HIGHEST:
        raise argparse.ArgumentTypeError(
            f"{given!r:.80} is not a rate in Gb/s: give a number up to {_HIGHEST} such as 200"
        )
    return rate


def port_rate(given: float | None, fabric: Fabric | None) -> PortRate | None:
    """Return the expected rate: that of the option, which is more certain, else the fabric's."""
    if given is not None:
        return PortRate(given, f"--rate {given:g}")
    if fabric is None or fabric.rate_gbps is None:
        return None
    return PortRate(fabric.rate_gbps, f"rateGbps: {fabric.rate_gbps} of fabric {fabric.name}")
