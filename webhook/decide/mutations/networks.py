"""`networks`: attach the pod to the fabric's secondary networks, through Multus or annotations.

In a pod's own network namespace, a RoCE device has an empty GID table until a secondary network
gives it an interface there (Mellanox/k8s-rdma-shared-dev-plugin#72). The fabric's `networks` are
attached once, a resource's `network` once for each device. Networks that the user lists are not
added again. Where a cloud attaches NICs by annotations of its own (the fabric's `annotations`), as
GKE does, missing ones are added; the user's are kept, whatever their values.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping

import orjson

from webhook.decide.analysis import Mutation, PodAnalysis, RdmaAccess, Target
from webhook.decide.draft import Draft
from webhook.model.annotations import JSON_CHARACTERS, NETWORKS_ANNOTATION, has_room
from webhook.model.decision import Reason
from webhook.model.fabric import Fabric
from webhook.model.quantity import to_integer

APPENDED = Reason(
    "Appended",
    "The fabric's networks were appended to the annotation k8s.v1.cni.cncf.io/networks.",
    remedy="",
)
ANNOTATED = Reason(
    "Annotated",
    "Annotations that attach the fabric's NICs were added.",
    remedy="",
)
PRESENT = Reason(
    "Present", "The pod is already attached to all of the fabric's networks.", remedy=""
)
NOT_CONFIGURED = Reason(
    "NotConfigured", "The fabric has no network to attach to the pod.", remedy="", reportable=False
)
HOST_NETWORK = Reason(
    "HostNetwork",
    "The pod has hostNetwork: true, so no networks can be attached to it.",
    remedy="Remove hostNetwork: true, or choose a fabric that works in the host network.",
)
TOO_MANY = Reason(
    "TooManyDevices",
    "The pod needs one network per device, but requests more than 256 devices, so the webhook "
    "appended no networks.",
    remedy="Request fewer devices (rdma.lab/devices).",
)
UNREADABLE = Reason(
    "Unreadable",
    "The pod's annotation k8s.v1.cni.cncf.io/networks cannot be read, so no networks were "
    "appended to it.",
    remedy="Correct the annotation k8s.v1.cni.cncf.io/networks: Multus cannot read it.",
)

NO_ROOM = Reason(
    "AnnotationsTooLarge",
    "The pod's annotations (at most 256 KiB in total) leave no room for the annotations that "
    "attach the fabric's NICs.",
    remedy="Shorten the pod's annotations: Kubernetes allows 256 KiB in total.",
)

_ANNOTATIONS = ("metadata", "annotations")
#: The maximum number of a node's devices, and so of the networks for a resource.
_MAX_DEVICES = 256


def mutate(draft: Draft, analysis: PodAnalysis) -> None:
    """Append the missing networks, and add the missing annotations."""
    assert analysis.fabric is not None
    required = _required_networks(draft, analysis)
    if required is None:
        draft.skipped("", TOO_MANY, TOO_MANY.clause)
    elif not required and not analysis.fabric.annotations:
        draft.skipped("", NOT_CONFIGURED, NOT_CONFIGURED.clause)
    elif analysis.original.host_network:
        draft.skipped("", HOST_NETWORK, HOST_NETWORK.clause)
    else:
        _attach(draft, analysis.fabric, _namespace(analysis), required)


def _attach(draft: Draft, fabric: Fabric, namespace: str, required: list[str]) -> None:
    written = draft.view.annotation(NETWORKS_ANNOTATION) or ""
    have = networks_of(written, namespace) if required else []
    if have is None:
        message = f"annotation {NETWORKS_ANNOTATION} is neither a comma-separated list nor JSON"
        draft.skipped("", UNREADABLE, message)
        return
    missing = _missing(required, Counter(have), namespace)
    present = draft.view.annotations
    added = {key: value for key, value in fabric.annotations.items() if key not in present}
    if not missing and not added:
        draft.already("", PRESENT, PRESENT.clause)
    elif added and not has_room(present, added):
        draft.skipped("", NO_ROOM, NO_ROOM.clause)
    else:
        missing = without_clashes(missing, written, len(have))
        _write(draft, append_networks(written, missing) if missing else "", added)
        messages = [f"appended {', '.join(missing)}"] if missing else []
        messages += [f"added annotation {key}" for key in added]
        draft.applied("", ANNOTATED if added else APPENDED, "; ".join(messages))


def _write(draft: Draft, networks: str, added: Mapping[str, str]) -> None:
    """Set Multus' annotation, unless it is "", and others."""
    if networks:
        draft.set((*_ANNOTATIONS, NETWORKS_ANNOTATION), networks)
    for key, value in added.items():
        draft.set((*_ANNOTATIONS, key), value)


def _required_networks(draft: Draft, analysis: PodAnalysis) -> list[str] | None:
    """List the networks that the pod should have; None if they exceed `_MAX_DEVICES`."""
    fabric = analysis.fabric
    assert fabric is not None
    networks = list(fabric.networks)
    for resource in fabric.resources:
        if resource.network is not None:
            count = sum(_devices(draft, target, resource.name) for target in analysis.targets)
            if count > _MAX_DEVICES:
                return None
            # Only one device can have the interface name of the network.
            bare = resource.network.split("@", 1)[0]
            networks += [resource.network, *[bare] * (count - 1)] if count else []
    return networks


def _devices(draft: Draft, target: Target, name: str) -> int:
    limits = draft.container(target.path).limits
    return to_integer(limits[name]) if name in limits else 0


def _missing(required: list[str], have: Counter[str], namespace: str) -> list[str]:
    missing: list[str] = []
    for network in required:
        name = qualify(network, namespace)
        if have[name]:
            have[name] -= 1
        else:
            missing.append(network)
    return missing


def _namespace(analysis: PodAnalysis) -> str:
    return analysis.namespace.name or analysis.original.namespace or "default"


MUTATION = Mutation(
    name="networks",
    summary=(
        "attaches the pod to the fabric's networks, through Multus or a cloud's own annotations"
    ),
    needs=RdmaAccess.FABRIC,
    reasons=(
        APPENDED,
        ANNOTATED,
        PRESENT,
        NOT_CONFIGURED,
        HOST_NETWORK,
        TOO_MANY,
        UNREADABLE,
        NO_ROOM,
    ),
    mutate=mutate,
)


# The Multus networks annotation: `ns/name@if` lists and their JSON form.
#
# Format: k8snetworkplumbingwg multi-net-spec v1.3, section 4.1 (comma list, or a JSON list of
# mappings with `name`, `namespace`, `interface`).


def networks_of(written: str, namespace: str) -> list[str] | None:
    """List the networks as `ns/name`, with the default namespace; return None if unreadable."""
    if JSON_CHARACTERS.isdisjoint(written):
        return [qualify(item, namespace) for item in written.split(",") if item.strip()]
    try:
        selections = orjson.loads(written)
    except orjson.JSONDecodeError:
        return None
    if not isinstance(selections, list):
        return None
    networks: list[str] = []
    for selection in selections:
        if not isinstance(selection, dict) or not isinstance(selection.get("name"), str):
            return None
        networks.append(f"{selection.get('namespace') or namespace}/{selection['name']}")
    return networks


def qualify(network: str, namespace: str) -> str:
    """Return a network `[ns/]name[@if]` as `ns/name`."""
    name = network.strip().split("@", 1)[0]
    return name if "/" in name else f"{namespace}/{name}"


def without_clashes(networks: Iterable[str], written: str, count: int) -> list[str]:
    """Drop the `@interface` of our networks that other networks of the pod may get.

    `written` has `count` networks, and ours follow. Multus names the interfaces of networks without
    `@interface` net1, net2, …, by their positions (multus-cni, getIfname); a pod with two of a name
    fails.
    """
    chosen = [_unless_in_use(network, written) for network in networks]
    index_by_number = {_number(network): index for index, network in enumerate(chosen)}
    positions = [*range(1, count + 1)]
    positions += [count + 1 + index for index, network in enumerate(chosen) if "@" not in network]
    while positions:
        index = index_by_number.pop(positions.pop(), None)
        if index is not None:
            chosen[index] = chosen[index].partition("@")[0]
            positions.append(count + 1 + index)  # now Multus names this one too
    return chosen


def _unless_in_use(network: str, written: str) -> str:
    """Return a network, without an `@interface` that a network in `written` has."""
    name, _, interface = network.partition("@")
    in_use = f"@{interface}" in written or f'"{interface}"' in written
    return name if in_use else network


def _number(network: str) -> int:
    """Return N of a network with `@netN`, which Multus may assign too; 0 for others."""
    match = _NUMBERED.search(network)
    return int(match[1]) if match else 0


_NUMBERED = re.compile(r"@net([1-9][0-9]{0,9})$")


def append_networks(written: str, networks: list[str]) -> str:
    """Append networks in the form that `written` has, and keep every byte of its entries."""
    if not written.strip():
        return ",".join(networks)
    if not written.lstrip().startswith("["):
        return f"{written.rstrip().rstrip(',')},{','.join(networks)}"
    head = written.rstrip()[:-1].rstrip()
    comma = "" if head.endswith("[") else ","
    return f"{head}{comma}{','.join(_selection_json(network) for network in networks)}]"


def _selection_json(network: str) -> str:
    name, _, interface = network.partition("@")
    namespace, _, name = name.rpartition("/")
    selection = {"name": name}
    if namespace:
        selection["namespace"] = namespace
    if interface:
        selection["interface"] = interface
    return orjson.dumps(selection).decode()
