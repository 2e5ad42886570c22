"""What commands answer by a name alone, which says nothing without the command.

    $ hostname              $ sudo dmidecode -s system-product-name
    gpu-01                  DGXH100

Where nobody wrote the command, a text may begin with the answer of hostname, as of
`hostname; ibstat`: a word in the form of such names, above a line that a tool wrote. A product is
then one that a known machine has, and no other. Sources: dmidecode, dmiopt.c; coreutils, uname.c.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence

from webhook.diagnose.tools.observations import Line, Origin, Setting, SettingSighting
from webhook.diagnose.tools.products import is_known_product
from webhook.diagnose.tools.readers.dmi_values import dmi_value
from webhook.diagnose.tools.transcripts.commands import is_command
from webhook.diagnose.tools.transcripts.segments import HOST, Capture

#: What commands answer; `hostname` may have options behind it.
_ANSWERS: dict[str, Setting] = {
    "hostname": "hostname",
    "uname -n": "hostname",
    "hostnamectl hostname": "hostname",
    "hostnamectl --static": "hostname",
    "cat /etc/hostname": "hostname",
    "cat /proc/sys/kernel/hostname": "hostname",
    "dmidecode -s system-product-name": "product",
    "dmidecode -s system-manufacturer": "vendor",
    "dmidecode -s chassis-asset-tag": "asset-tag",
    "cat /sys/class/dmi/id/product_name": "product",
    "cat /sys/class/dmi/id/sys_vendor": "vendor",
    "cat /sys/class/dmi/id/chassis_asset_tag": "asset-tag",
}
_HOSTNAME_OPTION = re.compile(r" (?:-[fs]|--fqdn|--long|--short)$")
_HOST_ANSWER = re.compile(HOST, re.ASCII)
#: A name that people give to machines: not a word, nor a product, nor what udev calls a device.
_NODE = re.compile(r"(?=[a-z-]{0,60}\d)[a-z][a-z0-9-]{0,62}(?:\.[a-z0-9-]{1,63}){0,8}", re.ASCII)
_DEVICE = re.compile(r"(?:e(?:n|th)|wl|ib|mlx|roce|rdma|irdma|bond|rxe|siw|qedr|usb)[a-z]{0,3}\d.*")
#: Characters of a line that may be an answer.
_LONGEST = 300


def short_answers(
    capture: Capture, taken: Collection[int], *, begins: bool
) -> Iterator[SettingSighting]:
    """Yield what short commands answered; `taken` are the numbers of the lines of other tools.

    `begins`: whether the text begins with these lines.
    """
    lines = [line for line in capture.lines if _is_answer(line)]
    if capture.command is not None:
        yield from _of_command(capture.command, lines)
        return
    if begins and len(lines) > 1 and lines[1].number in taken:
        name = lines[0].text.strip()
        if lines[0].number not in taken and _is_node(name):
            yield SettingSighting(Origin("hostname", lines[0].number), "hostname", name)
    for line in lines:
        if line.number not in taken and is_known_product(line.text.strip()):
            product = line.text.strip()
            yield SettingSighting(Origin("dmidecode -s", line.number), "product", product)


def _is_answer(line: Line) -> bool:
    """Return whether a line may be an answer, not a blank or a remark of dmidecode."""
    return len(line.text) <= _LONGEST and bool(line.text.strip()) and line.text[0] != "#"


def _of_command(command: str, lines: Sequence[Line]) -> Iterator[SettingSighting]:
    typed, *others = re.split(r"\s*(?:;|&&)\s*", " ".join(command.split()), maxsplit=1)
    typed = _HOSTNAME_OPTION.sub("", typed.removeprefix("sudo "))
    setting = _ANSWERS.get(typed)
    if setting is None or not lines or (len(lines) > 1 and not others):
        return
    value = dmi_value(lines[0].text)
    if value is not None and (setting != "hostname" or _HOST_ANSWER.fullmatch(value)):
        yield SettingSighting(Origin(typed, lines[0].number), setting, value)


def _is_node(name: str) -> bool:
    return bool(_NODE.fullmatch(name)) and not is_command(name) and not _DEVICE.fullmatch(name)
