from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.unit.serve.client import Lines
from webhook.serve.metrics import Metrics
from webhook.serve.options import ServeOptions
from webhook.serve.sources import configuration
from webhook.serve.sources.configuration import FileConfiguration
from webhook.serve.sources.configuration_in_use import ConfigurationInUse
from webhook.serve.sources.configuration_object import ObjectConfiguration
from webhook.serve.state import State

IN_POD = {"KUBERNETES_SERVICE_HOST": "10.0.0.1"}
GIVEN = Path("given.yaml")


def chosen(options: ServeOptions, environment: dict[str, str]) -> tuple[type[Any], list[str]]:
    """Return the source, and the kinds that it watches."""
    state, metrics = State(), Metrics()
    in_use = ConfigurationInUse(state, metrics, Lines().log)
    source = configuration.configuration_source(options, state, metrics, in_use, environment)
    assert [probe().name for probe in state.probes] == ["configuration"]
    watched = [
        reflector.watched.resource
        for informers in metrics.watches._informers
        for reflector in informers.reflectors
    ]
    return type(source), watched


@pytest.mark.parametrize(
    ("options", "environment"),
    [
        (ServeOptions(), {}),
        (ServeOptions(dev=True), IN_POD),
        (ServeOptions(config=GIVEN), IN_POD),
        (ServeOptions(config=GIVEN, kubeconfig=Path("config")), {}),
    ],
    ids=["nowhere", "a try in a pod", "a file in a pod", "a file beside a kubeconfig"],
)
def test_a_file(options: ServeOptions, environment: dict[str, str]) -> None:
    """It is read wherever an option names it, and where there is no cluster."""
    assert chosen(options, environment) == (FileConfiguration, [])


@pytest.mark.parametrize(
    ("options", "environment"),
    [
        (ServeOptions(), IN_POD),
        (ServeOptions(watch=False), IN_POD),
        (ServeOptions(kubeconfig=Path("config")), {}),
    ],
    ids=["in a pod", "without facts", "with a kubeconfig"],
)
def test_the_object(options: ServeOptions, environment: dict[str, str]) -> None:
    """It is watched in a cluster, whether its facts are or not."""
    assert chosen(options, environment) == (ObjectConfiguration, ["fabricconfigurations"])


def test_the_default_file_counts_only_outside_a_cluster(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a cluster, only a file that an option names counts."""
    monkeypatch.setattr("webhook.serve.options.INSTALLED_FABRICS", tmp_path / "fabrics.yaml")
    (tmp_path / "fabrics.yaml").write_text("")
    assert chosen(ServeOptions(), IN_POD)[0] is ObjectConfiguration
    assert chosen(ServeOptions(), {})[0] is FileConfiguration
