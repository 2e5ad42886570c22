"""dmidecode -t system, which names the product that the machine is.

    System Information
            Manufacturer: NVIDIA
            Product Name: DGXH100

Other parts (Base Board Information) have a Product Name, too, which is not that of the machine.
Source: dmidecode, dmidecode.c.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from webhook.diagnose.tools.observations import Line, Origin, Reading, Setting, SettingSighting
from webhook.diagnose.tools.readers.dmi_values import dmi_value
from webhook.diagnose.tools.readers.rows import Reader

_DMIDECODE = "dmidecode"

_PART = re.compile(r"([A-Z][A-Za-z ]{1,40}) Information\s*")
_FRAME = re.compile(
    r"# dmidecode [\d.]{1,8}|Getting SMBIOS data from .{1,40}|SMBIOS [\d.]{1,12} present\."
    r"|Handle 0x[0-9A-F]{4}, DMI type \d{1,3}, \d{1,4} bytes"
)
_DMIDECODE_FIELD = re.compile(r"\s{0,40}([A-Z][A-Za-z -]{1,40}):\s{1,8}(\S.{0,120}?)\s*")
_DMIDECODE_SETTINGS: dict[tuple[str, str], Setting] = {
    ("System", "Manufacturer"): "vendor",
    ("System", "Product Name"): "product",
    ("Chassis", "Asset Tag"): "asset-tag",
}


def read_dmidecode(lines: Sequence[Line]) -> Reading:
    """Read the fields of the machine, which stand below their headings."""
    sightings: list[SettingSighting] = []
    taken: set[int] = set()
    part = ""
    for line in lines:
        heading, field = _PART.fullmatch(line.text), _DMIDECODE_FIELD.fullmatch(line.text)
        if heading or field is None:
            part = heading[1] if heading else ""
        if part or _FRAME.fullmatch(line.text.rstrip()):
            taken.add(line.number)
        setting = _DMIDECODE_SETTINGS.get((part, field[1])) if field else None
        value = dmi_value(field[2]) if field else None
        if setting and value:
            sightings.append(SettingSighting(Origin(_DMIDECODE, line.number), setting, value))
    return Reading(tuple(sightings), frozenset(taken))


DMIDECODE = Reader(_DMIDECODE, read_dmidecode)
