from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest

from tests.builders import decide_on, decision_input, gpu, pod
from tests.unit.decide.verdict.judging import judged, verdict_on
from webhook.decide import inspect
from webhook.decide.analysis import DecisionInput
from webhook.decide.verdict import ROOT_ASSUMED
from webhook.model.fabric import Globs
from webhook.model.facts import PSA_ENFORCE, NamespaceFacts
from webhook.model.pod import PodManifest

UNKNOWN = ("unsure", "MemlockUnknown")
EQUIPPED = ("yes", "Equipped")
EQUIPPED_SENTENCE = "Device, memory, network and environment are right for RDMA"


def secured(security: dict[str, Any], **spec: Any) -> PodManifest:
    """Make a pod whose container has this securityContext."""
    return pod(gpu(securityContext=security), **spec)


@pytest.mark.parametrize(
    ("manifest", "obstacle"),
    [
        (secured({"runAsUser": 1000}), "does not run as root"),
        (secured({"runAsNonRoot": True, "privileged": True}), "does not run as root"),
        (pod(hostUsers=False), "has a user namespace (hostUsers: false)"),
        (secured({"capabilities": {"drop": ["IPC_LOCK"]}}), "drops IPC_LOCK"),
        (secured({"capabilities": {"add": ["ALL"], "drop": ["IPC_LOCK"]}}), "drops IPC_LOCK"),
        (pod(annotations={"rdma.lab/skip": "ipc-lock"}), "lacks IPC_LOCK"),
    ],
    ids=("user", "privileged user", "user namespace", "dropped", "all but dropped", "skipped"),
)
def test_where_the_capability_does_not_help_the_nodes_decide(
    manifest: PodManifest, obstacle: str
) -> None:
    """The message has the obstacle; the verdict is certain if the nodes' memlock is known."""
    assert judged(manifest) == UNKNOWN
    changes = {
        "drops IPC_LOCK": "remove it from capabilities.drop, or use",
        "lacks IPC_LOCK": "remove ipc-lock from rdma.lab/skip, or use",
    }
    way_out = f"{changes.get(obstacle, 'it needs')} nodes with LimitMEMLOCK=infinity"
    assert verdict_on(manifest).message == f"container trainer {obstacle}; {way_out}"
    assert judged(manifest, decision_input(defaults={"memlock": "unlimited"})) == EQUIPPED
    limited = verdict_on(manifest, decision_input(defaults={"memlock": "limited"}))
    assert (limited.rdma, limited.because.code) == ("no", "MemlockLimited")
    assert limited.message == f"container trainer {obstacle}, and the nodes limit locked memory"


@pytest.mark.parametrize(
    ("manifest", "remedy"),
    [
        (secured({"runAsUser": 1000}), "Run the container as root"),
        (
            pod(hostUsers=False),
            "Run the container as root (runAsUser: 0,",
        ),
        (pod(gpu(command=["gosu", "1000", "a"])), "Remove what changes the user, or drops"),
        (secured({"capabilities": {"drop": ["IPC_LOCK"]}}), "Remove IPC_LOCK from securityContext"),
        (pod(annotations={"rdma.lab/skip": "ipc-lock"}), "Remove ipc-lock from the annotation"),
    ],
    ids=("user", "user namespace", "command", "dropped", "skipped"),
)
def test_the_remedy_fits_the_obstacle(manifest: PodManifest, remedy: str) -> None:
    """Each names what to change in the pod; an unknown limit of the nodes may need no change."""
    unknown = verdict_on(manifest).remedy
    limited = verdict_on(manifest, decision_input(defaults={"memlock": "limited"})).remedy
    assert limited.startswith(remedy)
    assert unknown == (
        f"{limited} If the nodes already raise the memlock limit, ask the cluster administrator to "
        "set `defaults.memlock` in the configuration: to unlimited if LimitMEMLOCK=infinity raises "
        "the limit, to nri if the NRI ulimit-adjuster does."
    )


def test_a_capability_that_is_missing() -> None:
    """No call leaves a pod so, but a pod may be changed afterwards."""
    manifest: dict[str, Any] = deepcopy(dict(decide_on(pod()).pod))
    del manifest["spec"]["containers"][0]["securityContext"]
    inspection = inspect(manifest, decision_input())
    assert inspection is not None
    verdict = inspection.verdict
    assert verdict.message == (
        "container trainer lacks IPC_LOCK; add it to capabilities.add, or use nodes with "
        "LimitMEMLOCK=infinity"
    )
    assert verdict.remedy.startswith("Add IPC_LOCK to securityContext.capabilities.add of the")


def test_an_annotation_may_raise_memlock() -> None:
    """It does if the nodes run the NRI plugin, unless the user's own annotation does not."""
    cluster, manifest = decision_input(defaults={"memlock": "nri"}), secured({"runAsUser": 1000})
    assert judged(manifest, cluster) == EQUIPPED
    manifest["metadata"]["annotations"]["ulimits.nri.containerd.io/container.trainer"] = "[]"
    verdict = verdict_on(manifest, cluster)
    assert (verdict.rdma, verdict.because.code) == ("no", "MemlockLimited")
    assert (
        verdict.message
        == "container trainer does not run as root, and no annotation raises the memlock limit"
    )


def in_namespace(level: str, memlock: str = "unknown") -> DecisionInput:
    """Return the input for a namespace that enforces this level of Pod Security."""
    namespace = NamespaceFacts(name="lab", labels={PSA_ENFORCE: level})
    return decision_input(namespace=namespace, defaults={"memlock": memlock})


FORBIDDEN = "container trainer lacks IPC_LOCK, since Pod Security {} of the namespace forbids it"


@pytest.mark.parametrize(
    ("manifest", "level", "forbids"),
    [
        (pod(), "baseline", True),
        (pod(), "restricted", True),
        (secured({"runAsUser": 1000}), "restricted", True),
        (secured({"runAsUser": 1000}), "baseline", False),
        (secured({"capabilities": {"drop": ["IPC_LOCK"]}}), "baseline", False),
        (pod(hostUsers=False), "restricted", False),
        (pod(), "privileged", None),
        (secured({"privileged": True}), "baseline", None),
    ],
    ids=str,
)
def test_pod_security_may_refuse_the_capability(
    manifest: PodManifest, level: str, forbids: bool | None
) -> None:
    """It is the cause, unless the pod itself leaves the capability without effect.

    `restricted` forbids to run as root, too, so a user other than root is no fault of the pod.
    """
    verdict = verdict_on(manifest, in_namespace(level))
    codes = {True: "PodSecurity", False: "MemlockUnknown", None: "Equipped"}
    assert verdict.because.code == codes[forbids]
    if forbids:
        assert (verdict.rdma, verdict.message) == ("unsure", FORBIDDEN.format(level))


@pytest.mark.parametrize(
    ("memlock", "end"),
    [
        ("limited", "the nodes limit locked memory"),
        ("nri", "no annotation raises the memlock limit"),
    ],
)
def test_pod_security_where_memlock_is_known(memlock: str, end: str) -> None:
    """Nodes that limit memlock make it certain; the remedy is the same."""
    manifest = pod()
    key = "ulimits.nri.containerd.io/container.trainer"
    manifest["metadata"]["annotations"][key] = "[]"
    verdict = verdict_on(manifest, in_namespace("baseline", memlock))
    assert (verdict.rdma, verdict.because.code) == ("no", "IpcLockForbidden")
    assert verdict.message == f"{FORBIDDEN.format('baseline')}, and {end}"
    assert "privileged" in verdict.because.remedy
    assert judged(pod(), in_namespace("baseline", "unlimited")) == EQUIPPED
    assert judged(pod(), in_namespace("baseline", "nri")) == EQUIPPED


@pytest.mark.parametrize(
    "security",
    [
        {},
        {"runAsUser": 0, "runAsNonRoot": False},
        {"privileged": True},
        {"capabilities": {"add": ["ipc_lock"]}},
        {"capabilities": {"add": ["ALL"]}},
        {"capabilities": {"drop": ["ALL"]}},
    ],
    ids=("unset", "root", "privileged", "ipc_lock", "all", "all dropped"),
)
def test_root_with_the_capability_may_register_memory(security: dict[str, Any]) -> None:
    """A user that only the image names counts as root."""
    assert judged(secured(security)) == EQUIPPED


ASSUMED = ", assuming that the image runs as root"


@pytest.mark.parametrize(
    ("manifest", "assumed"),
    [
        (pod(), ASSUMED),
        (secured({"privileged": True}), ASSUMED),
        (secured({"runAsNonRoot": False}), ASSUMED),
        (secured({"runAsUser": 0}), ""),
        (pod(securityContext={"runAsUser": 0}), ""),
        (pod(gpu("a"), gpu("b")), ", assuming that images run as root (containers a, b)"),
        (
            pod(gpu("a"), gpu("b", securityContext={"runAsUser": 0})),
            ", assuming that images run as root (containers a)",
        ),
    ],
    ids=("unset", "privileged", "root permitted", "root", "root pod", "two", "one of two"),
)
def test_an_assumption_is_in_the_message(manifest: PodManifest, assumed: str) -> None:
    """A privileged process of another user has no capabilities either; the status has a code."""
    verdict = verdict_on(manifest)
    assert verdict.message == f"{EQUIPPED_SENTENCE}{assumed}"
    assert verdict.assumption is (ROOT_ASSUMED if assumed else None)


def test_where_the_user_does_not_matter_nothing_is_assumed() -> None:
    """Nodes that raise memlock do it for all, and an annotation for its container."""
    unlimited = decision_input(defaults={"memlock": "unlimited"})
    assert verdict_on(pod(), unlimited).message == EQUIPPED_SENTENCE
    nri = decision_input(defaults={"memlock": "nri"})
    assert verdict_on(pod(), nri).message == f"{EQUIPPED_SENTENCE}{ASSUMED}"
    key = "ulimits.nri.containerd.io/container.trainer"
    raised = pod(annotations={key: "- {type: RLIMIT_MEMLOCK}"})
    assert verdict_on(raised, nri).message == EQUIPPED_SENTENCE


def images(*globs: str, memlock: str = "unknown") -> DecisionInput:
    """Make a decision input with images that do not run as root."""
    return decision_input(defaults={"non_root_images": Globs(globs), "memlock": memlock})


@pytest.mark.parametrize(
    ("glob", "expected"),
    [
        ("lab/train", UNKNOWN),
        ("lab/*", UNKNOWN),
        ("docker.io/lab/train", UNKNOWN),
        ("lab/train:2*", UNKNOWN),
        ("lab/train:1*", EQUIPPED),
        ("train", EQUIPPED),
        ("lab/train2", EQUIPPED),
    ],
)
def test_the_site_knows_images_that_do_not_run_as_root(
    glob: str, expected: tuple[str, str]
) -> None:
    """The whole name counts; the registry and the tag may be left out."""
    manifest = pod(gpu(image="lab/train:2.9"))
    assert judged(manifest, images(glob)) == expected


def test_an_image_of_another_user_is_in_the_message() -> None:
    """Its name is the evidence; the pod's securityContext takes precedence."""
    manifest = pod(gpu(image="lab/ray"))
    assert verdict_on(manifest, images("lab/ray")).message == (
        "container trainer has an image that runs as a non-root user; it needs nodes with "
        "LimitMEMLOCK=infinity"
    )
    assert judged(manifest, images("lab/ray", memlock="limited")) == ("no", "MemlockLimited")
    assert judged(manifest, images("lab/ray", memlock="nri")) == EQUIPPED
    root = pod(gpu(image="lab/ray", securityContext={"runAsUser": 0}))
    assert judged(root, images("lab/ray")) == EQUIPPED


@pytest.mark.parametrize(
    ("image", "uid"),
    [
        ("rayproject/ray:2.9.0-gpu", "1000"),
        ("docker.io/rayproject/ray-ml", "1000"),
        ("registry.lab:5000/hub/rayproject/ray@sha256:0", "1000"),
        ("quay.io/jupyter/pytorch-notebook:cuda12", "1000"),
        ("nvcr.io/nvidia/ai-dynamo/vllm-runtime:0.7.0", "1000"),
        ("bitnami/pytorch:2", "1001"),
        ("ghcr.io/llm-d/llm-d-cuda:v0.4.0", "2000"),
    ],
)
def test_some_images_are_known_not_to_run_as_root(image: str, uid: str) -> None:
    """The message names the user; the pod's securityContext takes precedence."""
    assert verdict_on(pod(gpu(image=image))).message == (
        f"container trainer has an image that runs as uid {uid}; it needs nodes with "
        "LimitMEMLOCK=infinity"
    )
    assert judged(pod(gpu(image=image, securityContext={"runAsUser": 0}))) == EQUIPPED
    assert judged(pod(gpu(image=image)), images(memlock="unlimited")) == EQUIPPED


def test_what_the_site_says_of_an_image_comes_first() -> None:
    """It may have built its own."""
    verdict = verdict_on(pod(gpu(image="rayproject/ray")), images("rayproject/*"))
    assert verdict.message.startswith(
        "container trainer has an image that runs as a non-root user;"
    )


@pytest.mark.parametrize(
    ("words", "source"),
    [
        (["gosu", "1000", "torchrun", "a"], "gosu 1000"),
        (["su", "worker", "-c", "torchrun a"], "su worker"),
        (["sh", "-c", "exec setpriv --reuid=1000 torchrun a"], "setpriv --reuid 1000"),
        (["chroot", "--userspec=9:9", "/", "torchrun"], "chroot --userspec 9:9"),
    ],
)
def test_a_command_that_leaves_root(words: list[str], source: str) -> None:
    """Its process has no capabilities, so that the nodes decide."""
    manifest = pod(gpu(command=words))
    assert judged(manifest) == UNKNOWN
    assert verdict_on(manifest).message == (
        f"container trainer loses IPC_LOCK ({source} in its command); "
        "let it stay root and keep IPC_LOCK, or use nodes with LimitMEMLOCK=infinity"
    )
    warned = f"IPC_LOCK has no effect after {source}; containerd needs LimitMEMLOCK=infinity"
    assert decide_on(manifest).warnings[1] == f"rdma.lab: ipc-lock trainer: {warned}"
    assert judged(manifest, decision_input(defaults={"memlock": "unlimited"})) == EQUIPPED
    assert judged(manifest, decision_input(defaults={"memlock": "nri"})) == EQUIPPED


def test_a_command_that_drops_the_capability() -> None:
    """Root has it no more in the programs that it runs."""
    verdict = verdict_on(pod(gpu(command=["capsh", "--drop=cap_ipc_lock", "--", "-c", "a"])))
    assert (verdict.rdma, verdict.because.code) == UNKNOWN
    assert "loses IPC_LOCK (capsh --drop cap_ipc_lock in its command)" in verdict.message


def test_a_command_that_may_leave_root() -> None:
    """Only where that matters: not where the nodes or an annotation raise memlock."""
    script = '[ "$(id -u)" = 0 ] && exec gosu worker torchrun a; torchrun a'
    manifest = pod(gpu(command=["sh", "-c", script]))
    verdict = verdict_on(manifest)
    assert (verdict.rdma, verdict.because.code) == ("unsure", "UserMayChange")
    assert verdict.message == (
        "container trainer may lose IPC_LOCK (gosu worker in its command), which has an effect "
        "only for root"
    )
    assert judged(manifest, decision_input(defaults={"memlock": "unlimited"})) == EQUIPPED
    nri = decision_input(defaults={"memlock": "nri"})
    assert judged(manifest, nri) == ("unsure", "UserMayChange")
    raising = "- {type: RLIMIT_MEMLOCK, soft: 18446744073709551615, hard: 18446744073709551615}"
    manifest["metadata"]["annotations"]["ulimits.noderesource.dev/container.trainer"] = raising
    assert judged(manifest, nri) == EQUIPPED


@pytest.mark.parametrize(
    ("limit", "is_low"),
    [
        ("64", True),
        ("1048575", True),
        ("1048576", False),
        ("unlimited", False),
        ("9" * 30, False),
        ("$X", False),
    ],
)
def test_a_command_that_lowers_memlock(limit: str, is_low: bool) -> None:
    """IPC_LOCK overrides the limit; without it, even nodes that raise memlock do not help."""
    words = ["sh", "-c", f"ulimit -l {limit}; exec torchrun a"]
    unlimited = decision_input(defaults={"memlock": "unlimited"})
    assert judged(pod(gpu(command=words)), unlimited) == EQUIPPED
    user = pod(gpu(command=words, securityContext={"runAsUser": 1000}))
    assert judged(user, unlimited) == (("no", "MemlockLowered") if is_low else EQUIPPED)


def test_the_message_about_a_lowered_limit() -> None:
    """It names the obstacle and the limit."""
    words = ["sh", "-c", "ulimit -l 64; exec gosu 1000 torchrun a"]
    assert verdict_on(pod(gpu(command=words))).message == (
        "container trainer loses IPC_LOCK (gosu 1000 in its command), and the memlock limit is 64 "
        "KiB (ulimit -l in its command); remove that limit"
    )


def running_script(text: str, **fields: Any) -> tuple[PodManifest, DecisionInput]:
    """Make a pod that runs a script in a ConfigMap, and the input of a preview that knows it."""
    mount = {"name": "s", "mountPath": "/scripts"}
    container = gpu(command=["bash", "/scripts/a"], volumeMounts=[mount], **fields)
    facts = NamespaceFacts(name="lab", config_maps={"m": {"a": text}})
    volume = {"name": "s", "configMap": {"name": "m"}}
    return pod(container, volumes=[volume]), decision_input(namespace=facts)


def test_a_script_that_leaves_root() -> None:
    """As a command that does; the message names the script."""
    verdict = verdict_on(*running_script("exec gosu 1000 torchrun a\n"))
    assert (verdict.rdma, verdict.because.code) == UNKNOWN
    assert verdict.message.startswith(
        "container trainer loses IPC_LOCK (gosu 1000 in key a of ConfigMap m); let it stay root"
    )
    verdict = verdict_on(*running_script("ulimit -l 64\nexec gosu 1000 torchrun a\n"))
    assert verdict.message.endswith(
        "the memlock limit is 64 KiB (ulimit -l in key a of ConfigMap m); remove that limit"
    )
    judged_possible = judged(*running_script("[ $X ] && exec gosu 1000 ./a\n./a"))
    assert judged_possible == ("unsure", "UserMayChange")


def test_a_script_that_goes_on_before_the_command_leaves_root() -> None:
    """The command is not reached."""
    manifest, cluster = running_script("exec env NCCL_DEBUG=INFO torchrun a\n")
    command = ["sh", "-c", ". /scripts/a; exec gosu 1000 torchrun a"]
    manifest["spec"]["containers"][0]["command"] = command
    assert judged(manifest, cluster) == EQUIPPED


def test_who_takes_root_away() -> None:
    """The pod's own user and that of the image come before what a command does."""
    for script in ("[ $X ] && exec gosu 1000 ./a\n./a", "exec gosu 1000 ./a"):
        command = ["sh", "-c", script]
        by_pod = verdict_on(pod(gpu(command=command, securityContext={"runAsUser": 1000})))
        assert by_pod.message.startswith("container trainer does not run as root; ")
        by_image = verdict_on(
            pod(gpu(command=command, image="rayproject/ray")), images("rayproject/*")
        )
        assert by_image.message.startswith(
            "container trainer has an image that runs as a non-root user; "
        )
    script = "[ $X ] && exec gosu 1000 ./a\n./a"
    root = pod(gpu(command=["sh", "-c", script], securityContext={"runAsUser": 0}))
    assert judged(root) == ("unsure", "UserMayChange")
    root = pod(gpu(command=["gosu", "1"], image="rayproject/ray", securityContext={"runAsUser": 0}))
    assert "loses IPC_LOCK (gosu 1 in" in verdict_on(root, images("rayproject/*")).message
