"""The `caBundle` of several webhook configurations for the same leaf."""

from __future__ import annotations

from base64 import b64decode, b64encode
from typing import Any

import pytest

from certs.ca_bundle import BundleContents, CaBundles
from certs.errors import ApiError
from certs.issue import issue_ca
from tests.unit.certs.clocks import Ticking
from tests.unit.certs.objects import (
    CONFIGURATION,
    INSTALLATION,
    MUTATING,
    VALIDATING,
    VALIDATION,
    Objects,
)

CA, OTHER = issue_ca().certificate, issue_ca().certificate
MISSING = "{} does not exist yet"


def _encoded(*pems: bytes) -> str:
    return b64encode(b"".join(pems)).decode()


class Refusing(Objects):
    """An API server that refuses requests for some paths, as RBAC does."""

    def __init__(self, *reads: str, applies: str = "") -> None:
        super().__init__()
        self.reads, self.applies = reads, applies

    def read(self, path: str) -> dict[str, Any] | None:
        """Read an object, if that is allowed."""
        if path in self.reads:
            raise ApiError("the API server answered 403: no read")
        return super().read(path)

    def apply(self, path: str, body: dict[str, Any]) -> bool:
        """Apply fields, if that is allowed."""
        if path == self.applies:
            raise ApiError("the API server answered 403: no patch")
        return super().apply(path, body)


def _publish(api: Objects, *pems: bytes) -> tuple[BundleContents, list[str]]:
    notes: list[str] = []
    bundles = CaBundles(api, INSTALLATION, Ticking())
    return bundles.publish(pems, bundles.read(), notes.append), notes


def test_both_configurations_get_the_cas() -> None:
    """Each is written and reported separately."""
    api = Objects()
    api.install(MUTATING)
    api.install(VALIDATING, _encoded(OTHER))
    after, notes = _publish(api, CA)

    assert [b64decode(api.trusted(configuration)) for configuration in (MUTATING, VALIDATING)] == [
        CA,
        CA,
    ]
    assert after.trusted_by_all(CA)
    assert (after.missing_problem, after.access_problem) == ("", "")
    assert notes == [
        f"wrote caBundle of {MUTATING}: it was empty",
        f"wrote caBundle of {VALIDATING}: it had other CAs",
    ]
    assert _publish(api, CA)[1] == []


@pytest.mark.parametrize(
    ("there", "missing"),
    [(MUTATING, VALIDATING), (VALIDATING, MUTATING)],
    ids=["pods alone", "fabrics alone"],
)
def test_a_missing_configuration_does_not_stop_the_other(there: Any, missing: Any) -> None:
    """The CA counts as trusted; the missing object is reported but not created."""
    api = Objects()
    api.install(there)
    after, _ = _publish(api, CA)

    assert after.trusted_by_all(CA)
    assert (after.missing_problem, after.access_problem) == (MISSING.format(missing), "")
    assert set(api.stored) == {there.path}


def test_without_a_configuration_nothing_is_written() -> None:
    """The error names the configuration that pods depend on; nothing counts as trusted."""
    api = Objects()
    with pytest.raises(ApiError, match=f"^{MISSING.format(MUTATING)}$"):
        _publish(api, CA)
    contents = CaBundles(api, INSTALLATION, Ticking()).read()
    assert (contents.trusted_by_all(CA), contents.fingerprints, contents.distinct_bundles) == (
        False,
        frozenset(),
        (b"",),
    )


def test_a_ca_is_trusted_if_all_configurations_have_it() -> None:
    """Otherwise a rotation would continue while calls through one configuration fail."""
    api = Objects()
    api.install(MUTATING, _encoded(CA, OTHER))
    api.install(VALIDATING, _encoded(CA))
    contents = CaBundles(api, INSTALLATION, Ticking()).read()

    assert (contents.trusted_by_all(CA), contents.trusted_by_all(OTHER)) == (True, False)
    assert len(contents.fingerprints) == 1
    assert contents.trusted_by_any(OTHER)
    assert not contents.trusted_by_any(issue_ca().certificate)
    assert contents.distinct_bundles == (CA + OTHER, CA)
    assert contents.pem == CA + OTHER + CA


def test_a_change_of_any_configuration_changes_the_revision() -> None:
    """So waits start again, also when a configuration is added or removed."""
    api = Objects()
    revisions = set()
    for change in (
        lambda: api.install(MUTATING, _encoded(CA)),
        lambda: api.install(VALIDATING, _encoded(CA)),
        lambda: api.install(VALIDATING, _encoded(CA, OTHER)),
        lambda: api.install(MUTATING, _encoded(CA, OTHER)),
        lambda: api.stored.pop(VALIDATION),
    ):
        change()
        revisions.add(CaBundles(api, INSTALLATION, Ticking()).read().revision)
    assert len(revisions) == 5


def test_reading_the_second_configuration_is_forbidden() -> None:
    """As after an upgrade of the image alone: pods are served, and the failure is reported."""
    api = Refusing(VALIDATION)
    api.configure()
    after, _ = _publish(api, CA)
    assert after.trusted_by_all(CA)
    assert (after.missing_problem, after.access_problem) == (
        "",
        "the API server answered 403: no read",
    )
    assert api.trusted(VALIDATING) == ""


def test_writing_the_second_configuration_is_forbidden() -> None:
    """The same; the CA is not trusted everywhere, so no rotation continues."""
    api = Refusing(applies=VALIDATION)
    api.configure()
    after, _ = _publish(api, CA)
    assert b64decode(api.bundle) == CA
    assert after.access_problem == "the API server answered 403: no patch"
    assert not after.trusted_by_all(CA)


def test_pods_depend_on_the_first_configuration() -> None:
    """If it exists and cannot be read or written, that is an error; the second is written."""
    api = Refusing(applies=CONFIGURATION)
    api.configure()
    with pytest.raises(ApiError, match="no patch"):
        _publish(api, CA)
    assert b64decode(api.trusted(VALIDATING)) == CA
    with pytest.raises(ApiError, match="no read"):
        CaBundles(Refusing(CONFIGURATION), INSTALLATION, Ticking()).read()


def test_a_configuration_is_missing_and_the_other_fails() -> None:
    """Then no call can be served, and the failure is the reason."""
    api = Refusing(applies=VALIDATION)
    api.install(VALIDATING)
    with pytest.raises(ApiError, match="no patch"):
        _publish(api, CA)
