"""What GPU feature discovery calls GPUs (the label nvidia.com/gpu.product), to recognize mistakes.

The value is the name that the driver gives, with `-` for spaces. Drivers before 470 leave out the
`NVIDIA-` in front. Nothing is wrong with a product that is not listed: there are new ones. Sources:
k8s-device-plugin's internal/lm; what nodes of these kinds report.
"""

from __future__ import annotations

from webhook.config.nearest import Nearest

_NAMES = """
Tesla-K80 Tesla-M40 Tesla-M60 Tesla-P4 Tesla-P40 Tesla-P100-PCIE-12GB Tesla-P100-PCIE-16GB
Tesla-P100-SXM2-16GB Tesla-T4 Tesla-V100-DGXS-32GB Tesla-V100-FHHL-16GB Tesla-V100-PCIE-16GB
Tesla-V100-PCIE-32GB Tesla-V100-SXM2-16GB Tesla-V100-SXM2-32GB Tesla-V100-SXM2-32GB-LS
Tesla-V100-SXM3-32GB Tesla-V100S-PCIE-32GB A100-PCIE-40GB A100-PCIE-80GB A100-SXM4-40GB
A100-SXM4-80GB NVIDIA-A10 NVIDIA-A100-80GB-PCIe NVIDIA-A100-PCIE-40GB NVIDIA-A100-SXM4-40GB
NVIDIA-A100-SXM4-80GB NVIDIA-A100-SXM-64GB NVIDIA-A10G NVIDIA-A16 NVIDIA-A2 NVIDIA-A30
NVIDIA-A40 NVIDIA-A800-80GB-PCIe NVIDIA-A800-SXM4-80GB NVIDIA-H100-80GB-HBM3
NVIDIA-H100-80GB-HBM2e NVIDIA-H100-NVL NVIDIA-H100-PCIe NVIDIA-H20 NVIDIA-H20-3e NVIDIA-H200
NVIDIA-H200-NVL NVIDIA-H800 NVIDIA-H800-PCIe NVIDIA-GH200-120GB NVIDIA-GH200-144G-HBM3e
NVIDIA-GH200-480GB NVIDIA-B200 NVIDIA-B300-SXM6-AC NVIDIA-GB200 NVIDIA-GB300 NVIDIA-L4
NVIDIA-L20 NVIDIA-L40 NVIDIA-L40S NVIDIA-RTX-A4000 NVIDIA-RTX-A5000 NVIDIA-RTX-A6000
NVIDIA-RTX-4000-Ada-Generation NVIDIA-RTX-5000-Ada-Generation NVIDIA-RTX-6000-Ada-Generation
NVIDIA-RTX-PRO-6000-Blackwell-Server-Edition NVIDIA-RTX-PRO-6000-Blackwell-Workstation-Edition
Quadro-RTX-5000 Quadro-RTX-6000 Quadro-RTX-8000 NVIDIA-GeForce-GTX-1080-Ti
NVIDIA-GeForce-RTX-2080-Ti NVIDIA-GeForce-RTX-3080 NVIDIA-GeForce-RTX-3090
NVIDIA-GeForce-RTX-4080 NVIDIA-GeForce-RTX-4090 NVIDIA-GeForce-RTX-4090-D
NVIDIA-GeForce-RTX-5080 NVIDIA-GeForce-RTX-5090 NVIDIA-GB10 NVIDIA-Thor NVIDIA-TITAN-V
"""
_PRODUCTS = tuple(_NAMES.split())
#: One product a line, with a line break before the first and after the last.
_LINES = "\n".join(["", *_PRODUCTS, ""])
_LOWER_LINES = _LINES.lower()
_NEAREST = Nearest(_PRODUCTS)
#: A shorter word is one letter away from too much.
_SHORTEST = 6


def intended_product(glob: str) -> str:
    """Return the glob that was probably meant by one that matches no known product.

    Return "" if it matches one, if none resembles it, or if it has wildcards in its middle: such a
    glob is not judged.
    """
    head, tail = "" if glob[:1] == "*" else "\n", "" if glob[-1:] == "*" else "\n"
    literal = glob.strip("*")
    if not literal or not _judged(literal) or f"{head}{literal}{tail}" in _LINES:
        return ""
    word = literal.strip("-")
    covering = _covering(word) if word.lower() in _LOWER_LINES else ""
    return covering or (_NEAREST.to(literal) if len(literal) >= _SHORTEST else "")


def _judged(literal: str) -> bool:
    return not any(char in "*?[" for char in literal)


def _covering(word: str) -> str:
    """Return a glob for the products that have `word` between dashes, whatever its case."""
    found = [
        (product[:end], product)
        for product in _PRODUCTS
        if (end := _end_of(f"-{word.lower()}-", f"-{product.lower()}-"))
    ]
    beginnings = {beginning for beginning, _ in found}
    if len(beginnings) != 1:
        return f"*{word if word in _LINES else word.upper()}*" if found else ""
    (beginning,) = beginnings
    products = [product for _, product in found]
    if len(products) == 1:
        return products[0]
    return f"{beginning}*" if beginning in products else f"{beginning}-*"


def _end_of(word: str, product: str) -> int:
    """Return where a word ends in a product, both given between dashes; 0 if it is not there."""
    at = product.find(word)
    return at + len(word) - 2 if at >= 0 else 0
