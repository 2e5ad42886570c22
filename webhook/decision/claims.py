"""The DRA claims of a pod: who uses which, and what their names say about the devices.

The device class is in a ResourceClaim or its template, which admission does not see. The names of
the claim, of its request and of its template mostly say what it is for. A claim that no container
uses is a network's: a driver moves the NIC into the pod's network namespace (dranet, CNI-DRA),
while a GPU reaches only the containers that name its claim (KEP-4381).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, NamedTuple

from webhook.pod.manifest import Container, PodManifest, at, items

_NAMES = ("name", "resourceClaimName", "resourceClaimTemplateName")
#: Words that are parts of no other word, and short ones that must stand alone: `nic` as in `nic-0`.
_NIC = re.compile(
    r"rdma|roce|sriov|infiniband|connectx|mlnx|mlx5|dranet"
    r"|(?<![a-z])(?:nic|hca|efa|ib|vf|rail)s?(?![a-z])"
)
_GPU = re.compile(r"gpu|(?<![a-z])mig(?![a-z])")
_DOMAIN_WORDS = ("compute-domain", "computedomain", "imex")


class Claim(NamedTuple):
    """A claim of the pod, and a container that uses it."""

    name: str  #: as in `spec.resourceClaims`
    words: str  #: all names that say what it is for, in lower case, one per line
    user: Container | None  #: None for a claim that no container uses

    @property
    def is_domain(self) -> bool:
        """Return whether it is a channel of a ComputeDomain, which is no device of its own."""
        return any(word in self.words for word in _DOMAIN_WORDS)

    @property
    def is_nic(self) -> bool:
        """Return whether it is a NIC: by its names, or because no container uses it."""
        if self.is_domain:
            return False
        return _NIC.search(self.words) is not None or (self.user is None and not self.is_gpu)

    @property
    def is_gpu(self) -> bool:
        """Return whether its names say that it is a GPU; it may be a NIC beside it, too."""
        return not self.is_domain and _GPU.search(self.words) is not None


def claims_of(pod: PodManifest, containers: Iterable[Container]) -> tuple[Claim, ...]:
    """List the claims of a pod, once for each container that uses one; most pods have none."""
    if not at(pod, ("spec", "resourceClaims")):
        return ()
    listed = items(pod, ("spec", "resourceClaims"))
    words = {str(one.get("name", "")): _words(one, _NAMES) for one in listed}
    found: list[Claim] = []
    for container in containers:
        for one in items(container.manifest, ("resources", "claims"), container.path):
            name = str(one.get("name", ""))
            if name in words:
                told = f"{words[name]}\n{_words(one, ('request',))}"
                found.append(Claim(name, told, container))
    used = {claim.name for claim in found}
    found += [Claim(name, told, None) for name, told in words.items() if name not in used]
    return tuple(found)


def _words(claim: dict[str, Any], fields: tuple[str, ...]) -> str:
    return "\n".join(str(claim[field]) for field in fields if field in claim).lower()
