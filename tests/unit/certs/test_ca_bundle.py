from __future__ import annotations

import re
from base64 import b64encode
from dataclasses import replace
from typing import Any

import pytest

from certs.ca_bundle import MAX_PAUSE, REVERT_WINDOW, BundleContent, CaBundle, WriteLimit
from certs.clock import Clock
from certs.errors import ApiError
from certs.issue import issue_ca
from tests.unit.certs.clocks import Ticking
from tests.unit.certs.objects import CONFIGURATION, MUTATING, Objects

CA, OTHER = issue_ca().certificate, issue_ca().certificate


def _encoded(*pems: bytes) -> str:
    return b64encode(b"".join(pems)).decode()


def _bundle(api: Objects, clock: Clock | None = None) -> CaBundle:
    return CaBundle(api, MUTATING, clock or Ticking())


def _publish(api: Objects, *pems: bytes) -> BundleContent:
    bundle = _bundle(api)
    return bundle.publish(pems, bundle.read())


@pytest.mark.parametrize(
    ("before", "trusted", "problem"),
    [
        (_encoded(CA), True, ""),
        (_encoded(OTHER, CA), True, ""),
        (_encoded(b"# comment\n", CA, b"\n\n"), True, ""),
        (_encoded(OTHER), False, ""),
        (None, False, "it was empty"),
        ("", False, "it was empty"),
        ("%", False, "it did not contain base64-encoded PEM certificates"),
        (_encoded(b"garbage"), False, "it did not contain base64-encoded PEM certificates"),
        (
            _encoded(b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", CA),
            False,
            "it did not contain base64-encoded PEM certificates",
        ),
    ],
)
def test_what_is_trusted(before: str | None, trusted: bool, problem: str) -> None:
    """A CA may be alone or among others; a bundle with a malformed part contains none."""
    api = Objects()
    api.install(MUTATING, before)
    content = _bundle(api).read()

    assert (content.trusts(CA), content.problem, content.uid) == (trusted, problem, "7e57")


@pytest.mark.parametrize("before", [None, "", _encoded(OTHER), _encoded(CA, OTHER), "Z2FyYmFnZQ=="])
def test_one_field_is_written(before: str | None) -> None:
    """Only caBundle is written, by the webhook's name, to the version that was read."""
    api = Objects()
    api.install(MUTATING, before)
    assert _publish(api, CA).trusts(CA)

    webhook = {"name": "pods.rdma.lab", "clientConfig": {"caBundle": _encoded(CA)}}
    body = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "MutatingWebhookConfiguration",
        "metadata": {"name": "zz-rdma-webhook", "uid": "7e57", "resourceVersion": "1"},
        "webhooks": [webhook],
    }
    assert api.writes == [("apply", CONFIGURATION, body)]


@pytest.mark.parametrize("before", [_encoded(CA, OTHER), _encoded(OTHER, CA)])
def test_what_is_trusted_already_is_not_written(before: str) -> None:
    """The order does not matter, so that replicas that start later write nothing."""
    api = Objects()
    api.install(MUTATING, before)
    _publish(api, CA, OTHER)

    assert api.writes == []


@pytest.mark.parametrize(
    "form",
    [
        CA.replace(b" CERTIFICATE", b" X509 CERTIFICATE"),
        CA.replace(b"-----\n", b"-----\nProc-Type: 4,CLEAR\n\n", 1),
        b" " + CA,
        CA + b"\n",
    ],
)
def test_a_form_that_go_may_skip_is_written_again(form: bytes) -> None:
    """A thief may write the right CAs so that only cryptography reads them, or nearly so."""
    api = Objects()
    api.install(MUTATING, _encoded(form))
    assert _bundle(api).read().trusts(CA)
    assert _publish(api, CA).trusts(CA)
    assert len(api.writes) == 1
    _publish(api, CA)
    assert len(api.writes) == 1


def test_a_configuration_that_is_not_there_is_not_made() -> None:
    """Applying it would create a configuration without rules."""
    api = Objects()

    message = "MutatingWebhookConfiguration zz-rdma-webhook does not exist yet"
    with pytest.raises(ApiError, match=f"^{message}$"):
        _publish(api, CA)
    assert (api.writes, api.stored) == ([], {})


def test_a_webhook_that_is_not_there_is_not_made() -> None:
    """The configuration's other entries belong to somebody else."""
    api = Objects()
    api.install(replace(MUTATING, webhook="others.rdma.lab"))

    message = "MutatingWebhookConfiguration zz-rdma-webhook has no webhook pods.rdma.lab yet"
    with pytest.raises(ApiError, match=f"^{re.escape(message)}$"):
        _publish(api, CA)
    assert api.writes == []


def test_another_replica_was_faster() -> None:
    """The same content counts as our own write; anything else is an error."""
    api = Objects()
    api.install(MUTATING, "")
    bundle = _bundle(api)
    content = bundle.read()
    api.install(MUTATING, _encoded(CA))

    assert bundle.publish([CA], content).trusts(CA)
    with pytest.raises(ApiError, match="does not keep its new content"):
        _bundle(api).publish([OTHER], content)
    assert api.bundle == _encoded(CA)


def test_a_write_that_somebody_undoes_is_reported() -> None:
    """Only a read proves success; the next attempt is at least a second later."""

    class Undone(Objects):
        def apply(self, path: str, body: dict[str, Any]) -> bool:
            super().apply(path, body)
            self.install(MUTATING, "")
            return True

    api, clock = Undone(), Ticking()
    api.install(MUTATING)
    bundle = _bundle(api, clock)
    field = "caBundle of MutatingWebhookConfiguration zz-rdma-webhook"
    for message in (
        f"{field} does not keep its new content",
        f"another client keeps changing {field}",
    ):
        with pytest.raises(ApiError, match=f"^{message}"):
            bundle.publish([CA], bundle.read())
    assert len(api.writes) == 1
    clock.tick(1)
    with pytest.raises(ApiError, match="does not keep"):
        bundle.publish([CA], bundle.read())
    assert len(api.writes) == 2


def test_the_first_write_waits_for_nothing() -> None:
    """The second write waits for a second."""
    clock = Ticking()
    limit = WriteLimit(clock)

    assert limit.pause == 0
    limit.record_write()
    assert limit.pause == 1
    clock.tick(1)
    assert limit.pause == 0


def test_waits_longer_while_others_undo_it() -> None:
    """The pause grows up to a minute, even if each write lasts a round; then it starts again."""
    clock, pauses = Ticking(), []
    limit = WriteLimit(clock)
    for _ in range(9):
        limit.record_write()
        pauses.append(limit.pause)
        clock.tick(limit.pause + 5)

    assert pauses == [1, 2, 4, 8, 16, 32, MAX_PAUSE, MAX_PAUSE, MAX_PAUSE]
    clock.tick(2 * MAX_PAUSE + REVERT_WINDOW)
    limit.record_write()
    assert limit.pause == 1


def test_who_breaks_it_now_and_then_does_not_count() -> None:
    """If the field is changed only now and then, the pause stays at a second."""
    clock = Ticking()
    limit = WriteLimit(clock)
    for _ in range(9):
        limit.record_write()
        assert limit.pause == 1
        clock.tick(20)
