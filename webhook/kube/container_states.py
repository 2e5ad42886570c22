"""The states of a pod's containers, as the kubelet reports them; other fields are ignored."""

from __future__ import annotations

from pydantic import Field

from webhook.kube.records import Flag, LenientObject, Maybe, Number, Text


class Waiting(LenientObject):
    """The reason why a container has not started."""

    reason: Text = ""
    message: Text = ""


class Terminated(LenientObject):
    """The end of a container."""

    exit_code: Number = 0
    reason: Text = ""
    message: Text = ""
    #: The start time; "" if it never ran.
    started_at: Text = ""
    finished_at: Text = ""


class Running(LenientObject):
    """A container that runs."""

    started_at: Text = ""


class ContainerState(LenientObject):
    """The state of a container; only one part is present."""

    waiting: Maybe[Waiting] = None
    running: Maybe[Running] = None
    terminated: Maybe[Terminated] = None

    @property
    def is_running(self) -> bool:
        """Whether the container runs."""
        return self.running is not None


class ContainerStatus(LenientObject):
    """The kubelet's status of a container."""

    name: Text = ""
    restart_count: Number = 0
    #: Whether its startupProbe has succeeded.
    started: Flag = False
    #: Whether its readinessProbe succeeds; without one, whether it runs.
    ready: Flag = False
    state: ContainerState = Field(default_factory=ContainerState)
    #: The state before its last restart.
    last_state: ContainerState = Field(default_factory=ContainerState)
