"""What the commands of ucx_perftest, and the shell around them, set: transports and addresses.

UCX uses the fastest transport that it finds, so its output alone does not show the network: a
bandwidth may be that of TCP, or of a node's memory.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from webhook.diagnose.tools.benchmarks.measurements import LOCAL_HOST
from webhook.model.transport_variables import allows_rdma

_COMMAND = re.compile(r"(?:^|[\s/;&|(])ucx_perftest(?=\s|$|&)")
_SETTING = re.compile(r"(?<!\w)(UCX_TLS|UCX_NET_DEVICES)=[\"']?([^\s\"';&|]{1,200})")
_UNSET = re.compile(r"\bunset (UCX_TLS|UCX_NET_DEVICES)\b")
#: The transport of a test of the lower layer: uct, without the choices of ucp.
_LOW_TRANSPORT = re.compile(r"\s-x\s{1,8}(\w{1,40})")
_ACCEPTED = re.compile(r"Accepted connection from \[?([\w.:]{1,64}?)\]?:\d{1,5}$")
#: UCX names an RDMA device with its port, and a network interface without one.
_RDMA_DEVICES = re.compile(r"[\w.-]{1,64}:\d{1,3}(?:,[\w.-]{1,64}:\d{1,3}){0,63}")
_MAX_WORDS = 60


class TransportSetting(NamedTuple):
    """A setting, and what it decides."""

    #: "UCX_TLS=tcp"; None if nothing decides.
    text: str | None = None
    #: Whether it leaves only RDMA; False if it excludes RDMA.
    over_rdma: bool | None = None


def is_ucx_command(text: str) -> bool:
    """Return whether a line has a command of ucx_perftest."""
    return _COMMAND.search(text) is not None


class UcxCommands:
    """The commands of both ends of one run, and the variables that the shell exports to them."""

    def __init__(self, exported: dict[str, str]) -> None:
        #: Name → value; what earlier lines exported.
        self.exported = dict(exported)
        self._of_commands: list[tuple[str, str]] = []
        self._address = ""

    def read(self, text: str) -> None:
        """Add a line: a command, an assignment, or a connection that the server accepted."""
        settings = _SETTING.findall(text)
        command = _COMMAND.search(text)
        if command:
            options = text[command.end() :]
            self._of_commands += settings + [
                ("-x", name) for name in _LOW_TRANSPORT.findall(options)
            ]
            self._read_address(f"connected to {word}" for word in options.split()[:_MAX_WORDS])
        else:
            self.exported.update(settings)
            for name in _UNSET.findall(text):
                self.exported.pop(name, None)
        self._read_address(f"connected from {address}" for address in _ACCEPTED.findall(text))

    def _read_address(self, connections: Iterator[str]) -> None:
        for connection in connections:
            if LOCAL_HOST.match(connection.rpartition(" ")[2]):
                self._address = self._address or connection

    @property
    def _settings(self) -> list[tuple[str, str]]:
        """All settings that count; a command's settings override what the shell exports."""
        overridden = {name for name, _ in self._of_commands}
        return [
            *self._of_commands,
            *((name, self.exported[name]) for name in self.exported if name not in overridden),
        ]

    @property
    def transport(self) -> TransportSetting:
        """The setting that decides; one that excludes RDMA counts more."""
        decided = [
            TransportSetting(_written(name, value), over_rdma)
            for name, value in self._settings
            if (over_rdma := _over_rdma(name, value)) is not None
        ]
        return min(
            decided, key=lambda setting: setting.over_rdma is True, default=TransportSetting()
        )

    @property
    def loopback(self) -> str | None:
        """A sentence on why no cable was tested; None if nothing shows that."""
        if self._address:
            return f"The client {self._address}, so no cable was tested."
        for name, value in self._settings:
            if name != "UCX_NET_DEVICES" and not (allows_rdma(value) or _allows_tcp(value)):
                return f"{_written(name, value)} allows no network, so no cable was tested."
        return None


def _written(name: str, value: str) -> str:
    return f"{name} {value}" if name == "-x" else f"{name}={value}"


def _over_rdma(name: str, value: str) -> bool | None:
    """Return whether a setting leaves only RDMA, excludes it, or decides neither (None)."""
    if name == "UCX_NET_DEVICES":
        return True if _RDMA_DEVICES.fullmatch(value) else None
    rdma, tcp = allows_rdma(value), _allows_tcp(value)
    return None if rdma == tcp else rdma


def _allows_tcp(transports: str) -> bool:
    """Return whether a value of UCX_TLS leaves the transport tcp."""
    names = transports.removeprefix("^").split(",")
    named = any(name in ("all", "*") or name.lstrip("\\").startswith("tcp") for name in names)
    return named != transports.startswith("^")
