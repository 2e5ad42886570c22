"""What would be decided today, from the template that the pod was made from."""

from __future__ import annotations

from typing import Any

from tests.builders import V100, fabrics
from tests.unit.diagnose.why.pods import (
    ASKED,
    OWNED,
    explain,
    job,
    live,
    namespace,
    status,
    told,
    unseen,
)
from webhook.diagnose.why.explanation import Sentence
from webhook.model.facts import Facts

GPU: dict[str, Any] = {"resources": {"limits": {"nvidia.com/v100": "1"}}}
FABRICS = fabrics(V100)


def today(pod: Any, *objects: Any, **known: Any) -> Sentence:
    """Return the sentence; `objects` are facts of the cluster."""
    facts = Facts().extended(objects, "lab")
    (found,) = told(explain(pod, fabrics=FABRICS, facts=facts, **known), "today")
    return found


def test_only_with_fabrics() -> None:
    """Without a fabrics file nothing is decided."""
    assert told(explain(live()), "today") == []


def test_a_patched_pod_without_a_template() -> None:
    """Deciding on it again would take our values for the user's."""
    found = today(live())
    assert found.code == "NotComparable"
    assert "rdma-webhook preview" in found.remedy


def test_the_same() -> None:
    """From the template, the decision is what the status says."""
    found = today(live(metadata=OWNED), owners=(job(asked=ASKED, **GPU),))
    assert found.text == (
        "The same, from the template of Job train: equipped for RDMA over v100-ib (Equipped)."
    )


def test_another_decision() -> None:
    """The template or the fabrics changed since: creating the pod again gives that."""
    was = status("no", "FabricUnknown")
    found = today(live(was, metadata=OWNED), owners=(job(asked=ASKED, **GPU),))
    assert (found.code, found.level) == ("OtherToday", "good")
    assert found.text.startswith("From the template of Job train, it would be: equipped for RDMA")
    assert found.remedy == "Create the pod again to get that."
    worse = today(live(metadata=OWNED), owners=(job(asked=ASKED),))
    assert worse.level == "problem"
    assert "no RDMA: " in worse.text
    assert "(NoTarget)." in worse.text
    assert worse.remedy.startswith("Create the pod again to get that. Request a GPU")
    known = {**GPU, "securityContext": {"runAsUser": 1000}}
    unsure = today(live(metadata=OWNED), owners=(job(asked=ASKED, **known),))
    assert unsure.level == "unsure"
    assert "it would be: RDMA not certain: " in unsure.text


def test_a_pod_that_was_not_seen() -> None:
    """It is decided on as it is, as if it had opted in."""
    pod = unseen(limits={"nvidia.com/v100": "1"})
    found = today(pod, namespace=namespace({}))
    assert found.code == "WouldBe"
    assert found.text.startswith(
        "If the webhook were called for this pod: equipped for RDMA over v100-ib (Equipped)."
    )
    assert today(live({}, limits={"nvidia.com/v100": "1"})).code == "WouldBe"


def test_a_pod_that_would_be_denied() -> None:
    """That is said."""
    pod = unseen()
    pod["metadata"]["annotations"]["rdma.lab/fabric"] = "nowhere"
    found = today(pod)
    assert "were called for this pod: denied: " in found.text
    assert "(InvalidAnnotation)." in found.text


def test_facts_count() -> None:
    """The namespace's own fabric decides with it, and so does what the nodes offer."""
    labelled = namespace()
    labelled["metadata"]["annotations"] = {"rdma.lab/fabric": "v100-ib"}
    pod = unseen(limits={"nvidia.com/gpu": "1"})
    assert "equipped" in today(pod, labelled).text
    assert "equipped" not in today(pod).text
    bare = {"kind": "Node", "metadata": {"name": "n"}, "status": {"allocatable": {}}}
    found = today(pod, labelled, bare)
    assert "(FabricWithoutNodes)" in found.text


def test_a_template_of_other_containers() -> None:
    """A pod is compared with the template that it can be made from only."""
    other = job(asked=ASKED, **GPU)
    other["spec"]["template"]["spec"]["containers"][0]["name"] = "other"
    assert today(live(metadata=OWNED), owners=(other,)).code == "NotComparable"
    labelled = job(asked=ASKED, **GPU)
    labelled["spec"]["template"]["metadata"]["labels"] = {"role": "launcher"}
    assert today(live(metadata=OWNED), owners=(labelled,)).code == "NotComparable"
