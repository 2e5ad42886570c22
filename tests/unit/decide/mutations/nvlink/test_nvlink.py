from typing import Any, NoReturn

import pytest

from tests.builders import container, defaulted, env, gpu, pod
from tests.case_names import case_name
from tests.unit.decide.mutations.alone import codes, outcome_lines, run
from webhook.decide.draft import Draft
from webhook.decide.mutations.nvlink import MUTATION
from webhook.decide.mutations.nvlink.remap import wrapping
from webhook.model.annotations import UserAnnotations
from webhook.model.pod import PodManifest

HOST_ID = {"name": "NCCL_HOSTID", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}}
STATED = env(NCCL_IPC_USE_ABSTRACT_SOCKET="0")
COMMAND = ["bash", "-c", "python3 serve.py"]
TMP = [{"name": "tmp", "mountPath": "/tmp"}]
HOST_TMP = [{"name": "tmp", "hostPath": {"path": "/tmp/lab"}}]
CDI = "warned PartOfNode"
WRAPPED = ["server applied Wrapped", CDI]
#: A user's own remap, as in a post on NVLink between two pods of a node.
USER_REMAP = (
    "sleep 30 && CUDA_VISIBLE_DEVICES=$(ls /proc/driver/nvidia/gpus | sort | paste -sd,) "
    "python3 -m sglang.launch_server --tp-size 2"
)


def server(name: str = "server", gpus: int = 2, **fields: Any) -> dict[str, Any]:
    """Make a container that the remap fits."""
    given = {"command": COMMAND, "securityContext": {"privileged": True}, **fields}
    return gpu(name, str(gpus), **{key: value for key, value in given.items() if value})


def ready(*containers: dict[str, Any], **spec: Any) -> PodManifest:
    """Make a pod with everything that NCCL and UCX need."""
    given = {"hostIPC": True, "hostPID": True, "hostNetwork": True, **spec}
    return pod(*(containers or (server(),)), **given)


def alone(*containers: dict[str, Any], **spec: Any) -> PodManifest:
    """Make the same pod with its own network namespace."""
    return ready(*containers, hostNetwork=None, **spec)


def sharing_tmp(**fields: Any) -> PodManifest:
    """Make such a pod with the node's /tmp instead, which its NCCL can use."""
    given = {"volumeMounts": TMP, "env": STATED, **fields}
    return alone(server(**given), volumes=HOST_TMP)


def share(manifest: PodManifest, **options: Any) -> Draft:
    """Run the mutation as requested, in an allowed namespace."""
    annotations = UserAnnotations(nvlink=True)
    return run(MUTATION, manifest, **{"annotations": annotations, "allowed": ("lab",), **options})


def own_env(draft: Draft) -> Any:
    """Return the `env` of the first container."""
    return draft.pod["spec"]["containers"][0].get("env")


def test_the_command_is_put_after_the_remap() -> None:
    """Words are inserted in front; the user's own command and args stay unchanged."""
    draft = share(ready(server(args=["--tp", "2"])))
    assert outcome_lines(draft) == WRAPPED
    assert draft.ops == [
        {"op": "add", "path": f"/spec/containers/0/command/{index}", "value": word}
        for index, word in enumerate(wrapping(2))
    ]
    assert draft.pod["spec"]["containers"][0]["command"] == [*wrapping(2), *COMMAND]
    assert draft.pod["spec"]["containers"][0]["args"] == ["--tp", "2"]


def test_privileged_and_a_command_are_all_that_the_remap_needs() -> None:
    """A lack of NCCL or UCX is only a warning: a pod may use only one of the two."""
    draft = share(pod(server()))
    assert outcome_lines(draft) == [
        *WRAPPED,
        "warned HostPIDMissing",
        "warned HostIPCMissing",
        "server warned SocketsNotShared",
    ]
    assert own_env(draft) is None


def test_the_limits_of_todays_toolkits_are_warned_of() -> None:
    """Under CDI, nothing identifies a part of a node's GPUs, and the script fails closed."""
    assert share(ready()).outcomes[-1].message == (
        "with the GPU Operator's defaults (CDI), a container exits with 1 unless it has all GPUs "
        "of its node"
    )


def test_containers_without_gpus_stay() -> None:
    """They have nothing to share, and need not be privileged."""
    draft = share(ready(server(), container("proxy")))
    assert outcome_lines(draft) == WRAPPED
    assert draft.pod["spec"]["containers"][1] == container("proxy")


def test_every_container_gets_its_own_count() -> None:
    """The script compares the visible GPUs with the container's request."""
    draft = share(ready(server("a", 1), server("b", 4)))
    counts = [app["command"][4] for app in draft.pod["spec"]["containers"]]
    assert counts == ["1", "4"]


def test_a_shared_tmp_replaces_the_hosts_network() -> None:
    """If NCCL puts its sockets there, only the host's name is missing."""
    draft = share(sharing_tmp())
    assert outcome_lines(draft) == WRAPPED
    assert own_env(draft) == [*STATED, HOST_ID]


@pytest.mark.parametrize(
    ("manifest", "lack"),
    [
        (sharing_tmp(env=None), "server warned SocketsNotShared"),
        (sharing_tmp(env=env(NCCL_IPC_USE_ABSTRACT_SOCKET="1")), "server warned SocketsNotShared"),
        (sharing_tmp(volumeMounts=None), "server warned SocketsNotShared"),
        (
            sharing_tmp(volumeMounts=[{**TMP[0], "readOnly": True}]),
            "server warned SocketsNotShared",
        ),
        (
            sharing_tmp(volumeMounts=[{**TMP[0], "name": "other"}]),
            "server warned SocketsNotShared",
        ),
        (
            alone(server(volumeMounts=TMP, env=STATED), volumes=[{"name": "tmp", "emptyDir": {}}]),
            "server warned SocketsNotShared",
        ),
        (
            sharing_tmp(volumeMounts=[*TMP, {"name": "s", "mountPath": "/dev/shm/"}]),
            "server warned SharedMemoryMounted",
        ),
        (
            {**sharing_tmp(), "spec": {**sharing_tmp()["spec"], "hostIPC": False}},
            "warned HostIPCMissing",
        ),
        (sharing_tmp(envFrom=[{"configMapRef": {"name": "c"}}]), "server warned EnvFrom"),
    ],
)
def test_the_hosts_name_is_not_written_where_nccl_lacks_something(
    manifest: PodManifest, lack: str
) -> None:
    """It would move NCCL from InfiniBand to a connection that cannot be made."""
    draft = share(manifest)
    assert outcome_lines(draft) == [*WRAPPED, lack]
    assert HOST_ID not in (own_env(draft) or [])


def test_in_the_hosts_network_no_host_name_is_written() -> None:
    """Hostnames are equal there; the variable on one pod alone would separate peers."""
    draft = share(ready(server(volumeMounts=TMP, env=STATED), volumes=HOST_TMP))
    assert outcome_lines(draft) == WRAPPED
    assert own_env(draft) == STATED


def test_values_of_the_user_stay() -> None:
    """A user who sets a host ID must set the same one in the other pod."""
    user_env = env(NCCL_HOSTID="pair-1", NCCL_IPC_USE_ABSTRACT_SOCKET="0")
    draft = share(sharing_tmp(env=user_env, envFrom=[{"secretRef": {"name": "s"}}]))
    assert outcome_lines(draft) == WRAPPED
    assert own_env(draft) == user_env


@pytest.mark.parametrize(
    ("manifest", "sentence"),
    [
        (
            ready(hostPID=None),
            "without hostPID, UCX (and NIXL) cannot use NVLink between pods",
        ),
        (ready(hostIPC=False), "without hostIPC, NCCL cannot use NVLink between pods"),
        (
            ready(server(volumeMounts=[{"name": "s", "mountPath": "/dev/shm"}])),
            "with a volume at /dev/shm, NCCL cannot use NVLink between pods",
        ),
        (
            alone(),
            (
                "without hostNetwork, use NCCL >= 2.29, a hostPath at /tmp and "
                "NCCL_IPC_USE_ABSTRACT_SOCKET=0"
            ),
        ),
        (
            sharing_tmp(envFrom=[{"configMapRef": {"name": "c"}}]),
            "envFrom may set NCCL_HOSTID; add it to env",
        ),
        (
            ready(server(command=["/entry.sh", "bash", "-c", "service ssh start; serve"])),
            "if the command starts sshd, sshd's children see all GPUs of the node",
        ),
    ],
)
def test_what_is_lacking_is_warned_of(manifest: PodManifest, sentence: str) -> None:
    """The sentence fits into an admission warning."""
    assert share(manifest).outcomes[-1].message == sentence
    assert len(f"rdma.lab: nvlink server: {sentence}") <= 120


@pytest.mark.parametrize(
    "manifest",
    [
        ready(),
        pod(server()),
        ready(server("a", 1), server("b", 4)),
        sharing_tmp(),
        sharing_tmp(envFrom=[{"configMapRef": {"name": "c"}}]),
        ready(server(command=["bash", "-c", USER_REMAP])),
        ready(server(command=["/entry.sh", "service", "ssh", "start"])),
    ],
)
def test_a_second_decision_finds_it_there(manifest: PodManifest) -> None:
    """Nothing is left to do, and the outcomes are the same."""
    first = share(manifest)
    second = share(defaulted(first.pod))
    assert second.ops == []
    assert [o.status for o in second.outcomes] == [
        "already" if o.status == "applied" else o.status for o in first.outcomes
    ]
    assert codes(second) == codes(first)


def test_a_missing_variable_is_added_to_a_wrapped_command() -> None:
    """A pod pasted from a preview may lack the env."""
    draft = share(sharing_tmp(command=[*wrapping(2), *COMMAND]))
    assert outcome_lines(draft) == WRAPPED
    assert draft.ops == [{"op": "add", "path": "/spec/containers/0/env/-", "value": HOST_ID}]


def test_without_the_annotation_nothing_is_done() -> None:
    """The status does not mention it either."""
    draft = run(MUTATION, ready(), allowed=("lab",))
    assert (outcome_lines(draft), codes(draft)) == (["skipped NotRequested"], [])


@pytest.mark.parametrize(
    "command",
    [
        ["bash", "-c", USER_REMAP],
        ["bash", "-c", "export CUDA_VISIBLE_DEVICES=0,1; serve"],
        ["env", "CUDA_VISIBLE_DEVICES=0,1", "serve"],
        ["python", "-c", "import os; os.environ['CUDA_VISIBLE_DEVICES'] = '0'"],
        ["python", "-c", 'os.environ["CUDA_VISIBLE_DEVICES"]="0"'],
    ],
    ids=case_name,
)
def test_a_users_own_remap_stays(command: list[str]) -> None:
    """The command would override ours; a lack of UCX or NCCL is still reported."""
    for app in (server(command=command), server(command=command[:2], args=command[2:])):
        draft = share(pod(app))
        assert draft.ops == []
        assert [(o.status, o.reason.code, o.message) for o in draft.outcomes[:1]] == [
            (
                "skipped",
                "OwnRemap",
                "the command of server assigns CUDA_VISIBLE_DEVICES itself, and is left unchanged",
            )
        ]
        assert outcome_lines(draft)[1:] == [
            "warned HostPIDMissing",
            "warned HostIPCMissing",
            "server warned SocketsNotShared",
        ]


@pytest.mark.parametrize(
    "script",
    [
        "echo $CUDA_VISIBLE_DEVICES; serve",
        '[ "$CUDA_VISIBLE_DEVICES" = 0 ] && serve',
        "echo ${CUDA_VISIBLE_DEVICES:=0} ${CUDA_VISIBLE_DEVICES=0}",
        "MY_CUDA_VISIBLE_DEVICES=0 serve",
        'python -c \'os.environ["CUDA_VISIBLE_DEVICES"] == "0"\'',
        "mpirun -x CUDA_VISIBLE_DEVICES serve",
    ],
    ids=case_name,
)
def test_a_use_of_the_variable_is_no_assignment(script: str) -> None:
    """A default for it never comes into force after the remap."""
    assert outcome_lines(share(ready(server(command=["bash", "-c", script])))) == WRAPPED


def test_a_users_own_remap_keeps_the_other_container_from_ours() -> None:
    """Either all containers with GPUs are changed, or none."""
    draft = share(ready(server("a"), server("b", command=["bash", "-c", USER_REMAP])))
    assert (draft.ops, outcome_lines(draft)) == ([], ["skipped OwnRemap"])
    draft = share(
        ready(server("a", securityContext=None), server("b", command=["bash", "-c", USER_REMAP]))
    )
    assert outcome_lines(draft) == ["skipped NotPrivileged", "warned NotPrivileged"]


@pytest.mark.parametrize(
    ("manifest", "code", "message"),
    [
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
            "the command of server runs rdma-remap for 4 GPUs",
        ),
        (
            ready(server(command=["/usr/sbin/sshd", "-De"])),
            "RunsSshd",
            "container server runs sshd, whose children would see all GPUs",
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
        (ready(container("proxy")), "NVLinkWithoutGPU", "no container has whole GPUs of its own"),
        (
            ready(resourceClaims=[{"name": "imex-channel", "resourceClaimTemplateName": "x"}]),
            "ComputeDomain",
            "the pod uses a ComputeDomain, so its commands do not need the script rdma-remap",
        ),
        (
            ready(resourceClaims=[{"name": "c", "resourceClaimTemplateName": "Compute-Domain"}]),
            "ComputeDomain",
            "the pod uses a ComputeDomain, so its commands do not need the script rdma-remap",
        ),
        (
            ready(affinity={"podAffinity": {"x": [{"topologyKey": "nvidia.com/gpu.clique"}]}}),
            "ComputeDomain",
            "the pod uses a ComputeDomain, so its commands do not need the script rdma-remap",
        ),
        (
            ready(nodeSelector={"nvidia.com/gpu.clique": "a.1"}),
            "ComputeDomain",
            "the pod uses a ComputeDomain, so its commands do not need the script rdma-remap",
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
    assert outcome_lines(share(manifest)) == WRAPPED


class _Unwritten(list[Any]):
    """A list that must not be written as a whole; nested ones take very long."""

    def __repr__(self) -> NoReturn:
        pytest.fail("the whole list was written")


def test_affinity_is_searched_without_writing_it() -> None:
    """The work does not grow with the depth."""
    affinity = {"x": [_Unwritten(["nvidia.com/gpu.clique"])]}
    assert outcome_lines(share(ready(affinity=affinity))) == [
        "skipped ComputeDomain",
        "warned ComputeDomain",
    ]


def test_a_namespace_that_is_not_allowed_is_named() -> None:
    """The administrator decides where pods may reach each other's GPUs."""
    draft = share(ready(), allowed=("prod",))
    assert outcome_lines(draft) == ["skipped NamespaceNotAllowed", "warned NamespaceNotAllowed"]


def test_shared_gpus_are_refused() -> None:
    """A MIG slice has no ordinal, and a time-sliced GPU has no owner."""
    draft = share(ready(server(gpus=0)), partial_gpu=True)
    assert outcome_lines(draft) == [
        "skipped NVLinkSharedGPU",
        "warned NVLinkSharedGPU",
        "warned NVLinkWithoutGPU",
    ]


def test_every_obstacle_is_reported_at_once() -> None:
    """The verdict lists all of it, and each item has a warning, which `kubectl apply` shows."""
    draft = share(pod(server(securityContext=None, command=None)), allowed=())
    assert draft.ops == []
    assert outcome_lines(draft) == [
        "skipped NamespaceNotAllowed",
        "warned NamespaceNotAllowed",
        "warned NotPrivileged",
        "warned CommandMissing",
    ]
    verdict, *warnings = [outcome.message for outcome in draft.outcomes]
    assert verdict == "; ".join(warnings)
    assert all(len(f"rdma.lab: nvlink: {line}") <= 120 and line.isascii() for line in warnings)


def test_a_container_that_is_not_ready_keeps_the_other_from_it() -> None:
    """Either all containers with GPUs are changed, or none."""
    draft = share(ready(server("a"), server("b", securityContext=None)))
    assert draft.ops == []
    assert outcome_lines(draft) == ["skipped NotPrivileged", "warned NotPrivileged"]
