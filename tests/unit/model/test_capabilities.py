from __future__ import annotations

from typing import Any

import pytest

from tests.builders import container
from tests.case_names import case_name
from webhook.errors import ShapeError
from webhook.model.pod import Container
from webhook.model.pod.security import Capabilities

PATH = ("spec", "containers", 0)


def read(written: Any) -> Capabilities:
    """Read these capabilities of a container."""
    return Container(PATH, container(securityContext={"capabilities": written})).capabilities


@pytest.mark.parametrize("written", [None, {}, {"add": None, "drop": []}], ids=case_name)
def test_a_container_may_name_no_capabilities(written: Any) -> None:
    """Absent, null and empty are the same."""
    assert read(written) == Capabilities(frozenset(), frozenset())


def test_case_does_not_matter() -> None:
    """The runtime compares capabilities in capitals."""
    capabilities = read({"add": ["ipc_lock"], "drop": ["All"]})
    assert capabilities == Capabilities(frozenset({"IPC_LOCK"}), frozenset({"ALL"}))


@pytest.mark.parametrize(
    ("written", "granted"),
    [
        ({"add": ["IPC_LOCK"]}, True),
        ({"add": ["ALL"]}, True),
        ({"add": ["IPC_LOCK"], "drop": ["ALL"]}, True),
        ({"add": ["IPC_LOCK"], "drop": ["IPC_LOCK"]}, False),
        ({"add": ["ALL"], "drop": ["IPC_LOCK"]}, False),
        ({"add": ["CAP_IPC_LOCK", "SYS_PTRACE"]}, False),
        (None, False),
    ],
    ids=case_name,
)
def test_a_capability_that_is_dropped_by_name_is_not_granted(written: Any, granted: bool) -> None:
    """Dropping ALL leaves the capabilities that are added by name."""
    assert read(written).grants("IPC_LOCK") is granted


def test_a_wrong_shape_is_reported() -> None:
    """The API server would reject it."""
    with pytest.raises(ShapeError, match=r"capabilities\.add must be a list"):
        read({"add": "IPC_LOCK"})
