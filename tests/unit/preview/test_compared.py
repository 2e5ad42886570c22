from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from jsonschema import Draft202012Validator

from tests.builders import H100, V100, fabric, fabrics, gpu, pod
from webhook.model.fabric import FabricEnv, Fabrics
from webhook.model.facts import Facts
from webhook.preview.comparison import (
    Comparison,
    changes_form,
    changes_schema,
    changes_text,
    compared,
)
from webhook.preview.dry_run import PreviewOptions, preview_documents
from webhook.text.yaml.documents import Document

OLD = fabrics(V100, H100)
OTHER = replace(V100, env=FabricEnv(libraries=(("NCCL_IB_HCA", "=mlx5_7"),)))
VALIDATOR = Draft202012Validator(json.loads(changes_schema()))


def job(name: str, spec: Any) -> dict[str, Any]:
    """Make a Job from a pod."""
    template = {"metadata": {"annotations": {"rdma.lab/enable": "true"}}, "spec": spec["spec"]}
    metadata = {"name": name, "namespace": "lab"}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": metadata,
        "spec": {"template": template},
    }


def comparing(new: Fabrics, *values: dict[str, Any], labels: bool = True) -> Comparison:
    """Compare the decisions under OLD and a new configuration."""
    documents = [
        Document(name="-", index=place, value=one, line=1, text="", syntax="json")
        for place, one in enumerate(values)
    ]
    marked = {"rdma.lab/enable": "true"} if labels else {}
    space = {"kind": "Namespace", "metadata": {"name": "lab", "labels": marked}}
    options = PreviewOptions(fabrics=OLD, facts=Facts.from_objects([space]))
    today, then = (
        preview_documents(documents, replace(options, fabrics=one)) for one in (OLD, new)
    )
    found = compared(today, then)
    VALIDATOR.validate(changes_form(found))
    assert compared(replace(today, notes=("b", "a")), then, ("a", "c")).notes == ("a", "c", "b")
    return found


def test_the_same_meaning_changes_nothing() -> None:
    """Another hash is in every status, but is no difference."""
    found = comparing(replace(OLD, config_hash="ba9876543210"), job("train", pod()))
    assert (found.compared, found.changes) == (1, ())
    assert changes_text(found) == "No change: 1 pod would get the same decision.\n"


def test_a_changed_value_is_shown_with_its_place() -> None:
    """The verdict stays; what the pod gets is another value."""
    found = comparing(fabrics(OTHER, H100), job("train", pod()), job("off", pod(gpu(name="x"))))
    (first, _) = found.changes
    assert first.before == first.after
    places = {leaf.place: (leaf.before, leaf.after) for leaf in first.leaves}
    hca = "spec.containers[trainer].env[NCCL_IB_HCA].value"
    assert places[hca] == ("=mlx5_0,mlx5_1", "=mlx5_7")
    shown = changes_text(found)
    assert "Job lab/train  spec.template\n  RDMA as before: yes (Equipped)\n" in shown
    assert f"  ~ {hca}: =mlx5_0,mlx5_1 → =mlx5_7\n" in shown
    assert shown.endswith("2 of 2 pods would get a different decision.\n")


def test_a_pod_that_loses_its_fabric() -> None:
    """The verdict before and after, why, and what is taken away; it is counted as a loss."""
    found = comparing(fabrics(H100), job("train", pod()))
    (change,) = found.changes
    assert (change.before.rdma, change.after.rdma) == ("yes", "no")
    assert (change.before.fabric, change.after.fabric) == ("v100-ib", None)
    shown = changes_text(found, width=200)
    assert "  RDMA yes (Equipped) → no (NoTarget)\n  no fabric claims nvidia.com/v100" in shown
    assert "  fabric v100-ib → none\n" in shown
    assert "  - spec.containers[trainer].resources.limits[rdma/v100]: 1\n" in shown
    assert shown.endswith("1 of 1 pod would get a different decision, 1 of them would lose RDMA.\n")
    back = compared_back(found)
    assert "would lose" not in changes_text(back)


def compared_back(found: Comparison) -> Comparison:
    """Turn a comparison around."""
    turned = tuple(replace(one, before=one.after, after=one.before) for one in found.changes)
    return replace(found, changes=turned)


def test_a_pod_that_would_be_denied() -> None:
    """It is not created any more."""
    asked = pod(annotations={"rdma.lab/fabric": "v100-ib"})
    value = job("train", asked)
    value["spec"]["template"]["metadata"]["annotations"]["rdma.lab/fabric"] = "v100-ib"
    found = comparing(fabrics(H100), value)
    assert "RDMA yes (Equipped) → denied (InvalidAnnotation)" in changes_text(found)


def test_what_has_not_opted_in_is_not_compared() -> None:
    """Nor what the API server does not call the webhook for."""
    value = job("train", pod())
    del value["spec"]["template"]["metadata"]
    assert comparing(fabrics(H100), value).compared == 0
    found = comparing(fabrics(H100), job("train", pod()), labels=False)
    assert found.compared == 0
    assert changes_text(found).endswith("There are no pods to compare: none has opted in.\n")


def test_a_long_list_is_cut_and_notes_are_told_once() -> None:
    """Twelve differences are shown of each pod; a value of sixty characters."""
    many = tuple((f"NCCL_X{number}", "x" * 99) for number in range(20))
    found = comparing(fabrics(replace(V100, env=FabricEnv(site=many)), H100), job("train", pod()))
    (change,) = found.changes
    shown = changes_text(replace(found, notes=("read", "little")), width=300)
    assert f"    and {len(change.leaves) - 12} more\n" in shown
    assert f": {'x' * 59}…\n" in shown
    assert "· read\n· little\n" in shown


def test_an_empty_value_is_visible() -> None:
    """It is written as two quotation marks."""
    found = comparing(
        fabrics(fabric("none")), job("train", pod(gpu(env=[{"name": "A", "value": ""}])))
    )
    one = replace(
        found.changes[0], leaves=(found.changes[0].leaves[0]._replace(before="", after="x"),)
    )
    assert ': "" → x\n' in changes_text(replace(found, changes=(one,)))
