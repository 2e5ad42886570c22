from __future__ import annotations

from typing import Any

import pytest

from tests.builders import (
    container,
    decide_on,
    decision_input,
    defaulted,
    gpu,
    ops,
    outcomes_of,
    pod,
    quantities,
)
from tests.case_names import case_name
from webhook.decide.analysis import DecisionInput
from webhook.decide.mutations.ipc_lock import NOT_RAISED
from webhook.model.facts import NamespaceFacts
from webhook.model.pod import PodManifest

NAME = "ipc-lock"
ADDED = "added capability IPC_LOCK, so that memory can be registered"
#: The same where IPC_LOCK has no effect.
WITHOUT_EFFECT = "added capability IPC_LOCK"
LOCK = {"add": ["IPC_LOCK"]}


def secured(security: Any, **spec: Any) -> PodManifest:
    """Make a pod whose only target has this securityContext."""
    return pod(gpu(securityContext=security), **spec)


def statuses(manifest: PodManifest, cluster: DecisionInput | None = None) -> list[tuple[str, str]]:
    """List the status and reason of each outcome of the mutation."""
    return [
        (status, code) for _, status, code, _ in outcomes_of(decide_on(manifest, cluster), NAME)
    ]


def enforcing(level: str, policy: str = "skip", **defaults: str) -> DecisionInput:
    """Make a namespace that enforces a Pod Security level."""
    labels = {"pod-security.kubernetes.io/enforce": level}
    return decision_input(
        namespace=NamespaceFacts(name="lab", labels=labels),
        defaults={"pod_security": policy, **defaults},
    )


@pytest.mark.parametrize(
    ("security", "code", "message"),
    [
        ({"privileged": True}, "Privileged", "a privileged container has every capability"),
        ({"capabilities": LOCK}, "Present", "the container already has IPC_LOCK"),
        ({"capabilities": {"add": ["ipc_lock"]}}, "Present", "the container already has IPC_LOCK"),
        ({"capabilities": {"add": ["ALL"]}}, "Present", "the container already has IPC_LOCK"),
        (
            {"capabilities": {"add": ["SYS_PTRACE", "IPC_LOCK"], "drop": ["ALL"]}},
            "Present",
            "the container already has IPC_LOCK",
        ),
    ],
    ids=case_name,
)
def test_a_container_may_have_it_already(security: Any, code: str, message: str) -> None:
    """It may be privileged, or have added the name or ALL, in any case of letters."""
    decision = decide_on(secured(security))
    assert outcomes_of(decision, NAME) == [("trainer", "already", code, message)]
    assert ops(decision, NAME) == []


@pytest.mark.parametrize(
    "capabilities",
    [
        {"drop": ["IPC_LOCK"]},
        {"drop": ["NET_RAW", "ipc_lock"]},
        {"add": ["IPC_LOCK"], "drop": ["IPC_LOCK"]},
        {"add": ["ALL"], "drop": ["IPC_LOCK"]},
    ],
    ids=case_name,
)
def test_dropping_it_wins(capabilities: Any) -> None:
    """Containerd drops capabilities after adding them, so adding would have no effect."""
    decision = decide_on(secured({"capabilities": capabilities}))
    message = "capabilities.drop lists IPC_LOCK, so adding it has no effect; remove it there"
    assert outcomes_of(decision, NAME) == [
        ("trainer", "skipped", "DroppedByUser", message),
        ("trainer", "warned", "DroppedByUser", message),
    ]
    assert ops(decision, NAME) == []


@pytest.mark.parametrize(
    ("security", "op"),
    [
        (None, ("replace", "", {"capabilities": LOCK})),
        ({}, ("add", "/capabilities", LOCK)),
        ({"privileged": False, "capabilities": None}, ("replace", "/capabilities", LOCK)),
        ({"capabilities": {}}, ("add", "/capabilities/add", ["IPC_LOCK"])),
        ({"capabilities": {"drop": ["ALL"]}}, ("add", "/capabilities/add", ["IPC_LOCK"])),
        ({"capabilities": {"add": ["SYS_PTRACE"]}}, ("add", "/capabilities/add/-", "IPC_LOCK")),
    ],
    ids=case_name,
)
def test_it_is_added_to_what_is_there(security: Any, op: tuple[str, str, Any]) -> None:
    """Nothing else in the securityContext changes; `drop: [ALL]` is not a conflict."""
    decision = decide_on(secured(security))
    assert outcomes_of(decision, NAME) == [("trainer", "applied", "Added", ADDED)]
    kind, path, value = op
    parent = "/spec/containers/0/securityContext"
    assert ops(decision, NAME) == [{"op": kind, "path": parent + path, "value": value}]


def test_every_target_gets_it_and_nobody_else() -> None:
    """A sidecar without a GPU registers no memory."""
    decision = decide_on(pod(gpu("a"), container("proxy"), gpu("b", securityContext={})))
    assert outcomes_of(decision, NAME) == [
        ("a", "applied", "Added", ADDED),
        ("b", "applied", "Added", ADDED),
    ]
    assert decision.pod["spec"]["containers"][1] == container("proxy")


def test_the_prefixed_name_is_no_capability() -> None:
    """Containerd reads it as CAP_CAP_IPC_LOCK: the right name is added, with a warning."""
    decision = decide_on(secured({"capabilities": {"add": ["CAP_IPC_LOCK"]}}))
    assert outcomes_of(decision, NAME) == [
        ("trainer", "applied", "Added", ADDED),
        (
            "trainer",
            "warned",
            "CapPrefix",
            "capability CAP_IPC_LOCK is not valid; write IPC_LOCK",
        ),
    ]
    assert decision.pod["spec"]["containers"][0]["securityContext"] == {
        "capabilities": {"add": ["CAP_IPC_LOCK", "IPC_LOCK"]}
    }


@pytest.mark.parametrize("level", ["baseline", "restricted"])
def test_it_is_not_added_where_pod_security_refuses_it(level: str) -> None:
    """Our patch would get the pod rejected."""
    message = (
        f"Pod Security {level} forbids IPC_LOCK; set the namespace's label "
        "pod-security.kubernetes.io/enforce to privileged"
    )
    skipped = decide_on(pod(), enforcing(level))
    label = "pod-security.kubernetes.io/enforce"
    warning = f"the namespace's label {label}={level} forbids IPC_LOCK"
    assert outcomes_of(skipped, NAME) == [
        ("trainer", "skipped", "PodSecurity", message),
        ("trainer", "warned", "PodSecurity", warning),
    ]
    assert "securityContext" not in skipped.pod["spec"]["containers"][0]
    denied = decide_on(pod(), enforcing(level, "deny"))
    assert outcomes_of(denied, NAME) == [("trainer", "failed", "PodSecurity", message)]
    assert (denied.allowed, denied.reason.code, denied.message, denied.patch) == (
        False,
        "MutationFailed",
        f"ipc-lock in container trainer: {message}",
        (),
    )


def test_pod_security_does_not_concern_a_container_that_has_it() -> None:
    """Whether Pod Security admits such a pod does not depend on the webhook."""
    assert statuses(secured({"capabilities": LOCK}), enforcing("restricted", "deny")) == [
        ("already", "Present")
    ]
    assert statuses(pod(), enforcing("privileged")) == [("applied", "Added")]


OTHER_USER = ("warned", "NonRoot")
USER_NAMESPACE = ("warned", "UserNamespace")


@pytest.mark.parametrize(
    ("security", "spec", "expected"),
    [
        ({"runAsUser": 0}, {}, [("applied", "Added")]),
        ({"runAsUser": 1000}, {}, [("applied", "Added"), OTHER_USER]),
        ({"runAsUser": 1, "privileged": True}, {}, [("already", "Privileged"), OTHER_USER]),
        ({"runAsNonRoot": True, "capabilities": LOCK}, {}, [("already", "Present"), OTHER_USER]),
        ({}, {"securityContext": {"runAsUser": 1000}}, [("applied", "Added"), OTHER_USER]),
        ({}, {"hostUsers": False}, [("applied", "Added"), USER_NAMESPACE]),
        ({"runAsUser": 1000}, {"hostUsers": False}, [("applied", "Added"), USER_NAMESPACE]),
        ({}, {"hostUsers": True}, [("applied", "Added")]),
        (
            {"runAsUser": 1, "capabilities": {"drop": ["IPC_LOCK"]}},
            {},
            [("skipped", "DroppedByUser"), ("warned", "DroppedByUser")],
        ),
    ],
    ids=case_name,
)
def test_it_warns_where_the_kernel_does_not_honor_it(
    security: Any, spec: Any, expected: list[tuple[str, str]]
) -> None:
    """IPC_LOCK has no effect for users other than root or in a user namespace."""
    assert statuses(secured(security, **spec), decision_input()) == expected


def test_unlimited_memlock_makes_it_needless_to_warn() -> None:
    """There is no warning if the nodes' containerd has LimitMEMLOCK=infinity."""
    cluster = decision_input(defaults={"memlock": "unlimited"})
    assert statuses(secured({"runAsUser": 1000}, hostUsers=False), cluster) == [
        ("applied", "Added")
    ]
    dropping = secured({"capabilities": {"drop": ["IPC_LOCK"]}})
    assert statuses(dropping, cluster) == [("skipped", "DroppedByUser")]


@pytest.mark.parametrize("policy", ["skip", "deny"])
def test_unlimited_memlock_needs_no_capability_where_pod_security_refuses_it(policy: str) -> None:
    """Nothing is missing without IPC_LOCK, so the pod is neither warned of nor denied."""
    cluster = enforcing("restricted", policy, memlock="unlimited")
    message = "not added, since Pod Security restricted forbids it, and locked memory is unlimited"
    expected = [("trainer", "skipped", "PodSecurity", message)]
    assert outcomes_of(decide_on(pod(), cluster), NAME) == expected


@pytest.mark.parametrize("memlock", ["unknown", "limited"])
def test_other_settings_of_memlock_warn(memlock: str) -> None:
    """Where containerd's limit holds, or may hold, there is a warning."""
    cluster = decision_input(defaults={"memlock": memlock})
    assert statuses(secured({"runAsUser": 1000}), cluster) == [("applied", "Added"), OTHER_USER]


NRI = {"memlock": "nri"}
VALUE = "- {type: RLIMIT_MEMLOCK, soft: 18446744073709551615, hard: 18446744073709551615}"
KEYS = ["ulimits.noderesource.dev/container.", "ulimits.nri.containerd.io/container."]
BY_NRI = "annotated the pod, so that NRI raises the memlock limit"


def ulimits(manifest: PodManifest, cluster: DecisionInput | None = None) -> dict[str, str]:
    """Return the annotations of the NRI ulimit-adjuster after the decision."""
    annotations = decide_on(manifest, cluster or decision_input(defaults=NRI)).pod["metadata"][
        "annotations"
    ]
    return {key: value for key, value in annotations.items() if key.startswith("ulimits.")}


@pytest.mark.parametrize(
    ("security", "spec", "outcome"),
    [
        ({"runAsUser": 1000}, {}, ("Added", f"{WITHOUT_EFFECT}, and {BY_NRI}")),
        ({}, {"hostUsers": False}, ("Added", f"{WITHOUT_EFFECT}, and {BY_NRI}")),
        ({"runAsNonRoot": True, "capabilities": LOCK}, {}, ("MemlockRaised", BY_NRI)),
        ({"runAsUser": 1, "privileged": True}, {}, ("MemlockRaised", BY_NRI)),
    ],
    ids=case_name,
)
def test_nri_raises_memlock_where_the_capability_does_nothing(
    security: Any, spec: Any, outcome: tuple[str, str]
) -> None:
    """The plugin's version determines which key it reads; a second call finds both."""
    cluster = decision_input(defaults=NRI)
    manifest = secured(security, **spec)
    first = decide_on(manifest, cluster)
    assert outcomes_of(first, NAME) == [("trainer", "applied", *outcome)]
    assert ulimits(manifest) == {f"{key}trainer": VALUE for key in KEYS}
    second = decide_on(defaulted(first.pod), cluster)
    assert second.patch == ()
    assert [reported[1] for reported in outcomes_of(second, NAME)] == ["already"]


def test_nri_is_not_needed_where_the_capability_works() -> None:
    """A container that runs as root, or may, gets no annotation."""
    assert ulimits(pod()) == {}
    assert ulimits(secured({"privileged": True})) == {}


@pytest.mark.parametrize("policy", ["skip", "deny"])
def test_nri_raises_memlock_where_pod_security_refuses_the_capability(policy: str) -> None:
    """Such a pod registers memory without IPC_LOCK, so there is nothing to deny or to warn of."""
    cluster = enforcing("baseline", policy, **NRI)
    first = decide_on(pod(), cluster)
    message = f"{BY_NRI}; Pod Security baseline forbids IPC_LOCK"
    assert outcomes_of(first, NAME) == [("trainer", "applied", "MemlockRaised", message)]
    assert "securityContext" not in first.pod["spec"]["containers"][0]
    message = "an annotation already raises the memlock limit"
    second = decide_on(first.pod, cluster)
    assert outcomes_of(second, NAME) == [("trainer", "already", "MemlockRaised", message)]
    assert second.patch == ()


@pytest.mark.parametrize("key", KEYS)
def test_the_users_own_ulimits_stay(key: str) -> None:
    """Neither key is added to a user's; one that does not raise memlock causes a warning."""
    cluster = decision_input(defaults=NRI)
    user_annotation = {f"{key}trainer": "- {type: memlock, soft: 1, hard: 1}"}
    manifest = secured({"runAsUser": 1000})
    manifest["metadata"]["annotations"].update(user_annotation)
    assert ulimits(manifest) == user_annotation
    assert outcomes_of(decide_on(manifest, cluster), NAME) == [
        ("trainer", "applied", "Added", WITHOUT_EFFECT)
    ]
    assert [
        outcome[:3]
        for outcome in outcomes_of(decide_on(manifest, enforcing("baseline", **NRI)), NAME)
    ] == [("trainer", "already", "MemlockRaised")]
    user_annotation = {f"{key}trainer": "- {type: NOFILE, soft: 1, hard: 1}"}
    manifest["metadata"]["annotations"].update(user_annotation)
    assert ulimits(manifest) == user_annotation
    message = "your ulimits annotation is kept, but does not raise RLIMIT_MEMLOCK"
    warning = ("trainer", "warned", "MemlockNotRaised", message)
    assert outcomes_of(decide_on(manifest, cluster), NAME)[1:] == [warning]
    refused = outcomes_of(decide_on(manifest, enforcing("baseline", **NRI)), NAME)
    assert [outcome[1:3] for outcome in refused] == [
        ("skipped", "PodSecurity"),
        ("warned", "PodSecurity"),
    ]


def test_an_annotation_has_its_limits() -> None:
    """A key holds 63 characters after its slash, and all annotations 256 KiB together."""
    cluster = decision_input(defaults=NRI)
    message = (
        "the memlock limit stays low: the annotation's key would be too long, or the annotations "
        "are full"
    )
    for length, fits in ((53, True), (54, False)):
        name = "x" * length
        manifest = pod(gpu(name, securityContext={"runAsUser": 1000}))
        assert bool(ulimits(manifest)) is fits
        warned = [] if fits else [(name, "warned", "MemlockNotRaised", message)]
        assert outcomes_of(decide_on(manifest, cluster), NAME)[1:] == warned
    assert "name has more than 53 characters" in NOT_RAISED.remedy
    full = secured({"runAsUser": 1000})
    full["metadata"]["annotations"]["note"] = "x" * (256 * 1024 - 4096)
    assert ulimits(full) == {}
    assert outcomes_of(decide_on(full, cluster), NAME)[1:] == [
        ("trainer", "warned", "MemlockNotRaised", message)
    ]


def test_a_change_of_the_user_that_is_only_possible_is_not_blamed() -> None:
    """The container's own user is why IPC_LOCK has no effect."""
    manifest = secured({"runAsUser": 1000})
    script = '[ "$X" ] && exec gosu worker torchrun a; torchrun a'
    manifest["spec"]["containers"][0]["command"] = ["sh", "-c", script]
    assert "no effect for non-root users" in decide_on(manifest).warnings[1]


def test_the_warnings_reach_the_user() -> None:
    """The texts fit into admission warnings."""
    assert decide_on(secured({"runAsUser": 1000})).warnings[1:] == (
        (
            "rdma.lab: ipc-lock trainer: IPC_LOCK has no effect for non-root users; "
            "containerd needs LimitMEMLOCK=infinity"
        ),
    )
    assert decide_on(pod(hostUsers=False)).warnings[1:] == (
        (
            "rdma.lab: ipc-lock trainer: IPC_LOCK has no effect with hostUsers: false; "
            "containerd needs LimitMEMLOCK=infinity"
        ),
    )


@pytest.mark.parametrize(
    ("security", "says"),
    [
        ("x", "spec.containers[0].securityContext must be a mapping, but is a string ('x')"),
        (
            {"privileged": "yes"},
            (
                "spec.containers[0].securityContext.privileged must be true or false, "
                "but is a string ('yes')"
            ),
        ),
        (
            {"capabilities": []},
            (
                "spec.containers[0].securityContext.capabilities must be a mapping, "
                "but is a list ([])"
            ),
        ),
        (
            {"capabilities": {"add": "IPC_LOCK"}},
            (
                "spec.containers[0].securityContext.capabilities.add must be a list, "
                "but is a string ('IPC_LOCK')"
            ),
        ),
        (
            {"capabilities": {"drop": [1]}},
            (
                "spec.containers[0].securityContext.capabilities.drop[0] must be a string, "
                "but is a number (1)"
            ),
        ),
    ],
    ids=case_name,
)
def test_another_shape_denies_the_pod(security: Any, says: str) -> None:
    """The API server would reject it too, with a less detailed message."""
    decision = decide_on(secured(security))
    assert (decision.allowed, decision.reason.code, decision.message) == (False, "InvalidPod", says)


def test_the_fabric_need_not_be_known() -> None:
    """Registering memory needs IPC_LOCK on every RDMA device, including another vendor's NIC."""
    unclaimed = container(resources=quantities({"nvidia.com/gpu": "1"}))
    assert statuses(pod(unclaimed)) == [("applied", "Added")]
    assert statuses(pod(gpu(limits={"vpc.amazonaws.com/efa": "1"}))) == [("applied", "Added")]


def test_deciding_again_changes_nothing() -> None:
    """The second call finds what the first one added, and the status stays the same."""
    manifest = secured({"capabilities": {"add": ["CAP_IPC_LOCK"]}, "runAsUser": 5})
    first = decide_on(defaulted(manifest))
    second = decide_on(defaulted(first.pod))
    assert outcomes_of(second, NAME)[0] == (
        "trainer",
        "already",
        "Present",
        "the container already has IPC_LOCK",
    )
    assert second.patch == ()
