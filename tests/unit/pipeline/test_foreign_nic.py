from __future__ import annotations

import pytest

from tests.builders import V100, amounts, container, context, pod
from tests.case_names import case_name
from webhook.decision.resources import usage_of
from webhook.pipeline.examine.foreign_nic import foreign_nic
from webhook.pod.manifest import PodManifest, containers_of


def using(*names: str) -> PodManifest:
    """Make a pod that requests one of each resource."""
    return pod(container(resources=amounts(dict.fromkeys(names, "1"))))


@pytest.mark.parametrize(
    ("manifest", "nic"),
    [
        (using("nvidia.com/gpu", "rdma/v100", "rdma/x"), ""),
        (
            using("nvidia.com/gpu", "vpc.amazonaws.com/efa"),
            "vpc.amazonaws.com/efa in container trainer",
        ),
        (using("site.lab/nic"), "site.lab/nic in container trainer"),
        (
            pod(container(), annotations={"networking.gke.io/interfaces": "[]"}),
            "annotation networking.gke.io/interfaces",
        ),
        (pod(container(), annotations={"site.lab/nics": ""}), "annotation site.lab/nics"),
        (
            pod(
                container(resources={"claims": [{"name": "gpu"}, {"name": "my-RDMA-nic"}]}),
                resourceClaims=[{"name": "my-RDMA-nic"}],
            ),
            "resource claim my-RDMA-nic in container trainer",
        ),
        (
            pod(
                container(resources={"claims": [{"name": "gpu"}, {}]}),
                resourceClaims=[{"name": "gpu"}],
            ),
            "",
        ),
        (pod(container(resources={"claims": [{"name": "nic"}]})), ""),
    ],
    ids=case_name,
)
def test_a_foreign_nic_is_found(manifest: PodManifest, nic: str) -> None:
    """It is found by resource, by annotation or by the name of a claim."""
    where = context(
        V100, foreign_resources=("site.lab/nic",), foreign_annotations=("site.lab/nics",)
    )
    pairs = [
        (one, usage_of(one.manifest, one.path, where.fabrics)) for one in containers_of(manifest)
    ]
    assert foreign_nic(pairs, manifest, where.fabrics) == nic
