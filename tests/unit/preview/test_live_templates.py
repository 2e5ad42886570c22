from __future__ import annotations

from typing import Any

from tests.unit.diagnose.why.test_collector import BATCH, FakeCluster, listed
from webhook.model.facts import key_of
from webhook.preview.live import LiveTemplates, live_templates

ENABLED = {"annotations": {"rdma.lab/enable": "true"}}
SPEC = {"containers": [{"name": "main"}]}
PODS = "/api/v1/namespaces/lab/pods"
NAMESPACES = "/api/v1/namespaces"


def controlled(kind: str, name: str, version: str = "batch/v1") -> dict[str, Any]:
    """Write the reference to a controller."""
    reference = {"apiVersion": version, "kind": kind, "name": name, "uid": "u", "controller": True}
    return {"ownerReferences": [reference]}


def owned(kind: str, name: str, version: str = "batch/v1", **metadata: Any) -> dict[str, Any]:
    """Make a pod that opted in, of a controller."""
    owner = controlled(kind, name, version)
    return {"metadata": {"name": f"{name}-x", "namespace": "lab", **ENABLED, **owner, **metadata}}


def workload(name: str, **metadata: Any) -> dict[str, Any]:
    """Make an object with a template whose pods opted in."""
    return {
        "metadata": {"name": name, "namespace": "lab", **metadata},
        "spec": {"template": {"metadata": ENABLED, "spec": SPEC}},
    }


def read(answers: dict[str, Any], namespace: str = "lab") -> LiveTemplates:
    """Read with these answers; lists that are not among them are empty."""
    empty = {
        f"/apis/{version}/namespaces/lab/{resource}": listed()
        for version, resource in (
            ("apps/v1", "deployments"),
            ("apps/v1", "statefulsets"),
            ("apps/v1", "daemonsets"),
            ("batch/v1", "jobs"),
            ("batch/v1", "cronjobs"),
        )
    }
    return live_templates(FakeCluster({PODS: listed(), **empty, **answers}), namespace)


def titles(templates: LiveTemplates) -> list[str]:
    """Return kind and name of each object."""
    return [f"{manifest['kind']} {key_of(manifest)[1]}" for manifest in templates.objects]


def test_the_owners_of_living_pods() -> None:
    """The uppermost with a template, of any kind, once; pods that did not opt in do not count."""
    crd = {"resources": [{"name": "pytorchjobs", "kind": "PyTorchJob", "namespaced": True}]}
    jobs = "/apis/batch/v1/namespaces/lab/jobs"
    templates = read(
        {
            PODS: listed(
                owned("PyTorchJob", "fit", "kubeflow.org/v1"),
                owned("Job", "train"),
                owned("Job", "train"),
                owned("Job", "idle", annotations={}),
            ),
            "/apis/kubeflow.org/v1": crd,
            "/apis/kubeflow.org/v1/namespaces/lab/pytorchjobs/fit": workload("fit"),
            "/apis/batch/v1": BATCH,
            f"{jobs}/train": workload("train", **controlled("CronJob", "nightly")),
        }
    )
    assert titles(templates) == ["PyTorchJob fit", "Job train"]
    assert templates.namespaces == ["lab"]


def test_workloads_without_a_pod_at_the_moment() -> None:
    """They are scaled to zero, or between two runs; objects of a controller are left out."""
    templates = read(
        {
            "/apis/apps/v1/namespaces/lab/deployments": listed(workload("serve")),
            "/apis/batch/v1/namespaces/lab/jobs": listed(
                workload("one"),
                workload("of-cron", **controlled("CronJob", "nightly")),
                {
                    "metadata": {"name": "plain", "namespace": "lab"},
                    "spec": {"template": {"spec": SPEC}},
                },
            ),
        }
    )
    assert titles(templates) == ["Deployment serve", "Job one"]


def test_a_pod_of_no_template_is_counted() -> None:
    """It is patched already, so it does not predict a decision."""
    bare = {"metadata": {"name": "bare", "namespace": "lab", **ENABLED}}
    templates = read({PODS: listed(bare)})
    assert templates.objects == []
    assert templates.notes[0] == (
        "1 pod of lab: not compared, since existing pods are already patched, and no template of "
        "theirs could be read"
    )
    assert read({PODS: listed(bare, bare)}).notes[0].startswith("2 pods of lab: ")


def test_all_namespaces_with_the_label() -> None:
    """The API server selects them; without any, there is a note."""
    selectors: list[Any] = []

    def labeled(query: Any) -> Any:
        selectors.append(query["labelSelector"])
        return listed({"metadata": {"name": "lab"}})

    templates = read({NAMESPACES: labeled}, "")
    assert (templates.namespaces, selectors) == (["lab"], ["rdma.lab/enable=true"])
    none = read({NAMESPACES: listed()}, "")
    assert none.notes == [
        "no namespace has the label rdma.lab/enable=true, so the webhook is called for no pod"
    ]


def test_a_missing_right_is_noted() -> None:
    """Everything else is compared."""
    deployments = "/apis/apps/v1/namespaces/lab/deployments"
    templates = read({PODS: 403, deployments: listed(workload("serve"))})
    assert titles(templates) == ["Deployment serve"]
    assert templates.objects[0]["apiVersion"] == "apps/v1"
    reason = "not read (the API server answered 403: no)"
    assert templates.notes == [f"the pods of lab: {reason}"]
    assert read({deployments: 403}).notes == [f"the deployments of lab: {reason}"]
    assert read({NAMESPACES: 403}, "").notes == [f"the namespaces with the label: {reason}"]


def test_each_object_is_read_once() -> None:
    """This includes a listed owner of a pod; another kind with the same name is another object."""
    templates = read(
        {
            PODS: listed(owned("Job", "train")),
            "/apis/batch/v1": BATCH,
            "/apis/batch/v1/namespaces/lab/jobs/train": workload("train"),
            "/apis/batch/v1/namespaces/lab/jobs": listed(workload("train"), workload("other")),
            "/apis/apps/v1/namespaces/lab/deployments": listed(workload("train")),
        }
    )
    assert titles(templates) == ["Job train", "Deployment train", "Job other"]


def test_a_template_that_sets_false_has_not_opted_in() -> None:
    """It counts as a pod without the annotation."""
    refusing = workload("serve")
    refusing["spec"]["template"]["metadata"] = {"annotations": {"rdma.lab/enable": "false"}}
    deployments = "/apis/apps/v1/namespaces/lab/deployments"
    assert titles(read({deployments: listed(refusing)})) == []


def test_only_the_uppermost_owner_is_compared() -> None:
    """A Job made by a CronJob is made again from the CronJob's template."""
    jobs = "/apis/batch/v1/namespaces/lab/jobs"
    kinds = [*BATCH["resources"], {"name": "cronjobs", "kind": "CronJob", "namespaced": True}]
    cron = {
        "metadata": {"name": "nightly", "namespace": "lab"},
        "spec": {"jobTemplate": {"spec": workload("unused")["spec"]}},
    }
    templates = read(
        {
            PODS: listed(owned("Job", "train")),
            "/apis/batch/v1": {"resources": kinds},
            f"{jobs}/train": workload("train", **controlled("CronJob", "nightly")),
            "/apis/batch/v1/namespaces/lab/cronjobs/nightly": cron,
        }
    )
    assert titles(templates) == ["CronJob nightly"]
