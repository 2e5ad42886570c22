"""The manifests agree with the code and with each other; these tests need no cluster."""

from __future__ import annotations

import argparse
import json
import re
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml

from certs import secret
from tests.unit.preview.workloads.controllers.workloads import WORKLOADS
from webhook import __version__
from webhook.admission.match import MIRROR
from webhook.admission.registration import (
    EXCLUDED_NAMESPACES,
    NO_MIRROR,
    OPT_IN_CONDITION,
    OWN_NAMESPACE,
    SHIPPED,
    read_registration,
)
from webhook.cli.parser import parser
from webhook.config.files import parse_yaml
from webhook.config.load import LIMITS
from webhook.config.model import API_VERSION, KIND
from webhook.decide.mutations import MUTATIONS
from webhook.kube import events
from webhook.kube.client import FIELD_MANAGER
from webhook.kube.lease import LEASE_SECONDS
from webhook.kube.watched_resources import CLAIM_TEMPLATES, CLAIMS, CONFIGURATIONS, KINDS, NODES
from webhook.model.annotations import (
    ENABLE_ANNOTATION,
    STATUS_ANNOTATION,
    USER_ANNOTATIONS,
    WEBHOOK_ANNOTATIONS,
)
from webhook.model.facts import OPT_IN_LABEL
from webhook.preview.workloads.controllers import CONTROLLERS, training_operator
from webhook.preview.workloads.templates import templates_of
from webhook.serve.events import POD_VARIABLES
from webhook.serve.http.validate import SECONDS
from webhook.serve.options import ServeOptions, webhook_configurations
from webhook.serve.sources.permission_check import ACCOUNT_VARIABLE, GUARDED_ACCOUNT
from webhook.serve.status.events import TYPES
from webhook.serve.status.lease import NAME as LEASE

ROOT = Path(__file__).parents[2]
MANIFESTS = ROOT / "manifests"
#: Without the chart, which renders its files: tests/unit/test_chart.py.
FILES = sorted(
    file for file in MANIFESTS.rglob("*.yaml") if "chart" not in file.relative_to(MANIFESTS).parts
)
#: How long a request may still run after draining: uvicorn's graceful shutdown.
GRACEFUL_SECONDS = 10


def documents(file: str) -> list[dict[str, Any]]:
    """Return the documents of a file."""
    return list(yaml.safe_load_all((MANIFESTS / file).read_text(encoding="utf-8")))


WEBHOOK: dict[str, Any] = documents("base/admission/webhook.yaml")[0]["webhooks"][0]
DEPLOYMENT: dict[str, Any] = documents("base/deployment.yaml")[0]
POD: dict[str, Any] = DEPLOYMENT["spec"]["template"]["spec"]
CONTAINER: dict[str, Any] = POD["containers"][0]


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(MANIFESTS)))
def test_files_are_yaml_without_repeated_keys(file: Path) -> None:
    """Every file parses, and no mapping repeats a key."""
    text = file.read_text(encoding="utf-8")
    assert all(document.data for document in parse_yaml(text, file.name, LIMITS))


def test_every_file_is_used() -> None:
    """A file that no kustomization lists would never be applied."""
    for file in FILES:
        if file.name == "kustomization.yaml" or "examples" in file.parts:
            continue
        kustomization = yaml.safe_load((file.parent / "kustomization.yaml").read_text("utf-8"))
        assert file.name in kustomization.get("resources", []), file


def test_nothing_is_mounted_where_the_server_looks_for_a_file() -> None:
    """A file would go before the object. No object ships that could replace the site's."""
    assert not {"volumeMounts", "volumes"} & {*CONTAINER, *POD}
    assert parsed(*CONTAINER["args"]).config is None
    kinds = [
        document["kind"]
        for file in FILES
        for document in documents(str(file.relative_to(MANIFESTS)))
    ]
    assert "Deployment" in kinds
    assert "FabricConfiguration" not in kinds


def test_the_webhook_is_called_for_the_pods_of_the_preview() -> None:
    """The label, the excluded namespaces and the conditions are the same as in `preview`."""
    selector = WEBHOOK["namespaceSelector"]
    assert selector["matchLabels"] == {OPT_IN_LABEL: "true"}
    (left_out,) = selector["matchExpressions"]
    assert left_out["operator"] == "NotIn"
    assert set(left_out["values"]) == EXCLUDED_NAMESPACES
    # The overlay's folder namespace/ replaces the first one.
    assert left_out["values"][0] == OWN_NAMESPACE
    written = read_registration({}, WEBHOOK)
    assert list(written.conditions) == list(SHIPPED.conditions)
    assert written.selects_creation_of_pods
    assert f"'{ENABLE_ANNOTATION}'" in OPT_IN_CONDITION
    assert f"'{MIRROR}'" in NO_MIRROR
    assert [
        requirement for requirement in written.namespace_selector if requirement.key == OPT_IN_LABEL
    ] == [
        requirement for requirement in SHIPPED.namespace_selector if requirement.key == OPT_IN_LABEL
    ]
    assert (WEBHOOK["name"], WEBHOOK["rules"]) == (
        SHIPPED.webhook["name"],
        SHIPPED.webhook["rules"],
    )
    assert "objectSelector" not in WEBHOOK


def test_the_detector_looks_at_the_same_pods() -> None:
    """The detector's selector, rules and conditions are identical to the webhook's."""
    policy, binding = documents("base/admission/detector.yaml")
    constraints = policy["spec"]["matchConstraints"]
    assert constraints["namespaceSelector"] == WEBHOOK["namespaceSelector"]
    assert constraints["resourceRules"] == WEBHOOK["rules"]
    assert constraints["matchPolicy"] == WEBHOOK["matchPolicy"]
    assert policy["spec"]["matchConditions"] == WEBHOOK["matchConditions"]
    variables = {item["name"]: item["expression"] for item in policy["spec"]["variables"]}
    assert f"'{STATUS_ANNOTATION}'" in variables["status"]
    assert policy["spec"]["validations"][0]["expression"] == "variables.status != ''"
    assert binding["spec"]["validationActions"] == ["Warn", "Audit"]


def test_the_detector_knows_each_mutation() -> None:
    """It looks for a trace of each mutation that does more than remove or rewrite something."""
    policy, _ = documents("base/admission/detector.yaml")
    (missing,) = (
        item["expression"] for item in policy["spec"]["variables"] if item["name"] == "missing"
    )
    sought = {mutation.name for mutation in MUTATIONS if f"'\"{mutation.name}\"'" in missing}
    without_trace = {"memory-limit", "hcoll", "nvlink", "placement"}
    assert sought == {mutation.name for mutation in MUTATIONS} - without_trace


def test_detector_and_advice_never_cost_a_pod() -> None:
    """The policies for users fail open and never deny; the guards fail closed and deny."""
    for name, failure_policy, actions in (
        ("admission/detector", "Ignore", {"Warn", "Audit"}),
        ("admission/advice", "Ignore", {"Warn"}),
        ("admission/removal", "Ignore", {"Warn"}),
        ("guard", "Fail", {"Deny", "Audit"}),
        ("guard-secrets", "Fail", {"Deny", "Audit"}),
        ("guard-events", "Fail", {"Deny", "Audit"}),
        ("guard-lease", "Fail", {"Deny", "Audit"}),
        ("guard-status", "Fail", {"Deny", "Audit"}),
    ):
        policy, binding = documents(f"base/{name}.yaml")
        assert policy["spec"]["failurePolicy"] == failure_policy
        assert set(binding["spec"]["validationActions"]) == actions
        assert policy["metadata"]["name"] == binding["spec"]["policyName"]


def test_the_removal_policy_is_about_our_kind() -> None:
    """Deletions of the object and of its definition; the component replaces only the action."""
    policy, binding = documents("base/admission/removal.yaml")
    plural = f"{KIND.lower()}s"
    rules = policy["spec"]["matchConstraints"]["resourceRules"]
    assert [rule["operations"] for rule in rules] == [["DELETE"]] * 2
    assert (rules[0]["apiGroups"], rules[0]["resources"]) == (["rdma.lab"], [plural])
    (of_fabrics, _) = policy["spec"]["matchConditions"]
    assert f"oldObject.metadata.name == '{plural}.rdma.lab'" in of_fabrics["expression"]
    assert policy["spec"]["variables"][0]["expression"].startswith(f"request.kind.kind == '{KIND}'")
    (component,) = documents("components/deny-removal/kustomization.yaml")
    (patch,) = component["patches"]
    assert patch["target"] == {"kind": binding["kind"], "name": binding["metadata"]["name"]}
    change = {"op": "replace", "path": "/spec/validationActions", "value": ["Deny"]}
    assert yaml.safe_load(patch["patch"]) == [change]


#: Kinds with controllers that we know, and why the advice leaves them out.
UNADVISED = {
    "v1 PodTemplate": "nothing makes pods of it without more",
    "orchestration.aibrix.ai/v1alpha1 RayClusterFleet": "its template is that of a RayCluster",
    "orchestration.aibrix.ai/v1alpha1 RayClusterReplicaSet": "its template is that of a RayCluster",
}


def test_the_advice_is_about_every_kind_with_a_known_controller() -> None:
    """A kind that the preview knows, and the advice not, would be misspelled in silence."""
    rules = documents("base/admission/advice.yaml")[0]["spec"]["matchConstraints"]["resourceRules"]
    advised = {
        (group, resource)
        for rule in rules
        for group in rule["apiGroups"]
        for resource in rule["resources"]
    }
    kinds = {kind for controller in CONTROLLERS for kind in controller.kinds} - UNADVISED.keys()
    resources = {_resource(kind) for kind in kinds}
    assert advised == resources | {("", "namespaces")}


def _resource(kind: str) -> tuple[str, str]:
    """Return the group and the resource of "GROUP/VERSION KIND"."""
    api_version, _, word = kind.rpartition(" ")
    return api_version.rpartition("/")[0], f"{word.lower()}s"


def test_the_advice_finds_the_templates_of_these_kinds() -> None:
    """Its expressions name the field with the pods of each kind, in whatever version."""
    fields = {
        str(template.path[1])
        for document in WORKLOADS.values()
        for template in templates_of(document)
    }
    fields |= {*training_operator.FIELDS.values(), "rayClusterConfig", "rayClusterSpec"}
    variables = documents("base/admission/advice.yaml")[0]["spec"]["variables"]
    written = "\n".join(variable["expression"] for variable in variables)
    missing = {field for field in fields if not re.search(rf"(?:\.|'){field}\b", written)}
    assert not missing, f"add {missing} to the variable templates of advice.yaml"


def test_the_advice_knows_our_annotations() -> None:
    """Any other name after our prefix is a misspelling; `enable` itself is looked for first."""
    variables = documents("base/admission/advice.yaml")[0]["spec"]["variables"]
    (expression,) = (item["expression"] for item in variables if item["name"] == "misspelled")
    listed = re.search(r"k in (\[[^]]*\])", expression)
    assert listed is not None
    correct = {*USER_ANNOTATIONS, *WEBHOOK_ANNOTATIONS} - {ENABLE_ANNOTATION}
    assert set(yaml.safe_load(listed[1])) == correct


def test_the_guards_look_at_the_same_account() -> None:
    """Each guard matches only our service account, by its name in any namespace."""
    guards = [
        documents(f"base/{name}.yaml")[0]
        for name in ("guard", "guard-secrets", "guard-events", "guard-lease", "guard-status")
    ]
    conditions = [guard["spec"]["matchConditions"] for guard in guards]
    assert conditions == [conditions[0]] * len(guards)
    ((condition,),) = conditions[:1]
    (account,) = documents("base/serviceaccount.yaml")
    assert account["metadata"]["name"] == GUARDED_ACCOUNT
    assert f".endsWith(':{GUARDED_ACCOUNT}')" in condition["expression"]


def test_the_guard_of_secrets_knows_the_stored_data() -> None:
    """The guard's Secret name, keys and annotations are the same as in `certs`."""
    spec = documents("base/guard-secrets.yaml")[0]["spec"]
    lists = {
        variable["name"]: yaml.safe_load(variable["expression"])
        for variable in spec["variables"][:2]
    }
    assert lists == {"keys": list(secret._DATA), "annotations": list(secret._ANNOTATIONS)}
    assert f"== '{ServeOptions().ca_secret}'" in spec["validations"][0]["expression"]


def test_the_guards_limit_managed_fields_alike() -> None:
    """A policy cannot use a variable of another, so four of them have a copy of one rule.

    Only in the status, the API server ignores the client's entries, so that the one into which it
    merges old ones needs no limit there.
    """
    merged = (
        " m.?manager.orValue('') == 'ancient-changes' && m.?operation.orValue('') == 'Update' ||"
    )
    rules = set()
    for name in ("guard", "guard-secrets", "guard-lease", "guard-status"):
        spec = documents(f"base/{name}.yaml")[0]["spec"]
        variables = {variable["name"]: variable["expression"] for variable in spec["variables"]}
        rule = spec["validations"][-1]
        _, expression = rule["expression"].split(" || ", 1)
        assert (merged in expression) == (name == "guard-status")
        expression = expression.replace(merged, "")
        rules.add((variables["managers"], variables["oldManagers"], expression, rule["message"]))
    ((_, _, expression, _),) = rules
    assert f"'') == '{FIELD_MANAGER}'" in expression


def test_the_guard_of_events_knows_the_events() -> None:
    """The guard's controller, reasons and numbers of hex digits are the same as in the Events."""
    spec = documents("base/guard-events.yaml")[0]["spec"]
    _, named, owned, _, content, _ = spec["validations"]
    variables = {variable["name"]: variable["expression"] for variable in spec["variables"]}
    name = f"^{events.OWNER_PREFIX}[.][0-9a-f]{{{events.OWNER_DIGITS}}}$"
    assert f"'{name}'" in owned["expression"]
    assert f"== '{events.REASON}'" in variables["notifiesOwner"]
    assert f"'{OPT_IN_LABEL}'" in owned["expression"]
    assert f"[.][0-9a-f]{{{events.CONFIGURATION_DIGITS}}}$" in named["expression"]
    assert f"with one of {16**events.CONFIGURATION_DIGITS} names" in named["message"]
    assert yaml.safe_load(variables["reasons"]) == list(TYPES)
    assert f"== '{events.CONTROLLER}'" in content["expression"]
    event = events.configuration_event(
        events.Notice("Normal", "InUse", "Check", ""), {}, "x", datetime.now(UTC)
    )
    for field, value in event["regarding"].items():
        assert f"regarding.{field}.orValue('') == '{value}'" in named["expression"]


def test_the_guard_of_the_lease_knows_its_duration() -> None:
    """A replica that cannot renew the Lease would never hold it again."""
    _, duration, _ = documents("base/guard-lease.yaml")[0]["spec"]["validations"]
    assert f"leaseDurationSeconds.orValue(0) <= {LEASE_SECONDS} " in duration["expression"]


def test_how_the_api_server_calls() -> None:
    """It calls for CREATE of pods, again if needed; without an answer in 5 s it rejects the pod."""
    assert WEBHOOK["name"] == "pods.rdma.lab"
    assert WEBHOOK["clientConfig"]["service"]["path"] == "/mutate"
    assert "caBundle" not in WEBHOOK["clientConfig"]
    assert WEBHOOK["rules"][0]["operations"] == ["CREATE"]
    assert WEBHOOK["rules"][0]["resources"] == ["pods"]
    assert WEBHOOK["reinvocationPolicy"] == "IfNeeded"
    assert WEBHOOK["timeoutSeconds"] == 5
    assert WEBHOOK["sideEffects"] == "NoneOnDryRun"
    assert WEBHOOK["failurePolicy"] == "Fail"


def test_when_the_api_server_asks_about_fabrics() -> None:
    """For changes of our own kind alone, not for its status; without an answer it rejects them."""
    (document,) = documents("base/admission/validation.yaml")
    (hook,) = document["webhooks"]
    configuration = webhook_configurations("", document["metadata"]["name"])[1]
    assert (configuration.kind, hook["name"]) == (document["kind"], configuration.webhook)
    assert document["metadata"]["name"] == ServeOptions().validating_webhook_configuration
    group, _, version = API_VERSION.partition("/")
    (rule,) = hook["rules"]
    assert rule == {
        "apiGroups": [group],
        "apiVersions": [version],
        "operations": ["CREATE", "UPDATE"],
        "resources": [f"{KIND.lower()}s"],
        "scope": "Cluster",
    }
    assert hook["failurePolicy"] == "Fail"
    assert hook["sideEffects"] == "None"
    assert hook["timeoutSeconds"] > SECONDS
    service = WEBHOOK["clientConfig"]["service"]
    assert hook["clientConfig"] == {"service": {**service, "path": "/validate"}}


def test_the_guard_knows_both_configurations() -> None:
    """It names each kind with its object; any other object is out of the account's reach."""
    names = ServeOptions()
    validation, *_ = documents("base/guard.yaml")[0]["spec"]["validations"]
    assert (
        "(request.resource.resource == 'mutatingwebhookconfigurations' ?"
        f" object.metadata.name == '{names.webhook_configuration}' :"
        f" object.metadata.name == '{names.validating_webhook_configuration}')"
    ) in validation["expression"]


def test_ports_agree() -> None:
    """Container, Service and the server's defaults use the same ports."""
    options = ServeOptions()
    ports = {port["name"]: port["containerPort"] for port in CONTAINER["ports"]}
    assert ports == {
        "https": options.port,
        "preview": options.preview_port,
        "health": options.health_port,
    }
    (service,) = documents("base/service.yaml")
    offered = {
        port["name"]: (port["port"], port["targetPort"]) for port in service["spec"]["ports"]
    }
    assert offered == {"https": (443, "https"), "preview": (options.preview_port, "preview")}
    assert WEBHOOK["clientConfig"]["service"]["port"] == 443


def parsed(*words: str) -> argparse.Namespace:
    """Parse words with the command line's parser."""
    return parser(words).parse_args(words)


def additions(file: str) -> tuple[list[str], dict[str, Any]]:
    """Return the arguments and the pod spec that a kustomization adds to the Deployment."""
    operations, merged = (
        yaml.safe_load(patch["patch"])
        for patch in documents(file)[0]["patches"]
        if patch["target"]["kind"] == "Deployment"
    )
    assert all(operation["path"].endswith("/args/-") for operation in operations)
    pod: dict[str, Any] = merged["spec"]["template"]["spec"]
    assert pod["containers"][0]["name"] == CONTAINER["name"]
    return [operation["value"] for operation in operations], pod


def test_arguments_are_understood() -> None:
    """The server's parser accepts the arguments, and the additional ones for cert-manager."""
    added, pod = additions("overlays/cert-manager/kustomization.yaml")
    arguments = parsed(*CONTAINER["args"], *added)
    assert arguments.drain_seconds == ServeOptions().drain_seconds
    (mount,) = pod["containers"][0]["volumeMounts"]
    folders = [str(arguments.tls_cert.parent), str(arguments.tls_key.parent)]
    assert folders == [mount["mountPath"]] * 2


def test_the_client_ca_is_mounted_at_the_path_of_its_argument() -> None:
    """Components/mtls adds an argument that `serve` knows, a mount and a ConfigMap."""
    added, pod = additions("components/mtls/kustomization.yaml")
    (mount,) = pod["containers"][0]["volumeMounts"]
    options = parsed(*CONTAINER["args"], *added)
    assert (str(options.client_ca.parent), options.client_ca.name) == (mount["mountPath"], "ca.crt")
    (volume,) = pod["volumes"]
    assert volume == {"name": mount["name"], "configMap": {"name": "rdma-webhook-client-ca"}}


def test_there_is_time_to_drain() -> None:
    """The grace period covers draining and the last requests, with room to spare."""
    drain = parsed(*CONTAINER["args"]).drain_seconds + ServeOptions().idle_seconds
    listener = (ROOT / "webhook/serve/listener.py").read_text(encoding="utf-8")
    assert f"timeout_graceful_shutdown=1 if options.dev else {GRACEFUL_SECONDS}," in listener
    assert POD["terminationGracePeriodSeconds"] >= drain + GRACEFUL_SECONDS + 5
    assert "lifecycle" not in CONTAINER


def test_a_replica_that_stands_still_is_not_waited_for() -> None:
    """Once the liveness probe has failed, the drain would only delay the restart."""
    assert CONTAINER["livenessProbe"]["terminationGracePeriodSeconds"] <= 30


def test_the_image_is_this_version() -> None:
    """The image's tag is the version, and its user is the Dockerfile's."""
    assert CONTAINER["image"] == f"rdma-webhook:{__version__}"
    user = POD["securityContext"]["runAsUser"], POD["securityContext"]["runAsGroup"]
    dockerfile = (ROOT / "Dockerfile").read_text(encoding="utf-8")
    assert f"USER {user[0]}:{user[1]}" in dockerfile


def test_roles_give_their_reasons() -> None:
    """Every RBAC rule has a comment above it, and no rule uses a wildcard."""
    for file in (
        "base/rbac.yaml",
        "base/status.yaml",
        "overlays/self-managed/rbac.yaml",
        "base/preview-role.yaml",
        "components/separate-preview/rbac.yaml",
    ):
        lines = (MANIFESTS / file).read_text(encoding="utf-8").splitlines()
        rules = [place for place, line in enumerate(lines) if line.startswith("- apiGroups:")]
        assert rules
        assert all(lines[place - 1].startswith("# ") for place in rules), file
        for document in documents(file):
            assert "*" not in json.dumps(document.get("rules", []))


def test_the_watched_kinds_may_be_watched() -> None:
    """The ClusterRole allows watching exactly the kinds that the code watches."""
    rules = documents("base/rbac.yaml")[0]["rules"]
    allowed = {
        (group, resource)
        for rule in rules
        for group in rule["apiGroups"]
        for resource in rule["resources"]
    }
    watched = (*KINDS, CLAIM_TEMPLATES, CLAIMS, CONFIGURATIONS, NODES)
    assert allowed == {(kind.group, kind.resource) for kind in watched}
    assert {verb for rule in rules for verb in rule["verbs"]} == {"list", "watch"}
    assert POD["automountServiceAccountToken"] is True


def test_the_status_may_be_written() -> None:
    """By the holder of the Lease, and nothing of the configuration itself.

    The webhook configurations, which the condition `Called` is about, are only read.
    """
    lease, role, _, cluster_role, _ = documents("base/status.yaml")
    assert (lease["kind"], lease["metadata"]["name"]) == ("Lease", LEASE)
    rules = [*role["rules"], *cluster_role["rules"]]
    assert [(rule["resources"], rule["resourceNames"], rule["verbs"]) for rule in rules] == [
        (["leases"], [LEASE], ["get", "update"]),
        (["fabricconfigurations"], ["default"], ["get"]),
        (["fabricconfigurations/status"], ["default"], ["patch"]),
        (["mutatingwebhookconfigurations"], [ServeOptions().webhook_configuration], ["get"]),
        (
            ["validatingwebhookconfigurations"],
            [ServeOptions().validating_webhook_configuration],
            ["get"],
        ),
    ]


def test_certificates_may_be_managed() -> None:
    """Roles name the Secret and the configuration, and allow exactly the verbs of `certs`."""
    role, _, cluster_role, _ = documents("overlays/self-managed/rbac.yaml")
    names = ServeOptions()
    rules = [*role["rules"], *cluster_role["rules"]]
    read = ["get", "list", "watch"]
    assert [(rule["resources"], rule.get("resourceNames"), rule["verbs"]) for rule in rules] == [
        (["secrets"], None, ["create"]),
        (["secrets"], [names.ca_secret], [*read, "update"]),
        *(
            ([f"{configuration.kind.lower()}s"], [configuration.name], [*read, "patch"])
            for configuration in webhook_configurations(
                names.webhook_configuration, names.validating_webhook_configuration
            )
        ),
    ]


def test_the_pod_knows_itself() -> None:
    """The server reads these variables: its Events and Lease have its name, and it is guarded."""
    fields = {
        variable["name"]: variable["valueFrom"]["fieldRef"]["fieldPath"]
        for variable in CONTAINER["env"]
    }
    metadata = {variable: f"metadata.{field}" for field, variable in POD_VARIABLES.items()}
    assert fields == metadata | {ACCOUNT_VARIABLE: "spec.serviceAccountName"}


#: Kind → lists that kubectl compares as a whole, and the field that the API server adds to their
#: values.
DEFAULTED = {
    "ValidatingAdmissionPolicy": ("resourceRules", "scope"),
    "MutatingWebhookConfiguration": ("rules", "scope"),
    "ValidatingWebhookConfiguration": ("rules", "scope"),
    "NetworkPolicy": ("ports", "protocol"),
    "FlowSchema": ("resourceRules", "namespaces"),
}


def test_defaults_are_written_out() -> None:
    """Without one of these, kubectl would report a change each time that it applies the file."""
    counts: Counter[str] = Counter()
    for file in FILES:
        for document in documents(str(file.relative_to(MANIFESTS))):
            name, field = DEFAULTED.get(document["kind"], ("", ""))
            for value in values_of(document, name):
                assert field in value, (file, value)
                counts[document["kind"]] += 1
    assert counts.keys() == DEFAULTED.keys()


def values_of(document: Any, name: str) -> Iterator[dict[str, Any]]:
    """Yield the values of all lists with this name in a document."""
    if isinstance(document, dict):
        yield from document.get(name, ())
        for value in document.values():
            yield from values_of(value, name)
    elif isinstance(document, list):
        for value in document:
            yield from values_of(value, name)


def test_comments_fit_a_screen() -> None:
    """No comment is wider than a code review shows."""
    for file in FILES:
        for line in file.read_text(encoding="utf-8").splitlines():
            if re.match(r"\s*#", line):
                assert len(line) <= 110, (file, line)
