from typing import Any

import pytest

from tests.builders import container, defaulted, env, gpu, pod
from tests.unit.mutations.alone import codes, run, verdicts
from webhook.decision.annotations import Requests
from webhook.decision.draft import Draft
from webhook.mutations.nvlink import MUTATION
from webhook.mutations.nvlink.remap import wrapping
from webhook.pod.manifest import PodManifest

HOST_ID = {"name": "NCCL_HOSTID", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}}
NO_ABSTRACT = {"name": "NCCL_IPC_USE_ABSTRACT_SOCKET", "value": "0"}
COMMAND = ["bash", "-c", "python3 serve.py"]
TMP = [{"name": "tmp", "mountPath": "/tmp"}]
HOST_TMP = [{"name": "tmp", "hostPath": {"path": "/tmp/lab"}}]


def server(name: str = "server", gpus: int = 2, **fields: Any) -> dict[str, Any]:
    """Make a container that meets all requirements."""
    given = {"command": COMMAND, "securityContext": {"privileged": True}, **fields}
    return gpu(name, str(gpus), **{key: value for key, value in given.items() if value})


def ready(*containers: dict[str, Any], **spec: Any) -> PodManifest:
    """Make a pod that meets all requirements."""
    given = {"hostIPC": True, "hostPID": True, "hostNetwork": True, **spec}
    return pod(*(containers or (server(),)), **given)


def alone(*containers: dict[str, Any], **spec: Any) -> PodManifest:
    """Make the same pod with its own network namespace."""
    return ready(*containers, hostNetwork=None, **spec)


def share(manifest: PodManifest, **more: Any) -> Draft:
    """Run the mutation as requested, in an allowed namespace."""
    return run(
        MUTATION, manifest, **{"requests": Requests(nvlink=True), "allowed": ("lab",), **more}
    )


def test_the_command_is_put_behind_the_remap() -> None:
    """Words are inserted in front; the user's own command and args stay as they are."""
    draft = share(ready(server(args=["--tp", "2"])))
    assert verdicts(draft) == ["server applied Wrapped"]
    assert draft.ops == [
        {"op": "add", "path": "/spec/containers/0/env", "value": [HOST_ID]},
        *(
            {"op": "add", "path": f"/spec/containers/0/command/{index}", "value": word}
            for index, word in enumerate(wrapping(2))
        ),
    ]
    assert draft.pod["spec"]["containers"][0]["command"] == [*wrapping(2), *COMMAND]
    assert draft.pod["spec"]["containers"][0]["args"] == ["--tp", "2"]


def test_containers_without_gpus_stay() -> None:
    """They have nothing to share, and need not be privileged."""
    draft = share(ready(server(), container("proxy")))
    assert verdicts(draft) == ["server applied Wrapped"]
    assert draft.pod["spec"]["containers"][1] == container("proxy")


def test_every_container_gets_its_own_count() -> None:
    """The script compares the GPUs that it finds with those that the container requests."""
    draft = share(ready(server("a", 1), server("b", 4)))
    found = [one["command"][4] for one in draft.pod["spec"]["containers"]]
    assert found == ["1", "4"]


def test_a_shared_tmp_replaces_the_hosts_network() -> None:
    """Abstract sockets are limited to a network namespace; sockets in /tmp are not."""
    manifest = alone(server(volumeMounts=TMP), volumes=HOST_TMP)
    draft = share(manifest)
    assert verdicts(draft) == ["server applied Wrapped"]
    assert draft.pod["spec"]["containers"][0]["env"] == [HOST_ID, NO_ABSTRACT]


def test_values_of_the_user_stay() -> None:
    """A user who sets a host ID must set the same one in the other pod."""
    own = env(NCCL_HOSTID="pair-1", NCCL_IPC_USE_ABSTRACT_SOCKET="0")
    manifest = alone(server(volumeMounts=TMP, env=own), volumes=HOST_TMP)
    draft = share(manifest)
    assert verdicts(draft) == ["server applied Wrapped"]
    assert draft.pod["spec"]["containers"][0]["env"] == own


@pytest.mark.parametrize(
    "manifest",
    [
        ready(),
        ready(hostPID=False),
        ready(server("a", 1), server("b", 4)),
        alone(server(volumeMounts=TMP), volumes=HOST_TMP),
    ],
)
def test_a_second_decision_finds_it_there(manifest: PodManifest) -> None:
    """Nothing is left to do, and the outcomes are the same."""
    first = share(manifest)
    second = share(defaulted(first.pod))
    assert second.ops == []
    assert [o.status for o in second.outcomes if o.status != "warned"] == [
        "already" for o in first.outcomes if o.status != "warned"
    ]
    assert codes(second) == codes(first)


def test_a_missing_variable_is_added_to_a_wrapped_command() -> None:
    """A pod pasted from a preview may lack the env."""
    draft = share(ready(server(command=[*wrapping(2), *COMMAND])))
    assert verdicts(draft) == ["server applied Wrapped"]
    assert draft.ops == [{"op": "add", "path": "/spec/containers/0/env", "value": [HOST_ID]}]


def test_without_the_annotation_nothing_is_done() -> None:
    """The status does not mention it either."""
    draft = run(MUTATION, ready(), allowed=("lab",))
    assert (verdicts(draft), codes(draft)) == (["skipped NotRequested"], [])


def test_without_the_nodes_pids_ucx_is_warned_about() -> None:
    """Legacy CUDA IPC handles do not cross PID namespaces; NCCL passes file descriptors."""
    draft = share(ready(hostPID=None))
    assert verdicts(draft) == ["server applied Wrapped", "warned HostPIDMissing"]


@pytest.mark.parametrize(
    ("manifest", "code", "message"),
    [
        (ready(hostIPC=False), "HostIPCMissing", "the pod lacks hostIPC: true"),
        (
            ready(server(securityContext={"privileged": False})),
            "NotPrivileged",
            "container server is not privileged",
        ),
        (
            ready(server(command=None, args=["serve"])),
            "CommandMissing",
            "container server has no command in the pod's spec",
        ),
        (
            ready(server(command=[*wrapping(4), *COMMAND])),
            "WrappedDifferently",
            "the command of server holds a remap for 4 GPUs",
        ),
        (
            ready(server(command=["/usr/sbin/sshd", "-De"])),
            "RunsSshd",
            "container server runs sshd, whose children would see all GPUs",
        ),
        (
            ready(server(volumeMounts=[{"name": "s", "mountPath": "/dev/shm/"}])),
            "SharedMemoryMounted",
            "container server mounts a volume at /dev/shm",
        ),
        (
            ready(server(env=env(CUDA_VISIBLE_DEVICES="0"))),
            "VisibleDevicesSet",
            "container server sets CUDA_VISIBLE_DEVICES",
        ),
        (
            ready(server(env=env(NVIDIA_VISIBLE_DEVICES="all"))),
            "VisibleDevicesSet",
            "container server sets NVIDIA_VISIBLE_DEVICES",
        ),
        (
            ready(server(env=env(CUDA_DEVICE_ORDER="FASTEST_FIRST"))),
            "VisibleDevicesSet",
            "container server sets CUDA_DEVICE_ORDER",
        ),
        (
            ready(server(envFrom=[{"configMapRef": {"name": "c"}}])),
            "EnvFrom",
            "envFrom of server may hold NCCL_HOSTID: put them into env",
        ),
        (
            alone(),
            "SocketsNotShared",
            "container server needs hostNetwork or a hostPath at /tmp",
        ),
        (
            alone(server(volumeMounts=TMP), volumes=[{"name": "tmp", "emptyDir": {}}]),
            "SocketsNotShared",
            "container server needs hostNetwork or a hostPath at /tmp",
        ),
        (
            alone(server(volumeMounts=[{**TMP[0], "readOnly": True}]), volumes=HOST_TMP),
            "SocketsNotShared",
            "container server needs hostNetwork or a hostPath at /tmp",
        ),
        (
            alone(
                server(volumeMounts=TMP, env=env(NCCL_IPC_USE_ABSTRACT_SOCKET="1")),
                volumes=HOST_TMP,
            ),
            "SocketsNotShared",
            "container server needs NCCL_IPC_USE_ABSTRACT_SOCKET=0",
        ),
        (ready(container("proxy")), "NoGPU", "no container has whole GPUs of its own"),
        (
            ready(resourceClaims=[{"name": "imex-channel", "resourceClaimTemplateName": "x"}]),
            "ComputeDomain",
            "the pod uses a ComputeDomain, which needs no sharing",
        ),
        (
            ready(resourceClaims=[{"name": "c", "resourceClaimTemplateName": "Compute-Domain"}]),
            "ComputeDomain",
            "the pod uses a ComputeDomain, which needs no sharing",
        ),
        (
            ready(affinity={"podAffinity": {"x": [{"topologyKey": "nvidia.com/gpu.clique"}]}}),
            "ComputeDomain",
            "the pod uses a ComputeDomain, which needs no sharing",
        ),
        (
            ready(nodeSelector={"nvidia.com/gpu.clique": "a.1"}),
            "ComputeDomain",
            "the pod uses a ComputeDomain, which needs no sharing",
        ),
    ],
)
def test_what_is_missing_or_in_the_way_is_named(
    manifest: PodManifest, code: str, message: str
) -> None:
    """It is all or nothing: a partial setup would compute on another pod's GPUs."""
    draft = share(manifest)
    assert draft.ops == []
    assert [(o.container, o.status, o.reason.code, o.message) for o in draft.outcomes] == [
        ("", "skipped", code, message),
        ("", "warned", code, message),
    ]
    assert codes(share(defaulted(draft.pod))) == codes(draft)


def test_other_claims_and_labels_are_no_compute_domain() -> None:
    """Only names that identify a ComputeDomain count."""
    manifest = ready(
        resourceClaims=[{"name": "nic", "resourceClaimName": "nic-1"}],
        nodeSelector={"nvidia.com/gpu.product": "NVIDIA-H20"},
        affinity={"nodeAffinity": {"weights": [1, None]}},
    )
    assert verdicts(share(manifest)) == ["server applied Wrapped"]


def test_a_namespace_that_is_not_allowed_is_named() -> None:
    """The administrator decides where pods may reach each other's GPUs."""
    draft = share(ready(), allowed=("prod",))
    assert verdicts(draft) == ["skipped NamespaceNotAllowed", "warned NamespaceNotAllowed"]


def test_shared_gpus_are_refused() -> None:
    """A MIG slice has no ordinal, and a time-sliced GPU has no owner."""
    draft = share(ready(server(gpus=0)), shared_gpu=True)
    assert verdicts(draft) == ["skipped SharedGPU", "warned SharedGPU", "warned NoGPU"]


def test_envfrom_is_no_obstacle_where_env_has_the_names() -> None:
    """Then nothing is added, so nothing from envFrom can be overridden."""
    source = [{"secretRef": {"name": "s"}}]
    draft = share(ready(server(envFrom=source, env=env(NCCL_HOSTID="n"))))
    assert verdicts(draft) == ["server applied Wrapped"]


def test_everything_that_is_missing_is_told_at_once() -> None:
    """The verdict lists all of it, and each item has a warning, which `kubectl apply` shows."""
    draft = share(pod(server(securityContext=None, command=None)), allowed=())
    assert draft.ops == []
    assert verdicts(draft) == [
        "skipped NamespaceNotAllowed",
        "warned NamespaceNotAllowed",
        "warned HostIPCMissing",
        "warned NotPrivileged",
        "warned CommandMissing",
        "warned SocketsNotShared",
    ]
    verdict, *warnings = [outcome.message for outcome in draft.outcomes]
    assert verdict == "; ".join(warnings)
    assert all(len(f"rdma.lab: nvlink: {line}") <= 120 and line.isascii() for line in warnings)


def test_one_container_that_is_not_ready_keeps_the_other_from_it() -> None:
    """Either all containers with GPUs are changed, or none."""
    draft = share(ready(server("a"), server("b", securityContext=None)))
    assert draft.ops == []
    assert verdicts(draft) == ["skipped NotPrivileged", "warned NotPrivileged"]
