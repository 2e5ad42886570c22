from __future__ import annotations

import json
from copy import deepcopy
from typing import Any

import jsonpatch
import pytest

from tests.api_server import without_status
from webhook.admission.registration import SHIPPED, read_registration
from webhook.decide import decide
from webhook.decide.analysis import DecisionInput
from webhook.errors import DocumentError
from webhook.model.fabric import CompiledConfiguration, Fabric, RdmaResource, build_configuration
from webhook.model.facts import Facts, NamespaceFacts
from webhook.model.nodes import FabricIndex
from webhook.preview.dry_run import PreviewOptions, preview_documents
from webhook.preview.input_facts import LiveFacts
from webhook.preview.patches import patches, rewrite
from webhook.preview.report.record import Preview, Report
from webhook.text.yaml.documents import Document, join_documents, read_documents

CONFIGURATION = build_configuration(
    (
        Fabric(
            name="v100-ib",
            gpu_resources=frozenset({"nvidia.com/v100"}),
            resources=(RdmaResource(name="rdma/rdma_v100"),),
            socket_interface="eth0",
        ),
    ),
    config_hash="0123456789ab",
)
DEPLOYMENT = """\
# trains at night
apiVersion: apps/v1
kind: Deployment
metadata:
  name: trainer
  namespace: lab
spec:
  template:
    metadata:
      annotations:
        rdma.lab/enable: "true"
    spec:
      containers:
      - name: trainer  # one is enough
        image: registry.example/trainer
        resources:
          limits: {nvidia.com/v100: 8, memory: 64Gi}
"""
POD = """\
apiVersion: v1
kind: Pod
metadata:
  name: one
spec:
  containers:
  - name: main
    resources: {limits: {nvidia.com/v100: 1}}
"""
SERVICE = "apiVersion: v1\nkind: Service\nmetadata: {name: web, namespace: lab}\n"


def report_on(
    text: str, configuration: CompiledConfiguration = CONFIGURATION, **options: Any
) -> Report:
    """Preview a text."""
    documents = read_documents(text, "input.yaml")
    return preview_documents(documents, PreviewOptions(configuration=configuration, **options))


def only(text: str, **options: Any) -> Preview:
    """Preview a text with one pod."""
    (preview,) = report_on(text, **options).previews
    return preview


def namespaces(**labels: dict[str, str]) -> Facts:
    """Make facts with these namespaces and no other."""
    facts = {name: NamespaceFacts(name=name, labels=pairs) for name, pairs in labels.items()}
    return Facts(namespaces=facts, unlisted_is_unknown=True)


def test_a_template_is_placed_and_decided() -> None:
    """The preview has the template's place and object, and the decision on it."""
    preview = only(DEPLOYMENT)
    assert (preview.source, preview.line, preview.document) == ("input.yaml", 2, 0)
    assert (preview.kind, preview.namespace, preview.name) == ("Deployment", "lab", "trainer")
    assert preview.path == "spec.template"
    assert preview.decision.reason.code == "Patched"
    assert preview.decision.fabric == "v100-ib"


@pytest.mark.parametrize(
    ("text", "given", "namespace"),
    [(DEPLOYMENT, "other", "lab"), (POD, "other", "other"), (POD, None, "default")],
)
def test_the_namespace_is_the_objects_own_then_the_options(
    text: str, given: str | None, namespace: str
) -> None:
    """An object's own namespace wins; kubectl would reject a -n that contradicts it."""
    options = {} if given is None else {"namespace": given}
    assert only(text, **options).namespace == namespace


def test_without_facts_the_call_is_open() -> None:
    """It is open whether the webhook is called; the decision is that for a known namespace."""
    preview = only(DEPLOYMENT)
    assert preview.called is None
    assert "NamespaceUnknown" not in {outcome.reason.code for outcome in preview.decision.outcomes}


def test_given_labels_settle_the_call() -> None:
    """`--namespace-label rdma.lab/enable=true` replaces the namespace's own label."""
    assert only(DEPLOYMENT, namespace_labels={"rdma.lab/enable": "true"}).called is True
    assert only(DEPLOYMENT, namespace_labels={"team": "x"}).called is False


def test_given_labels_lie_over_those_of_the_facts() -> None:
    """A given label overrides its value in the facts; the others stay."""
    facts = namespaces(lab={"rdma.lab/enable": "true"})
    assert only(DEPLOYMENT, facts=facts).called is True
    assert only(DEPLOYMENT, facts=facts, namespace_labels={"team": "x"}).called is True
    assert only(DEPLOYMENT, facts=facts, namespace_labels={"rdma.lab/enable": "no"}).called is False


def test_a_namespace_that_the_facts_lack_is_unknown() -> None:
    """Then the memory limit is kept, with a reason in the decision."""
    preview = only(DEPLOYMENT, facts=namespaces(other={}))
    assert preview.called is None
    assert "NamespaceUnknown" in {outcome.reason.code for outcome in preview.decision.outcomes}


def test_enable_supposes_the_annotation_for_the_decision_and_for_the_call() -> None:
    """`--enable` shows what would happen if the pod had opted in."""
    labels = {"rdma.lab/enable": "true"}
    assert only(POD, namespace_labels=labels).decision.reason.code == "NotOptedIn"
    supposed = only(POD, namespace_labels=labels, enable=True)
    assert (supposed.decision.reason.code, supposed.called) == ("Patched", True)


def test_only_a_pod_without_the_annotation_is_supposed_to_have_it() -> None:
    """With `--enable`, a preview says whether the pod lacks what was supposed."""
    silent = DEPLOYMENT.replace('rdma.lab/enable: "true"', 'rdma.lab/enable: "false"')
    assert silent != DEPLOYMENT
    assert only(silent, enable=True).opt_in_assumed is True
    assert only(DEPLOYMENT, enable=True).opt_in_assumed is False
    assert only(silent).opt_in_assumed is False


@pytest.mark.parametrize(
    ("labels", "labeled"),
    [({"rdma.lab/enable": "true"}, True), ({"rdma.lab/enable": "no"}, False), ({"a": "b"}, False)],
)
def test_a_preview_knows_whether_the_namespace_has_the_label(
    labels: dict[str, str], *, labeled: bool
) -> None:
    """A pod that has not opted in may lack both: the annotation and its namespace's label."""
    assert only(DEPLOYMENT, namespace_labels=labels).namespace_labeled is labeled
    assert only(DEPLOYMENT).namespace_labeled is None


@pytest.mark.parametrize("metadata", ["[]", "x", "{annotations: []}", "{annotations: 5}"])
def test_enable_leaves_a_malformed_pod_to_the_decision(metadata: str) -> None:
    """The decision denies it for its shape."""
    text = f"apiVersion: v1\nkind: Pod\nmetadata: {metadata}\nspec: {{containers: []}}\n"
    assert not only(text, enable=True).decision.allowed


def review(**request: Any) -> str:
    """Wrap the pod in an AdmissionReview."""
    (pod,) = read_documents(POD)
    fields = {"uid": "1", "operation": "CREATE", "namespace": "lab", "object": pod.value, **request}
    return json.dumps(
        {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": fields}
    )


def test_an_admission_review_is_a_call() -> None:
    """The review's namespace counts, whatever the options say."""
    preview = only(review(), namespace="other", enable=True)
    assert (preview.namespace, preview.name, preview.path) == ("lab", "one", "request.object")
    assert preview.called is True


@pytest.mark.parametrize(
    ("request_", "because"), [({"operation": "DELETE"}, "'DELETE'"), ({"uid": ""}, "request.uid")]
)
def test_an_admission_review_that_is_never_sent_is_not_a_call(
    request_: dict[str, Any], because: str
) -> None:
    """The webhook is registered for the creation of pods only; an incomplete review is an error."""
    preview = only(review(**request_), enable=True)
    assert preview.called is False
    assert because in preview.called_because


def test_a_document_without_templates_is_noted() -> None:
    """A document is never skipped without a note."""
    report = report_on(f"{SERVICE}---\napiVersion: v1\nkind: List\nitems: []\n")
    assert report.previews == ()
    assert report.notes == ("Service lab/web: no pod template", "List: no pod template")


CONFIG_MAP = """\
apiVersion: v1
kind: ConfigMap
metadata: {name: site, namespace: lab}
data: {net: Socket}
"""
NAMED = "        env: [{name: NCCL_NET, valueFrom: {configMapKeyRef: {name: site, key: net}}}]\n"
LISTED = """\
apiVersion: v1
kind: ConfigMapList
items: [{metadata: {name: site}, data: {net: Socket}}]
"""


@pytest.mark.parametrize("config_map", [CONFIG_MAP, LISTED], ids=("alone", "in a list"))
def test_a_config_map_of_the_input_is_read(config_map: str) -> None:
    """If a pod gets variables from it, anywhere in the input."""
    report = report_on(f"{DEPLOYMENT}{NAMED}---\n{config_map}", namespace="lab")
    verdict = report.previews[0].verdict
    assert verdict is not None
    assert verdict.message == (
        "container trainer sets NCCL_NET=Socket (key net of ConfigMap site); remove that setting"
    )
    assert report.notes[0] in (
        "ConfigMap lab/site: taken into account",
        "ConfigMap site: taken into account",
    )


MOUNTED = """\
        volumeMounts: [{name: conf, mountPath: /etc/nccl.conf, subPath: nccl.conf}]
      volumes: [{name: conf, configMap: {name: site}}]
"""


def test_a_config_map_with_the_file_of_nccl_is_read() -> None:
    """A pod mounts it where NCCL reads variables."""
    config_map = CONFIG_MAP.replace("net: Socket", "nccl.conf: NCCL_NET=Socket")
    report = report_on(f"{DEPLOYMENT}{MOUNTED}---\n{config_map}", namespace="lab")
    verdict = report.previews[0].verdict
    assert verdict is not None
    assert verdict.message == (
        "container trainer sets NCCL_NET=Socket (/etc/nccl.conf, key nccl.conf of ConfigMap site); "
        "remove that setting"
    )
    assert report.notes[0] == "ConfigMap lab/site: taken into account"


RUN = """\
        command: [bash, /scripts/entry.sh]
        volumeMounts: [{name: conf, mountPath: /scripts}]
      volumes: [{name: conf, configMap: {name: site}}]
"""


def test_a_config_map_with_a_script_is_read() -> None:
    """Without the ConfigMap, the verdict assumes that the script is harmless."""
    config_map = CONFIG_MAP.replace("net: Socket", "entry.sh: export NCCL_NET=Socket")
    report = report_on(f"{DEPLOYMENT}{RUN}---\n{config_map}", namespace="lab")
    verdict = report.previews[0].verdict
    assert verdict is not None
    assert verdict.message == (
        "container trainer sets NCCL_NET=Socket (export in key entry.sh of ConfigMap site); "
        "remove that setting"
    )
    assert report.notes[0] == "ConfigMap lab/site: taken into account"
    unread = only(f"{DEPLOYMENT}{RUN}").verdict
    assert unread is not None
    assert unread.message.endswith(
        " that key entry.sh of ConfigMap site, which was not read, does not turn RDMA off"
    )


def test_a_config_map_with_a_manifest_that_a_command_names() -> None:
    """It is read for scripts, and the note on the manifest stays."""
    text = "{entry.sh: 'apiVersion: v1\n\n  kind: Pod\n\n  spec: {containers: []}'}"
    report = report_on(f"{DEPLOYMENT}{RUN}---\n{CONFIG_MAP.replace('{net: Socket}', text)}")
    assert report.notes[0] == "ConfigMap lab/site: taken into account"
    assert "a manifest stored as text (Pod) is not edited here" in report.notes[1]


def test_a_config_map_that_gives_no_pod_a_variable_is_no_fact() -> None:
    """It may have the same name in another namespace, or be mounted."""
    report = report_on(f"{DEPLOYMENT}{NAMED}---\n{CONFIG_MAP}".replace("space: lab}", "space: x}"))
    assert report.notes == ("ConfigMap x/site: no pod template",)
    verdict = report.previews[0].verdict
    assert verdict is not None
    assert verdict.because.code == "ValueUnseen"
    alone = report_on(f"{DEPLOYMENT}---\n{CONFIG_MAP}")
    assert alone.notes == ("ConfigMap lab/site: no pod template",)


def test_documents_are_counted_over_all_inputs() -> None:
    """Empty documents are not counted, so that `-o yaml` has the same numbers."""
    documents = [*read_documents(f"{SERVICE}---\n---\n{POD}"), *read_documents(DEPLOYMENT)]
    report = preview_documents(documents, PreviewOptions(configuration=CONFIGURATION))
    assert [preview.document for preview in report.previews] == [1, 2]


def test_other_documents_are_refused() -> None:
    """The error is one line with the document and the line."""
    with pytest.raises(
        DocumentError, match=r"^input.yaml: document 2, line 5: this is not a Kubernetes "
    ):
        report_on(f"{SERVICE}---\nreplicas: 3\n")


def test_a_pod_that_only_seems_to_have_opted_in_is_given_a_hint() -> None:
    """Only the preview can show it, since the webhook is not called for such a pod."""
    seeming = DEPLOYMENT.replace("rdma.lab/enable", "rdma.lab/enabled")
    assert "did you mean rdma.lab/enable?" in only(seeming).hint
    assert only(seeming, enable=True).hint == ""
    assert only(DEPLOYMENT).hint == ""


def test_a_fabrics_file_is_refused() -> None:
    """It is not a manifest, but is easily mistaken for one."""
    with pytest.raises(DocumentError, match=r"^input.yaml: line 2: this is a fabrics file"):
        report_on("# ours\nkind: FabricConfiguration\n")


def test_a_repeated_key_is_noted() -> None:
    """A strict reader would reject it; the API server drops one of the two."""
    (note,) = report_on(POD.replace("  name: one\n", "  name: one\n  name: two\n")).notes
    assert note.startswith("input.yaml: document 1, line 5: the mapping has the key name twice")


def previewed(**options: Any) -> tuple[list[Document], Report]:
    """Preview a service, a deployment and a pod."""
    documents = read_documents(f"{SERVICE}---\n{DEPLOYMENT}---\n{POD}")
    return documents, preview_documents(
        documents, PreviewOptions(configuration=CONFIGURATION, **options)
    )


def test_the_patch_of_a_document_applies_to_the_document() -> None:
    """Its pointers begin at the document, so that any RFC 6902 tool can apply it."""
    documents, report = previewed()
    service, deployment, pod = patches(documents, report)
    assert (service, pod) == ([], [])
    patched = jsonpatch.apply_patch(documents[1].value, deployment)
    assert patched["spec"]["template"] == without_status(report.previews[0].decision.pod)[0]


def test_the_text_of_a_document_keeps_comments_and_order() -> None:
    """Reading it gives the patched documents; unpatched ones stay the same, byte for byte."""
    documents, report = previewed()
    texts = [rewritten.text for rewritten in rewrite(documents, report)]
    assert (texts[0], texts[2]) == (documents[0].text, documents[2].text)
    assert "# trains at night" in texts[1]
    assert "# one is enough" in texts[1]
    documents_again = read_documents(join_documents(texts))
    assert (
        documents_again[1].value["spec"]["template"]
        == without_status(report.previews[0].decision.pod)[0]
    )


def defaulted(pod: dict[str, Any]) -> dict[str, Any]:
    """Add what the API server adds before admission: a missing request equals the limit."""
    pod = deepcopy(pod)
    for container in pod["spec"]["containers"]:
        resources = container.get("resources", {})
        if "limits" in resources:
            resources["requests"] = {**resources["limits"], **resources.get("requests", {})}
    return pod


def comparable(pod: dict[str, Any]) -> dict[str, Any]:
    """Parse the status, so that it is compared by content."""
    pod = deepcopy(pod)
    annotations = pod["metadata"]["annotations"]
    annotations["rdma.lab/status"] = json.loads(annotations["rdma.lab/status"])
    return pod


RESOURCES = [
    {"limits": {"nvidia.com/v100": 8, "memory": "64Gi"}},
    {"limits": {"nvidia.com/v100": "1"}, "requests": {"memory": "1Gi"}},
    {"limits": {"nvidia.com/v100": 2, "memory": "64Gi"}, "requests": {"memory": "64Gi"}},
    {"limits": {"nvidia.com/v100": 2, "rdma/rdma_v100": 1, "memory": "1Gi"}},
    {"limits": {"nvidia.com/v100": 2, "rdma/hca": 1}, "requests": {"cpu": 4}},
    {"limits": {"memory": "1Gi"}},
]


@pytest.mark.parametrize("resources", RESOURCES)
def test_preview_and_admission_make_the_same_pod(resources: dict[str, Any]) -> None:
    """default(apply(preview's patch, doc)) equals apply(mutate's patch, default(doc))."""
    configuration = build_configuration(
        (
            Fabric(
                name="v100-ib",
                gpu_resources=frozenset({"nvidia.com/v100"}),
                resources=(RdmaResource(name="rdma/rdma_v100", aliases=("rdma/hca",)),),
            ),
        )
    )
    written: dict[str, Any] = {
        "metadata": {"annotations": {"rdma.lab/enable": "true"}},
        "spec": {
            "containers": [
                {"name": "main", "resources": resources},
                {"name": "side", "resources": {"limits": {"memory": "1Gi"}}},
            ]
        },
    }
    decision_input = DecisionInput(
        configuration=configuration,
        namespace=NamespaceFacts(name="lab"),
        fabric_index=FabricIndex(),
    )
    previewed = jsonpatch.apply_patch(written, decide(written, decision_input).patch)
    created = defaulted(written)
    admitted = jsonpatch.apply_patch(created, decide(created, decision_input).patch)
    assert comparable(defaulted(previewed)) == comparable(admitted)


def live_facts(*objects: dict[str, Any], **fields: Any) -> LiveFacts:
    """Return objects as read from a cluster."""
    return LiveFacts(objects, **fields)


def named(kind: str, name: str, **fields: Any) -> dict[str, Any]:
    """Return an object of the namespace lab, or that namespace."""
    home = {} if kind == "Namespace" else {"namespace": "lab"}
    metadata = {"name": name, **home, **fields.pop("metadata", {})}
    return {"kind": kind, "metadata": metadata, **fields}


LABELED = named("Namespace", "lab", metadata={"labels": {"rdma.lab/enable": "true"}})
LIMITED = named(
    "LimitRange", "site", spec={"limits": [{"type": "Container", "max": {"memory": 1}}]}
)


def keeps_limit(report: Report) -> bool:
    """Return whether the memory limit stays."""
    (preview,) = report.previews
    outcomes = [
        outcome for outcome in preview.decision.outcomes if outcome.mutation == "memory-limit"
    ]
    return all(outcome.status != "applied" for outcome in outcomes)


def test_facts_of_a_cluster_count() -> None:
    """The cluster's namespaces and rules decide, and its notes come first."""
    read = live_facts(LABELED, LIMITED, notes=("read by somebody",))
    report = report_on(DEPLOYMENT, live_facts=read)
    assert report.previews[0].called is True
    assert keeps_limit(report)
    assert report.notes == ("read by somebody",)
    assert not keeps_limit(report_on(DEPLOYMENT, live_facts=live_facts(LABELED)))


def test_a_namespace_that_could_not_be_read_restricts_nothing() -> None:
    """The preview is as without a cluster, except for what could be read."""
    report = report_on(DEPLOYMENT, live_facts=live_facts(named("Namespace", "other")))
    assert (report.previews[0].called, keeps_limit(report)) == (None, False)
    assert not report.previews[0].labels_known
    assert keeps_limit(report_on(DEPLOYMENT, live_facts=live_facts(LIMITED)))


def test_the_input_takes_precedence_over_the_cluster() -> None:
    """The same Namespace, or the LimitRange of the same name, is about to be replaced."""
    read = live_facts(LABELED, LIMITED)
    mine = "---\napiVersion: v1\nkind: Namespace\nmetadata: {name: lab}\n"
    report = report_on(DEPLOYMENT + mine, live_facts=read)
    assert (report.previews[0].called, keeps_limit(report)) == (False, True)
    head = "---\napiVersion: v1\nkind: LimitRange\n"
    mine = head + "metadata: {name: %s, namespace: lab}\nspec: {limits: []}\n"
    assert not keeps_limit(report_on(DEPLOYMENT + mine % "site", live_facts=read))
    assert keeps_limit(report_on(DEPLOYMENT + mine % "another", live_facts=read))
    homeless = mine.replace(", namespace: lab", "") % "site"
    assert not keeps_limit(report_on(DEPLOYMENT + homeless, live_facts=read, namespace="lab"))
    assert keeps_limit(report_on(DEPLOYMENT + homeless, live_facts=read))


def test_a_facts_file_takes_precedence_over_the_cluster() -> None:
    """This holds for the namespaces that it has; for others, the cluster counts."""
    given = namespaces(lab={})
    read = live_facts(LABELED, LIMITED)
    report = report_on(DEPLOYMENT, facts=given, live_facts=read)
    assert (report.previews[0].called, keeps_limit(report)) == (False, False)
    report = report_on(DEPLOYMENT, facts=namespaces(other={}), live_facts=read)
    assert (report.previews[0].called, keeps_limit(report)) == (True, True)


def test_the_registration_of_a_cluster_counts() -> None:
    """A webhook that is not installed is called for no pod; an unknown one is as shipped."""
    called = [
        report_on(DEPLOYMENT, live_facts=live_facts(LABELED, registrations=webhooks))
        .previews[0]
        .called
        for webhooks in ((), None, (SHIPPED,))
    ]
    assert called == [False, True, True]


def test_a_condition_that_is_not_evaluated() -> None:
    """Whether the webhook is called stays open, though the labels are known."""
    condition = {"name": "x", "expression": "true"}
    registration = read_registration({}, {**SHIPPED.webhook, "matchConditions": [condition]})
    (preview,) = report_on(
        DEPLOYMENT, live_facts=live_facts(LABELED, registrations=(registration,))
    ).previews
    assert (preview.called, preview.labels_known) == (None, True)


def test_a_replica_set_is_annotated_in_its_deployment() -> None:
    """The Deployment overwrites the template of its ReplicaSets."""
    text = DEPLOYMENT.replace('"true"', '"false"').replace("Deployment", "ReplicaSet")
    owner = "{kind: Deployment, name: night, controller: true}"
    text = text.replace("  namespace:", f"  ownerReferences: [{owner}]\n  namespace:")
    documents = read_documents(text)
    (preview,) = preview_documents(documents, PreviewOptions(configuration=CONFIGURATION)).previews
    assert preview.annotations_location == (
        "metadata.annotations in the pod template of Deployment night"
    )


@pytest.mark.parametrize(("image", "mistakes"), [("x", 0), ("x:${TAG}", 1)])
def test_a_denial_may_not_name_all_unexpanded_variables(image: str, mistakes: int) -> None:
    """Only then the preview does: one answer is enough for all of them."""
    text = DEPLOYMENT.replace("registry.example/trainer", image).replace(": 8", ': "${GPUS}"')
    (document,) = read_documents(text)
    (preview,) = preview_documents([document], PreviewOptions(configuration=CONFIGURATION)).previews
    assert "'${GPUS}' is an unexpanded variable" in preview.decision.message
    assert len(preview.mistakes) == mistakes
    assert all("'${GPUS}', unexpanded variables" in mistake for mistake in preview.mistakes)
