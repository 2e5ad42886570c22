"""Taints of nodes, and which of them a pod tolerates.

Source: k8s.io/api, core/v1/toleration.go (ToleratesTaint). The operators Lt and Gt, for which
Kubernetes needs a feature gate, tolerate nothing here.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from webhook.model.json import Json, JsonObject

#: The effects that keep new pods away from a node; NO_EXECUTE also stops pods that run there.
NO_SCHEDULE, NO_EXECUTE = "NoSchedule", "NoExecute"


class Taint(NamedTuple):
    """A taint of a node that keeps pods away."""

    key: str
    value: str = ""
    effect: str = NO_SCHEDULE

    def __str__(self) -> str:
        """Return the taint as `kubectl taint` writes it: `key=value:NoSchedule`."""
        value = f"={self.value}" if self.value else ""
        return f"{self.key}{value}:{self.effect}"


class Tolerations:
    """The tolerations of a pod, indexed: the time for a taint does not depend on their number."""

    def __init__(self, written: Iterable[JsonObject]) -> None:
        #: (key, effect) of tolerations for any value, and (key, effect, value) of the others; ""
        #: stands for every key, and for every effect.
        self._of_any_value: set[tuple[str, str]] = set()
        self._of_one_value: set[tuple[str, str, str]] = set()
        for toleration in written:
            key, effect, value = (_text(toleration.get(field)) for field in _FIELDS)
            operator = toleration.get("operator") or "Equal"
            if operator == "Exists":
                self._of_any_value.add((key, effect))
            elif operator == "Equal":
                self._of_one_value.add((key, effect, value))

    def tolerate(self, taint: Taint) -> bool:
        """Return whether the pod may run on a node with this taint."""
        key, value, effect = taint
        scopes = ((key, effect), (key, ""), ("", effect), ("", ""))
        return any(
            scope in self._of_any_value or (*scope, value) in self._of_one_value for scope in scopes
        )


_FIELDS = ("key", "effect", "value")


def _text(written: Json) -> str:
    return written if isinstance(written, str) else ""
