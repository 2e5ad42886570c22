from __future__ import annotations

import re
from base64 import b64encode
from typing import Any

import pytest

from certs.bundle import Bundle, holds
from certs.errors import ClusterError
from certs.issue import issue_ca
from tests.unit.certs.objects import CONFIGURATION, Objects

CA, OTHER = issue_ca().certificate, issue_ca().certificate


def _encoded(*pems: bytes) -> str:
    return b64encode(b"".join(pems)).decode()


def _bundle(api: Objects) -> Bundle:
    return Bundle(api, "zz-rdma-webhook", "pods.rdma.lab")


@pytest.mark.parametrize(
    ("bundle", "held"),
    [
        (_encoded(CA), True),
        (_encoded(OTHER, CA), True),
        (_encoded(b"# comment\n", CA, b"\n\n"), True),
        (_encoded(OTHER), False),
        ("", False),
        ("%", False),
        (_encoded(b"garbage"), False),
        (_encoded(b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", CA), False),
    ],
)
def test_what_holds_a_ca(bundle: str, held: bool) -> None:
    """By its certificate, alone or among others; what does not parse holds nothing."""
    assert holds(bundle, CA) is held


@pytest.mark.parametrize("before", [None, "", _encoded(OTHER), "Z2FyYmFnZQ=="])
def test_one_field_is_written(before: str | None) -> None:
    """Nothing but caBundle, found by the webhook's name, of the very object that was read."""
    api = Objects()
    api.configure(before)
    _bundle(api).ensure(CA)

    webhook = {"name": "pods.rdma.lab", "clientConfig": {"caBundle": _encoded(CA)}}
    body = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "MutatingWebhookConfiguration",
        "metadata": {"name": "zz-rdma-webhook", "uid": "7e57"},
        "webhooks": [webhook],
    }
    assert api.writes == [("apply", CONFIGURATION, body)]


@pytest.mark.parametrize("before", [_encoded(CA), _encoded(OTHER, CA)])
def test_what_is_trusted_already_is_not_written(before: str) -> None:
    """Replicas that start later change nothing."""
    api = Objects()
    api.configure(before)
    _bundle(api).ensure(CA)

    assert api.writes == []


def test_a_configuration_that_is_not_there_is_not_made() -> None:
    """An apply would create one without rules."""
    api = Objects()

    told = "there is no MutatingWebhookConfiguration zz-rdma-webhook yet"
    with pytest.raises(ClusterError, match=f"^{told}$"):
        _bundle(api).ensure(CA)
    assert (api.writes, api.stored) == ([], {})


def test_a_webhook_that_is_not_there_is_not_made() -> None:
    """Another entry of the same configuration is not ours."""
    api = Objects()
    api.configure(name="others.rdma.lab")

    told = "MutatingWebhookConfiguration zz-rdma-webhook has no webhook pods.rdma.lab yet"
    with pytest.raises(ClusterError, match=f"^{re.escape(told)}$"):
        _bundle(api).ensure(CA)
    assert api.writes == []


def test_a_write_that_somebody_undoes_is_told() -> None:
    """Done is what was read back."""

    class Undone(Objects):
        def apply(self, path: str, body: dict[str, Any]) -> None:
            super().apply(path, body)
            self.configure("")

    api = Undone()
    api.configure()

    told = (
        "caBundle of MutatingWebhookConfiguration zz-rdma-webhook "
        "does not keep what is written to it"
    )
    with pytest.raises(ClusterError, match=f"^{re.escape(told)}$"):
        _bundle(api).ensure(CA)
