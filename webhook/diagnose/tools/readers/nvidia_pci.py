"""How NVIDIA's driver writes the address of a PCI function: with a domain of eight digits."""

from __future__ import annotations


def pci_of_gpu(text: str | None) -> str | None:
    """Return an address as Linux writes it: 00000000:3B:00.0 becomes 0000:3b:00.0."""
    if text is None:
        return None
    domain, colon, function = text.lower().partition(":")
    short = domain[4:] if len(domain) == len("00000000") and domain.startswith("0000") else domain
    return short + colon + function
