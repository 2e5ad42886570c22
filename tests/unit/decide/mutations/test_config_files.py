from dataclasses import replace
from typing import Any, Literal

import pytest

from tests.builders import defaulted, env, gpu, pod
from tests.unit.decide.mutations.alone import codes, outcome_lines, run
from webhook.decide.draft import Draft
from webhook.decide.mutations import env as env_mutation
from webhook.decide.mutations.config_files import MUTATION
from webhook.model.fabric import Defaults, Fabric, FabricEnv
from webhook.model.pod import PodManifest

FABRIC = Fabric(
    name="v100-ib",
    env=FabricEnv(
        library_variables=(("NCCL_IB_HCA", "=mlx5_0,mlx5_1"),),
        ucx_devices="mlx5_0:1,mlx5_1:1",
        site_variables=(("NCCL_DEBUG", "WARN"), ("OMP_NUM_THREADS", "8")),
    ),
    socket_interface="eth0",
    host_socket_interface="bond0",
)
HCA, SOCKET, DEBUG = (
    "NCCL_IB_HCA==mlx5_0,mlx5_1\n",
    "NCCL_SOCKET_IFNAME=eth0\n",
    "NCCL_DEBUG=WARN\n",
)
CONF = HCA + SOCKET + DEBUG
ITEM = {
    "path": "nccl.conf",
    "fieldRef": {"fieldPath": "metadata.annotations['rdma.lab/nccl-conf']"},
}
VOLUME = {"name": "rdma-lab-nccl-conf", "downwardAPI": {"items": [ITEM]}}
MOUNT = {
    "name": "rdma-lab-nccl-conf",
    "mountPath": "/etc/nccl.conf",
    "subPath": "nccl.conf",
    "readOnly": True,
}
SSHD = ["/usr/sbin/sshd", "-De"]
FROM = [{"configMapRef": {"name": "settings"}}]
SECRET = {"name": "HCAS", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}


def worker(name: str = "worker", **fields: Any) -> dict[str, Any]:
    """Make a container that runs sshd."""
    return gpu(name, "2", **{"command": SSHD, **fields})


def decide(
    manifest: PodManifest,
    policy: Literal["auto", "always", "never"] = "auto",
    fabric: Fabric = FABRIC,
) -> Draft:
    """Run `env` and then this mutation, as the pipeline does."""
    before = run(env_mutation.MUTATION, manifest, fabric=fabric)
    return run(MUTATION, before.pod, fabric=fabric, defaults=Defaults(config_files=policy))


def conf(draft: Draft) -> str | None:
    """Return the text in the pod's annotation."""
    text: str | None = draft.pod["metadata"]["annotations"].get("rdma.lab/nccl-conf")
    return text


def test_a_worker_gets_text_volume_and_mount() -> None:
    """The file is mounted with a subPath, so that the rest of the image's /etc stays."""
    draft = decide(pod(worker()))
    assert outcome_lines(draft) == ["applied Mounted", "worker applied Mounted"]
    assert draft.ops == [
        {"op": "add", "path": "/metadata/annotations/rdma.lab~1nccl-conf", "value": CONF},
        {"op": "add", "path": "/spec/volumes", "value": [VOLUME]},
        {"op": "add", "path": "/spec/containers/0/volumeMounts", "value": [MOUNT]},
    ]


def test_the_hidden_file_of_the_image_is_reported() -> None:
    """The message is conditional: admission does not see whether there is such a file."""
    assert decide(pod(worker())).outcomes[-1].message == (
        "mounted /etc/nccl.conf; it hides the image's file, if there is one"
    )


@pytest.mark.parametrize(
    ("manifest", "needed"),
    [
        (pod(gpu("torch", "2", command=["torchrun", "train.py"])), False),
        (pod(gpu("torch", "2", envFrom=FROM)), True),
        (pod(gpu("torch", "2"), labels={"training.kubeflow.org/job-role": "worker"}), True),
        (
            pod(gpu("torch", "2", command=["sh", "-c", "mkdir /run/sshd && /usr/sbin/sshd"])),
            True,
        ),
        (pod(gpu("torch", "2", command=["/entry.sh"], args=["bash", "-c", "sshd -D"])), True),
        (pod(gpu("torch", "2", command=["tini", "--", "service", "ssh", "start", "-D"])), True),
    ],
)
def test_auto_is_for_processes_that_do_not_inherit_env(manifest: PodManifest, needed: bool) -> None:
    """`auto` mounts for a worker role, sshd or envFrom, `always` for all, `never` for none."""
    assert (conf(decide(manifest)) is not None) is needed
    assert conf(decide(manifest, "always")) is not None
    never = decide(manifest, "never")
    assert (outcome_lines(never), codes(never)) == (["torch skipped NotConfigured"], [])


def test_not_needed_is_not_reported() -> None:
    """The status has nothing for a pod whose command does not mention sshd."""
    draft = decide(pod(gpu("torch", "2")))
    assert (outcome_lines(draft), codes(draft)) == (["torch skipped NotNeeded"], [])
    assert (
        draft.outcomes[-1].message == "the command does not mention sshd, and there is no envFrom"
    )


MAX_VALUE = "x" * 1023
PODS = {
    "one": pod(worker()),
    "two": pod(worker("a"), worker("b"), gpu("c", "1")),
    "envFrom": pod(gpu("a", "1", envFrom=FROM), worker("b")),
    "own literal": pod(worker(env=env(NCCL_IB_HCA="^mlx5_2", NCCL_DEBUG=""))),
    "own socket": pod(worker(env=env(NCCL_SOCKET_IFNAME="=net1"))),
    "own gloo": pod(worker(env=env(GLOO_SOCKET_IFNAME="net1"))),
    "own reference": pod(worker(env=[{"name": "NCCL_DEBUG", "valueFrom": {"x": {}}}])),
    "they differ": pod(worker("a", env=env(NCCL_IB_HCA="mlx5_7")), worker("b")),
    "one has gloo": pod(worker("a", env=env(GLOO_SOCKET_IFNAME="e")), worker("b")),
    "two lines": pod(worker(env=env(NCCL_DEBUG="INFO\nNCCL_P2P_DISABLE=1", NCCL_IB_HCA=MAX_VALUE))),
    "too long": pod(worker(env=env(NCCL_DEBUG=f"{MAX_VALUE}x", NCCL_IB_HCA="é" * 512))),
    "kubelet": pod(worker(env=[SECRET, *env(NCCL_IB_HCA="=$(HCAS)")])),
    "expanded": pod(worker(env=env(HCAS="mlx5_1", NCCL_IB_HCA="=$(HCAS)"))),
    "unexpanded": pod(worker(env=env(NCCL_IB_HCA="=$(HCAS)"))),
    "host": pod(worker(), hostNetwork=True),
}
LEFT_OUT = "warned LeftOut"


@pytest.mark.parametrize(
    ("name", "text", "warnings"),
    [
        ("one", CONF, []),
        ("two", CONF, []),
        ("envFrom", CONF, []),
        ("own literal", "NCCL_IB_HCA=^mlx5_2\nNCCL_DEBUG=\n" + SOCKET, []),
        ("own socket", HCA + DEBUG + "NCCL_SOCKET_IFNAME==net1\n", []),
        ("own gloo", HCA + DEBUG, []),
        ("own reference", HCA + SOCKET, [LEFT_OUT]),
        ("they differ", SOCKET + DEBUG, [LEFT_OUT]),
        ("one has gloo", HCA + DEBUG, [LEFT_OUT]),
        ("two lines", f"NCCL_IB_HCA={MAX_VALUE}\n" + SOCKET, [LEFT_OUT]),
        ("too long", SOCKET, [LEFT_OUT]),
        ("kubelet", SOCKET + DEBUG, [LEFT_OUT]),
        ("expanded", "NCCL_IB_HCA==mlx5_1\n" + SOCKET + DEBUG, []),
        ("unexpanded", SOCKET + DEBUG, [LEFT_OUT]),
        ("host", HCA + "NCCL_SOCKET_IFNAME=bond0\n" + DEBUG, []),
    ],
)
def test_the_text_has_the_values_of_the_environment(
    name: str, text: str, warnings: list[str]
) -> None:
    """Users' literals stay; a variable without a common literal is left out, with a warning."""
    draft = decide(PODS[name])
    assert sorted((conf(draft) or "").splitlines()) == sorted(text.splitlines())
    assert [line.strip() for line in codes(draft)] == warnings


@pytest.mark.parametrize("name", PODS)
def test_a_second_decision_finds_the_same(name: str) -> None:
    """On the second call, env has the variables of `env`, and the volume has its defaults."""
    first = decide(PODS[name])
    second = decide(defaulted(first.pod))
    assert second.ops == []
    assert conf(second) == conf(first)
    assert codes(second) == codes(first)
    statuses = {o.status for o in second.outcomes}
    assert statuses <= {"already", "skipped", "warned"}


def test_a_variable_left_out_is_named() -> None:
    """The message names each variable that is left out."""
    assert decide(PODS["they differ"]).outcomes[1].message == (
        "/etc/nccl.conf omits NCCL_IB_HCA, since the containers do not all set the same literal "
        "value"
    )


def test_a_fabric_without_nccl_has_nothing_to_write() -> None:
    """NCCL's variables, the interface included, are written only if the site uses NCCL."""
    fabric = Fabric(name="x", libraries=frozenset({"ucx", "gloo"}), socket_interface="eth0")
    draft = decide(pod(worker(env=env(NCCL_SOCKET_IFNAME="e"))), fabric=fabric)
    assert (outcome_lines(draft), codes(draft)) == (["worker skipped NotConfigured"], [])


def test_no_file_is_mounted_if_all_is_left_out() -> None:
    """If every variable is left out, no file is mounted: an empty one would hide the image's."""
    fabric = Fabric(name="x", env=FabricEnv(library_variables=(("NCCL_IB_HCA", "=$(HCAS)"),)))
    draft = decide(pod(worker()), fabric=fabric)
    assert outcome_lines(draft) == ["worker skipped NotConfigured", LEFT_OUT]


def test_an_escape_of_the_fabric_is_for_the_kubelet_alone() -> None:
    """Where the container may lack the variable, the file would have the escape itself."""
    fabric = Fabric(name="x", env=FabricEnv(library_variables=(("NCCL_IB_HCA", "=a$$b"),)))
    draft = decide(pod(worker(envFrom=FROM)), fabric=fabric)
    assert outcome_lines(draft) == ["worker skipped NotConfigured", LEFT_OUT]


@pytest.mark.parametrize("path", ["/etc/nccl.conf", "/etc/nccl.conf/", "/etc", "/"])
def test_a_mount_of_the_user_stays(path: str) -> None:
    """A mount above the file stays too: our file would be written into the user's volume."""
    mounts = [{"name": "own", "mountPath": path}]
    draft = decide(pod(worker("a", volumeMounts=mounts), worker("b")))
    assert outcome_lines(draft) == ["a skipped UserMount", "applied Mounted", "b applied Mounted"]


def test_a_command_that_writes_the_file_itself_is_left_alone() -> None:
    """Our mount is read-only, so the command's `>` would fail."""
    script = "echo NCCL_DEBUG=INFO > /etc/nccl.conf; exec /usr/sbin/sshd -De"
    draft = decide(pod(worker(command=["sh", "-c", script])))
    assert outcome_lines(draft) == ["worker skipped MentionedInCommand"]


def test_a_hook_that_writes_the_file_is_left_alone() -> None:
    """It would fail, and the kubelet would kill the container."""
    hook = {"postStart": {"exec": {"command": ["cp", "/a/nccl.conf", "/etc/"]}}}
    draft = decide(pod(worker(command=["/usr/sbin/sshd", "-De"], lifecycle=hook)))
    assert outcome_lines(draft) == ["worker skipped MentionedInCommand"]
    assert [outcome.message for outcome in draft.outcomes] == [
        "the postStart hook writes nccl.conf itself"
    ]
    other = {"postStart": {"exec": {"command": ["cp", "/a/x.conf", "/etc/"]}}}
    draft = decide(pod(worker(command=["/usr/sbin/sshd", "-De"], lifecycle=other)))
    assert "worker applied Mounted" in outcome_lines(draft)


@pytest.mark.parametrize(
    ("command", "writes"),
    [
        ("test -f /etc/nccl.conf", False),
        ("grep -q NCCL /etc/nccl.conf 2>/dev/null", False),
        ("echo NCCL_DEBUG=INFO >> /etc/nccl.conf", True),
        ("rm -f /etc/nccl.conf", True),
        ("touch /etc/nccl.conf", True),
    ],
)
def test_a_probe_that_only_reads_the_file(command: str, writes: bool) -> None:
    """Then sshd's children still need it."""
    probe = {"exec": {"command": ["sh", "-c", command]}}
    draft = decide(pod(worker(command=["/usr/sbin/sshd", "-De"], readinessProbe=probe)))
    line = "worker skipped MentionedInCommand" if writes else "worker applied Mounted"
    assert line in outcome_lines(draft)


@pytest.mark.parametrize(
    "source",
    [
        {},
        {"emptyDir": {}},
        {"downwardAPI": {"items": None}},
        {"downwardAPI": {"items": [{"path": "x", "fieldRef": {"fieldPath": "metadata.name"}}]}},
        {"downwardAPI": {"items": [{**ITEM, "path": "other.conf"}]}},
        {"downwardAPI": {"items": [{**ITEM, "fieldRef": {"fieldPath": "metadata.name"}}]}},
        {"downwardAPI": {"items": "nccl.conf"}},
    ],
)
def test_a_volume_of_the_user_with_our_name_stays(source: dict[str, Any]) -> None:
    """Such a volume has other content."""
    draft = decide(pod(worker(), volumes=[{"name": "rdma-lab-nccl-conf", **source}]))
    assert outcome_lines(draft) == ["worker skipped VolumeNameTaken"]


def test_a_volume_of_the_user_may_show_our_text_among_others() -> None:
    """The mount has our text, regardless of other files and their order."""
    name = {"path": "name", "fieldRef": {"fieldPath": "metadata.name"}}
    volume = {"name": "rdma-lab-nccl-conf", "downwardAPI": {"items": [name, ITEM]}}
    draft = decide(pod(worker(), volumes=[volume]))
    assert outcome_lines(draft) == ["applied Mounted", "worker applied Mounted"]
    assert draft.pod["spec"]["volumes"] == [volume]
    assert decide(defaulted(draft.pod)).ops == []


def test_the_users_own_text_must_be_ours() -> None:
    """Replacing the text would lose it, and keeping it would make the status wrong: denied."""
    draft = decide(pod(worker(), annotations={"rdma.lab/nccl-conf": "NCCL_DEBUG=INFO\n"}))
    failed = [o for o in draft.outcomes if o.status == "failed"]
    assert [(o.container, o.reason.code, o.message) for o in failed] == [
        (
            "",
            "AnnotationDiffers",
            "annotation rdma.lab/nccl-conf differs from the webhook's text; remove it",
        )
    ]


def test_the_users_own_text_may_be_ours() -> None:
    """If the text is already right, only the volume and the mount are added."""
    draft = decide(pod(worker(), annotations={"rdma.lab/nccl-conf": CONF}))
    assert [op["path"] for op in draft.ops] == ["/spec/volumes", "/spec/containers/0/volumeMounts"]


def test_a_text_that_nothing_mounts_is_reported() -> None:
    """The annotation alone has no effect, so there is a warning."""
    draft = decide(pod(gpu("torch", "1"), annotations={"rdma.lab/nccl-conf": CONF}))
    assert outcome_lines(draft) == ["torch skipped NotNeeded", "warned AnnotationUnused"]


@pytest.mark.parametrize(("spare", "fits"), [(0, True), (-1, False)])
def test_all_annotations_fit_into_256_kib(spare: int, fits: bool) -> None:
    """The API server limits all annotations together, including ours and the longest status."""
    used = sum(map(len, ("rdma.lab/enable", "true", "big", "rdma.lab/status"))) + 4096
    used += len("rdma.lab/nccl-conf") + len(CONF)
    big = "é" + "x" * (256 * 1024 - used - spare - 2)
    draft = decide(pod(worker(), annotations={"big": big}))
    assert (conf(draft) == CONF) is fits
    assert fits or outcome_lines(draft) == ["worker skipped AnnotationsTooLarge"]
    second = decide(defaulted(draft.pod))
    assert (second.ops, codes(second)) == ([], codes(draft))


@pytest.mark.parametrize(
    "words",
    [
        ["su", "-", "worker", "-c", "torchrun a"],
        ["sudo", "torchrun", "a"],
        ["env", "-i", "torchrun", "a"],
        ["sh", "-c", "if [ $X ]; then exec sudo torchrun a; fi; torchrun b"],
    ],
)
def test_commands_that_drop_the_environment(words: list[str]) -> None:
    """They are a reason for the file, even if they run only under a condition."""
    draft = decide(pod(gpu(command=words)))
    assert conf(draft) == CONF
    assert draft.pod["spec"]["containers"][0]["volumeMounts"] == [MOUNT]


def test_what_the_file_does_not_replace() -> None:
    """NCCL alone reads it: other variables that the command drops are named."""
    draft = decide(pod(gpu(command=["sudo", "torchrun", "a"])))
    (warning,) = [outcome for outcome in draft.outcomes if outcome.reason.code == "EnvDropped"]
    assert warning.message == (
        "sudo in its command drops GLOO_SOCKET_IFNAME, UCX_NET_DEVICES, OMP_NUM_THREADS; "
        "set them after it"
    )
    for words in (["sudo", "-E", "torchrun"], ["sh", "-c", "[ $X ] && sudo a; b"]):
        assert "EnvDropped" not in codes(decide(pod(gpu(command=words))))


AMD = replace(FABRIC, gpu_resources=frozenset({"amd.com/gpu"}))
RCCL = "/etc/rccl.conf"


def test_rccl_has_a_file_of_its_own() -> None:
    """On AMD's GPUs the same text is mounted there; a user's own file there stays."""
    manifest = pod(worker())
    draft = decide(manifest, fabric=AMD)
    assert conf(draft) == CONF
    (mount,) = draft.pod["spec"]["containers"][0]["volumeMounts"]
    assert mount == {**MOUNT, "mountPath": RCCL}
    assert run(MUTATION, draft.pod, fabric=AMD).ops == []
    mounting = worker(volumeMounts=[{"name": "x", "mountPath": RCCL}])
    assert outcome_lines(decide(pod(mounting), fabric=AMD)) == ["worker skipped UserMount"]
    writes = worker(command=["sh", "-c", f"echo A=1 > {RCCL}; /usr/sbin/sshd -D"])
    assert outcome_lines(decide(pod(writes), fabric=AMD)) == ["worker skipped MentionedInCommand"]
    assert conf(decide(pod(writes))) == CONF
