"""The component that gives each alert a link to the runbook."""

from __future__ import annotations

import yaml

from tests.unit.test_manifests import documents


def test_each_alert_gets_a_link() -> None:
    """The patch lists them by number, so a new alert needs three more lines."""
    (rule,) = documents("monitoring/prometheusrule.yaml")
    (group,) = rule["spec"]["groups"]
    (component,) = documents("components/runbook-url/kustomization.yaml")
    (patch,) = component["patches"]
    assert patch["target"] == {"kind": rule["kind"], "name": rule["metadata"]["name"]}
    places = [f"/spec/groups/0/rules/{number}/annotations" for number in range(len(group["rules"]))]
    assert yaml.safe_load(patch["patch"]) == [
        {"op": "copy", "from": f"{place}/docs", "path": f"{place}/runbook_url"} for place in places
    ]
