"""The ResourceClaimTemplates of fabrics with mode dra, for the namespace of the pods.

Each namespace whose pods use the fabric needs its own. A GPU and its NIC come by one claim, since
devices of two claims cannot be aligned.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from webhook.diagnose.discover.plan import GPU_REQUEST, NIC_REQUEST, FabricPlan, claimable_of
from webhook.diagnose.discover.plugin.device_plugin import PluginFile
from webhook.diagnose.discover.plugin.manifest_text import manifest
from webhook.diagnose.discover.resource_slices import PCIE_ROOT
from webhook.diagnose.discover.wishes import Wishes


def claim_template_files(plans: Sequence[FabricPlan], wishes: Wishes) -> list[PluginFile]:
    """Return the template of each fabric whose NICs come by claim."""
    return [_template(plan, wishes) for plan in plans if plan.mode == "dra"]


def _template(plan: FabricPlan, wishes: Wishes) -> PluginFile:
    offered = claimable_of(plan.group)
    assert offered is not None  # the mode is dra
    (claim,) = plan.entry["claims"]
    name = str(claim["template"])
    devices = _pair(offered.gpu_class, offered.device_class)
    if "request" in claim:
        devices = {"requests": [_request(NIC_REQUEST, offered.device_class, offered.nics)]}
    comments = [
        f"Claims for fabric {plan.name}: {plan.reasons['name']}.",
        f"{plan.reasons['claims']}.",
        (
            "Each namespace whose pods use the fabric needs this template: without it, its pods "
            "stay Pending."
        ),
    ]
    text = manifest(
        comments,
        {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceClaimTemplate",
            "metadata": {"name": name, "namespace": wishes.namespace},
            "spec": {"spec": {"devices": devices}},
        },
    )
    return PluginFile(f"claims-{plan.name}.yaml", text)


def _pair(gpu_class: str, nic_class: str) -> dict[str, Any]:
    """Return a GPU and the NIC at its PCIe root."""
    requests = [_request(GPU_REQUEST, gpu_class, 1), _request(NIC_REQUEST, nic_class, 1)]
    aligned = {"requests": [GPU_REQUEST, NIC_REQUEST], "matchAttribute": PCIE_ROOT}
    return {"requests": requests, "constraints": [aligned]}


def _request(name: str, device_class: str, count: int) -> dict[str, Any]:
    return {"name": name, "exactly": {"deviceClassName": device_class, "count": count}}
