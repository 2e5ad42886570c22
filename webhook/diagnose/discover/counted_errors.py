"""Errors that ports have counted, a finding for each counter of a fabric.

A counter stops at its maximum, which depends on its width. Sources: IBTA, PortCounters; Linux,
drivers/infiniband/core/sysfs.c, PORT_PMA_ATTR.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from webhook.diagnose.discover.plan import FabricPlan
from webhook.diagnose.discover.used_ports import used_devices
from webhook.model.finding import Code, Finding, Location
from webhook.model.names import counted, natural_key, shortened_list

#: Counters that grow only if a cable, a port or a switch is faulty → their maxima.
_MAXIMA = {
    "symbol_error": 0xFFFF,
    "link_error_recovery": 0xFF,
    "link_downed": 0xFF,
    "port_rcv_errors": 0xFFFF,
    "local_link_integrity_errors": 0xF,
    "excessive_buffer_overrun_errors": 0xF,
}
#: How many ports a finding names.
_NAMED_PORTS = 5

PORT_ERRORS_COUNTED = Code(
    "PortErrorsCounted",
    "An error counter of a port is not zero.",
    "Check the counter again in an hour. If it has grown, replace the cable or the transceiver.",
)
_RESET_REMEDY = (
    "A counter at its maximum no longer grows: reset it (perfquery -R), and check it again in an "
    "hour. If it has grown, replace the cable or the transceiver."
)


class CountedErrors(NamedTuple):
    """The errors that a counter of a port shows."""

    counter: str
    node: str
    device: str
    port: int
    value: int

    @property
    def is_saturated(self) -> bool:
        """Whether the counter has its maximum."""
        return self.value == _MAXIMA[self.counter]

    @property
    def port_name(self) -> str:
        """The port in a message."""
        return self.device if self.port == 1 else f"{self.device} port {self.port}"

    @property
    def value_text(self) -> str:
        """The value, and whether it is the maximum."""
        return f"{self.value}, its maximum" if self.is_saturated else f"{self.value}"


def counted_errors(plan: FabricPlan) -> list[CountedErrors]:
    """Return the errors of the ports that a fabric uses; of several values, the highest."""
    highest: dict[tuple[str, str, str, int], int] = {}
    for node_ports in plan.group.ports_of_nodes:
        used = used_devices(node_ports, plan)
        for counter in node_ports.node.counters:
            if counter.device in used and counter.counter in _MAXIMA and counter.value > 0:
                key = (counter.counter, node_ports.node.name, counter.device, counter.port)
                highest[key] = max(counter.value, highest.get(key, 0))
    return [CountedErrors(*key, value) for key, value in highest.items()]


def bad_counters(plan: FabricPlan) -> Iterator[Finding]:
    """Yield a finding for each error counter: first those with a maximum, then on most ports."""
    by_counter: dict[str, list[CountedErrors]] = {}
    for errors in counted_errors(plan):
        by_counter.setdefault(errors.counter, []).append(errors)
    findings = [
        (_rank(of_ports), _finding(counter, sorted(of_ports, key=_port_rank)))
        for counter, of_ports in by_counter.items()
    ]
    yield from (finding for _, finding in sorted(findings, key=lambda ranked: ranked[0]))


def _rank(of_ports: Sequence[CountedErrors]) -> tuple[int, int, str]:
    saturated = sum(errors.is_saturated for errors in of_ports)
    return -saturated, -len(of_ports), of_ports[0].counter


def _port_rank(errors: CountedErrors) -> tuple[object, ...]:
    return -errors.value, natural_key(errors.node), natural_key(errors.device), errors.port


def _finding(counter: str, of_ports: Sequence[CountedErrors]) -> Finding:
    """Return the finding about a counter; `of_ports`: the highest values first."""
    first, *further = of_ports
    nodes = tuple(dict.fromkeys(errors.node for errors in of_ports))
    text = f"{counter} of {first.port_name} is {first.value_text}"
    location = Location(nodes=nodes, device=first.device)
    if further:
        ports = shortened_list(
            [f"{errors.port_name} on {errors.node} ({errors.value_text})" for errors in of_ports],
            _NAMED_PORTS,
        )
        text = f"{counter} is not 0 on {counted(len(of_ports), 'port')}: {ports}"
        location = Location(nodes=nodes)
    remedy = _RESET_REMEDY if any(errors.is_saturated for errors in of_ports) else None
    return PORT_ERRORS_COUNTED.finding("warning", text, remedy, location)


def devices_with_errors(plan: FabricPlan) -> dict[str, dict[str, list[str]]]:
    """Return the devices with errors, by node and by counter."""
    devices: dict[str, dict[str, list[str]]] = {}
    for errors in counted_errors(plan):
        devices.setdefault(errors.node, {}).setdefault(errors.counter, []).append(errors.device)
    return devices


def counter_of(finding: Finding) -> str:
    """Return the counter that a finding of `bad_counters` is about."""
    return finding.text.partition(" ")[0]
