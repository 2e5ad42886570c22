"""Families of pods with claims that grow together with what users can write into a namespace.

A user creates ResourceClaimTemplates with hundreds of device classes, and pods that use them in
thousands of places. `FAMILIES[name](n)` is a pod with about `n` entries, and the input of a
decision on it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from tests.builders import container, decision_input, fabric, gpu, pod
from webhook.decide.analysis import DecisionInput
from webhook.model.claims import ClaimFacts, requested_classes
from webhook.model.fabric import ClaimTemplateReference
from webhook.model.facts import NamespaceFacts
from webhook.model.pod import PodManifest

#: The template of both fabrics, and a template of a user.
OURS, USERS = "rdma-nics", "users"
#: A class that both fabrics list.
LISTED = "gpu.lab"
_FABRICS = tuple(
    fabric(
        name,
        mode="dra",
        device_classes=frozenset({LISTED, name}),
        gpu_resources=frozenset({"nvidia.com/v100"}),
        claim_templates=(ClaimTemplateReference(template=OURS),),
    )
    for name in ("up", "down")
)


class Case(NamedTuple):
    """A pod, and the input of a decision on it."""

    manifest: PodManifest
    decision_input: DecisionInput


def _template(classes: int, last: str = LISTED) -> Any:
    """Return the requests of a template with this many classes."""
    names = [f"class-{number}.lab" for number in range(classes - 1)] + [last]
    requests = [{"name": name, "exactly": {"deviceClassName": name}} for name in names]
    return requested_classes({"spec": {"spec": {"devices": {"requests": requests}}}})


def _case(manifest: PodManifest, classes: int = 2) -> Case:
    facts = ClaimFacts(
        templates={OURS: _template(classes, "rdma.lab"), USERS: _template(classes)},
        has_all_templates=True,
    )
    namespace = NamespaceFacts(name="lab", claim_facts=facts)
    return Case(manifest, decision_input(*_FABRICS, namespace=namespace))


def _uses(n: int, name: str = "a") -> list[dict[str, Any]]:
    """Return uses of different requests of a claim."""
    return [{"name": name, "request": str(number)} for number in range(n)]


def _claims(n: int, template: str, prefix: str = "a") -> list[dict[str, Any]]:
    return [
        {"name": f"{prefix}{number}", "resourceClaimTemplateName": template} for number in range(n)
    ]


def _using(n: int, template: str, name: str = "trainer", claim: str = "a") -> PodManifest:
    """Return a pod whose container uses a claim n times."""
    user = container(name, resources={"claims": _uses(n, claim)})
    return pod(user, resourceClaims=[{"name": claim, "resourceClaimTemplateName": template}])


def _beside_unused(n: int, template: str, prefix: str = "a") -> PodManifest:
    """Return a pod with many containers, and many claims that none of them uses."""
    return pod(
        *[gpu(f"c{number}") for number in range(n // 40)],
        resourceClaims=_claims(n, template, prefix),
        annotations={"rdma.lab/fabric": "up"},
    )


FAMILIES: dict[str, Callable[[int], Case]] = {
    "uses of the fabrics' template": lambda n: _case(_using(n, OURS)),
    "uses of a user's template": lambda n: _case(_using(n, USERS)),
    "uses by a container with a long name": lambda n: _case(_using(n, OURS, name="x" * n)),
    "uses of a claim with a long name": lambda n: _case(_using(n, USERS, claim="x" * n)),
    "claims of many classes": lambda n: _case(
        pod(
            container(resources={"claims": [{"name": f"a{number}"} for number in range(n)]}),
            resourceClaims=_claims(n, USERS),
        ),
        classes=n // 16,
    ),
    "claims of many classes that no container uses": lambda n: _case(
        pod(resourceClaims=_claims(n, USERS, "imex")), classes=n // 16
    ),
    "unused claims": lambda n: _case(_beside_unused(n, "x")),
    "unused claims for GPUs": lambda n: _case(_beside_unused(n, "x", "gpu")),
    "unused claims for domains": lambda n: _case(_beside_unused(n, USERS, "imex")),
    "unused claims of the fabrics' template": lambda n: _case(_beside_unused(n, OURS)),
}
