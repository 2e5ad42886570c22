"""Report in a Kubernetes Event what an operator has to fix."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from certs.backoff import delays
from webhook.kube.events import Pod, PodEvents, Warned
from webhook.serve.log import Log
from webhook.serve.options import ServeOptions

if TYPE_CHECKING:
    from webhook.kube.client import Client

#: The variables that the Deployment sets, by the downward API.
POD = {"name": "POD_NAME", "namespace": "POD_NAMESPACE", "uid": "POD_UID"}

#: Called with the number of good configurations so far, and what is wrong with the current one.
TellBroken = Callable[[int, str], None]


def tell_broken_by(options: ServeOptions, log: Log, environment: Mapping[str, str]) -> TellBroken:
    """Return a function that reports a broken configuration; it does nothing outside a pod."""
    told = {field: environment.get(variable, "") for field, variable in POD.items()}
    if not all(told.values()):
        return _tell_nobody
    events = PodEvents(
        Pod(**told),
        lambda: events_client(options.kubeconfig),
        delays,
        lambda problem: log.write("warning", "could not record the event", problem=problem),
    )
    return lambda generation, problem: events.warn(
        Warned("ConfigurationNotUsable", "Load", problem, str(generation))
    )


def _tell_nobody(_generation: int, _problem: str) -> None:
    """Do nothing: the log and the metric report it."""


def events_client(kubeconfig: Path | None) -> Client:
    """Return a client of the API server."""
    from webhook.kube.client import Client  # noqa: PLC0415 -- slow to import

    return Client(kubeconfig)
