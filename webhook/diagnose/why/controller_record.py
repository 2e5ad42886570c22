"""The fields of controllers that decide whether they create pods, and when they replace them."""

from __future__ import annotations

from pydantic import Field

from webhook.kube.objects import Conditions, KubernetesObject
from webhook.kube.records import Flag, LenientObject, Number, Text

#: The conditions of a Job that has ended.
ENDS = ("Complete", "Failed")


class _RollingUpdate(LenientObject):
    partition: Number = 0


class _Strategy(LenientObject):
    type: Text = ""
    rolling_update: _RollingUpdate = Field(default_factory=_RollingUpdate)


class _Ordinals(LenientObject):
    start: Number = 0


class ControllerSpec(LenientObject):
    """What is asked of a controller."""

    suspend: Flag = False
    paused: Flag = False
    schedule: Text = ""
    concurrency_policy: Text = ""
    managed_by: Text = ""
    pod_management_policy: Text = ""
    update_strategy: _Strategy = Field(default_factory=_Strategy)
    ordinals: _Ordinals = Field(default_factory=_Ordinals)
    #: Unparsed, since a number that is missing is not 0.
    replicas: object = None
    parallelism: object = None

    @property
    def zero_field(self) -> str:
        """The field that asks for no pods; "" without one."""
        numbers = {"replicas": self.replicas, "parallelism": self.parallelism}
        return next((field for field, number in numbers.items() if number == 0), "")


class ControllerStatus(Conditions):
    """What a controller reports."""

    observed_generation: Number = 0
    update_revision: Text = ""
    desired_number_scheduled: Number = -1
    current_number_scheduled: Number = 0
    updated_number_scheduled: Number = 0
    replicas: Number = 0
    active: Number = 0
    failed: Number = 0

    @property
    def has_ended(self) -> bool:
        """Whether a Job runs no more."""
        return any(self.condition(end).status == "True" for end in ENDS)


class ControllerRecord(KubernetesObject):
    """A controller, or an object between it and its pods."""

    spec: ControllerSpec = Field(default_factory=ControllerSpec)
    status: ControllerStatus = Field(default_factory=ControllerStatus)

    @property
    def wants_none(self) -> bool:
        """Whether the controller is to create no pods now."""
        spec = self.spec
        return spec.suspend or bool(spec.zero_field) or self.status.desired_number_scheduled == 0

    @property
    def is_complete(self) -> bool:
        """Whether the controller reports as many pods as it asks for, or that it has ended."""
        spec, status = self.spec, self.status
        match self.kind:
            case "StatefulSet":
                return status.replicas == spec.replicas
            case "DaemonSet":
                return status.current_number_scheduled == status.desired_number_scheduled
            case "Job":
                return status.active == spec.parallelism or status.has_ended
            case _:
                return False
