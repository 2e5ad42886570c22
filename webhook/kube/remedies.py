"""Remedies that several packages name: clauses without a capital letter and a period."""

from __future__ import annotations

#: For a missing object. The site applies the manifests with the tool that installed them.
APPLY_AGAIN = (
    "apply the webhook's manifests again (kubectl apply -k or helm upgrade; see "
    "docs/installation.md)"
)
#: For a changed webhook configuration. kubectl and Helm keep the fields that somebody added, and
#: Helm 4 reports a conflict for those that somebody changed; both create a deleted object as it
#: should be.
RESTORE = (
    f"{APPLY_AGAIN}. If that does not correct the webhook configuration, delete it, and apply the "
    "manifests once more"
)
#: For a changed policy or binding, for the same reason.
RESTORE_POLICY = (
    f"{APPLY_AGAIN}. If the finding remains, delete the policy and its binding, and apply the "
    "manifests once more"
)
