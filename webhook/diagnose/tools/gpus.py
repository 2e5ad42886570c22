"""GPUs by their PCI ids."""

from __future__ import annotations

AMD_ID = 0x1002

#: The classes of PCI functions that are GPUs without a screen. A display of AMD, or an accelerator,
#: may be an Instinct; of other vendors, these are screens or no GPUs.
_THREE_D, _ACCELERATOR, _DISPLAY = 0x0302, 0x1200, 0x0380

#: AMD's device id → the product as amd-smi names it. Sources: libdrm, data/amdgpu.ids; pci.ids; the
#: output of amd-smi static in ROCm's documentation.
_AMD_PRODUCTS = {
    0x738C: "AMD Instinct MI100",
    0x7408: "AMD Instinct MI250X",
    0x740F: "AMD Instinct MI210",
    0x74A0: "AMD Instinct MI300A",
    0x74A1: "AMD Instinct MI300X",
    0x74A5: "AMD Instinct MI325X",
    0x74B5: "AMD Instinct MI300X VF",
    0x75A0: "AMD Instinct MI350X",
    0x75A3: "AMD Instinct MI355X",
}


def is_gpu(pci_class: int | None, vendor_id: int | None) -> bool:
    """Return whether a PCI function is a GPU for computing; the display of a BMC is not."""
    of_amd = vendor_id == AMD_ID and pci_class in (_ACCELERATOR, _DISPLAY)
    return pci_class == _THREE_D or of_amd


def amd_product(device_id: int | None) -> str | None:
    """Return the product with one of AMD's device ids; None if it is not certain."""
    return None if device_id is None else _AMD_PRODUCTS.get(device_id)
