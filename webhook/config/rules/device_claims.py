"""Rules for mode `dra`: fabrics whose NICs are claimed through ResourceClaimTemplates.

Sources: resource.k8s.io/v1, and the API server's validation of pods (validatePodResourceClaim,
validateResourceClaimNames).
"""

from __future__ import annotations

from collections.abc import Iterator

from webhook.config import names
from webhook.config.messages import brief, quoted
from webhook.config.model import FabricEntry
from webhook.config.rules.rule import Violation, rule
from webhook.model.claims import LONGEST_FABRIC_NAME, MOST_CLAIMS
from webhook.model.pod import Path


@rule("error", per_value=True)
def claim_names(fabric: FabricEntry) -> Iterator[Violation]:
    """Reject names of templates, requests and device classes that no such object can have.

    The API server rejects a pod that names one.
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
            form = "lowercase letters, digits, - and ., at most 253"
            yield Violation(path, f"{quoted(name)} is not the name of an object: write {form}")
    for index, claim in enumerate(fabric.claims):
        if claim.request is not None and not names.is_dns_label(claim.request):
            message = f"{quoted(claim.request)} is not the name of a request: write "
            yield Violation(("claims", index, "request"), f"{message}{names.LABEL_FORM}")


@rule("error")
def claims_without_dra(fabric: FabricEntry) -> Iterator[Violation]:
    """Reject `claims` in modes other than `dra`.

    An error: the pod would get each NIC twice, by its resource and by its claim.
    """
    if fabric.claims and fabric.mode != "dra":
        yield Violation(
            ("claims",), f"mode {fabric.mode} has no claims: write mode: dra, or remove claims"
        )


@rule("error")
def dra_without_claims(fabric: FabricEntry) -> Iterator[Violation]:
    """Reject mode `dra` without `claims`.

    An error: no device gets into the pod.
    """
    if fabric.mode == "dra" and not fabric.claims:
        yield Violation(("claims",), "is empty: name the ResourceClaimTemplate of the NICs")


@rule("error")
def dra_with_resources(fabric: FabricEntry) -> Iterator[Violation]:
    """Reject `resources` in mode `dra`.

    An error: the pod would get each NIC twice. Where a DRA driver offers its NICs as an extended
    resource (KEP-5004), pods request that resource, in another mode.
    """
    if fabric.mode == "dra" and fabric.resources:
        yield Violation(
            ("resources",),
            "mode dra already claims the NICs: remove resources; or, if a DRA driver offers the "
            "NICs as an extended resource, keep resources, remove claims, and write mode: "
            "host-device",
        )


@rule("error")
def repeated_templates(fabric: FabricEntry) -> Iterator[Violation]:
    """Reject a template that is listed twice.

    An error: a pod with a claim of the template already counts as equipped.
    """
    first: dict[str, int] = {}
    for index, claim in enumerate(fabric.claims):
        before = first.setdefault(claim.template, index)
        if before != index:
            yield Violation(
                ("claims", index, "template"),
                f"{brief(claim.template)} is already in claims[{before}]: list it once; a template "
                "may request several devices, and without request a container gets all of them",
            )


@rule("error")
def many_claims(fabric: FabricEntry) -> Iterator[Violation]:
    """Reject more than 10 claims, or a longer name than 50 characters in mode `dra`.

    An error: `rdma-lab-NAME-NUMBER` is the name of a pod's claim, which may have 63 characters.
    """
    if len(fabric.claims) > MOST_CLAIMS:
        message = f"{len(fabric.claims)} templates are too many: one may request several devices"
        yield Violation(("claims",), f"{message}; list at most {MOST_CLAIMS}")
    if fabric.mode == "dra" and len(fabric.name) > LONGEST_FABRIC_NAME:
        message = f"{brief(fabric.name)} is too long for the names of claims: write at most"
        yield Violation(("name",), f"{message} {LONGEST_FABRIC_NAME} characters")
