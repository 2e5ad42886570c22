from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from certs.ask import ask
from certs.authorities import RotationRequest
from certs.errors import ApiError
from certs.issue import issue_ca
from certs.secret import CaSecret
from tests.unit.certs.objects import INSTALLATION, SECRET, Objects, secret_of

CA = issue_ca()


def _api(**annotations: str) -> Objects:
    api = Objects()
    metadata = {"name": "rdma-webhook-ca", "annotations": annotations}
    api.stored[SECRET] = {**secret_of(CA), "metadata": metadata}
    return api


@pytest.mark.parametrize("asked", RotationRequest)
def test_what_is_asked_is_what_replicas_read(asked: RotationRequest) -> None:
    """Nothing else of the Secret changes."""
    api = _api(other="a")
    ask(api, INSTALLATION, asked)

    found = CaSecret(api, INSTALLATION).read(datetime.now(UTC)).authorities
    assert found is not None
    assert (found.requested, found.current) == (asked, CA)
    assert api.stored[SECRET]["metadata"]["annotations"]["other"] == "a"


def test_without_a_secret_there_is_nothing_to_exchange() -> None:
    """With cert-manager, or before the first start."""
    with pytest.raises(ApiError, match=r"^there is no Secret rdma-webhook/rdma-webhook-ca$"):
        ask(Objects(), INSTALLATION, RotationRequest.ROTATE)


def test_an_immutable_secret_is_refused() -> None:
    """Its annotation could be written, and no replica could do what it asks for."""
    api = _api()
    api.stored[SECRET]["immutable"] = True
    told = r"^Secret rdma-webhook/rdma-webhook-ca is immutable: delete it first, and the replicas"
    with pytest.raises(ApiError, match=told):
        ask(api, INSTALLATION, RotationRequest.ROTATE)
    assert api.stored[SECRET]["metadata"]["annotations"] == {}


def test_a_replica_was_faster() -> None:
    """It is tried again, and not for ever."""

    class Busy(Objects):
        tries = 0

        def replace(self, path: str, body: dict[str, Any]) -> bool:
            self.tries += 1
            return self.tries == 3 and super().replace(path, body)

    api = Busy()
    api.stored.update(_api().stored)
    ask(api, INSTALLATION, RotationRequest.ROTATE)
    with pytest.raises(ApiError, match="changes all the time"):
        ask(api, INSTALLATION, RotationRequest.ROTATE)
