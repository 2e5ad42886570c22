"""hostnamectl, which names the machine, its product and its kernel.

       Static hostname: node1
        Operating System: Ubuntu 22.04.5 LTS
                  Kernel: Linux 5.15.0-134-generic
         Hardware Vendor: NVIDIA
          Hardware Model: DGXH100

Source: systemd, src/hostname/hostnamectl.c.
"""

from __future__ import annotations

import re

from webhook.machine.readers.dmi_values import dmi_value
from webhook.machine.readers.rows import ReadsRows, RowReading
from webhook.machine.sightings import Line, Origin, Setting, SettingSighting

TOOL = "hostnamectl"

_FIELD = re.compile(
    r"\s{0,40}(?:(Static hostname|Hardware Vendor|Hardware Model): (\S.{0,120}?)"
    r"|(Kernel): Linux (\d.{0,120}?))\s*"
)
_SETTINGS: dict[str, Setting] = {
    "Static hostname": "hostname",
    "Kernel": "kernel",
    "Hardware Vendor": "vendor",
    "Hardware Model": "product",
}
_OTHER = re.compile(
    r"\s{0,40}(?:Transient hostname|Pretty hostname|Icon name|Chassis|Machine ID|Boot ID"
    r"|Virtualization|Operating System|CPE OS Name|Architecture|Firmware Version|Firmware Date"
    r"|Firmware Age): .{0,200}"
)


def _row(line: Line) -> RowReading | None:
    """Read the fields."""
    field = _FIELD.fullmatch(line.text)
    if field is None:
        return RowReading() if _OTHER.fullmatch(line.text) else None
    name, value = field[1] or field[3], dmi_value(field[2] or field[4])
    if value is None or (name == "Static hostname" and value.startswith("(")):
        return RowReading()
    return RowReading((SettingSighting(Origin(TOOL, line.number), _SETTINGS[name], value),))


read = ReadsRows(_row)
