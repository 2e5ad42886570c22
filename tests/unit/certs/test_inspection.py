from __future__ import annotations

from base64 import b64encode
from datetime import UTC, datetime

from certs.authorities import Authorities
from certs.inspection import inspect
from certs.issue import issue_ca
from certs.secret import IMMUTABLE, CaSecret
from tests.unit.certs.objects import INSTALLATION, MUTATING, SECRET, VALIDATING, VALIDATION, Objects
from webhook.cli.certs import describe_authority, inspection_text

NOW = datetime.now(UTC).replace(microsecond=0)
CA, NEXT, OLD = issue_ca(), issue_ca(), issue_ca()
#: An address where nothing listens.
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
    found = inspect(api, INSTALLATION, NOWHERE)

    assert [(one.role, one.in_bundle) for one in found.authorities] == [
        ("current", True),
        ("next", False),
        ("previous", True),
        ("unknown", True),
    ]
    assert (found.phase, found.retire_after) == ("publishing", NOW)
    assert [one.problem for one in found.bundles] == ["it lacks the next CA"] * 2
    assert not found.good
    (handshake,) = found.handshakes
    assert handshake.problem.startswith("cannot connect: ")
    text = inspection_text(found)
    assert f"the previous CA stays at least until {NOW:%Y-%m-%dT%H:%M:%SZ}" in text
    assert "✘ 127.0.0.1:1 " in text


def test_a_stranger_in_the_bundle_is_a_problem() -> None:
    """The API server would trust a server with a certificate of that CA."""
    api = _api(Authorities(current=CA), CA.certificate, OLD.certificate)
    api.install(VALIDATING, _encoded(CA.certificate))
    found = inspect(api, INSTALLATION, NOWHERE)
    mutating, validating = found.bundles
    assert mutating.problem == "it trusts 1 CA that the Secret does not have"
    assert validating.problem == ""
    stranger, same = inspection_text(found).splitlines()[1:3]
    assert stranger == f"✘ caBundle  {MUTATING}: {mutating.problem}"
    assert same == f"✔ caBundle  {VALIDATING}: it has exactly the CAs of the Secret"


def test_a_configuration_that_is_not_there_is_a_problem() -> None:
    """Its name is there once; the other one is looked at all the same."""
    api = _api(Authorities(current=CA), CA.certificate)
    del api.stored[VALIDATION]
    found = inspect(api, INSTALLATION, NOWHERE)
    missing = "ValidatingWebhookConfiguration rdma-webhook does not exist yet"
    assert [one.problem for one in found.bundles] == ["", missing]
    assert not found.good
    assert f"✘ caBundle  {missing}" in inspection_text(found).splitlines()


def test_without_a_secret() -> None:
    """As with cert-manager, the trusted CAs are still shown."""
    found = inspect(_api(None, CA.certificate), INSTALLATION, NOWHERE)

    assert found.secret_problem == "there is no CA in Secret rdma-webhook/rdma-webhook-ca"
    assert [one.role for one in found.authorities] == ["unknown"]
    assert "✘ Secret    there is no CA" in inspection_text(found)


def test_an_immutable_secret_is_a_problem() -> None:
    """Its CA is in use and shown all the same."""
    api = _api(Authorities(current=CA), CA.certificate)
    api.stored[SECRET]["immutable"] = True
    found = inspect(api, INSTALLATION, NOWHERE)

    assert found.secret_problem == IMMUTABLE
    assert [one.role for one in found.authorities] == ["current"]
    assert "✘ Secret    it is immutable, so its CA can be neither" in inspection_text(found)


def test_without_endpoints() -> None:
    """No replica can be reached, so the result is not good."""
    found = inspect(_api(Authorities(current=CA), CA.certificate), INSTALLATION)
    assert found.handshakes == ()
    assert not found.served
    assert "✘ served    the Service has no ready endpoints" in inspection_text(found)


def test_no_key_is_told() -> None:
    """The output has only fingerprints and times of certificates."""
    written = str(
        describe_authority(inspect(_api(Authorities(current=CA, next=NEXT)), INSTALLATION, NOWHERE))
    )
    assert "PRIVATE" not in written
