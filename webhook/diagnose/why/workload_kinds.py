"""The kinds of controllers that `why` accepts in KIND/NAME, as kubectl accepts them.

A kind may be written as in a manifest, in the plural or as a short name, in any case, and with its
group or its version and group: `deploy`, `jobs.batch`, `mpijob.v2beta1.kubeflow.org`.
"""

from __future__ import annotations

from typing import NamedTuple

from webhook.errors import DocumentError
from webhook.model.nearest import suggestion
from webhook.preview.workloads.controllers import CONTROLLERS

#: Source: kubectl api-resources; kubernetes-sigs/lws, leaderworkerset_types.go.
_SHORT_NAMES = {
    "CronJob": "cj",
    "DaemonSet": "ds",
    "Deployment": "deploy",
    "LeaderWorkerSet": "lws",
    "ReplicaSet": "rs",
    "ReplicationController": "rc",
    "StatefulSet": "sts",
}
#: Kinds in the table of controllers that are not controllers themselves.
_NO_CONTROLLERS = ("Pod", "PodTemplate")
#: The words for a pod.
POD_WORDS = ("po", "pod", "pods")


class WorkloadKind(NamedTuple):
    """A kind of controllers, in one version of its API."""

    api_version: str
    kind: str

    @property
    def plural(self) -> str:
        """The name in paths; all kinds in the table form it with an -s."""
        return f"{self.kind.lower()}s"

    @property
    def group(self) -> str:
        """The API group; "" for the core."""
        return self.api_version.rpartition("/")[0]

    @property
    def root(self) -> str:
        """The path of its API version."""
        return f"/apis/{self.api_version}" if self.group else f"/api/{self.api_version}"

    @property
    def words(self) -> frozenset[str]:
        """The words for it, in lower case, without a group."""
        return frozenset({self.kind.lower(), self.plural, _SHORT_NAMES.get(self.kind, self.plural)})

    @property
    def qualifiers(self) -> tuple[str, ...]:
        """What may follow a word after a dot; "" for nothing."""
        _, _, version = self.api_version.rpartition("/")
        return "", self.group, f"{version}.{self.group}".rstrip(".")


def _all_kinds() -> tuple[WorkloadKind, ...]:
    written = sorted(kind for controller in CONTROLLERS for kind in controller.kinds)
    kinds = (WorkloadKind(*text.split(" ")) for text in written)
    # Alpha versions last: an object is read in the first version that the API server serves.
    listed = [kind for kind in kinds if kind.kind not in _NO_CONTROLLERS]
    return tuple(sorted(listed, key=lambda kind: "alpha" in kind.api_version))


KINDS = _all_kinds()


def kinds_of(written: str) -> tuple[WorkloadKind, ...]:
    """Return the kinds that a word may mean, in all versions; () for another word."""
    word, _, qualifier = written.lower().partition(".")
    return tuple(kind for kind in KINDS if word in kind.words and qualifier in kind.qualifiers)


def kinds_or_error(written: str) -> tuple[WorkloadKind, ...]:
    """Return the kinds that a word may mean; raise DocumentError for another word."""
    if kinds := kinds_of(written):
        return kinds
    words = sorted({word for kind in KINDS for word in kind.words})
    hint = suggestion(written, words) or "; pass one of its pods (kubectl get pods)"
    raise DocumentError(f"{written!r:.80} is not a known kind of controller{hint}")
