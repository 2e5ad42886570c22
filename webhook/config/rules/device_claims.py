"""Rules for mode `dra`: fabrics whose NICs are claimed through ResourceClaimTemplates.

Sources: resource.k8s.io/v1, and the API server's validation of pods (validatePodResourceClaim,
validateResourceClaimNames).
"""

from __future__ import annotations

from collections.abc import Iterator

from webhook.config import names
from webhook.config.messages import shortened
from webhook.config.model import FabricEntry
from webhook.config.rules.rule import Violation, rule
from webhook.model.claims import MAX_CLAIMS, MAX_FABRIC_NAME_LENGTH
from webhook.model.pod import Path
from webhook.model.quoting import quoted


@rule(
    "error",
    "Write each name with at most 253 lowercase letters, digits, . and - (a request: at most 63, "
    "without .).",
    tolerates_other_errors=True,
)
def claim_names(fabric: FabricEntry) -> Iterator[Violation]:
    """Reject a fabric that has an invalid name for a template, a request or a device class.

    The API server rejects a pod that contains such a name.
    """
    objects: list[tuple[Path, str]] = [
        (("match", "deviceClasses", index), name)
        for index, name in enumerate(fabric.match.device_classes)
    ]
    objects += [
        (("claims", index, "template"), claim.template) for index, claim in enumerate(fabric.claims)
    ]
    for path, name in objects:
        if not names.is_dns_subdomain(name):
            yield Violation(path, f"{quoted(name)} is not a valid object name")
    for index, claim in enumerate(fabric.claims):
        if claim.request is not None and not names.is_dns_label(claim.request):
            yield Violation(
                ("claims", index, "request"),
                f"{quoted(claim.request)} is not a valid request name",
                f"Write {names.LABEL_FORM}.",
            )


@rule(
    "error",
    "If a DRA driver offers the NICs, set the fabric's `mode` to dra; otherwise, remove `claims`.",
)
def claims_without_dra(fabric: FabricEntry) -> Iterator[Violation]:
    """Reject a fabric that has `claims` in a mode other than `dra`.

    An error: the pod would get each NIC twice, by its resource and by its claim.
    """
    if fabric.claims and fabric.mode != "dra":
        yield Violation(("claims",), f"mode {fabric.mode} has no claims")


@rule("error", "Set claims[].template to the name of the ResourceClaimTemplate for the NICs.")
def dra_without_claims(fabric: FabricEntry) -> Iterator[Violation]:
    """Reject a fabric that has mode `dra`, but no `claims`.

    An error: no device gets into the pod.
    """
    if fabric.mode == "dra" and not fabric.claims:
        yield Violation(("claims",), "mode dra requires claims")


@rule(
    "error",
    "Remove `resources` from the fabric; or, if a DRA driver offers the NICs as an extended "
    "resource, keep `resources`, remove `claims`, and set `mode` to host-device.",
)
def dra_with_resources(fabric: FabricEntry) -> Iterator[Violation]:
    """Reject a fabric that has `resources` in mode `dra`.

    An error: the pod would get each NIC twice. Where a DRA driver offers its NICs as an extended
    resource (KEP-5004), pods request that resource, in a different mode.
    """
    if fabric.mode == "dra" and fabric.resources:
        yield Violation(("resources",), "mode dra already claims the NICs")


@rule(
    "error",
    "List the ResourceClaimTemplate once: a single template can request several devices, and a "
    "container gets all of them unless the entry in `claims` sets `request`.",
)
def repeated_templates(fabric: FabricEntry) -> Iterator[Violation]:
    """Reject a fabric that lists a ResourceClaimTemplate twice in `claims`.

    An error: a pod that already has one claim from the template counts as equipped, so it would get
    fewer claims than other pods.
    """
    first: dict[str, int] = {}
    for index, claim in enumerate(fabric.claims):
        before = first.setdefault(claim.template, index)
        if before != index:
            yield Violation(
                ("claims", index, "template"),
                f"{shortened(claim.template)} is already in claims[{before}]",
            )


@rule(
    "error",
    "List at most 10 ResourceClaimTemplates (each may request several devices), and give the "
    "fabric a name of at most 50 characters.",
)
def many_claims(fabric: FabricEntry) -> Iterator[Violation]:
    """Reject a fabric that has more than 10 claims or, in mode `dra`, a name of over 50 characters.

    An error: the name of a pod's claim is `rdma-lab-NAME-NUMBER`, and may have at most 63
    characters.
    """
    if len(fabric.claims) > MAX_CLAIMS:
        yield Violation(
            ("claims",),
            f"{len(fabric.claims)} ResourceClaimTemplates are too many",
            f"List at most {MAX_CLAIMS}, since a template may request several devices.",
        )
    if fabric.mode == "dra" and len(fabric.name) > MAX_FABRIC_NAME_LENGTH:
        yield Violation(
            ("name",),
            f"{shortened(fabric.name)} is too long for the names of claims",
            f"Write at most {MAX_FABRIC_NAME_LENGTH} characters.",
        )
