"""A fabric that was changed after a pod was admitted: the pod has the values of that time.

Only the values that decide whether RDMA works count: the devices, the GID index and the partition.
With another traffic class or socket interface, the devices are the same.
"""

from __future__ import annotations

from webhook.diagnose.why.comparison import differing_variables, redecide_on_same_fabric
from webhook.diagnose.why.evidence import PodEvidence, StatusAnnotation
from webhook.model.facts import NamespaceFacts
from webhook.model.finding import Code, Finding
from webhook.model.libraries import VARIABLES, ValueSource

FABRIC_CHANGED = Code(
    "FabricChanged",
    "The fabric's GID index, partition or devices have changed since the pod was admitted, and "
    "the pod still has the old values.",
    "Create the pod again, so that it gets the fabric's current values.",
)
CODES = (FABRIC_CHANGED,)

_DECISIVE: frozenset[ValueSource] = frozenset(
    {
        *("nccl hcas", "nvshmem prefix", "nvshmem hcas", "mooncake hcas", "hcas and interfaces"),
        *("gid index", "ucx pkey"),
    }
)
_NAMES = frozenset(row.name for row in VARIABLES if row.source in _DECISIVE)


def changed_fabric_finding(evidence: PodEvidence, status: StatusAnnotation) -> Finding | None:
    """Return the finding on a value that differs in the present configuration, or None."""
    present = evidence.cluster_configuration
    if present is None:
        return None
    facts = NamespaceFacts(name=evidence.namespace_name)
    inspection = redecide_on_same_fabric(evidence, status, facts, configuration=present)
    if inspection is None:
        return None
    fabric = inspection.analysis.fabric
    assert fabric is not None
    same_devices = f"{fabric.env.ucx_devices},"  # UCX_NET_DEVICES goes on with the interfaces
    for container, change in differing_variables(inspection, status):
        name = change.name.removeprefix("env ")
        if name in _NAMES and not change.pod_value.startswith(same_devices):
            text = (
                f"fabric {status.fabric} was changed after the pod was admitted. Container "
                f"{container} has {name}={change.pod_value:.80}, and the fabric has "
                f"{change.webhook_value:.80} now."
            )
            return FABRIC_CHANGED.finding("unsure", text)
    return None
