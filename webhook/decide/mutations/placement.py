"""`placement`: pin the pod to the fabric's nodes, if the site configures `pin: always`.

The RDMA resource already keeps a pod off other nodes; this is for sites where several fabrics
offer a resource of the same name.
"""

from __future__ import annotations

from webhook.decide.analysis import Mutation, PodAnalysis, RdmaAccess
from webhook.decide.draft import Draft
from webhook.model.decision import Reason

PINNED = Reason("Pinned", "The fabric's nodeSelector was added.", remedy="")
PRESENT = Reason("Present", "The pod already selects the fabric's nodes.", remedy="")
NOT_CONFIGURED = Reason(
    "NotConfigured", "The fabric sets `pin: never`.", remedy="", reportable=False
)
SELECTED = Reason(
    "UserSelects",
    "The pod itself selects nodes by a label of the fabric's nodeSelector, so the webhook did not "
    "add that nodeSelector.",
    remedy="",
)

_PATH = ("spec", "nodeSelector")


def mutate(draft: Draft, analysis: PodAnalysis) -> None:
    """Add the nodeSelector unless the pod uses one of its keys."""
    fabric = analysis.fabric
    assert fabric is not None
    if not fabric.pin_selector:
        draft.skipped("", NOT_CONFIGURED, NOT_CONFIGURED.clause)
        return
    selector = draft.view.node_selector
    if all(selector.get(key) == value for key, value in fabric.pin_selector.items()):
        draft.already("", PRESENT, PRESENT.clause)
        return
    affinity_keys = {
        requirement.key for term in draft.view.node_terms for requirement in term.requirements
    }
    used = [key for key in fabric.pin_selector if key in selector or key in affinity_keys]
    if used:
        draft.skipped("", SELECTED, f"the pod itself selects nodes by {', '.join(used)}")
        return
    for key, value in fabric.pin_selector.items():
        draft.set((*_PATH, key), value)
    listed = ", ".join(f"{key}={value}" for key, value in fabric.pin_selector.items())
    draft.applied("", PINNED, f"added nodeSelector {listed}")


MUTATION = Mutation(
    name="placement",
    summary="adds the fabric's nodeSelector if the configuration says so",
    needs=RdmaAccess.FABRIC,
    reasons=(PINNED, PRESENT, NOT_CONFIGURED, SELECTED),
    mutate=mutate,
)
