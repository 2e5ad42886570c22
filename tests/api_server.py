"""The parts of an API server that tests need: defaulting, patching and reviewing pods."""

from __future__ import annotations

import asyncio
import copy
from collections.abc import Callable, Coroutine, Iterable, Iterator
from typing import Any

import jsonpatch
import orjson
from starlette.types import ASGIApp, Message

from webhook.model.annotations import STATUS_ANNOTATION
from webhook.model.quantity import format_quantity, parse

_POD = {
    "restartPolicy": "Always",
    "terminationGracePeriodSeconds": 30,
    "dnsPolicy": "ClusterFirst",
    "securityContext": {},
    "schedulerName": "default-scheduler",
    "enableServiceLinks": True,
}
_CONTAINER = {
    "resources": {},
    "terminationMessagePath": "/dev/termination-log",
    "terminationMessagePolicy": "File",
    "imagePullPolicy": "IfNotPresent",
}
_FILES = {"defaultMode": 0o644}
_CONTAINERS = ("containers", "initContainers", "ephemeralContainers")


def defaulted(pod: dict[str, Any]) -> dict[str, Any]:
    """Return the pod after decoding and defaulting, which run before admission and after a patch.

    Source: kubernetes pkg/apis/core/v1, defaults.go. Quantities that are numbers become
    strings, and maps are sorted, as happens when they pass through Go's types.
    """
    pod = _received(pod)
    spec = _filled(pod, "spec", _POD)
    for holder, key in ((pod["metadata"], "annotations"), (spec, "nodeSelector")):
        if isinstance(holder.get(key), dict):
            holder[key] = dict(sorted(holder[key].items()))
    for field in _CONTAINERS:
        for container in _mappings(spec, field):
            _container(container)
    _pod_level(spec)
    for volume in _mappings(spec, "volumes"):
        _volume(volume)
    return pod


def _container(container: dict[str, Any]) -> None:
    for key, value in _CONTAINER.items():
        container.setdefault(key, copy.copy(value))
    _level(container)
    for port in _mappings(container, "ports"):
        port.setdefault("protocol", "TCP")
    for variable in _mappings(container, "env"):
        _field_ref(variable.get("valueFrom"))


def _level(holder: dict[str, Any]) -> None:
    """Default the requests of a container, or of the pod itself, to its limits."""
    resources = holder.get("resources")
    if not isinstance(resources, dict):
        return
    for section in ("limits", "requests"):
        amounts = resources.get(section)
        if isinstance(amounts, dict):
            resources[section] = {name: _quantity(amounts[name]) for name in sorted(amounts)}
    limits = resources.get("limits")
    if isinstance(limits, dict) and limits:
        requests = resources.get("requests") or {}
        resources["requests"] = {**limits, **requests}


def _pod_level(spec: dict[str, Any]) -> None:
    """Default the pod-level requests to the sum of its containers' requests, else to its limits."""
    resources = spec.get("resources")
    limits = resources.get("limits") if isinstance(resources, dict) else None
    if isinstance(resources, dict) and isinstance(limits, dict) and limits:
        requests = resources.setdefault("requests", {}) or {}
        resources["requests"] = {
            name: format_quantity(total)
            for name in limits
            if name in ("cpu", "memory") and (total := _total(spec, name))
        } | requests
    _level(spec)


def _total(spec: dict[str, Any], name: str) -> int:
    """Return the peak of the containers' requests; init containers run in sequence."""
    running = peak = 0
    for container in (*_mappings(spec, "initContainers"), *_mappings(spec, "containers")):
        amount = parse((container["resources"].get("requests") or {}).get(name))
        always = container.get("restartPolicy") == "Always"
        if container in _mappings(spec, "initContainers") and not always:
            peak = max(peak, running + amount)
        else:
            running += amount
    return max(peak, running)


def _quantity(amount: Any) -> Any:
    """Write a quantity as a string; null is decoded as no quantity, and written as 0."""
    return str(amount or 0) if amount is None or amount.__class__ is int else amount


def _volume(volume: dict[str, Any]) -> None:
    for kind in ("configMap", "secret", "downwardAPI", "projected"):
        if isinstance(volume.get(kind), dict):
            _filled(volume, kind, _FILES)
    for item in _mappings(volume.get("downwardAPI"), "items"):
        _field_ref(item)
    for source in _mappings(volume.get("projected"), "sources"):
        for item in _mappings(source.get("downwardAPI"), "items"):
            _field_ref(item)


def _field_ref(source: Any) -> None:
    if isinstance(source, dict) and isinstance(source.get("fieldRef"), dict):
        source["fieldRef"].setdefault("apiVersion", "v1")


def _filled(node: dict[str, Any], key: str, defaults: dict[str, Any]) -> dict[str, Any]:
    section: dict[str, Any] = node[key]
    for name, value in defaults.items():
        section.setdefault(name, copy.copy(value))
    return section


def _mappings(node: Any, key: str) -> Iterator[dict[str, Any]]:
    listed = node.get(key) if isinstance(node, dict) else None
    return (item for item in listed or () if isinstance(item, dict))


def patched(pod: dict[str, Any], patch: Iterable[Any]) -> dict[str, Any]:
    """Return the pod with an RFC 6902 patch applied by an independent library."""
    result: dict[str, Any] = jsonpatch.apply_patch(_received(pod), list(patch))
    return result


def _received(pod: dict[str, Any]) -> dict[str, Any]:
    """Return a pod as it arrives over the wire: it shares no object with the original."""
    received: dict[str, Any] = orjson.loads(orjson.dumps(pod))
    return received


def without_status(pod: dict[str, Any]) -> tuple[dict[str, Any], Any]:
    """Return a pod without its status annotation, and that annotation parsed."""
    pod = _received(pod)
    status = ((pod.get("metadata") or {}).get("annotations") or {}).pop(STATUS_ANNOTATION, None)
    try:
        return pod, orjson.loads(status or "null")
    except orjson.JSONDecodeError:  # set by the user, on a pod that the webhook leaves alone
        return pod, status


def review_of(pod: dict[str, Any]) -> bytes:
    """Write the AdmissionReview for the creation of a pod."""
    request = {
        "uid": "705ab4f5-6393-11e8-b7cc-42010a800002",
        "kind": {"group": "", "version": "v1", "kind": "Pod"},
        "resource": {"group": "", "version": "v1", "resource": "pods"},
        "namespace": pod["metadata"].get("namespace", "default"),
        "operation": "CREATE",
        "object": pod,
        "oldObject": None,
        "dryRun": False,
    }
    review = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}
    return orjson.dumps(review)


def post(
    app: ASGIApp,
    path: str,
    body: bytes,
    query: str = "",
    run: Callable[[Coroutine[Any, Any, None]], object] = asyncio.run,
) -> tuple[int, bytes]:
    """Post a body to an ASGI application in this process; return the status and the answer.

    `run` runs it in the event loop of the application, if that keeps state in one.
    """
    sent: list[Message] = []
    waiting = [body]
    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "scheme": "https",
        "server": ("webhook", 443),
        "method": "POST",
        "path": path,
        "raw_path": path.encode(),
        "query_string": query.encode(),
        "headers": [
            (b"content-type", b"application/json"),
            (b"content-length", b"%d" % len(body)),
        ],
    }

    async def receive() -> Message:
        if not waiting:
            await asyncio.Event().wait()  # the client sends nothing more
        return {"type": "http.request", "body": waiting.pop(), "more_body": False}

    async def send(message: Message) -> None:
        sent.append(message)

    run(_called(app, scope, receive, send))
    return sent[0]["status"], b"".join(message.get("body", b"") for message in sent[1:])


async def _called(app: ASGIApp, scope: Any, receive: Any, send: Any) -> None:
    await app(scope, receive, send)
