"""Decisions and their parts: operations, reasons, verdicts and outcomes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal, NamedTuple, NotRequired, TypedDict

from webhook.errors import WebhookError
from webhook.model.config_maps import DataKey
from webhook.model.pod import PodManifest
from webhook.model.traffic_libraries import TrafficLibrary

#: The version of `decide`, higher with each release that changes pods differently. It is part of
#: the configuration's hash, so that two releases that run at once do not treat each other's pods as
#: their own.
VERSION = 1

Status = Literal["applied", "already", "skipped", "failed", "warned"]
#: Whether a pod is equipped for RDMA; "none": it only launches pods that are.
Rdma = Literal["yes", "no", "unsure", "none"]


class PatchOp(TypedDict):
    """One RFC 6902 operation, in wire form."""

    op: str
    path: str
    value: NotRequired[object]


@dataclass(frozen=True, slots=True)
class Reason:
    """A stable reason code, with its row in the documentation."""

    code: str
    #: A sentence on when an outcome or a verdict has this code.
    meaning: str
    #: One or two sentences for the author of the pod; "" if no action is needed. Reasons with the
    #: same code have the same remedy.
    remedy: str
    #: False if nobody needs to know: rdma.lab/status omits it, and the preview gives it no row.
    reportable: bool = True
    #: The verdict that this reason explains; None for a reason that decides no verdict.
    rdma: Rdma | None = None

    @property
    def sentence(self) -> str:
        """`meaning` without its full stop, since messages end without one."""
        return self.meaning.removesuffix(".")

    @property
    def clause(self) -> str:
        """`sentence` with its first letter in lower case, as part of a message."""
        return self.sentence[0].lower() + self.sentence[1:]


class Denial(WebhookError):  # noqa: N818 -- a verdict on the pod, not a fault of the program
    """The denial of a pod, with its reason."""

    def __init__(self, reason: Reason, message: str) -> None:
        super().__init__(message)
        self.reason = reason


class Verdict(NamedTuple):
    """Whether the pod is equipped for RDMA, as far as admission can see, and the reason."""

    rdma: Rdma
    #: The reason that explains `rdma`; it may be no reason of the decision or its outcomes.
    because: Reason
    #: A sentence that names the fault and the remedy.
    message: str
    #: What to do, in full; "" for nothing.
    remedy: str = ""
    #: The libraries that move the pod's data between nodes, such as NCCL; () if nothing does.
    libraries: tuple[TrafficLibrary, ...] = ()
    #: A clause on the libraries, "" for NCCL alone: "NIXL; NCCL's RDMA is switched off by …".
    libraries_clause: str = ""
    #: What a `yes` takes for granted, since admission cannot see it; None for nothing.
    assumption: Reason | None = None
    #: A script in a ConfigMap that a `yes` assumes to be harmless, since its text is not known.
    unread_script: DataKey | None = None
    #: The key of a ConfigMap whose value decides it, or whose value is not known; `key` is "" for
    #: all keys of a ConfigMap. None if the pod itself decides.
    key: DataKey | None = None
    #: Whether `key` has a script, whose settings the container's env does not override.
    overrides_env: bool = False

    @classmethod
    def of(cls, because: Reason, message: str, remedy: str = "") -> Verdict:
        """Return the verdict that a reason explains; its remedy is the default."""
        assert because.rdma is not None, because.code
        return cls(because.rdma, because, message, remedy or because.remedy)

    def with_key(self, key: DataKey | None, *, overrides_env: bool = False) -> Verdict:
        """Return the same verdict, with the key of a ConfigMap that decides it, if any."""
        return self._replace(key=key, overrides_env=key is not None and overrides_env)


#: Stands for a mutation's name in outcomes of the check of a pod's request, before any mutation.
REQUEST_CHECK = "request"


class Outcome(NamedTuple):
    """The effect of one mutation on one container ("" for the pod), with its reason."""

    #: The name of a mutation, or REQUEST_CHECK.
    mutation: str
    container: str
    status: Status
    reason: Reason
    message: str
    ops: tuple[PatchOp, ...] = ()


class Decision(NamedTuple):
    """The complete decision on one pod; every output renders it."""

    allowed: bool
    #: What happened to the pod as a whole; the outcomes have the reasons of skipped mutations, also
    #: where this is Patched or AlreadyPatched.
    reason: Reason
    #: The pod after the patch; it shares unchanged parts with the original pod.
    pod: PodManifest
    message: str = ""
    #: None for a pod that did not opt in.
    verdict: Verdict | None = None
    fabric: str | None = None
    fabric_evidence: str = ""
    outcomes: tuple[Outcome, ...] = ()
    patch: tuple[PatchOp, ...] = ()
    warnings: tuple[str, ...] = ()
    audit: Mapping[str, str] = MappingProxyType({})
