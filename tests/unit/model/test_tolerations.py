from __future__ import annotations

import pytest

from webhook.model.pod.tolerations import Taint, Tolerations

DEDICATED = Taint("dedicated", "ml")


@pytest.mark.parametrize(
    ("toleration", "tolerated"),
    [
        ({"key": "dedicated", "operator": "Equal", "value": "ml", "effect": "NoSchedule"}, True),
        ({"key": "dedicated", "value": "ml"}, True),
        ({"key": "dedicated", "operator": None, "value": "ml", "effect": ""}, True),
        ({"key": "dedicated", "operator": "Exists"}, True),
        ({"key": "dedicated", "operator": "Exists", "effect": "NoSchedule"}, True),
        ({"operator": "Exists"}, True),
        ({"operator": "Exists", "effect": "NoSchedule"}, True),
        ({"operator": "Equal", "value": "ml"}, True),
        ({"key": "dedicated", "value": "web"}, False),
        ({"key": "dedicated"}, False),
        ({"key": "other", "operator": "Exists"}, False),
        ({"key": "dedicated", "operator": "Exists", "effect": "NoExecute"}, False),
        ({"operator": "Exists", "effect": "NoExecute"}, False),
        ({"key": "dedicated", "operator": "Gt", "value": "ml"}, False),
        ({"key": 7, "operator": "Exists", "effect": "NoExecute"}, False),
    ],
)
def test_the_scheduler_s_rules(toleration: dict[str, object], *, tolerated: bool) -> None:
    """An empty key or effect stands for all; Exists for any value; no operator is Equal."""
    assert Tolerations([toleration]).tolerate(DEDICATED) is tolerated
    assert Tolerations([{"key": "other", "operator": "Exists"}, toleration]).tolerate(
        DEDICATED
    ) is (tolerated)


def test_a_taint_as_kubectl_writes_it() -> None:
    """Without a value, there is no equals sign."""
    assert str(DEDICATED) == "dedicated=ml:NoSchedule"
    assert str(Taint("gpu", effect="NoExecute")) == "gpu:NoExecute"
