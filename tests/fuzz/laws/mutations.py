"""The laws of `/mutate`."""

from __future__ import annotations

import base64
import json
import re
from collections import Counter
from collections.abc import Iterator
from functools import cached_property
from typing import Any, NamedTuple

import jsonpatch
import orjson

from tests.api_server import defaulted
from tests.fuzz import cost
from tests.fuzz.cost import Allowance
from tests.fuzz.laws.broken import broken, shapes
from tests.fuzz.laws.costs import Costing, costs_little_memory, costs_little_time
from tests.property.allowed import WritableNames, forbidden
from tests.property.changes import keeps_key_order
from tests.siblings import sibling_of
from webhook.admission.review import MAX_UID_LENGTH
from webhook.model.annotations import ENABLE_ANNOTATION, STATUS_ANNOTATION
from webhook.model.fabric import CompiledConfiguration
from webhook.model.pod import Path, at, dotted
from webhook.serve.http.mutate import Answer, Mutate


class World(NamedTuple):
    """The surroundings of a decision on a pod."""

    replicas: tuple[Mutate, Mutate]  #: with the same configuration and cluster, read separately
    writable: WritableNames
    configuration: CompiledConfiguration
    caching: Mutate  #: the same, which keeps decisions; the replicas keep none


class Answered(Costing):
    """A body, the answer of `/mutate` to it, and everything derived from the two."""

    allowance = Allowance(0.03, 2.5e-7)

    def __init__(self, body: bytes, world: World) -> None:
        self.body = body
        self.replicas, self.writable, self.configuration, self.caching = world
        self.seconds, self.answer = cost.timed(lambda: self.replicas[0].answer(body))
        self.size = len(body)
        self.measures_memory = True
        self.repeat = lambda: self.replicas[0].answer(body)

    @cached_property
    def document(self) -> Any:
        """The parsed body; None if it is not JSON."""
        try:
            return orjson.loads(self.body)
        except orjson.JSONDecodeError:
            return None

    @cached_property
    def pod(self) -> Any:
        """The pod in the request, if the answer is about a pod."""
        return self.document["request"]["object"]

    @cached_property
    def response(self) -> dict[str, Any]:
        """The response of the review."""
        response: dict[str, Any] = orjson.loads(self.answer.body)["response"]
        return response

    @cached_property
    def patch(self) -> list[Any]:
        """The operations of the response."""
        written = self.response.get("patch")
        return orjson.loads(base64.b64decode(written, validate=True)) if written else []

    @cached_property
    def after(self) -> Any:
        """The pod as jsonpatch, an independent library, makes it."""
        pod = orjson.loads(self.body)["request"]["object"]
        return jsonpatch.apply_patch(pod, self.patch, in_place=True)

    @cached_property
    def body_after(self) -> bytes:
        """The same review, for the resulting pod."""
        return self.about(self.after)

    def about(self, pod: Any) -> bytes:
        """Write the same review for another pod."""
        review = {**self.document, "request": {**self.document["request"], "object": pod}}
        return json.dumps(review).encode()

    @cached_property
    def second_call(self) -> tuple[Answer, ...]:
        """The answers about the resulting pod, of this replica and of another."""
        return tuple(replica.answer(self.body_after) for replica in self.replicas)

    @property
    def is_review(self) -> bool:
        """Return whether the answer is a review, not a line of text."""
        return self.answer.status == 200

    @property
    def decided(self) -> bool:
        """Return whether the answer allows a pod after a decision."""
        return self.is_review and self.answer.decision is not None and self.answer.decision.allowed


def no_defect_of_ours(observed: Answered) -> None:
    """No pod causes a defect: there is no 500 and no 503."""
    error = observed.answer.error
    if error is not None:
        raise error
    if observed.answer.status not in (200, 400):
        broken(f"HTTP {observed.answer.status}", str(observed.answer.status))


def is_uid(uid: Any) -> bool:
    """Return whether the API server could have written this uid."""
    return uid.__class__ is str and 0 < len(uid) <= MAX_UID_LENGTH


def the_uid_is_right(observed: Answered) -> None:
    """The answer has the request's uid if it can be read."""
    request = observed.document.get("request") if observed.document.__class__ is dict else None
    uid = request.get("uid") if request.__class__ is dict else None
    if not observed.is_review:
        if is_uid(uid):
            broken(f"no uid in the answer, {uid!r} in the request", "none")
    elif not is_uid(uid):
        quoted = json.dumps(observed.response["uid"]).encode()
        if quoted not in observed.body:
            broken(f"uid {quoted!r} stands nowhere in the body", "invented")
    elif observed.response["uid"] != uid:
        broken(f"uid {observed.response['uid']!r} for {uid!r}", "another")


_FIELDS = {
    "uid": str,
    "allowed": bool,
    "patch": str,
    "patchType": str,
    "warnings": list,
    "auditAnnotations": dict,
    "status": dict,
}
_AUDIT_KEY = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,62}")


def the_answer_is_well_formed(observed: Answered) -> None:
    """The API server accepts the answer: an AdmissionReview v1, or one line of text with a 400."""
    if not observed.is_review:
        line = observed.answer.body.decode()
        if not line.endswith("\n") or line.count("\n") != 1:
            broken(f"not one line: {line!r:.200}", "text")
        return
    review = orjson.loads(observed.answer.body)
    if review.keys() != {"apiVersion", "kind", "response"}:
        broken(f"keys {list(review)}", "review")
    response = observed.response
    for key, value in response.items():
        if value.__class__ is not _FIELDS.get(key):
            broken(f"{key}: {value!r:.80}", key)
    if ("patch" in response) != (response.get("patchType") == "JSONPatch"):
        broken("a patch without its type, or the reverse", "patchType")
    _check_words(response)


def _check_words(response: dict[str, Any]) -> None:
    """Check the texts for people: a rejection's message, warnings, audit annotations."""
    status = response.get("status", {})
    if not response["allowed"]:
        if "patch" in response:
            broken("a patch in a refusal", "patch")
        if not status.get("message") or status.get("code") not in (400, 403):
            broken(f"refused with {status}", "status")
    _check_warnings(response.get("warnings", []))
    for key, value in response.get("auditAnnotations", {}).items():
        if value.__class__ is not str or not _AUDIT_KEY.fullmatch(key):
            broken(f"audit annotation {key}: {value!r}", "auditAnnotations")


def _check_warnings(warnings: list[Any]) -> None:
    for line in warnings:
        if line.__class__ is not str or not line.isascii() or not line.isprintable():
            broken(f"warning {line!r:.300}", "warnings")
        if len(line) > 120:
            broken(f"a warning of {len(line)} letters: {line:.200}", "long warning")
    if sum(map(len, warnings)) >= 4096:
        broken("warnings of 4096 characters", "warnings")


def the_patch_applies(observed: Answered) -> None:
    """Another library applies the patch, and the result is the decision's pod."""
    if not observed.is_review:
        return
    try:
        after = observed.after if observed.patch else None
    except (jsonpatch.JsonPatchException, jsonpatch.JsonPointerException, TypeError) as error:
        broken(f"{type(error).__name__}: {error}", type(error).__name__)
    if observed.decided and observed.answer.decision is not None:
        decided = observed.answer.decision.pod
        if (observed.pod if after is None else after) != decided:
            broken("the pod of the decision is not what the patch makes")


def a_second_call_changes_nothing(observed: Answered) -> None:
    """Called again for the result, neither this replica nor another changes anything."""
    if not observed.decided:
        return
    for name, answer in zip(("here", "elsewhere"), observed.second_call, strict=True):
        if answer.error is not None:
            raise answer.error
        response = orjson.loads(answer.body)["response"]
        if not response["allowed"]:
            broken(f"{name}: refused: {response['status']['message']:.200}", "refused")
        if "patch" in response:
            ops = orjson.loads(base64.b64decode(response["patch"]))
            broken(f"{name}: {ops!r:.300}", shapes(op["path"] for op in ops))


def only_allowed_leaves_change(observed: Answered) -> None:
    """Only changes that the design lists are made; additions are in known places only."""
    if observed.decided:
        for change in forbidden(observed.pod, observed.after, observed.writable):
            broken(f"{change!r:.300}", f"{change.kind} {shapes([dotted(change.path)])}")


def keys_keep_their_order(observed: Answered) -> None:
    """All keys keep their order, including unknown ones."""
    if observed.decided and not keeps_key_order(observed.pod, observed.after):
        broken("keys stand in another order")


_POWERS = ("hostNetwork", "hostPID", "hostIPC")
_FIELDS_OF_CONTAINERS = ("containers", "initContainers", "ephemeralContainers")


def no_power_is_given(observed: Answered) -> None:
    """No capability but IPC_LOCK is added, no host namespace, and nothing privileged."""
    if not observed.decided or not observed.patch:
        return
    for power in _POWERS:
        before, after = (
            at(manifest, ("spec", power)) for manifest in (observed.pod, observed.after)
        )
        if before != after:
            broken(f"{power} was {before} and is {after}", power)
    for before, after in _containers(observed):
        _check_security(before.get("securityContext"), after.get("securityContext"))


def _containers(observed: Answered) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """Pair the containers before and after; skip containers of a wrong type."""
    for field in _FIELDS_OF_CONTAINERS:
        before, after = (
            _listed(manifest, ("spec", field)) for manifest in (observed.pod, observed.after)
        )
        if len(before) != len(after):
            broken(f"{len(after)} {field}, and there were {len(before)}", field)
        yield from zip(before, after, strict=True)


def _listed(node: Any, path: Path) -> list[dict[str, Any]]:
    value = at(node, path)
    listed = value if value.__class__ is list else []
    return [member for member in listed if member.__class__ is dict]


def _check_security(before: Any, after: Any) -> None:
    before, after = (
        context if context.__class__ is dict else {"": context or {}} for context in (before, after)
    )
    for key in (before.keys() | after.keys()) - {"capabilities"}:
        if (before.get(key) or {}) != (after.get(key) or {}):
            broken(f"{key} was {before.get(key)} and is {after.get(key)}", key)
    if at(before, ("capabilities", "drop")) != at(after, ("capabilities", "drop")):
        broken("capabilities.drop changed", "drop")
    original, changed = (at(context, ("capabilities", "add")) or [] for context in (before, after))
    if changed != original and (
        original.__class__ is not list or changed != [*original, "IPC_LOCK"]
    ):
        broken(f"capabilities were {original} and are {changed}", "add")


def no_name_is_doubled(observed: Answered) -> None:
    """No variable, volume or mount is added if its name or path exists."""
    if not observed.decided or not observed.patch:
        return
    for before, after in _containers(observed):
        _check_doubled(before, after, ("env",), "name")
        _check_doubled(before, after, ("volumeMounts",), "mountPath")
    _check_doubled(observed.pod, observed.after, ("spec", "volumes"), "name")


def _check_doubled(before: Any, after: Any, path: Path, key: str) -> None:
    had, has = (
        Counter(str(member.get(key)) for member in _listed(node, path)) for node in (before, after)
    )
    for name, count in has.items():
        if count > 1 and count > had[name]:
            broken(f"{dotted((*path, key))} {name} stands there {count} times", key)


def a_pod_without_opt_in_is_untouched(observed: Answered) -> None:
    """Without the annotation there is no patch and no rejection."""
    decision = observed.answer.decision
    if decision is None or decision.pod.__class__ is not dict:
        return
    parts = [at(observed.pod, path) for path in (("metadata",), ("metadata", "annotations"))]
    in_shape = all(part is None or part.__class__ is dict for part in parts)
    enabled = at(observed.pod, ("metadata", "annotations", ENABLE_ANNOTATION))
    if (
        enabled in (None, "false")
        and in_shape
        and (observed.patch or not observed.response["allowed"])
    ):
        broken("a pod that did not opt in was touched")


def a_changed_pod_has_a_status(observed: Answered) -> None:
    """A changed pod has a new status: bounded JSON, with the hash of this configuration."""
    if not observed.decided or not observed.patch:
        return
    annotations = observed.after["metadata"]["annotations"]
    status = annotations.get(STATUS_ANNOTATION)
    used = sum(len(str(text).encode()) for pair in annotations.items() for text in pair)
    if used > _ANNOTATIONS:
        return  # the API server rejects such a pod
    if status is None:
        if used < _ANNOTATIONS - 2 * _MAX_STATUS_LENGTH:
            broken("no status, though there is room", "none")
    elif len(status) > _MAX_STATUS_LENGTH:
        broken(f"a status of {len(status)} letters", "long")
    elif at(_read(status), ("config",)) != observed.configuration.config_hash:
        broken(f"status {status!r:.200}", "config")


def _read(status: str) -> Any:
    try:
        return orjson.loads(status)
    except orjson.JSONDecodeError:
        return None


_ANNOTATIONS, _MAX_STATUS_LENGTH = 256 * 1024, 4096


def defaults_in_between_change_nothing(observed: Answered) -> None:
    """If the API server adds its defaults after the webhook, a second call changes nothing."""
    if not observed.decided or not _is_typed(observed.pod):
        return
    body = observed.about(defaulted(observed.after))
    response = orjson.loads(observed.replicas[0].answer(body).body)["response"]
    ops = orjson.loads(base64.b64decode(response.get("patch", ""))) if "patch" in response else []
    if ops:
        broken(f"{ops!r:.300}", shapes(op["path"] for op in ops))


def _is_typed(pod: Any) -> bool:
    """Return whether defaulting can be emulated: all parts have the types that are required."""
    try:
        defaulted(pod)
    except Exception:  # noqa: BLE001 -- the API server rejects such a pod before the webhook
        return False
    return True


def pods_of_one_workload_share_a_decision(observed: Answered) -> None:
    """A replica that keeps decisions answers as one that keeps none, also about a sibling pod."""
    if observed.answer.decision is None:
        return
    sibling = observed.about(sibling_of(observed.pod))
    of_sibling = observed.replicas[0].answer(sibling)
    for name, body, decided in (
        ("pod", observed.body, observed.answer),
        ("again", observed.body, observed.answer),
        ("sibling", sibling, of_sibling),
    ):
        cached = observed.caching.answer(body)
        if cached.error is not None:
            raise cached.error
        if cached.body != decided.body:
            broken(f"{name}: {cached.body!r:.600} is not {decided.body!r:.600}", name)


MUTATE_LAWS = (
    costs_little_time,
    no_defect_of_ours,
    the_answer_is_well_formed,
    the_uid_is_right,
    the_patch_applies,
    no_power_is_given,
    no_name_is_doubled,
    only_allowed_leaves_change,
    keys_keep_their_order,
    a_pod_without_opt_in_is_untouched,
    a_changed_pod_has_a_status,
    a_second_call_changes_nothing,
    pods_of_one_workload_share_a_decision,
    defaults_in_between_change_nothing,
    costs_little_memory,
)
