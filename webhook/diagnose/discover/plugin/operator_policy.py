"""A NicClusterPolicy for NVIDIA's network operator (mellanox.com/v1alpha1).

Without `ofedDriver` unless it is asked for: it replaces the driver that the nodes have.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from webhook.diagnose.discover.plan import FabricPlan
from webhook.diagnose.discover.plugin.device_plugin import (
    PluginFile,
    SharedEntry,
    configuration_of,
    in_one_configuration,
)
from webhook.diagnose.discover.plugin.manifest_text import json_field, manifest
from webhook.diagnose.discover.plugin.selectors import PortCensus, select_devices
from webhook.diagnose.discover.wishes import Wishes

_OFED_WARNING = (
    "ofedDriver replaces the RDMA driver of EVERY node with an NVIDIA card by one from a "
    "container, while jobs run there: it needs privileged pods, drains nodes, and where it fails "
    "the node has no RDMA. A node whose card then logs errors without end can fill its system "
    "disk. Leave it out where the nodes have a driver that works; else try it on one node first."
)
_OFED: dict[str, Any] = {
    "image": "doca-driver",
    "repository": "nvcr.io/nvidia/mellanox",
    "version": "25.01-0.6.0.0-0",
    "upgradePolicy": {
        "autoUpgrade": False,
        "maxParallelUpgrades": 1,
        "drain": {"enable": True, "force": False, "timeoutSeconds": 300},
    },
}


def operator_policy(
    plans: Sequence[FabricPlan], entries: Sequence[SharedEntry], wishes: Wishes
) -> list[PluginFile]:
    """Return the policy, if a fabric needs a plugin that the operator runs."""
    spec: dict[str, Any] = {}
    comments = ["For NVIDIA's network operator; there is one NicClusterPolicy in a cluster."]
    if wishes.ofed:
        spec["ofedDriver"] = _OFED
        comments.append(_OFED_WARNING)
    else:
        comments.append("Without ofedDriver: the nodes keep the RDMA driver that they have.")
    if not in_one_configuration(entries):
        comments.append(
            "Without rdmaSharedDevicePlugin, since one configuration cannot tell the nodes of the "
            "fabrics apart: see the ConfigMaps."
        )
    elif entries:
        spec["rdmaSharedDevicePlugin"] = {
            "image": "k8s-rdma-shared-dev-plugin",
            "repository": "ghcr.io/mellanox",
            "version": "v1.5.3",
            "config": configuration_of(entries),
        }
    whole = [plan for plan in plans if plan.mode == "host-device"]
    if whole:
        census = PortCensus(plans)
        spec["sriovDevicePlugin"] = {
            "image": "sriov-network-device-plugin",
            "repository": "ghcr.io/k8snetworkplumbingwg",
            "version": "v3.9.0",
            "config": json_field(
                {"resourceList": [_whole_devices(plan, census) for plan in whole]}
            ),
        }
    if not spec:
        return []
    policy = {
        "apiVersion": "mellanox.com/v1alpha1",
        "kind": "NicClusterPolicy",
        "metadata": {"name": "nic-cluster-policy"},
        "spec": spec,
    }
    return [PluginFile("nic-cluster-policy.yaml", manifest(comments, policy))]


def _whole_devices(plan: FabricPlan, census: PortCensus) -> dict[str, Any]:
    """Return an entry of the SR-IOV device plugin that offers whole devices."""
    prefix, _, name = str(plan.entry["resources"][0]["name"]).partition("/")
    selected = select_devices(plan, census)
    selectors: dict[str, Any] = {"isRdma": True}
    if selected is not None:
        chosen = selected.selectors
        named = {
            "vendors": chosen.vendors,
            "devices": chosen.device_ids,
            "pfNames": chosen.interfaces,
            "linkTypes": chosen.link_types,
        }
        selectors = {key: list(values) for key, values in named.items() if values} | selectors
    return {"resourcePrefix": prefix, "resourceName": name, "selectors": selectors}
