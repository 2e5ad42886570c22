"""The outputs of an explanation."""

from __future__ import annotations

import json
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from tests.builders import V100, fabrics
from tests.unit.diagnose.why.pods import (
    ASKED,
    OWNED,
    event,
    explain,
    job,
    namespace,
    pod_in_cluster,
    pod_without_call,
)
from webhook.diagnose.why.answer import explain_pod
from webhook.diagnose.why.file_collector import collect_from_objects, objects_of
from webhook.diagnose.why.output import why_form, why_schema, why_text
from webhook.kube.objects import KubernetesObject

VALIDATOR = Draft202012Validator(json.loads(why_schema()))

UNLABELED = """\
Pod lab/train-0  (controlled by Job train)
  ✘ No RDMA, since the webhook was not called: namespace lab lacks the label rdma.lab/enable:
    "true". [NamespaceNotLabeled]
    → Ask the cluster administrator to run `kubectl label --overwrite namespace lab
      rdma.lab/enable=true`. Then create the pod again.

What the pod requests
  · The pod sets rdma.lab/enable: "true".
  · No container requests a GPU, an RDMA resource or another device.

Whether the webhook was called
  ✘ No: namespace lab lacks the label rdma.lab/enable: "true". [NamespaceNotLabeled]

What the webhook changed
  · Nothing, since the webhook was not called.

What the cluster reports
  ✔ The pod is running on node node-1.
  ? Event FailedCreate about Job train: quota [FailedCreate]
    → Correct the problem that the Event reports. Until then, the controller might have fewer pods
      than it needs.

What could not be read
  · You do not have the right to read nodes.
"""


def test_text() -> None:
    """The answer first, then the chapters; a remedy that was given is not repeated."""
    explanation = explain(
        pod_without_call(metadata=OWNED),
        namespace=namespace({}),
        owners=(job(),),
        events=(event("FailedCreate", "quota", "Job", "train"),),
        unread_sentences=("You do not have the right to read nodes.",),
    )
    assert why_text([explanation]) == UNLABELED


def test_several_pods() -> None:
    """An empty line separates them."""
    text = why_text([explain(pod_in_cluster()), explain(pod_in_cluster())])
    assert text.count("\n\nPod lab/train-0\n") == 1


def test_controllers() -> None:
    """The heading names the pod's controller, then the controller of that one."""
    outer = {"kind": "JobSet", "metadata": {"name": "set"}}
    heading = why_text([explain(pod_in_cluster(), owners=(job(), outer))]).partition("\n")[0]
    assert heading == "Pod lab/train-0  (controlled by Job train, controlled by JobSet set)"


def test_characters_that_hide_something() -> None:
    """Control characters of a file do not reach the terminal."""
    pod = pod_in_cluster({**ASKED, "rdma.lab/fabric": "\x1b[31m\u202e"})
    text = why_text([explain(pod)], color=False)
    assert "\x1b" not in text
    assert "\u202e" not in text


def test_pods_fit_the_schema() -> None:
    """The form of `-o json` for a pod fits."""
    explanation = explain(pod_without_call(), namespace=namespace({}), unread_sentences=("x",))
    form = why_form([explanation])
    VALIDATOR.validate(form)
    (pod,) = form["pods"]
    assert (pod["rdma"], pod["well"]) == ("no", False)
    assert pod["answer"]["code"] == "NamespaceNotLabeled"
    assert [chapter["name"] for chapter in pod["chapters"]] == [
        "requested",
        "webhookCall",
        "applied",
        "podStatus",
        "unread",
    ]
    assert pod["chapters"][1]["findings"] == [
        {
            "level": "error",
            "code": "NamespaceNotLabeled",
            "text": 'No: namespace lab lacks the label rdma.lab/enable: "true".',
            "remedy": pod["answer"]["remedy"],
            "location": {},
        }
    ]


def test_the_schema_notices() -> None:
    """A key that is not described, or a missing one, is an error."""
    form: Any = why_form([explain(pod_in_cluster())])
    form["pods"][0]["more"] = 1
    assert not VALIDATOR.is_valid(form)
    assert not VALIDATOR.is_valid({"pods": []})


def test_a_list_with_all_that_is_known() -> None:
    """Objects besides pods are evidence: namespace, owner, events, nodes, webhooks."""
    value = {
        "kind": "List",
        "items": [
            pod_without_call(metadata=OWNED),
            namespace({}),
            job(),
            event("NoRDMA", "no fabric", "Job", "train"),
            event("NoRDMA", "other", "Job", "another"),
        ],
    }
    (evidence,) = collect_from_objects(list(objects_of(value)), "default", None)
    assert evidence.namespace == KubernetesObject.read(namespace({}))
    assert evidence.owners == (KubernetesObject.read(job()),)
    assert [event.message for event in evidence.events or ()] == ["no fabric"]
    assert evidence.registrations is None


def test_an_owner_that_is_not_in_the_list() -> None:
    """Objects outside the list are unknown; without any event in it, so are events."""
    (evidence,) = collect_from_objects(
        [pod_without_call(metadata=OWNED), namespace()], "default", None
    )
    assert (evidence.owners, evidence.events, evidence.nodes) == ((), None, None)


def test_owners_in_a_circle() -> None:
    """The chain ends after some steps."""
    owned = {**job(), "metadata": {"name": "train", **OWNED}}
    (evidence,) = collect_from_objects([pod_without_call(metadata=OWNED), owned], "default", None)
    assert len(evidence.owners) == 5


def test_typed_lists() -> None:
    """The items of a PodList have no kind; a pod without a namespace gets the given one."""
    pod = pod_in_cluster()
    del pod["kind"], pod["metadata"]["namespace"]
    value = {"kind": "PodList", "items": [pod, 1]}
    (evidence,) = collect_from_objects(list(objects_of(value)), "elsewhere", None)
    assert (evidence.namespace_name, evidence.name) == ("elsewhere", "train-0")
    assert list(objects_of([1])) == []


ODD: list[Any] = [None, 1, "x", [], {}, [1], {"a": 1}, {"metadata": []}]


@pytest.mark.parametrize("odd", ODD, ids=str)
@pytest.mark.parametrize("field", ["metadata", "spec", "status"])
def test_nonsense(field: str, odd: Any) -> None:
    """A pod of any shape is explained, and the result fits the schema."""
    for pod in ({**pod_in_cluster(), field: odd}, {**pod_without_call(), field: odd}):
        for evidence in collect_from_objects([pod], "lab", fabrics(V100)):
            form = why_form([explain_pod(evidence)])
            VALIDATOR.validate(form)


@pytest.mark.parametrize("odd", ODD, ids=str)
def test_nonsense_inside(odd: Any) -> None:
    """Lists and mappings inside a pod may have any shape as well."""
    spec = {"containers": [odd, {"name": odd, "resources": odd}], "os": odd}
    state = {"conditions": [odd, {"type": "PodScheduled", "status": "False", "message": odd}]}
    statuses = [odd, {"name": odd, "state": odd, "restartCount": odd}]
    metadata = {"name": odd, "annotations": odd, "ownerReferences": [odd], "managedFields": [odd]}
    status = {**state, "containerStatuses": statuses}
    pod: dict[str, Any] = {"kind": "Pod", "metadata": metadata, "spec": spec, "status": status}
    events = [{"kind": "Event", "type": "Warning", "involvedObject": odd, "reason": odd}]
    space = {"kind": "Namespace", "metadata": odd}
    (evidence,) = collect_from_objects([pod, *events, space], "lab", fabrics(V100))
    VALIDATOR.validate(why_form([explain_pod(evidence)]))
