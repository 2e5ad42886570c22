"""Rules for NICs that a plugin of NCCL's reaches, and for annotations that attach a fabric's NICs.

Sources: aws-ofi-nccl's README and fi_efa(7) (EFA has no verbs that NCCL's own transport could use);
Google's set_nccl_env.sh, which sets NCCL_IB_* for gIB; the annotations that give powers: in
containerd and CRI-O (CDI's annotation keys; NRI's device injector, which also mounts files:
cdi-devices, devices and mounts.noderesource.dev and .nri.io; CRI-O's pkg/annotations/v2:
io.kubernetes.cri-o.* and *.crio.io), in crun (run.oci.hooks.stdout names a file of the node), in
Kata Containers (io.katacontainers.config.*) and in gVisor (dev.gvisor.flag.*).
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from webhook.config import names
from webhook.config.model import FabricEntry
from webhook.config.rules.rule import Violation, rule
from webhook.model.annotations import NETWORKS_ANNOTATION
from webhook.model.quoting import quoted

#: The fields that become variables with the names of devices, or of RDMA's quality of service.
_DEVICE_FIELDS = ("hcas", "exclude_hcas", "hca_prefixes", "qos")
#: Keys that make a container runtime or one of its plugins grant devices, mounts or privileges, or
#: that belong to Kubernetes or to this webhook.
_POWERFUL = re.compile(
    r"(?:.*\.)?crio\.io(?:/.*)?"
    r"|dev\.gvisor\..*"
    r"|devices\..*"
    r"|io\.katacontainers\..*"
    r"|io\.kubernetes\.cri-o\..*"
    r"|(?:.*\.)?k8s\.io/.*"
    r"|(?:.*\.)?kubernetes\.io/.*"
    r"|(?:.*\.)?noderesource\.dev/.*"
    r"|(?:.*\.)?nri\.(?:io|containerd\.io)/.*"
    r"|(?:.*\.)?rdma\.lab/.*"
    r"|run\.oci\..*",
    re.IGNORECASE,
)


@rule("error", "Remove hcas, excludeHcas, hcaPrefixes and qos from the fabric.")
def devices_of_plugin(fabric: FabricEntry) -> Iterator[Violation]:
    """Reject a fabric that names HCAs or sets `qos`, but has a `transport` other than `verbs`.

    An error: NCCL's plugin chooses the devices and their settings itself, and for `gib` the cloud's
    own script sets the same variables.
    """
    if fabric.transport == "verbs":
        return
    for field in _DEVICE_FIELDS:
        if field in fabric.model_fields_set and getattr(fabric, field):
            key = _key(field)
            text = f"{key} has no meaning with transport {fabric.transport}"
            yield Violation((key,), text, f"Remove {key}.")


@rule(
    "error",
    "Write the key in the form example.com/networks, and add only annotations that attach a "
    "network interface.",
)
def annotation_keys(fabric: FabricEntry) -> Iterator[Violation]:
    """Reject a fabric that adds an annotation that is invalid, is reserved or grants privileges.

    An error: every user who opts in would get the power of that annotation, such as a device.
    Multus networks belong in `networks`.
    """
    for key in fabric.annotations:
        if key == NETWORKS_ANNOTATION:
            text = f"{quoted(key)} is the list of Multus networks"
            yield Violation(("annotations", key), text, "Write its networks in networks.")
        elif _POWERFUL.fullmatch(key):
            yield Violation(
                ("annotations", key),
                f"{quoted(key)} may grant a pod devices or privileges, or belongs to Kubernetes",
                "Remove the annotation; users who need it can set it themselves.",
            )
        elif not names.is_label_key(key):
            yield Violation(("annotations", key), f"{quoted(key)} is not a key of an annotation")


def _key(field: str) -> str:
    return FabricEntry.model_fields[field].alias or field
