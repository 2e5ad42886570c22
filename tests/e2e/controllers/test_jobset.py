"""JobSet: pods of a Job that a JobSet made."""

from __future__ import annotations

from tests.cluster.cluster import Cluster
from tests.cluster.controllers import start_jobset
from tests.e2e.controllers.compared import check_preview, previews_of
from tests.e2e.controllers.lab import WorkloadNamespace, check_target


def test_jobset_of_patched_pods_completes(cluster: Cluster, lab: WorkloadNamespace) -> None:
    """Every pod gets all mutations, as the preview shows, and completes; so does the JobSet."""
    start_jobset(cluster)
    lab.create("jobset")
    lab.wait("wait", "--for=condition=Completed", "jobset/set")

    pods = lab.pods("jobset.sigs.k8s.io/jobset-name=set")
    (preview,) = previews_of(lab, "jobset").values()
    assert len(pods) == 2
    for pod in pods:
        check_target(lab, pod)
        check_preview(preview, pod)
