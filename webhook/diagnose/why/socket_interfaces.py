"""Whether NCCL has an interface for its TCP connections: it uses them to set RDMA up.

NCCL_SOCKET_IFNAME lists prefixes, or exact names after `=`; after `^`, it lists interfaces to leave
out. NCCL stops if no interface matches (nccl, src/misc/socket.cc).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from webhook.diagnose.why.evidence import PodEvidence
from webhook.model.fabric import NCCL_SOCKET
from webhook.model.finding import Code, Finding
from webhook.model.names import shortened_list
from webhook.model.pod import Container, Pod

NO_SOCKET_INTERFACE = Code(
    "SocketInterfaceMissing",
    f"{NCCL_SOCKET} of a container matches none of its network interfaces, so NCCL fails when it "
    "starts.",
    "If the variable has the fabric's value, ask the cluster administrator to correct the "
    "fabric's socketInterface or, for pods in the host network, its hostSocketInterface "
    "(`rdma-webhook discover` finds the latter). Otherwise, remove the variable from the "
    "container's env. In either case, create the pod again afterwards.",
)
CODES = (NO_SOCKET_INTERFACE,)


def interface_findings(evidence: PodEvidence, targets: Collection[str]) -> Iterator[Finding]:
    """Yield a finding on each inspected container whose variable matches no interface.

    `targets` are the names of the containers that the verdict is about; if it is empty, all count.
    """
    inspected = {
        processes.container: processes.interfaces for processes in evidence.processes or ()
    }
    containers = Pod(evidence.pod.manifest).containers if any(inspected.values()) else ()
    for container in containers:
        interfaces = inspected.get(container.name)
        if interfaces and (not targets or container.name in targets):
            yield from _finding(container, interfaces)


def _finding(container: Container, interfaces: tuple[str, ...]) -> Iterator[Finding]:
    value = container.env.get(NCCL_SOCKET)
    if value and not any(_matches(value, name) for name in interfaces):
        text = (
            f"In container {container.name}, {NCCL_SOCKET}={value:.60} matches none of the network "
            f"interfaces ({shortened_list(interfaces)}), so NCCL fails when it starts."
        )
        yield NO_SOCKET_INTERFACE.finding("error", text)


def _matches(value: str, interface: str) -> bool:
    """Return whether NCCL may use an interface."""
    excluded = value.startswith("^")
    listed = value.removeprefix("^")
    exact = listed.startswith("=")
    names = [name.partition(":")[0] for name in listed.removeprefix("=").split(",") if name]
    if not names:
        return True
    is_listed = interface in names if exact else interface.startswith(tuple(names))
    return is_listed is not excluded
