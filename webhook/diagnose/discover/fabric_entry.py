"""The entry of a planned fabric in the fabrics file."""

from __future__ import annotations

from typing import Literal, Required

from typing_extensions import TypedDict

from webhook.diagnose.tools.observations import LinkLayer
from webhook.model.fabric import Mode, Transport


class MatchEntryForm(TypedDict, total=False):
    """The pods and nodes of a fabric."""

    gpuResources: list[str]
    gpuProducts: list[str]
    nodeLabels: dict[str, list[str]]
    deviceClasses: list[str]


class ResourceEntryForm(TypedDict, total=False):
    """A resource that containers request."""

    name: Required[str]
    count: int | Literal["per-gpu"]
    devicesPerGpu: int
    gpusPerDevice: int
    network: str


class ClaimEntryForm(TypedDict, total=False):
    """A claim that pods make."""

    template: Required[str]
    request: str


class FabricEntryForm(TypedDict, total=False):
    """A fabric."""

    name: Required[str]
    match: MatchEntryForm
    mode: Required[Mode]
    resources: list[ResourceEntryForm]
    claims: list[ClaimEntryForm]
    linkLayer: LinkLayer
    transport: Transport
    rateGbps: int
    hcas: list[str]
    excludeHcas: list[str]
    hcaPrefixes: list[str]
    socketInterface: str
    hostSocketInterface: str
    libraries: list[str]
    networks: list[str]
