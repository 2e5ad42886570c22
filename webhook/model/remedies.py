"""Remedies that several packages name: clauses without a capital letter and a period."""

from __future__ import annotations

#: For a missing object. The site applies the manifests with the tool that installed them.
APPLY_AGAIN = (
    "apply the webhook's manifests again (kubectl apply -k or helm upgrade, docs/installation.md)"
)
#: For a changed object. kubectl and Helm keep the fields that somebody added, and Helm 4 reports a
#: conflict for those that somebody changed; both create a deleted object as it should be.
RESTORE = f"{APPLY_AGAIN}. If that does not undo the change, delete the object first"
