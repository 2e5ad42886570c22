"""Realistic pods and AdmissionReviews, with correct types and the words that matter."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tests.fuzz import words
from tests.fuzz.dice import Dice
from tests.fuzz.scripts import argv_of
from tests.fuzz.spoil import QUANTITIES, TEXTS
from webhook.decide.mutations.nvlink.remap import wrapping

UID = "705ab4f5-6393-11e8-b7cc-42010a800002"
NAMESPACES = ("lab", "lab", "lab", "bounded", "guarded", "stranger", "")


def pod_of(dice: Dice, *, admissible: bool = False) -> dict[str, Any]:
    """Draw a pod, nearly always opted in. If `admissible`, no annotation denies it."""
    annotations = _annotations(dice, admissible=admissible)
    metadata: dict[str, Any] = {"name": "train", "namespace": "lab", "annotations": annotations}
    if dice.one_in(4):
        metadata["generateName"] = metadata.pop("name") + "-"
    if dice.one_in(3):
        metadata["labels"] = _draw_fields(dice, words.LABELS, 2)
    spec = _spec(dice)
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}
    if admissible:
        spec.pop("os", None)
        spec["containers"][0].update(resources={"limits": {"nvidia.com/gpu": 8, "memory": "1Gi"}})
    if annotations.get("rdma.lab/nvlink") == "share" or dice.one_in(40):
        annotations["rdma.lab/nvlink"] = "share"
        _share(dice, spec)
    if dice.one_in(12):
        pod.update([dice.pick(words.UNKNOWN)])
    if dice.one_in(6):
        pod["status"] = {}
    return pod


def _annotations(dice: Dice, *, admissible: bool) -> dict[str, Any]:
    annotations: dict[str, Any] = {"rdma.lab/enable": "true"}
    if admissible:
        return annotations | {"k8s.v1.cni.cncf.io/networks": "storage/nfs"}
    if dice.one_in(25):
        annotations = dice.pick(({}, {"rdma.lab/enable": "false"}, {"rdma.lab/enable": "yes"}))
    annotations |= _draw_fields(dice, words.ANNOTATIONS, 3)
    if dice.one_in(400):  # about the limit for all annotations together
        annotations["description"] = dice.pick("xé") * dice.number(125_000, 263_000)
    return annotations


def review_of(dice: Dice, pod: Any) -> dict[str, Any]:
    """Wrap a pod as the API server does; sometimes the request is about something else."""
    kind = {"group": "", "version": "v1", "kind": "Pod"}
    request: dict[str, Any] = {
        "uid": UID,
        "kind": kind,
        "resource": {"group": "", "version": "v1", "resource": "pods"},
        "requestKind": kind,
        "name": "train",
        "namespace": dice.pick(NAMESPACES),
        "operation": "CREATE",
        "userInfo": {"username": "system:serviceaccount:kube-system:job-controller"},
        "object": pod,
        "oldObject": None,
        "dryRun": False,
        "options": {"kind": "CreateOptions", "apiVersion": "meta.k8s.io/v1"},
    }
    review = {"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "request": request}
    if dice.one_in(60):
        request.update([dice.pick(_OTHER_REQUESTS)])
    if dice.one_in(60):
        request.update([sized_text(dice)])
    if dice.one_in(120):
        review.update([dice.pick(_OTHER_REVIEWS)])
    return review


def sized_text(dice: Dice) -> tuple[str, str]:
    """Return a uid or name of a length near a limit: of a uid, of a name, of a frame's head."""
    length = dice.pick((1, 127, 128, 129, 253, 254, 12_000, 66_000))
    return dice.pick(("uid", "name")), dice.pick("u\N{EURO SIGN}\0") * length


_OTHER_REQUESTS: tuple[tuple[str, Any], ...] = (
    ("operation", "DELETE"),
    ("operation", "\x1b[31m\n"),
    ("operation", 7),
    ("kind", {"group": "apps", "version": "v1", "kind": "Deployment"}),
    ("kind", {"kind": "Pöd"}),
    ("subResource", "ephemeralcontainers"),
    ("object", None),
    ("dryRun", True),
    ("uid", "é\n\x00"),
    ("uid", ""),
    ("uid", 5),
    ("namespace", "x" * 300),
)
_OTHER_REVIEWS: tuple[tuple[str, Any], ...] = (
    ("apiVersion", "admission.k8s.io/v1beta1"),
    ("kind", "Review"),
    ("request", None),
    ("request", []),
    ("response", {"uid": "x", "allowed": True}),
)


def _draw_fields(dice: Dice, values: Mapping[str, Sequence[Any]], limit: int) -> dict[str, Any]:
    """Draw some keys, each with one of its values."""
    return {key: dice.pick(values[key]) for key in dice.several(tuple(values), limit)}


def _spec(dice: Dice) -> dict[str, Any]:
    spec = _draw_fields(dice, words.SPEC, 4)
    names = dice.pick(("a", "a", "ab", "abc"))
    spec["containers"] = [container_of(dice, name) for name in names]
    if dice.one_in(20):
        spec["containers"][-1]["name"] = dice.pick(TEXTS)
    if dice.one_in(3):
        spec["initContainers"] = [container_of(dice, "init")]
        if dice.one_in(2):
            spec["initContainers"].append(
                container_of(dice, "sidecar") | {"restartPolicy": "Always"}
            )
    if dice.one_in(30):
        spec["ephemeralContainers"] = [container_of(dice, "debug")]
    if dice.one_in(40):
        spec["resources"] = _resources(dice)
    if dice.one_in(2):
        drawn = dice.several(words.VOLUMES, 4)
        spec["volumes"] = list({str(volume["name"]): volume for volume in drawn}.values())
    return spec


def container_of(dice: Dice, name: str) -> dict[str, Any]:
    """Draw a container."""
    created: dict[str, Any] = {"name": name, "image": "registry.lab/x:1"}
    for odds, key, draw in _FIELDS:
        if dice.one_in(odds):
            created[key] = draw(dice)
    if dice.one_in(12):
        created.update([dice.pick(words.UNKNOWN)])
    return created


def _security(dice: Dice) -> dict[str, Any] | None:
    return _draw_fields(dice, words.SECURITY, 3) if dice.one_in(1.1) else None


def _resources(dice: Dice) -> dict[str, Any]:
    limits = dict(dice.pick(words.BASES)) | _draw_fields(dice, words.LIMITS, 2)
    resources: dict[str, Any] = {}
    kind = dice.below(5)
    if kind == 0:
        resources["requests"] = dict(limits)
    elif kind == 1:
        requests = resources["requests"] = _draw_fields(dice, words.LIMITS, 3)
        if not dice.one_in(6):  # else it is mostly a request without its limit, which is denied
            limits |= {name: requests[name] for name in requests if "/" in name}
    elif kind == 2 and limits:
        resources["requests"] = {key: limits[key] for key in dice.several(tuple(limits), 2)}
    if limits:
        resources["limits"] = limits
    if dice.one_in(12) and resources:
        section = resources[dice.pick(tuple(resources))]
        section[dice.pick(tuple(section or ("memory",)))] = dice.pick(QUANTITIES)
    if dice.one_in(12):
        resources["claims"] = dice.several(words.CLAIMS, 2)
    return resources


def _env(dice: Dice) -> list[dict[str, Any]]:
    plain = _draw_fields(dice, words.VARIABLES, 5)
    variables: list[dict[str, Any]] = [{"name": key, "value": plain[key]} for key in plain]
    return variables + dice.several(words.REFERENCES, 2) if dice.one_in(4) else variables


#: Fields of containers; each is drawn once in this many containers.
_FIELDS: tuple[tuple[float, str, Callable[[Dice], Any]], ...] = (
    (1.1, "resources", _resources),
    (1.7, "env", _env),
    (7, "envFrom", lambda _: [{"configMapRef": {"name": "settings"}}]),
    (1.6, "command", argv_of),
    (5, "args", argv_of),
    (3, "volumeMounts", lambda dice: dice.several(words.MOUNTS, 3)),
    (3, "securityContext", _security),
    (9, "lifecycle", lambda dice: {"postStart": {"exec": {"command": argv_of(dice)}}}),
)


def _share(dice: Dice, spec: dict[str, Any]) -> None:
    """Give a pod the fields that NVLink between pods requires, sometimes not all of them."""
    needed = {"hostIPC": True, "hostNetwork": True, "hostPID": True}
    spec.update(item for item in needed.items() if not dice.one_in(8))
    for member in spec["containers"]:
        if dice.one_in(1.5):
            member["resources"] = {"limits": {"nvidia.com/gpu": dice.pick((1, 2, "8"))}}
        member["securityContext"] = {"privileged": not dice.one_in(12)}
        member["command"] = ["python", "train.py"] if dice.one_in(2) else argv_of(dice)
        if dice.one_in(10):
            member["command"] = [*wrapping(dice.pick((1, 2, 8))), *member["command"]]
        if not dice.one_in(4):
            member.pop("volumeMounts", None)
        if dice.one_in(3):
            mount = {"name": "tmp", "mountPath": "/tmp"}
            member["volumeMounts"] = [*member.get("volumeMounts", ()), mount]
            spec["volumes"] = [{"name": "tmp", "hostPath": {"path": "/tmp"}}]
