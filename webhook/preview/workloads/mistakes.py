"""Mistakes in the pods of a document that no webhook sees, or sees only by their effect.

The API server drops the fields that it does not know before it calls a webhook, so only a preview
can name them. A shell variable that nobody expanded has one remedy wherever it is.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice
from typing import NamedTuple

from webhook.model.names import enumerated
from webhook.model.nearest import nearest
from webhook.model.pod import CONTAINER_FIELDS, Path, dotted, fields_or_empty
from webhook.preview.workloads.templates import Template

#: The largest number of unknown fields that are named: the search for a field like them takes a
#: millisecond for each.
_MAX_FIELDS = 8


def mistakes_in(template: Template, *, allows_only_known_fields: bool) -> tuple[str, ...]:
    """Return a sentence for each mistake in a template.

    `allows_only_known_fields`: whether it is a pod, or the template of a known controller. In the
    templates of other kinds, which may have fields of their own, only a field that resembles a
    known one counts.
    """
    fields = islice(
        _unknown_fields(template, allows_only_known_fields=allows_only_known_fields), _MAX_FIELDS
    )
    return (*fields, *_unexpanded_variables(template))


def _unknown_fields(template: Template, *, allows_only_known_fields: bool) -> Iterator[str]:
    for part in _parts(fields_or_empty(template.pod)):
        unknown = [key for key in part.fields if key not in part.allowed]
        for key in unknown[:_MAX_FIELDS]:
            similar = nearest(key, part.allowed, compared=len(part.allowed))
            if similar or allows_only_known_fields:
                place = dotted(_path(template, (*part.path, key)))
                meant = "".join(f" (did you mean {name}?)" for name in similar)
                yield f"{place:.200} is not a field of {part.title}{meant}"


def _path(template: Template, steps: Path) -> Path:
    """Return the path in the document for the path in a pod."""
    return (*template.path, *(steps[1:] if template.spec_only else steps))


class _Part(NamedTuple):
    """A mapping in a pod, and the fields that it may have."""

    path: Path
    fields: dict[str, object]
    title: str
    allowed: frozenset[str]


def _parts(pod: dict[str, object]) -> Iterator[_Part]:
    metadata, spec = fields_or_empty(pod.get("metadata")), fields_or_empty(pod.get("spec"))
    yield _Part(("metadata",), metadata, "metadata", METADATA_FIELDS)
    yield _Part(("spec",), spec, "a pod's spec", SPEC_FIELDS)
    for field in CONTAINER_FIELDS:
        listed = spec.get(field)
        for index, container in enumerate(listed if isinstance(listed, list) else ()):
            yield from _container_parts(("spec", field, index), fields_or_empty(container))


def _container_parts(path: Path, container: dict[str, object]) -> Iterator[_Part]:
    yield _Part(path, container, "a container", CONTAINER_FIELD_NAMES)
    for field, allowed in _BELOW_CONTAINER.items():
        fields = fields_or_empty(container.get(field))
        yield _Part((*path, field), fields, f"a container's {field}", allowed)
    security = fields_or_empty(container.get("securityContext"))
    capabilities = fields_or_empty(security.get("capabilities"))
    place = (*path, "securityContext", "capabilities")
    yield _Part(place, capabilities, "a container's capabilities", CAPABILITY_FIELDS)


# Shell variables that nobody expanded.

_VARIABLE = re.compile(r"\$\{[A-Za-z_][^{}\n]*\}|\A\$[A-Za-z_]\w*\Z")
#: Fields where a shell, or a program, may expand a variable in the pod.
_EXPANDED_LATER = frozenset({"annotations", "args", "command", "env"})
#: What a sentence on more than one of them calls them.
SEVERAL_VARIABLES = "unexpanded variables"
#: A longer text is not the name or value of a field.
_MAX_TEXT = 253


def _unexpanded_variables(template: Template) -> Iterator[str]:
    """Yield a sentence on the variables in a pod, each with its first place, if there are any."""
    places = list(islice(_variables(template), _MAX_FIELDS))
    if places:
        noun = SEVERAL_VARIABLES if places[1:] else "an unexpanded variable"
        yield f"{enumerated(places)}, {noun} (run envsubst first)"


def _variables(template: Template) -> Iterator[str]:
    """Yield each key and value in a pod that has a variable not seen before, with its place."""
    seen: set[str] = set()
    stack: list[tuple[Path, object]] = [((), template.pod)]
    while stack:
        steps, node = stack.pop()
        for text in list(node) if isinstance(node, dict) else [node]:
            names = _variables_in(text)
            if not seen.issuperset(names):
                seen.update(names)
                yield f"{dotted(_path(template, steps)):.200} has {text!r:.80}"
        stack.extend(((*steps, step), value) for step, value in reversed(_below(node)))


def _below(node: object) -> list[tuple[str | int, object]]:
    if isinstance(node, dict):
        return [(key, node[key]) for key in node if key not in _EXPANDED_LATER]
    return list(enumerate(node)) if isinstance(node, list) else []


def _variables_in(value: object) -> list[str]:
    return _VARIABLE.findall(value[:_MAX_TEXT]) if isinstance(value, str) else []


# The fields of pods: k8s.io/api/core/v1 of Kubernetes 1.37, types.go; workloadRef was in 1.35.

_METADATA_FIELDS = """
annotations creationTimestamp deletionGracePeriodSeconds deletionTimestamp finalizers
generateName generation labels managedFields name namespace ownerReferences resourceVersion
selfLink uid
"""
METADATA_FIELDS = frozenset(_METADATA_FIELDS.split())
_SPEC_FIELDS = """
activeDeadlineSeconds affinity automountServiceAccountToken containers dnsConfig dnsPolicy
enableServiceLinks ephemeralContainers evictionResponders hostAliases hostIPC hostNetwork
hostPID hostUsers hostname hostnameOverride imagePullSecrets initContainers nodeName
nodeSelector os overhead preemptionPolicy priority priorityClassName readinessGates
resourceClaims resources restartPolicy runtimeClassName schedulerName schedulingGates
schedulingGroup securityContext serviceAccount serviceAccountName setHostnameAsFQDN
shareProcessNamespace subdomain terminationGracePeriodSeconds tolerations
topologySpreadConstraints volumes workloadRef
"""
SPEC_FIELDS = frozenset(_SPEC_FIELDS.split())
_CONTAINER_FIELD_NAMES = """
args command env envFrom image imagePullPolicy lifecycle livenessProbe name ports
readinessProbe resizePolicy resources restartPolicy restartPolicyRules securityContext
startupProbe stdin stdinOnce targetContainerName terminationMessagePath
terminationMessagePolicy tty volumeDevices volumeMounts workingDir
"""
CONTAINER_FIELD_NAMES = frozenset(_CONTAINER_FIELD_NAMES.split())
RESOURCE_FIELDS = frozenset(("claims", "limits", "requests"))
_SECURITY_FIELDS = """
allowPrivilegeEscalation appArmorProfile capabilities privileged procMount
readOnlyRootFilesystem runAsGroup runAsNonRoot runAsUser seLinuxOptions seccompProfile
windowsOptions
"""
SECURITY_FIELDS = frozenset(_SECURITY_FIELDS.split())
CAPABILITY_FIELDS = frozenset(("add", "drop"))
_BELOW_CONTAINER = {"resources": RESOURCE_FIELDS, "securityContext": SECURITY_FIELDS}
