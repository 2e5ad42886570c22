from __future__ import annotations

import re
from typing import Any

import pytest

from certs.authority import check_authority
from certs.errors import CertificateError, ClusterError
from certs.issue import issue_ca
from certs.secret import CaSecret
from tests.unit.certs.objects import SECRET, Objects, secret_of

CA = issue_ca()


def _secret(api: Objects) -> CaSecret:
    return CaSecret(api, "rdma-webhook", "rdma-webhook-ca")


def test_the_first_one_makes_a_ca() -> None:
    """It is in the Secret, whole, and whoever comes later takes it."""
    api = Objects()
    made = _secret(api).settle()

    check_authority(made)
    assert _secret(api).settle() == made
    assert [(verb, path) for verb, path, _ in api.writes] == [("create", SECRET)]
    assert api.stored[SECRET]["type"] == "Opaque"
    assert set(api.stored[SECRET]["data"]) == {"ca.crt", "ca.key"}


def test_who_is_second_by_a_moment_takes_the_winner() -> None:
    """Between the look and the creation another replica stored its CA (409)."""

    class Faster(Objects):
        def create(self, path: str, body: dict[str, Any]) -> bool:
            self.stored.setdefault(SECRET, secret_of(CA))
            return super().create(path, body)

    api = Faster()

    assert _secret(api).settle() == CA
    assert api.writes == []


def test_a_lost_secret_is_restored() -> None:
    """Who has the CA in memory stores that one: what the API server trusts stays true."""
    api = Objects()

    assert _secret(api).settle(CA) == CA
    assert api.stored[SECRET]["data"] == secret_of(CA)["data"]


@pytest.mark.parametrize(
    ("content", "why"),
    [
        ({}, "it has no ca.crt and no ca.key"),
        ({"data": None}, "it has no ca.crt and no ca.key"),
        (secret_of(CA, **{"ca.key": ""}), "it has no ca.key"),
        (secret_of(CA, **{"ca.crt": "%"}), "its data are not base64"),
        (secret_of(CA, **{"ca.crt": "Z2FyYmFnZQ=="}), "the certificate is not one PEM certificate"),
    ],
)
def test_what_is_no_ca_is_told_and_left_alone(content: dict[str, Any], why: str) -> None:
    """It may be somebody else's: nothing is written, also by who has a CA in memory."""
    api = Objects()
    api.stored[SECRET] = content
    told = (
        f"Secret rdma-webhook/rdma-webhook-ca: {why}; "
        "it is left as it is: repair it, or delete it for a new CA"
    )

    with pytest.raises(CertificateError, match=f"^{re.escape(told)}$"):
        _secret(api).settle(CA)
    assert api.writes == []
    assert api.stored[SECRET] is content


def test_a_secret_that_comes_and_goes_is_no_endless_loop() -> None:
    """Somebody who deletes it at once does not keep the thread from anything else."""

    class Fickle(Objects):
        def create(self, *_: object) -> bool:
            return False

    with pytest.raises(ClusterError, match="rdma-webhook-ca comes and goes"):
        _secret(Fickle()).settle()
