from __future__ import annotations

from base64 import b64encode
from datetime import UTC, datetime

from certs.authorities import Authorities
from certs.inspection import Handshake, inspect
from certs.issue import issue_ca
from certs.secret import IMMUTABLE, CaSecret
from tests.unit.certs.objects import INSTALLATION, MUTATING, SECRET, VALIDATING, VALIDATION, Objects
from webhook.cli.certs import inspection_text, record_form

NOW = datetime.now(UTC).replace(microsecond=0)
CA, NEXT, OLD = issue_ca(), issue_ca(), issue_ca()
#: An address without a listener.
NOWHERE = ["127.0.0.1:1"]


def _api(authorities: Authorities | None, *trusted: bytes) -> Objects:
    api = Objects()
    if authorities is not None:
        secret = CaSecret(api, INSTALLATION)
        assert secret.write(authorities, secret.read(NOW))
    api.configure(_encoded(*trusted))
    return api


def _encoded(*pems: bytes) -> str:
    return b64encode(b"".join(pems)).decode()


def test_each_ca_by_its_role() -> None:
    """The Secret's CAs come first, then those only in caBundle."""
    authorities = Authorities(current=CA, next=NEXT, previous=(OLD.certificate,), retire_after=NOW)
    stranger = issue_ca().certificate
    api = _api(authorities, CA.certificate, OLD.certificate, stranger)
    inspection = inspect(api, INSTALLATION, NOWHERE)

    assert [(ca.role, ca.in_bundle) for ca in inspection.authorities] == [
        ("current", True),
        ("next", False),
        ("previous", True),
        ("unknown", True),
    ]
    assert (inspection.phase, inspection.retire_after) == ("publishing", NOW)
    assert [bundle.problem for bundle in inspection.bundles] == ["it lacks the next CA"] * 2
    assert not inspection.is_healthy
    (handshake,) = inspection.handshakes
    assert handshake.problem.startswith("cannot connect: ")
    text = inspection_text(inspection)
    assert f"the previous CA stays at least until {NOW:%Y-%m-%dT%H:%M:%SZ}" in text
    assert "✘ 127.0.0.1:1 " in text


def test_several_cas_that_the_bundle_lacks() -> None:
    """They are named by their roles; of several previous CAs, the missing ones are counted."""
    retired = issue_ca().certificate
    several = Authorities(current=CA, next=NEXT, previous=(OLD.certificate, retired))
    for trusted, problem in (
        ((CA.certificate,), "it lacks the next CA and 2 of 2 previous CAs"),
        ((CA.certificate, NEXT.certificate, retired), "it lacks 1 of 2 previous CAs"),
        ((retired, OLD.certificate), "it lacks the current CA and the next CA"),
    ):
        inspection = inspect(_api(several, *trusted), INSTALLATION, NOWHERE)
        assert [bundle.problem for bundle in inspection.bundles] == [problem] * 2


def test_a_stranger_in_the_bundle_is_a_problem() -> None:
    """The API server would trust a server with a certificate of that CA."""
    api = _api(Authorities(current=CA), CA.certificate, OLD.certificate)
    api.install(VALIDATING, _encoded(CA.certificate))
    inspection = inspect(api, INSTALLATION, NOWHERE)
    mutating, validating = inspection.bundles
    assert mutating.problem == "it trusts 1 CA that the Secret lacks"
    assert validating.problem == ""
    stranger, trusted = inspection_text(inspection).splitlines()[1:3]
    assert stranger == f"✘ caBundle  {MUTATING}: {mutating.problem}"
    assert trusted == f"✔ caBundle  {VALIDATING}: it has exactly the webhook's CAs"


def test_a_configuration_that_is_not_there_is_a_problem() -> None:
    """Its name is printed once; the other configuration is still inspected."""
    api = _api(Authorities(current=CA), CA.certificate)
    del api.stored[VALIDATION]
    inspection = inspect(api, INSTALLATION, NOWHERE)
    missing = "ValidatingWebhookConfiguration rdma-webhook does not exist yet"
    assert [bundle.problem for bundle in inspection.bundles] == ["", missing]
    assert not inspection.is_healthy
    assert f"✘ caBundle  {missing}" in inspection_text(inspection).splitlines()


def test_without_a_secret() -> None:
    """As with cert-manager, the trusted CAs are still shown."""
    inspection = inspect(_api(None, CA.certificate), INSTALLATION, NOWHERE)

    assert inspection.secret_problem == "there is no CA in Secret rdma-webhook/rdma-webhook-ca"
    assert [ca.role for ca in inspection.authorities] == ["unknown"]
    assert "✘ Secret    there is no CA" in inspection_text(inspection)


def test_an_immutable_secret_is_a_problem() -> None:
    """Its CA is in use, so it is shown."""
    api = _api(Authorities(current=CA), CA.certificate)
    api.stored[SECRET]["immutable"] = True
    inspection = inspect(api, INSTALLATION, NOWHERE)

    assert inspection.secret_problem == IMMUTABLE
    assert [ca.role for ca in inspection.authorities] == ["current"]
    assert "✘ Secret    it is immutable, so its CA can be neither" in inspection_text(inspection)


def test_without_endpoints() -> None:
    """No replica can be reached, so the result is not good."""
    inspection = inspect(_api(Authorities(current=CA), CA.certificate), INSTALLATION)
    assert inspection.handshakes == ()
    assert not inspection.served
    assert "✘ served    the Service has no ready endpoints" in inspection_text(inspection)


def test_no_key_is_printed() -> None:
    """The output has only fingerprints and times of certificates."""
    written = str(
        record_form(inspect(_api(Authorities(current=CA, next=NEXT)), INSTALLATION, NOWHERE))
    )
    assert "PRIVATE" not in written


def test_an_address_without_a_listener_is_not_reached() -> None:
    """Its certificate is unknown, which differs from a certificate that is not trusted."""
    (handshake,) = inspect(
        _api(Authorities(current=CA), CA.certificate), INSTALLATION, NOWHERE
    ).handshakes
    assert handshake.problem == "cannot connect: Connection refused"
    assert not handshake.reached
    assert Handshake(address="a:1", problem="the TLS handshake failed: UNKNOWN_CA").reached
    assert Handshake(address="a:1", problem="").reached
