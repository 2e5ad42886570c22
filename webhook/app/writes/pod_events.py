"""Tell as a Kubernetes Event what an operator has to repair."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from certs.backoff import delays
from webhook.app.observe.log import Log
from webhook.app.options import ServeOptions
from webhook.kube.events import Pod, PodEvents, Warned

if TYPE_CHECKING:
    from webhook.kube.client import Client

#: What the Deployment sets, by the downward API.
POD = {"name": "POD_NAME", "namespace": "POD_NAMESPACE", "uid": "POD_UID"}

#: Gets how many configurations were good, and what is wrong with the one of now.
TellBroken = Callable[[int, str], None]


def tell_broken_by(options: ServeOptions, log: Log, environment: Mapping[str, str]) -> TellBroken:
    """Return what tells of a broken configuration; nothing does where this is no known pod."""
    told = {field: environment.get(variable, "") for field, variable in POD.items()}
    if not all(told.values()):
        return _tell_nobody
    events = PodEvents(
        Pod(**told),
        lambda: _connect(options.kubeconfig),
        delays,
        lambda problem: log.write("warning", "event not told", problem=problem),
    )
    return lambda generation, problem: events.warn(
        Warned("ConfigurationNotUsable", "Load", problem, str(generation))
    )


def _tell_nobody(_generation: int, _problem: str) -> None:
    """Leave it to the log and the metric."""


def _connect(kubeconfig: Path | None) -> Client:
    from webhook.kube.client import Client  # noqa: PLC0415 -- see there

    return Client(kubeconfig)
