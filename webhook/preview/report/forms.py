"""The JSON form of a preview as types, with the descriptions of its schema.

Keys and codes may be added, but are never renamed.
"""

from __future__ import annotations

from typing import NotRequired

from typing_extensions import TypedDict

from webhook.model.decision import Rdma, Status
from webhook.model.json import JsonObject
from webhook.model.traffic_libraries import TrafficLibrary
from webhook.text.line_rows import RowKind


class OperationForm(TypedDict):
    """An operation of RFC 6902."""

    op: str
    path: str
    value: NotRequired[object]


class OutcomeForm(TypedDict):
    """What a mutation did to a container, or to the pod."""

    mutation: str
    """The mutation's name, as in rdma.lab/skip."""
    container: str
    """The container's name; empty for the pod."""
    status: Status
    """applied, already, skipped, failed or warned."""
    reason: str
    """A stable code."""
    message: str
    """The reason as a sentence, with names and values."""
    ops: list[OperationForm]
    """The operations of this outcome; empty unless it is applied."""


class BecauseForm(TypedDict):
    """The reason for a verdict."""

    reason: str
    """A stable code."""
    message: str
    """The reason as a sentence, with a remedy."""


class VerdictForm(TypedDict):
    """A verdict and its reason; written out, since the schema omits inherited descriptions."""

    rdma: Rdma
    """yes, no, unsure or none; only in `ifCalled`."""
    reason: str
    """A stable code."""
    message: str
    """The reason as a sentence, with a remedy."""


class DecisionForm(TypedDict):
    """The decision on a pod."""

    document: int
    """The number of the document, counted from 0 over all inputs."""
    line: int
    """The document's first line in its input, counted from 1."""
    path: str
    """The path of the pod template in its document, such as spec.template; empty for a pod."""
    kind: str
    """The kind of the object that contains the template."""
    name: str
    """The object's name or generateName; empty if it has neither."""
    namespace: str
    """The pod's own namespace, or the namespace given for objects without one."""
    controller: str
    """The controller whose additions the decision includes; empty for a pod as in the document."""
    role: str
    """The kind of pod, if a controller makes several kinds from one template; otherwise empty."""
    derived: bool
    """Whether the pod was derived from a container, or from a part that resembles a pod spec,
    outside any pod template: its operator may add more."""
    called: bool | None
    """Whether the API server would call the webhook for the pod; null if the namespace's labels are
    unknown, or if a matchCondition of the cluster's webhook cannot be evaluated."""
    calledBecause: str
    """The reason for `called`, as a sentence."""
    hint: str
    """For a pod that has not opted in: the apparent attempt to opt in; empty without one."""
    annotationsLocation: str
    """Where the annotation that opts in belongs, such as spec.template.metadata.annotations; if an
    operator writes the pods' metadata, what to do instead; empty if unknown."""
    optInAssumed: bool
    """Whether the pod lacks that annotation, and the preview was made as if it had it."""
    namespaceLabeled: bool | None
    """Whether the pod's namespace has the label rdma.lab/enable=true; null if its labels are
    unknown."""
    mistakes: list[str]
    """Sentences on mistakes in the pod or template that no webhook sees: fields that Kubernetes
    does not know, with the nearest known one, and unexpanded variables."""
    headline: str
    """The verdict in a few words, such as `equipped for RDMA`, `no RDMA`, or `not opted in`."""
    rdma: Rdma | None
    """Whether the pod is equipped for RDMA, as far as admission can see: `yes`, `no`, `unsure`;
    `none`: it only starts ranks in other pods; null: it has not opted in. `no` if `called` is
    false."""
    because: BecauseForm | None
    """The reason for the verdict, an object with `reason` and `message`; null if the pod has not
    opted in."""
    ifCalled: VerdictForm | None
    """The verdict if the webhook were called, an object with `rdma`, `reason` and `message`; null
    unless `called` is false for a pod that opted in."""
    libraries: list[TrafficLibrary]
    """The libraries that move the pod's data between nodes, as far as the pod shows: the verdict is
    about them. Empty if the pod is denied, has no container that needs RDMA, or has not opted
    in."""
    allowed: bool
    """false: the webhook denies the pod."""
    reason: str
    """The stable code of the decision as a whole."""
    message: str
    """The reason as a sentence; may be empty."""
    fabric: str | None
    """The pod's fabric; null if unknown."""
    evidence: str
    """The evidence for the fabric; may be empty."""
    outcomes: list[OutcomeForm]
    """For each mutation and container, one outcome with the status applied, already, skipped or
    failed, then any number with the status warned."""
    warnings: list[str]
    """The warnings that the user sees when the pod is created."""
    patch: list[OperationForm]
    """The operations on the pod as its controller creates it: those of the outcomes in order, then
    the status annotation. (-o patch has the operations on the document.)"""
    object: JsonObject
    """The pod after the patch, including its controller's additions."""


class RowReasonForm(TypedDict):
    """An applied outcome that changed a line."""

    decision: int
    """The decision's index in `decisions`."""
    mutation: str
    """The mutation's name."""
    container: str
    """The container's name; empty for the pod."""
    reason: str
    """A stable code."""


class RowForm(TypedDict):
    """A line of an input before and after the patch."""

    kind: RowKind
    """same, changed, added or removed."""
    before: str | None
    """The line without its line break; null if there is none."""
    after: str | None
    """The line after the patch; null if there is none."""
    reasons: list[RowReasonForm]
    """The outcomes that changed the line, as far as they are known; empty for the same line."""


class HunkForm(TypedDict):
    """Adjacent changes, with three lines above and below."""

    beforeLine: int
    """The number of the first line in the input, counted from 1."""
    afterLine: int
    """The number of the first line after the patch."""
    rows: list[RowForm]
    """The lines, before and after the patch."""


class ChangesForm(TypedDict):
    """The changes of an input."""

    input: str
    """The name of the input, such as a file."""
    hunks: list[HunkForm]
    """The changes, in the order of the input."""


class CodeForm(TypedDict):
    """The explanation of a code."""

    meanings: dict[str, str]
    """What the code stands for, as a sentence for each mutation that has it; the mutation is empty
    for a verdict or a decision."""
    remedy: str
    """What to do; empty for nothing."""


class PreviewForm(TypedDict):
    """The webhook's decision on each pod and pod template of the input."""

    decisions: list[DecisionForm]
    """One for each pod or pod template, in the order of the input."""
    changes: list[ChangesForm]
    """The lines that change in each input, as in `-o diff`; inputs without changes are missing."""
    codes: dict[str, CodeForm]
    """The explanation of each reason code in the decisions."""
    notes: list[str]
    """Sentences about documents without a pod template, about objects that cannot be previewed, and
    about objects of a cluster that could not be read."""
    example: bool
    """Whether the fabrics are an example, because none were given."""
    exampleFabrics: str
    """The names of the fabrics if they are an example's, also if a bundled example was given as a
    file; else empty."""
