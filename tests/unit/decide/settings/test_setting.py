from __future__ import annotations

import pytest

from webhook.decide.settings.setting import Setting, setting_by_assignment


@pytest.mark.parametrize("operator", [":-", "-", ":=", "="])
def test_defaults(operator: str) -> None:
    """The expansions that use a word only if the variable has no value: POSIX, XCU 2.6.2."""
    setting = setting_by_assignment("NCCL_NET", f"${{NCCL_NET{operator}Socket}}", "x")
    assert setting == Setting("NCCL_NET", "Socket", "x", yields_to_env=True)


@pytest.mark.parametrize("value", ["${NCCL_NET:+Socket}", "${UCX_TLS:-Socket}", "${NCCL_NET:-a}b"])
def test_other_expansions(value: str) -> None:
    """Their value is known only when the container runs."""
    assert setting_by_assignment("NCCL_NET", value, "x") == Setting("NCCL_NET", None, "x")
