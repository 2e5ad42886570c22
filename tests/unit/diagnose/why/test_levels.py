"""Every code of `why` can be printed, and always with the same level."""

from __future__ import annotations

from collections.abc import Iterator

from tests.builders import V100, fabrics
from tests.unit.diagnose.why.pods import (
    ASKED,
    EARLIER,
    LATER,
    OWNED,
    Item,
    configuration,
    event,
    explain,
    job,
    namespace,
    pod_in_cluster,
    pod_without_call,
    status,
)
from tests.unit.diagnose.why.test_answer import HOLDS, IDLE, OPEN, RDMA, SOCKETS, log
from tests.unit.diagnose.why.test_no_pods import (
    SILENT,
    TOO_MUCH,
    VIOLATES,
    waiting_for_ready,
    without_pods,
)
from tests.unit.diagnose.why.test_pending_claims import MISSING, REASON, of_nodes
from tests.unit.diagnose.why.test_pending_nodes import node as pool_node
from tests.unit.diagnose.why.test_pending_scheduler import unseen_by_scheduler
from tests.unit.diagnose.why.test_pending_volumes import UNBOUND
from tests.unit.diagnose.why.test_pod_status import ended, node, of_main, pending
from tests.unit.diagnose.why.test_redecide import CHANGED
from tests.unit.diagnose.why.test_socket_interfaces import with_interfaces
from webhook.diagnose.why.codes import CODES
from webhook.diagnose.why.evidence import ContainerProcesses, MemoryRights, MissingClaim
from webhook.diagnose.why.explanation import Explanation
from webhook.model.nodes import node_of

#: The level of each code, except for codes with the level of a verdict.
LEVELS = {
    "ok": "Called Applied Running Succeeded MemoryRegistered RdmaInUse MayLockMemory",
    "info": "Annotations NoAnnotations Requests NoDeviceRequested Nothing NothingApplied "
    "Terminating Starting NoStatus NotComparable SameToday NotRead EphemeralWithoutIpcLock "
    "ConfigurationChanged",
    "unsure": "StatusUnreadable Shortened UnknownCode Restarted NoRdma "
    "FailedCreate Event NotInspected NothingRegistered NoDeviceOpen MixedTransports "
    "TransportUnknown NoChannel NothingLogged Unready WaitsForReady",
    "error": "OptedOut AnnotationMisspelled NamespaceExcluded NamespaceNotLabeled NotInstalled "
    "NoCaBundle CreatedBeforeWebhook AnnotatedLater CreatedBeforeLabel CreatedEarlier "
    "DidNotAnswer NotCalled Evicted Failed Unschedulable Insufficient OfferedNowhere "
    "ErrImagePull ImagePullBackOff InvalidImageName ErrImageNeverPull "
    "CreateContainerConfigError CreateContainerError RunContainerError Killed ContainerFailed "
    "OOMKilled ClaimMissing ClaimNotCreated DeviceClassMissing ClaimsNotAllocated "
    "ClaimElsewhere ClaimInUse SocketsInUse StartError SchedulingGated NoScheduler "
    "Preempting Preempted VolumeClaimMissing VolumeClaimUnbound VolumeElsewhere TooLarge "
    "NeverTogether BlockedBySelection BlockedByCordon BlockedByUnreadiness BlockedByTaint NoPods "
    "QuotaExceeded Suspended ScaledToZero Ended WaitsToRetry PodSecurityRefused WebhookSilent "
    "LimitRangeExceeded RejectedByNode NotSetUp NotSelected NodeNotReady WaitsForSidecar Paused "
    "CannotLockMemory SocketInterfaceMissing NetworksNotAttached WaitsForBinding NotDue "
    "WaitsForInitContainer "
    "PostStartHookError ManagedElsewhere BeingDeleted KeptByFinalizers",
}
OF_A_VERDICT = {
    "WouldBe",
    "OtherToday",
    "ChangedAfterwards",
    "StatusNotOurs",
    "NodeOutsideFabric",
    "ConfigMapChanged",
    "FabricChanged",
    "AddedAtAdmission",
    "OldTemplate",
}
#: Messages of the scheduler about claims.
_CLAIMS = (
    "1 cannot allocate all claims",
    "3 resourceclaim not available on the node",
    "status.reservedFor: Too many",
    "request nics: device class roce.lab does not exist",
)
_START_FAILURES = (
    "ErrImagePull",
    "ImagePullBackOff",
    "InvalidImageName",
    "ErrImageNeverPull",
    "CreateContainerConfigError",
    "CreateContainerError",
    "RunContainerError",
    "PostStartHookError",
)


def _of_call() -> Iterator[Explanation]:
    """Explain pods that the webhook was not called for, each for another reason."""
    yield explain(pod_in_cluster({"rdma.lab/enable": "false"}))
    yield explain(pod_in_cluster({"rdma.lab/enabled": "true"}))
    yield explain(pod_without_call(metadata={"namespace": "kube-system"}))
    yield explain(pod_in_cluster({**ASKED, "rdma.lab/status": "x"}))
    yield explain(pod_without_call())
    yield explain(pod_without_call(), namespace=namespace({}))
    here = namespace()
    yield explain(pod_without_call(), namespace=here, webhooks=())
    yield explain(pod_without_call(), namespace=here, webhooks=[configuration(bundle="")])
    unruly = configuration()
    unruly["webhooks"][1]["rules"] = []
    yield explain(pod_without_call(), namespace=here, webhooks=[unruly])
    yield explain(pod_without_call(), namespace=here, webhooks=[configuration(created=LATER)])
    yield explain(pod_without_call(), namespace=here, webhooks=[configuration()])
    yield explain(pod_without_call(), namespace=here, webhooks=[configuration("Ignore")])
    yield explain(
        pod_without_call(), namespace=namespace(written=LATER), webhooks=[configuration()]
    )
    fields: Item = {"f:metadata": {"f:annotations": {"f:rdma.lab/enable": {}}}}
    managed = [{"manager": "kubectl-annotate", "time": LATER, "fieldsV1": fields}]
    yield explain(pod_without_call(metadata={"managedFields": managed}), namespace=here)


def _of_status() -> Iterator[Explanation]:
    """Explain pods in each state."""
    yield explain(pod_in_cluster(), unread_sentences=("x",))
    yield with_interfaces("bond0")
    yield explain(pod_in_cluster({"k8s.v1.cni.cncf.io/networks": "a"}))
    capable = {"name": "main", "securityContext": {"privileged": True}}
    named = status(applied=["ipc-lock"], skipped=["Sorcery"], warned=2)
    yield explain(pod_in_cluster(named, spec={"containers": [capable]}))
    yield explain(pod_in_cluster(limits={"rdma/a": "1"}, phase="Succeeded"))
    yield explain(pod_in_cluster(phase="Failed", reason="Evicted"))
    yield explain(pod_in_cluster(phase="Failed"))
    yield explain(pod_in_cluster(phase="Pending"))
    yield explain(pod_in_cluster({}, phase=""))
    yield explain(pod_in_cluster(metadata={"deletionTimestamp": EARLIER}))
    finalized = {"deletionTimestamp": EARLIER, "finalizers": ["a/b"]}
    yield explain(pod_in_cluster(metadata=finalized, phase="Succeeded"))
    yield explain(pending("gated", "SchedulingGated"))
    yield explain(pending("0/1 nodes are available: 1 node(s) had untolerated taint(s)."))
    yield explain(pending())
    yield explain(pending(), nodes=[node("a")])
    events = [event(reason, "x") for reason in ("NoRDMA", "FailedCreate", "Other", "FailedMount")]
    yield explain(pod_in_cluster(phase="Pending"), events=events, nodes=())
    waiting = {"name": "proxy", "state": {"running": {}}}
    sidecar = {"initContainers": [{"name": "proxy", "restartPolicy": "Always"}]}
    yield explain(pod_in_cluster(phase="Pending", initContainerStatuses=[waiting], spec=sidecar))
    yield explain(pod_in_cluster(phase="Pending", initContainerStatuses=[waiting]))
    unready = {"type": "Ready", "status": "False", "message": "x"}
    yield explain(pod_in_cluster(conditions=[unready]))
    yield explain(pod_in_cluster(phase="Failed", reason="UnexpectedAdmissionError", message="x"))


def _of_containers() -> Iterator[Explanation]:
    """Explain pods whose containers do not run, and pods that wait for claims."""
    for reason in _START_FAILURES:
        yield explain(of_main(state={"waiting": {"reason": reason}}))
    yield explain(of_main(restartCount=1))
    yield explain(of_main(state=ended(1)))
    yield explain(of_main(state=ended(137)))
    yield explain(of_main(state=ended(137, "OOMKilled")))
    yield explain(of_main(state=ended(128, "StartError")))
    yield explain(pod_in_cluster(spec={"ephemeralContainers": [{"name": "debugger"}]}))
    yield from (explain(pending(of_nodes(message))) for message in _CLAIMS)
    yield explain(pending(""), missing_claims=(MissingClaim("mine"),))
    quota = MISSING.removesuffix("not found") + "timed out"
    yield explain(pending(""), events=[event(REASON, quota)])


def _of_pending() -> Iterator[Explanation]:
    """Explain pods that wait for a scheduler, a volume or a node."""
    yield explain(pending("gated", "SchedulingGated", schedulingGates=[{"name": "a/b"}]))
    yield explain(unseen_by_scheduler("volcano"))
    preempting = pending("0/1 nodes are available: 1 node(s) were unschedulable.")
    preempting["status"]["nominatedNodeName"] = "n"
    yield explain(preempting)
    yield explain(pod_in_cluster(phase="Pending", nominatedNodeName="n", spec={"nodeName": ""}))
    yield explain(pod_in_cluster(phase="Failed"), events=[event("Preempted", "x")])
    volumes = [{"persistentVolumeClaim": {"claimName": "a"}}]
    yield explain(pending('persistentvolumeclaim "a" not found'))
    yield explain(pending(UNBOUND, volumes=volumes))
    yield explain(pending("1 node(s) had volume node affinity conflict", volumes=volumes))
    yield explain(pending("0/1 nodes are available: 1 x."))
    yield explain(pending("1 node(s) didn't match Pod's node affinity/selector."))
    limits = {"nvidia.com/v100": "1", "rdma/rdma_v100": "2"}
    containers = [{"name": "main", "resources": {"limits": limits}}]
    for offers in (["1"], ["0", "2"]):
        nodes = [pool_node("a", gpus="1"), *(pool_node("b", rdma=amount) for amount in offers)]
        yield explain(pending(containers=containers), nodes=nodes)
    broken = pool_node("a")
    broken["status"]["conditions"] = [{"type": "Ready", "status": "False"}]
    yield explain(pending("x"), nodes=[broken], placement_nodes={"a": node_of(broken)})


def _of_controllers() -> Iterator[Explanation]:
    """Explain controllers without pods."""
    quota = event(
        "FailedCreate", "pods is forbidden: exceeded quota: q, requested: a=1", "Job", "a"
    )
    yield without_pods("Job", events=[quota])
    for message in (SILENT, VIOLATES, TOO_MUCH):
        yield without_pods("Job", events=[event("FailedCreate", message, "Job", "a")])
    yield without_pods("Job", status={"failed": 1})
    yield without_pods("Deployment", spec={"paused": True})
    yield without_pods("CronJob")
    yield without_pods("Job")
    yield without_pods("Job", spec={"suspend": True})
    yield without_pods("Deployment", spec={"replicas": 0})
    done = {"conditions": [{"type": "Complete", "status": "True"}]}
    yield without_pods("Job", status=done)
    yield without_pods("Job", spec={"managedBy": "a.example/b"})
    yield without_pods("Job", metadata={"name": "a", "deletionTimestamp": LATER})
    yield from filter(None, [waiting_for_ready(1)])


def _of_run() -> Iterator[Explanation]:
    """Explain pods from their processes, logs and fabrics."""
    unknown = ContainerProcesses("main", problem="x")
    yield explain(pod_in_cluster(), processes=(HOLDS, OPEN, IDLE, unknown))
    for limit in (64, None):
        shell = ContainerProcesses("main", rights=MemoryRights(7, False, limit))
        yield explain(pod_in_cluster(limits={"rdma/a": "1"}), processes=(shell,))
    for lines in ([RDMA], [SOCKETS], [RDMA, SOCKETS], ["NCCL version 2"], ["a NCCL INFO b"], []):
        yield explain(pod_in_cluster(status("unsure")), logs=(log(*lines),))
    template = job(asked=ASKED, resources={"limits": {"nvidia.com/v100": "1"}})
    yield explain(pod_in_cluster(), configuration=fabrics(V100))
    yield explain(pod_in_cluster(status("no", "FabricUnknown")), cluster_configuration=CHANGED)
    yield explain(pod_in_cluster(metadata=OWNED), owners=[template], configuration=fabrics(V100))


EXPLANATIONS = (
    *_of_call(),
    *_of_status(),
    *_of_containers(),
    *_of_run(),
    *_of_pending(),
    *_of_controllers(),
)


FINDINGS = [
    finding
    for explanation in EXPLANATIONS
    for chapter in explanation.chapters
    for finding in chapter.findings
] + [explanation.answer for explanation in _of_controllers()]


def test_each_code_has_its_level() -> None:
    """Of the codes of `why` itself; codes of reasons and known lines occur, too."""
    expected = {(code, level) for level, codes in LEVELS.items() for code in codes.split()}
    own_codes = {code.code for code in CODES} - OF_A_VERDICT
    levels = {(finding.code, finding.level) for finding in FINDINGS}
    assert {(code, level) for code, level in levels if code in own_codes} == expected
    assert {code for code, _ in expected} == own_codes


def test_a_code_without_a_remedy_never_has_one() -> None:
    """The page of codes lists it as a code that needs no action."""
    without_remedy = {code.code for code in CODES if not code.remedy} - OF_A_VERDICT
    assert not [
        finding for finding in FINDINGS if finding.code in without_remedy and finding.remedy
    ]
