"""Whether the secondary networks of a running pod were attached.

Multus, and whatever else implements the annotation, reports what it attached in another one:
https://github.com/k8snetworkplumbingwg/multi-net-spec, section "Network Status Annotation".
"""

from __future__ import annotations

from collections.abc import Iterator

from webhook.decide.mutations.networks import networks_of
from webhook.diagnose.why.evidence import PodEvidence
from webhook.diagnose.why.runtime_evidence import transport_evidence
from webhook.model.annotations import NETWORKS_ANNOTATION
from webhook.model.finding import Code, Finding
from webhook.model.names import shortened_list
from webhook.model.pod import at

NETWORKS_NOT_ATTACHED = Code(
    "NetworksNotAttached",
    "Nothing reports that the secondary networks of the running pod were attached: the pod has no "
    "annotation k8s.v1.cni.cncf.io/network-status.",
    "Ask the cluster administrator whether Multus is installed and running on the pod's node, "
    "and create the pod again once Multus runs there.",
)
CODES = (NETWORKS_NOT_ATTACHED,)

_STATUS = "k8s.v1.cni.cncf.io/network-status"
#: The key of older versions of the specification, which some plugins still write.
_OLD_STATUS = "k8s.v1.cni.cncf.io/networks-status"


def network_findings(evidence: PodEvidence) -> Iterator[Finding]:
    """Yield a finding on a running pod whose networks nothing reports to have attached.

    A pod that uses RDMA has what it needs.
    """
    pod, annotations = evidence.pod, evidence.annotations
    in_host_network = at(pod.manifest, ("spec", "hostNetwork")) is True
    is_reported = _STATUS in annotations or _OLD_STATUS in annotations
    if pod.status.phase != "Running" or in_host_network or is_reported:
        return
    in_use = transport_evidence(evidence)
    if in_use is not None and in_use.rdma == "yes":
        return
    written = annotations.get(NETWORKS_ANNOTATION, "")
    networks = networks_of(written, evidence.namespace_name)
    if networks:
        text = (
            f"There is no report that the pod's networks ({shortened_list(networks)}) were "
            f"attached: the pod has no annotation {_STATUS}."
        )
        yield NETWORKS_NOT_ATTACHED.finding("error", text)
